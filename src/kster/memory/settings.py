"""How a memory is searched on the CPU: every number in one place."""

from __future__ import annotations

import math
from dataclasses import dataclass

# FAISS asks for 39 training points a list; below this many keys there is nothing worth quantising.
LEAST_KEYS_TO_TRAIN = 1_000
POINTS_PER_LIST = 40


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Exact search up to `exact_limit` entries, FAISS IVF with exact re-ranking above.

    Where the limit comes from, in ms of one CPU core a search (d = 512, k = 16, 64 probes):

        entries   queries   exact    IVF
        120,000         4      60     22
        120,000        32      84    140
        120,000       256     380   1310

    Below 1,280 lists (about 400,000 entries) `probes` decides, above `probed_share`: were the number of
    probes fixed, the share of the lists that a query reads, and with it recall, would fall as a memory grows
    (recall@16 on decoder states was 0.978 for 64 of 604 lists and 0.983 for 64 of 1,574).

    Batches are faster exactly well beyond the limit, one sentence alone is faster by lists well below it;
    at the limit exact search holds 256 MiB. Measure with `benchmarks/search_speed.py`, and what the lists
    find with `benchmarks/search_recall.py`.
    """

    exact_limit: int = 131_072
    lists_per_root: float = 2.0  # inverted lists = this × √entries
    probes: int = 64  # lists read for a query: at least this many …
    probed_share: float = 0.05  # … and at least this share of all lists
    candidates_per_neighbour: int = 4  # fetched from the quantised index, then ranked exactly
    delta_limit: int = 16_384  # entries searched exactly beside the index before they join it
    meanwhile_limit: int = 1 << 21  # … and while it is being built: 4 GiB at d = 512; beyond, searches wait
    retrain_growth: float = 4.0  # train anew when the memory has grown this many times over

    def quantise(self, entries: int) -> bool:
        """Whether a memory of this size is searched by IVF."""
        return entries > max(self.exact_limit, LEAST_KEYS_TO_TRAIN)

    def lists(self, entries: int) -> int:
        return max(1, min(round(self.lists_per_root * math.sqrt(entries)), entries // POINTS_PER_LIST))

    def probes_of(self, lists: int) -> int:
        """How many of this many lists a query reads."""
        return min(lists, max(self.probes, math.ceil(self.probed_share * lists)))

    def candidates(self, k: int) -> int:
        return max(k * self.candidates_per_neighbour, k + 16)
