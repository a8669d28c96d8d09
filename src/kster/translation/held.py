"""Texts that a memory holds as they are: they come back as they were taught, so they are not cut."""

from __future__ import annotations

from collections.abc import Sequence

from kster.memory import Memory

LOOK_UPS = 4  # a look-up reads all segments; reading their sources once costs as much as four


class HeldTexts:
    """Whether one of some memories has a text as a source; for as long as one call takes."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        self._memories = memories
        self._known: dict[str, bool] = {}
        self._hashes: set[int] | None = None  # of all sources, once there is more to ask than a little

    def __call__(self, text: str) -> bool:
        if text not in self._known:
            self._known[text] = self._may_have(text) and self._has(text)
        return self._known[text]

    def _may_have(self, text: str) -> bool:
        if len(self._known) < LOOK_UPS:
            return True
        if self._hashes is None:
            self._hashes = {hash(pair.source) for memory in self._memories for pair in memory.export()}
        return hash(text) in self._hashes

    def _has(self, text: str) -> bool:
        return any(memory.find_text(source=text) for memory in self._memories)
