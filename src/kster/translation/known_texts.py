"""Texts that a memory holds as they are: they come back as they were taught, so they are not cut."""

from __future__ import annotations

from collections.abc import Sequence

from kster.memory import Memory


class KnownTexts:
    """How some memories translate a text that they hold as a source; for as long as one call takes."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        self._memories = memories
        self._known: dict[str, frozenset[str]] = {}

    def __call__(self, text: str) -> frozenset[str]:
        """Empty if none of them does."""
        if text not in self._known:
            self._known[text] = frozenset(
                segment.target for memory in self._memories for segment in memory.find_text(source=text)
            )
        return self._known[text]
