"""Which memories speak to their readers formally, and which do not."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

from kster.memory import Memory
from kster.text.voice import Voice, voice_of

LOOKED_AT = 5_000  # segments of a memory; more would say the same


class Voices:
    """Counts the segments of each voice, again when a memory has changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, Counter[Voice]]] = {}
        self._lock = threading.Lock()

    def count(self, memory: Memory, language: str) -> Counter[Voice]:
        size = memory.entry_count
        with self._lock:
            known = self._known.get(str(memory.directory))
        if known is None or known[0] != size:
            found = (voice_of(one.target, language) for one in memory.segments(limit=LOOKED_AT))
            known = size, Counter(voice for voice in found if voice is not None)
            with self._lock:
                self._known[str(memory.directory)] = known
        return known[1]

    def chosen(self, memories: Sequence[Memory], language: str, wanted: Voice) -> list[Memory] | None:
        """Those that are not mostly in the other voice; None if no memory has a segment in this one."""
        other: Voice = "less" if wanted == "more" else "more"
        counts = [self.count(memory, language) for memory in memories]
        if not any(own[wanted] for own in counts):
            return None
        return [m for m, own in zip(memories, counts, strict=True) if own[wanted] >= own[other]]
