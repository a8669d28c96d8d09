"""Terms on a server: those of a request, and those of the glossaries it names.

Requests with the same terms share what was made of them, and so their batches.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence

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
        self._model = model
        self._ready: OrderedDict[tuple[Term, ...], TermGuide] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, terms: Sequence[Term]) -> TermGuide | None:
        """None for no terms."""
        key = tuple(terms)
        if not key:
            return None
        if len(key) > MOST_TERMS:
            raise KsterError(f"{len(key):,} terms; at most {MOST_TERMS:,} are accepted at once")
        with self._lock:
            guide = self._ready.pop(key, None) or TermGuide(key, self._model)
            self._ready[key] = guide
            while len(self._ready) > KEPT:
                self._ready.popitem(last=False)
        return guide


def glossary_terms(glossaries: Iterable[Memory]) -> list[Term]:
    """The segments of memories that are used as glossaries; the newest target of a source is preferred.

    What is too long for a term is left out: it is an example still.
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
