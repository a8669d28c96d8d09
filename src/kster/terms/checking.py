"""What is wrong with a term base, or with translations that should have kept its terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kster.formats.pair import Pair
from kster.terms.matching import TermFinder, is_kept
from kster.terms.term import Term


def lost_terms(
    terms: Sequence[Term], pairs: Iterable[Pair], source_lang: str, target_lang: str
) -> Iterator[dict[str, Any]]:
    """The terms that are in a source and not in its translation."""
    finder = TermFinder(terms, source_lang)
    for pair in pairs:
        for match in finder.find(pair.source):
            if not is_kept(match.term, pair.target, target_lang):
                yield {
                    "line": pair.line,
                    "term": match.term.source,
                    "targets": list(match.term.targets),
                    "source": pair.source,
                    "target": pair.target,
                }


def contradictions(terms: Iterable[Term]) -> list[dict[str, Any]]:
    """Sources that two terms translate in different ways, in the same or in other case."""
    first: dict[str, Term] = {}
    found = []
    for one in terms:
        other = first.setdefault(one.source.casefold(), one)
        exact = "exact" in (one.case, other.case) and one.source != other.source
        if not exact and one.targets[0] != other.targets[0]:
            found.append(
                {"term": one.source, "ids": [other.id, one.id], "targets": [*other.targets, *one.targets]}
            )
    return found
