"""Keys that a fit learns from, of a memory whose keys are made on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kster.memory import KeyMaker, Memory

FEW = 20_000  # segments without keys that are all made before a fit; of more, a sample
CHARACTERS_PER_TOKEN = 4
AT_ONCE = 64  # texts


def make_needed_keys(
    model: KeyMaker,
    memory: Memory,
    tokens: int,
    texts: Sequence[str],
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Make the keys that a fit needs: of about this many tokens to learn from, and of what these find.

    If the keys of many segments are missing, they are made for a random sample of these, and for the segments
    that are most like the sample, or like the other texts given here.
    """
    memory.use_model(model)
    missing = memory.ids_without_keys()
    if len(missing) <= FEW:
        memory.make_keys(progress=None if progress is None else lambda done: progress(done, len(missing)))
        return
    sample = np.random.default_rng(seed).permutation(missing)
    wanted, sources = _worth(memory, sample, tokens * CHARACTERS_PER_TOKEN)
    done = 0
    for first in range(0, len(wanted), AT_ONCE):
        memory.make_keys(ids=wanted[first : first + AT_ONCE])
        memory.make_wanted_keys(sources[first : first + AT_ONCE])
        done += len(wanted[first : first + AT_ONCE])
        if progress is not None:
            progress(done, len(wanted))
    for first in range(0, len(texts), AT_ONCE):
        memory.make_wanted_keys(texts[first : first + AT_ONCE])


def _worth(memory: Memory, ids: np.ndarray, characters: int) -> tuple[list[int], list[str]]:
    """The first of these segments whose targets have this many characters together, and their sources."""
    wanted: list[int] = []
    sources: list[str] = []
    for first in range(0, len(ids), 1_000):
        for segment in memory.segments_of(ids[first : first + 1_000].tolist()):
            wanted.append(segment.id)
            sources.append(segment.source)
            characters -= len(segment.target)
            if characters <= 0:
                return wanted, sources
    return wanted, sources
