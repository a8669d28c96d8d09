"""The caches of one fit, built or found where an earlier fit of the same memory kept them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import torch

from kster.errors import KsterError
from kster.smoothing.fitting.cache import FitCache
from kster.smoothing.fitting.lookup import Lookup, cache_pairs, cache_segments, count_tokens

Pairs = Sequence[tuple[str, str]]
Progress = Callable[[str, int, int], None]
"""Called with what is being done ("caching", "fitting", "measuring": learning a metric, "translating":
choosing a length penalty, or "judging": calibrating confidences), how many tokens, steps or sentences are
done, and of how many."""


class Cacher:
    """Builds the caches of one fit."""

    def __init__(self, lookup: Lookup, neighbours: int, progress: Progress | None, kept: Path | None) -> None:
        self.lookup, self.neighbours, self.progress, self.kept = lookup, neighbours, progress, kept
        self.done = self.total = 0  # tokens

    def expect(self, segment_ids: Sequence[int], pairs: Pairs) -> None:
        """Say what will be asked for, so that progress has a total."""
        own = torch.isin(self.lookup.entries.segment_ids, torch.tensor(segment_ids))
        self.total = int(own.sum()) + count_tokens(self.lookup.model, pairs)

    def segments(self, segment_ids: Sequence[int]) -> FitCache:
        return self._once(
            [*segment_ids],
            lambda: cache_segments(self.lookup, segment_ids, self.neighbours, self._report),
        )

    def pairs(self, pairs: Pairs) -> FitCache:
        return self._once([*pairs], lambda: cache_pairs(self.lookup, pairs, self.neighbours, self._report))

    def _once(self, wanted: list[int] | list[tuple[str, str]], build: Callable[[], FitCache]) -> FitCache:
        """What an earlier fit kept of the same tokens, or built now, and kept if there is a place for it."""
        if self.kept is None:
            cache = build()
        else:
            text = repr((self.lookup.model.fingerprint, self.neighbours, wanted))
            place = self.kept / hashlib.sha256(text.encode()).hexdigest()[:16]
            try:
                cache = FitCache.load(place, self.lookup.entries)
            except (KsterError, OSError, ValueError):  # none yet, of another state, or just being replaced
                cache = build()
                with suppress(OSError):  # the next fit builds it again
                    cache.save(place, self.lookup.entries)
        self.done += len(cache)
        return cache

    def _report(self, tokens: int, _: int) -> None:
        if self.progress is not None:
            self.progress("caching", self.done + tokens, self.total)
