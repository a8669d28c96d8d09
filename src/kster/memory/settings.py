"""How a memory is searched on the CPU: every number in one place."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from kster.errors import KsterError

# FAISS asks for 39 training points a list; below this many keys there is nothing worth quantising.
LEAST_KEYS_TO_TRAIN = 1_000
POINTS_PER_LIST = 40


Search = Literal["auto", "exact", "shortlist"]
SEARCHES: tuple[Search, ...] = get_args(Search)


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """On a CPU a translation searches only the entries of the `shortlist` segments whose sources resemble its
    source best, at most `shortlist_entries`. In a trial with an earlier version 256 segments held nearly all
    that mattered: 23.9, 34.9 and 21.0 BLEU on Koran, Law and IT, where all entries gave 22.4, 34.7 and 21.4.
    mode: "exact" always searches all entries, "shortlist" never does, "auto" only on a GPU or where they are
    no more than a shortlist may have.

    All entries are searched exactly up to `exact_limit` of them, by FAISS IVF with exact re-ranking above.

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

    mode: Search = "auto"
    shortlist: int = 256
    shortlist_entries: int = 4_096  # that a shortlist has at most; a memory of no more is searched whole
    keys_on_demand: int = 8  # best segments of a shortlist whose keys a translation waits for
    exact_limit: int = 131_072
    lists_per_root: float = 2.0  # inverted lists = this × √entries
    probes: int = 64  # lists read for a query: at least this many …
    probed_share: float = 0.05  # … and at least this share of all lists
    candidates_per_neighbour: int = 4  # fetched from the quantised index, then ranked exactly
    delta_limit: int = 16_384  # entries searched exactly beside the index before they join it
    meanwhile_limit: int = 1 << 21  # … and while it is being built: 4 GiB at d = 512; beyond, searches wait
    retrain_growth: float = 4.0  # train anew when the memory has grown this many times over

    def __post_init__(self) -> None:
        if self.mode not in SEARCHES:
            raise KsterError(f"search {self.mode!r} is unknown; accepted: {', '.join(SEARCHES)}")
        if self.shortlist < 1 or self.shortlist_entries < 1:
            raise KsterError(
                f"a shortlist of {self.shortlist} segments with at most {self.shortlist_entries} entries; "
                "both must be at least 1"
            )

    def by_shortlist(self, device_type: str, complete: bool = True) -> bool:
        """Whether sentences are translated by shortlist.

        A GPU searches all entries in less time than a CPU finds and gathers a shortlist for it.
        complete: whether all segments have their keys; where some do not, shortlists decide whose are made.
        """
        if self.mode != "auto":
            return self.mode == "shortlist"
        return device_type == "cpu" or not complete

    def all_in_shortlist(self, entries: int) -> bool:
        """Whether every sentence's shortlist has all of this many entries."""
        return self.mode == "auto" and entries <= self.shortlist_entries

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
