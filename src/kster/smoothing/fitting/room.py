"""How much memory a fit needs: checked before it begins, since a process that has too little is killed."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from kster.errors import KsterError

LOOKED_UP_BYTES = 1 << 30
"""Of the keys found for the tokens that are searched for at once: they come in several copies."""

NEIGHBOUR_BYTES = 17
"""Of a neighbour in a `FitCache`: id, distance, value, log p_m of it, and whether it is related."""


def tokens_at_once(most: int, neighbours: int, dimension: int) -> int:
    """How many tokens to search for at once: `most`, or fewer where each has many neighbours."""
    return max(1, min(most, LOOKED_UP_BYTES // (4 * neighbours * dimension)))


def require_room(tokens: int, neighbours: int, dimension: int) -> None:
    """Raises KsterError if so many tokens with so many neighbours do not fit, naming settings that help."""
    cache = tokens * (neighbours * NEIGHBOUR_BYTES + 2 * dimension + 40)
    looked_up = min(LOOKED_UP_BYTES, 4 * tokens * neighbours * dimension)
    needed, available = 2 * cache + looked_up, available_bytes()  # twice, while parts are joined
    if needed > available:
        raise KsterError(
            f"this fit needs about {needed / 1e9:.1f} GB of memory for {tokens:,} tokens with {neighbours} "
            f"neighbours each, and {available / 1e9:.1f} GB are free; choose a smaller k or max_tokens; "
            "nothing was changed"
        )


def available_bytes() -> int:
    """What this process can still get, by the kernel and by the limits of a container."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = 1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1])
        with suppress(OSError, ValueError):
            group = Path("/sys/fs/cgroup")
            used, most = (int((group / name).read_text()) for name in ("memory.current", "memory.max"))
            free = min(free, max(0, most - used))
        return free
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
