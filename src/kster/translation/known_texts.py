"""Texts that a memory holds as they are: they come back as they were taught, so they are not cut."""

from __future__ import annotations

from collections.abc import Sequence

from kster.memory import Memory


class HeldTexts:
    """Whether one of some memories has a text as a source; for as long as one call takes."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        self._memories = memories
        self._known: dict[str, bool] = {}

    def __call__(self, text: str) -> bool:
        if text not in self._known:
            self._known[text] = any(memory.find_text(source=text) for memory in self._memories)
        return self._known[text]
