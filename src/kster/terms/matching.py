"""Finding terms in a text, in whatever form they stand there: the longest first, and never within other words
unless a term asks for it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kster.terms.inflection import Form, forms_for, makes_compounds
from kster.terms.term import Term

Span = tuple[int, int]  # begin and end, in characters

WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['’]s\b")
MOST_BETWEEN = 12  # words between the two parts of a form; German verbs hold whole clauses
SENTENCE_END = re.compile(r"[.!?;:]\s")
SHORTEST_IN_COMPOUND = 4  # letters; shorter words are found in too many others


@dataclass(frozen=True, slots=True)
class Match:
    """A term that stands in a text; the parts of a form that is divided have a span each."""

    term: Term
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A form as words to compare."""

    term: Term
    parts: tuple[tuple[str, ...], ...]
    exact: bool

    @property
    def rank(self) -> tuple[int, int, int]:
        """Longer ones are found first; of equally long ones, those that are not divided."""
        words = [word for part in self.parts for word in part]
        return -len(words), len(self.parts), -sum(map(len, words))


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a text, as written and in lower case, and where they are."""

    text: str
    written: list[str]
    folded: list[str]
    spans: list[Span]

    @classmethod
    def of(cls, text: str) -> _Words:
        plain = _POSSESSIVE.sub(lambda found: " " * len(found[0]), text)
        found = list(WORD.finditer(plain))
        written = [match[0] for match in found]
        return cls(text, written, [word.casefold() for word in written], [match.span() for match in found])


class TermFinder:
    """Finds terms by their sources in texts of the source language."""

    def __init__(self, terms: Iterable[Term], language: str | None) -> None:
        self._by_word: dict[str, list[_Pattern]] = defaultdict(list)
        self._inside: list[Term] = []
        for term in terms:
            for pattern in _patterns(term, [term.source], language):
                self._by_word[pattern.parts[0][0].casefold()].append(pattern)
            if term.inside_words:
                self._inside.append(term)

    def find(self, text: str) -> list[Match]:
        """The terms of a text in the order they stand there; no two share a word."""
        words = _Words.of(text)
        candidates = [
            (pattern.rank, i, pattern)
            for i, word in enumerate(words.folded)
            for pattern in self._by_word.get(word, ())
        ]
        taken: set[int] = set()
        matches: list[Match] = []
        for _, i, pattern in sorted(candidates, key=lambda candidate: candidate[:2]):
            for places in _places(pattern, words, i):
                if taken.isdisjoint(places):
                    taken.update(places)
                    matches.append(Match(pattern.term, _spans(pattern, words, places)))
                    break
        matches += self._find_inside(words, taken)
        return sorted(matches, key=lambda match: match.spans)

    def _find_inside(self, words: _Words, taken: set[int]) -> Iterator[Match]:
        for term in sorted(self._inside, key=lambda term: -len(term.source)):
            wanted = term.source if term.case == "exact" else term.source.casefold()
            for i, (begin, _) in enumerate(words.spans):
                word = words.written[i] if term.case == "exact" else words.folded[i]
                at = word.find(wanted)
                if at >= 0 and i not in taken:
                    taken.add(i)
                    yield Match(term, ((begin + at, begin + at + len(wanted)),))


def is_kept(term: Term, translation: str, language: str | None) -> bool:
    """Whether a translation has one of a term's targets: inflected or not, alone or in a compound."""
    return count_kept(term, translation, language) > 0


def count_kept(term: Term, translation: str, language: str | None) -> int:
    """How often a translation has one of a term's targets."""
    words = _Words.of(translation)
    taken: set[int] = set()
    count = 0
    for pattern in sorted(_patterns(term, term.targets, language), key=lambda pattern: pattern.rank):
        for i in range(len(words.folded)):
            for places in _places(pattern, words, i):
                if taken.isdisjoint(places):
                    taken.update(places)
                    count += 1
                    break
    if term.translate and makes_compounds(language):
        count += sum(i not in taken for i in _compounds(term, words, language))
    return count


def _compounds(term: Term, words: _Words, language: str | None) -> Iterator[int]:
    """The words that begin with a target or end with a form of it."""
    for target in term.targets:
        if " " in target or len(target) < SHORTEST_IN_COMPOUND or term.part_of_speech == "verb":
            continue
        endings = tuple(form[0].casefold() for form in forms_for(term, target, language))
        for i, word in enumerate(words.folded):
            longer = len(word) > len(target) + 2
            if longer and (word.startswith(target.casefold()) or word.endswith(endings)):
                yield i


def _patterns(term: Term, phrases: Sequence[str], language: str | None) -> list[_Pattern]:
    patterns = []
    exact = term.case == "exact"
    for phrase in phrases:
        own = forms_for(term, phrase, language)
        if "-" in phrase:  # plug-in, plugin
            own += forms_for(term, phrase.replace("-", ""), language)
        for form in own:
            parts = tuple(tuple(WORD.findall(part)) for part in form)
            if all(parts):
                patterns.append(_Pattern(term, parts, exact))
    return patterns


def _places(pattern: _Pattern, words: _Words, first: int) -> Iterator[tuple[int, ...]]:
    """The numbers of the words a pattern takes when it begins at a word; several ways where it is divided."""
    head, *others = pattern.parts
    if not _stands_at(head, pattern.exact, words, first):
        return
    begin = tuple(range(first, first + len(head)))
    if not others:
        yield begin
        return
    (tail,) = others
    for i in range(begin[-1] + 1, min(begin[-1] + 2 + MOST_BETWEEN, len(words.folded))):
        between = words.text[words.spans[begin[-1]][1] : words.spans[i][0]]
        if SENTENCE_END.search(between):
            return
        if _stands_at(tail, pattern.exact, words, i):
            yield (*begin, *range(i, i + len(tail)))


def _stands_at(part: Sequence[str], exact: bool, words: _Words, at: int) -> bool:
    if at + len(part) > len(words.folded):
        return False
    own = words.written if exact else words.folded
    for i, word in enumerate(part):
        if own[at + i] != (word if exact else word.casefold()):
            return False
        if i and not re.fullmatch(
            r"[\s\-‐‑]+", words.text[words.spans[at + i - 1][1] : words.spans[at + i][0]]
        ):
            return False
    return True


def _spans(pattern: _Pattern, words: _Words, places: Sequence[int]) -> tuple[Span, ...]:
    spans = []
    at = 0
    for part in pattern.parts:
        own = places[at : at + len(part)]
        spans.append((words.spans[own[0]][0], words.spans[own[-1]][1]))
        at += len(part)
    return tuple(spans)


__all__ = ["Form", "Match", "Span", "TermFinder", "count_kept", "is_kept"]
