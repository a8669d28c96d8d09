"""Terms on their way into a translation.

The model reads a sentence whose terms are already replaced by their targets ("Empty the Abschlagbehälter."):
it mostly copies them, inflects them and lets articles agree, and the search makes sure that they come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from kster.errors import KsterError
from kster.model import BaseModel
from kster.terms import Match, Term, TermBase, TermFinder
from kster.terms.english import has_article, is_plural
from kster.terms.inflection import counterpart, forms_for
from kster.text.languages import match_rank
from kster.translation.explanation import Lesson
from kster.translation.term_agreement import Agreement, agreement_of
from kster.translation.term_constraints import FIRST_ROOT, Course, Requirement, Trie
from kster.translation.term_search import TermSearch
from kster.translation.words import SPACE

MOST_COURSES = 1_000  # that are remembered, of some 20 KB each


class Guided(NamedTuple):
    """text: what the model reads; requirements: the terms its translation must have.

    lessons: which of the terms are words of examples (`taught_words.py`).
    """

    text: str
    requirements: tuple[Requirement, ...]
    lessons: Mapping[Term, Lesson] = {}


class TermGuide:
    """Terms, ready for the texts of a model's source language."""

    def __init__(self, terms: Iterable[Term], model: BaseModel) -> None:
        self._model = model
        self._languages = (model.source_lang, model.target_lang)
        self._finder = TermFinder(terms, model.source_lang)
        self._tries: dict[Term, Trie] = {}
        self._courses: dict[tuple[tuple[Term, int], ...], Course] = {}
        self._texts: dict[int, str] = {}
        self._endings: dict[int, bool] = {}
        self._agreements: dict[tuple[Term, bool | None, bool], Agreement | None] = {}

    @classmethod
    def of(cls, terms: NamedTerms, model: BaseModel) -> TermGuide:
        """From terms, or from a term base, open or by its file's name."""
        if isinstance(terms, TermGuide):
            return terms
        if isinstance(terms, str | PathLike):
            with TermBase.open(terms) as opened:
                return cls.of(opened, model)
        if isinstance(terms, TermBase):
            _require_languages(terms, model)
            terms = terms.terms()
        return cls(terms, model)

    def guide(self, text: str) -> Guided:
        """Find the terms of a text."""
        matches = self._finder.find(text)
        tries = {match.term: self._trie(match.term) for match in matches}
        matches = [match for match in matches if tries[match.term].ends]
        counts = Counter(match.term for match in matches)
        needed = tuple(
            Requirement(
                term,
                tries[term],
                count,
                self._agreement(term, text, [one for one in matches if one.term == term]),
            )
            for term, count in counts.items()
        )
        return Guided(self.with_targets(text, matches), needed)

    def search(self, guided: Sequence[Guided], beam: int, n_best: int) -> TermSearch | None:
        """What brings the terms of a batch into its translations; None if there are none."""
        requirements = [one.requirements for one in guided]
        if not any(requirements):
            return None
        return TermSearch(
            *(requirements, self._course, beam, n_best, self._said, self._ends_word),
            *(self._model.pad_id, self._model.eos_id),
        )

    def with_targets(self, text: str, matches: Sequence[Match]) -> str:
        """A text with targets in the place of its terms."""
        for match in reversed(matches):
            if len(match.spans) == 1:
                ((begin, end),) = match.spans
                text = text[:begin] + counterpart(match.term, text[begin:end], self._languages) + text[end:]
        return text

    def _trie(self, term: Term) -> Trie:
        """The forms of a term that the model has tokens for."""
        if term not in self._tries:
            trie = Trie()
            for target in term.targets:
                for form in forms_for(term, target, self._model.target_lang):
                    self._add(trie, form, first=False)
                    if form[0][0].islower() and term.case == "any":
                        self._add(trie, (form[0][0].upper() + form[0][1:], *form[1:]), first=True)
            self._tries[term] = trie
        return self._tries[term]

    def _add(self, trie: Trie, form: Sequence[str], *, first: bool) -> None:
        tokens = [ids[:-1] for ids in self._model.tokenise_target(list(form))]
        if all(tokens) and self._model.detokenise(tokens) == list(form):
            trie.add(tokens, root=FIRST_ROOT if first else 0)

    def _agreement(self, term: Term, text: str, matches: Sequence[Match]) -> Agreement | None:
        """Of a term that a text has in these places."""
        source_lang, target_lang = self._languages
        if not (target_lang and match_rank("de", target_lang)):
            return None
        plural, article = None, False
        if source_lang and match_rank("en", source_lang):
            spans = [match.spans[0] for match in matches]
            numbers = {is_plural(text[begin:end], term.source) for begin, end in spans}
            plural = numbers.pop() if len(numbers) == 1 else None
            article = all(has_article(text[:begin]) for begin, _ in spans)
        key = (term, plural, article)
        if key not in self._agreements:
            self._agreements[key] = agreement_of(term, plural=plural, article=article)
        return self._agreements[key]

    def _course(self, requirements: Sequence[Requirement]) -> Course:
        """Of terms that are required together: the next sentence often has the same."""
        key = tuple((one.term, one.count) for one in requirements)
        if key not in self._courses:
            if len(self._courses) >= MOST_COURSES:
                self._courses.clear()
            self._courses[key] = Course(requirements)
        return self._courses[key]

    def _said(self, token: int) -> str:
        said = self._texts.get(token)
        if said is None:
            said = self._texts[token] = (self._model.token_text(token) or "").replace(SPACE, " ")
        return said

    def _ends_word(self, token: int) -> bool:
        """Whether a word ends before a token."""
        if token not in self._endings:
            piece = self._model.token_text(token) or ""
            part_of_word = piece[:1].isalnum() or piece.startswith("<0x")
            self._endings[token] = token == self._model.eos_id or not part_of_word
        return self._endings[token]


def _require_languages(base: TermBase, model: BaseModel) -> None:
    wanted = ((base.source_lang, model.source_lang), (base.target_lang, model.target_lang))
    if not all(own is None or match_rank(given, own) for given, own in wanted):
        raise KsterError(
            f"{Path(base.path).name}: its terms are {base.source_lang} → {base.target_lang}; the model "
            f"translates {model.source_lang} → {model.target_lang}"
        )


NamedTerms = TermGuide | TermBase | str | PathLike[str] | Sequence[Term]
"""Terms as a caller may name them."""
