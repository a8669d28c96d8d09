"""How many neighbours may be asked for. It stands here because the command line needs it before torch."""

from __future__ import annotations

LARGEST_K = 1_024
"""Of a smoother: a decoding step holds k keys for every hypothesis, 1 MiB of them at d = 512."""

LARGEST_SEARCH = 4 * LARGEST_K
"""Of one search: a fit looks up more than it keeps, since some of what it finds has to be hidden from it."""
