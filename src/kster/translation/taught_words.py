"""Words that a few examples taught, for the next sentence to use.

A forced pass over an example says which of its words the base model would not have written, and the decoder's
attention which words of the source they stand for. If a sentence has those words, and its translation does
not have what they were translated with, it is searched for once more as if that were a term
(`term_guide.py`). What is found is taken if it is nearly as probable.

Neighbours alone do not do it: where the base model is sure of its own word, or of the beginning of another
one, no mixing weight that is right elsewhere lets one example decide.

Only nouns are taken over, and only from or into German, whose capitals show which words are nouns: what a
verb or an adjective becomes depends on the sentence.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from threading import Lock

from torch import Tensor

from kster.memory import Resembling, SearchableMemory
from kster.memory.sources.words import terms_of
from kster.model import BaseModel
from kster.model.focus import NO_WORD, source_words
from kster.model.forcing import ForcedSentence, force_decode
from kster.terms import Term, TermFinder
from kster.terms.gender import agrees, genders_shown
from kster.terms.inflection import forms_for
from kster.terms.matching import WORD, is_kept
from kster.text.languages import match_rank
from kster.text.voice import WORDS
from kster.translation.beams import Hypothesis
from kster.translation.choice import first_good
from kster.translation.explanation import Lesson
from kster.translation.words import Word, words_of

SIMILAR = 32  # segments that are looked at
RARE = 5  # of them at most may have the word; what more of them have, neighbours teach well enough
LONGEST = 200  # characters of a segment's source
ALIKE = 20  # per cent: the least match of a segment that teaches another meaning of a common word
LEAST_LETTERS = 4
LONGER = 3  # letters that are no ending of the word any more
UNEXPECTED = -4.0  # log-probability below which the base model would have written something else
OWN = 0.7  # a source word belongs to target words that pay it this share of the most attention it gets
TOLD = 0.15  # attention that the words of the source must get at least …
SURE = 0.45  # … and the share of it that those belonging to a target word must have
REMEMBERED = 4_096  # pairs

_ENDS = ".!?:…"  # after which every word has a capital
_ARTICLES = {"a", "an", "the", "of", "this", "that"}  # which are part of no name
_MARKS = ".,;:!?…()[]{}\"'«»„“”‚‘’"
_PRONOUNS = {word.casefold() for words in WORDS.values() for word in words}


class TaughtWords:
    """Of a model's examples; any number of threads may ask."""

    def __init__(self, model: BaseModel) -> None:
        self._model = model
        self._known: OrderedDict[tuple[str, str], tuple[Term, ...]] = OrderedDict()
        self._lock = Lock()
        languages = model.source_lang or "", model.target_lang or ""
        self._from_german, self._into_german = (bool(match_rank("de", language)) for language in languages)

    def missing(
        self, memory: SearchableMemory, sources: Sequence[str], translations: Sequence[str]
    ) -> dict[int, dict[Term, Lesson]]:
        """By the numbers of the sources: words that the memory taught and their translations do not have."""
        if not (self._from_german or self._into_german):
            return {}
        similar = memory.similar_segments(sources, SIMILAR)
        telling = [self._telling(*one) for one in zip(sources, translations, similar, strict=True)]
        taught = self._taught_by({_pair(one) for own in telling for one in own})
        found = {}
        for i, (source, translation) in enumerate(zip(sources, translations, strict=True)):
            newest_first = sorted(telling[i], key=lambda match: -match.segment.id)
            lessons = {term: _lesson(one) for one in newest_first for term in taught[_pair(one)]}
            wanted = {
                term: lesson
                for term, lesson in lessons.items()
                if not is_used(term, translation, self._model.target_lang)
                and self._is_taught(term, source, similar[i])
            }
            if wanted:
                found[i] = wanted
        return found

    def _telling(self, source: str, translation: str, similar: Sequence[Resembling]) -> set[Resembling]:
        """The newest segment for each word, or two in a row, that the source shares with few segments.

        A forced pass takes half as long as a translation. So segments are left out that are long, that keep
        the word as it is, or whose nouns the translation has already.
        """
        having: dict[str, list[Resembling]] = {group: [] for group in _word_groups(source)}
        for one in sorted(similar, key=lambda match: -match.segment.id):
            for group in having.keys() & _word_groups(one.segment.source):
                having[group].append(one)
        return {
            own[0]
            for group, own in having.items()
            if 0 < len(own) <= RARE
            and len(own[0].segment.source) <= LONGEST
            and group not in own[0].segment.target.casefold()
            and (
                " " in group
                or not self._is_common(group)
                or any(one.percentage(source) >= ALIKE for one in own)
            )
            and not (self._into_german and _has_nouns(translation, own[0].segment.target))
        }

    def _is_common(self, phrase: str) -> bool:
        """Whether the model's vocabulary has it whole; such words mean other things in other texts."""
        (read,) = self._model.tokenise_source([phrase])
        return len(read) <= 2  # a token, and the end of the sentence

    def _is_taught(self, term: Term, source: str, similar: Sequence[Resembling]) -> bool:
        """Whether a source has a word that few segments have, and all of them translate it in this way."""
        finder = TermFinder([term], self._model.source_lang)
        if not finder.find(source):
            return False
        having = [one for one in similar if finder.find(one.segment.source)]
        return (
            len(having) <= RARE
            and all(is_kept(term, one.segment.target, self._model.target_lang) for one in having)
            and (not self._is_common(term.source) or _is_alike(having, source))
        )

    def _taught_by(self, pairs: Collection[tuple[str, str]]) -> dict[tuple[str, str], tuple[Term, ...]]:
        """What each pair teaches; what was asked for lately is remembered."""
        with self._lock:
            known = {pair: self._known[pair] for pair in pairs if pair in self._known}
        new = [pair for pair in pairs if pair not in known]
        for (source, target), forced in zip(new, force_decode(self._model, new), strict=True):
            known[source, target] = tuple(self._terms_of(source, forced))
        with self._lock:
            for pair in pairs:
                self._known[pair] = known[pair]
                self._known.move_to_end(pair)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return known

    def _terms_of(self, source: str, forced: ForcedSentence) -> Iterator[Term]:
        """The nouns of a pair that the base model did not expect, and what they translate."""
        model = self._model
        read = source_words(model, model.tokenise_source([source])[0]).words
        pieces = [model.token_text(token) for token in forced.tokens.tolist()]
        words = words_of(pieces, pieces[-1])
        attention = [forced.focus[word.first : word.last].float().mean(0)[:NO_WORD] for word in words]
        most = _highest(attention)  # (NO_WORD,)
        for i, (word, own) in enumerate(zip(words, attention, strict=True)):
            if forced.log_probs[word.first : word.last].sum() > UNEXPECTED:
                continue
            told = float(own.sum())
            mine = [j for j in range(len(read)) if own[j] >= OWN * most[j] and own[j] >= TOLD * SURE]
            if not mine or told < TOLD or float(own[mine].sum()) < SURE * told:
                continue
            if any(after - before != 1 for before, after in pairwise(mine)):
                continue
            phrase = " ".join(read[j].strip(_MARKS) for j in mine)
            if self._into_german:
                german, before = word.text, [other.text for other in words[:i]]
            elif _is_part(words, attention, i, mine):
                continue
            else:
                german, before = phrase, read[: mine[0]]
            is_inner = bool(before) and before[-1][-1:] not in _ENDS
            is_text = word.text.isalpha() and len(phrase) >= LEAST_LETTERS
            if is_inner and is_text and _is_noun(german):
                yield Term(phrase, (word.text,), "noun")


def is_used(term: Term, translation: str, language: str | None) -> bool:
    """Whether a translation has the word, and not only at the beginning of another: the base model goes on
    with what it meant to write, "Drehbankband"."""
    begun = "|".join(rf"\b{re.escape(target)}\w{{{LONGER},}}" for target in term.targets)
    return is_kept(term, re.sub(begun, "", translation, flags=re.IGNORECASE), language)


def _is_part(words: Sequence[Word], attention: Sequence[Tensor], at: int, mine: Sequence[int]) -> bool:
    """Whether the word before or behind translates the same: "tree" of "data tree" for "Datenstruktur"."""
    beside = [i for i in (at - 1, at + 1) if 0 <= i < len(words) and words[i].text.isalpha()]
    return any(int(attention[i].argmax()) in mine for i in beside if words[i].text.lower() not in _ARTICLES)


def with_agreement(
    model: BaseModel, lessons: Mapping[Term, Lesson], own: list[Hypothesis]
) -> list[Hypothesis]:
    """The hypotheses, beginning with one whose articles have the genders that the examples' articles show.

    It must be nearly as probable as the best; without one the order stays.
    """
    if len(own) < 2 or not lessons or not match_rank("de", model.target_lang or ""):
        return own
    nouns = []
    for term, lesson in lessons.items():
        forms = [form[0] for form in forms_for(term, term.targets[0], "de")]
        nouns.append((genders_shown(forms, lesson.target), forms))
    written = model.detokenise([one.tokens for one in own])
    return first_good(own, [all(agrees(*noun, text) for noun in nouns) for text in written])


def _has_nouns(translation: str, german: str) -> bool:
    """Whether a translation has all words with a capital that another text has, with whatever ending."""
    names = [word for word in WORD.findall(german) if word[0].isupper() and len(word) >= LEAST_LETTERS]
    return all(re.search(rf"\b{word[:-2]}\w{{0,4}}\b", translation) for word in names)


@lru_cache(maxsize=1 << 12)
def _word_groups(text: str) -> frozenset[str]:
    """The words of a text that may name something, and every two in a row; singular and plural are one."""
    words = [word.removesuffix("s") for word in terms_of(text)]
    long = [len(word) >= LEAST_LETTERS for word in words]
    twos = {f"{words[i]} {words[i + 1]}" for i in range(len(words) - 1) if long[i] and long[i + 1]}
    return frozenset(twos.union(word for word, is_long in zip(words, long, strict=True) if is_long))


def _is_alike(segments: Sequence[Resembling], source: str) -> bool:
    return any(one.percentage(source) >= ALIKE for one in segments)


def _pair(one: Resembling) -> tuple[str, str]:
    return one.segment.source, one.segment.target


def _lesson(one: Resembling) -> Lesson:
    return Lesson(one.segment.id, *_pair(one), one.memory)


def _is_noun(german: str) -> bool:
    """Whether a word, or the last of several, is a noun, as far as its letters tell."""
    word = german.rpartition(" ")[2]
    is_name = len(word) >= LEAST_LETTERS and word[0].isupper() and word.replace("-", "").isalpha()
    return is_name and word.casefold() not in _PRONOUNS


def _highest(attention: Sequence[Tensor]) -> Tensor:
    """Of each source word, the most attention that any target word pays to it."""
    highest = attention[0]
    for own in attention[1:]:
        highest = highest.maximum(own)
    return highest
