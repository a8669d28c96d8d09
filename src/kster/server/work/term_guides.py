"""Terms on a server: those of a request, and those of the glossaries it names.

Requests with the same terms share one guide, so that they can share batches.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial

from kster.errors import KsterError
from kster.memory import Memory
from kster.model import BaseModel
from kster.terms import Term, term
from kster.translation.term_guide import TermGuide

MOST_TERMS = 10_000  # of one request, its glossaries included
MOST_WORDS = 5  # of a glossary's entry; longer ones are sentences, which examples teach better
KEPT = 32  # lists of terms that are kept ready


class TermGuides:
    """Guides of one model, the ones used last kept ready."""

    def __init__(self, model: BaseModel) -> None:
        self._guide = lru_cache(KEPT)(partial(TermGuide, model=model))
        self._lock = threading.Lock()

    def get(self, terms: Sequence[Term]) -> TermGuide | None:
        """None for no terms."""
        if len(terms) > MOST_TERMS:
            raise KsterError(f"{len(terms):,} terms; at most {MOST_TERMS:,} are accepted at once")
        with self._lock:  # so that equal terms get the same guide even when they come at the same time
            return self._guide(tuple(terms)) if terms else None


def glossary_terms(glossaries: Iterable[Memory]) -> list[Term]:
    """The segments of memories that are used as glossaries; the newest target of a source is preferred.

    What is too long for a term is left out: it is only an example.
    """
    targets: dict[str, list[str]] = {}
    for memory in glossaries:
        for segment in memory.segments(limit=MOST_TERMS):
            targets.setdefault(segment.source, []).insert(0, segment.target)
    terms = []
    for source, accepted in targets.items():
        if len(source.split()) > MOST_WORDS:
            continue
        try:
            terms.append(term(source, accepted))
        except KsterError:
            continue
    return terms
