"""How a memory is searched: every number in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from kster.errors import KsterError

Search = Literal["auto", "exact", "shortlist"]
SEARCHES: tuple[Search, ...] = get_args(Search)


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """A translation searches all entries of a memory, or only those of the `shortlist` segments whose sources
    resemble its source best, at most `shortlist_entries`. `benchmarks/search_ways.py` compares the two.

    mode: "exact" always searches all entries, "shortlist" never does. "auto" searches all of them where they
    are no more than a shortlist may have, and on a GPU for smoothers that do not look at sources.
    """

    mode: Search = "auto"
    shortlist: int = 256
    shortlist_entries: int = 4_096  # that a shortlist has at most; a memory of no more is searched whole
    keys_on_demand: int = 8  # best segments of a shortlist whose keys a translation waits for

    def __post_init__(self) -> None:
        if self.mode not in SEARCHES:
            raise KsterError(f"search {self.mode!r} is unknown; accepted: {', '.join(SEARCHES)}")
        if self.shortlist < 1 or self.shortlist_entries < 1:
            raise KsterError(
                f"a shortlist of {self.shortlist} segments with at most {self.shortlist_entries} entries; "
                "both must be at least 1"
            )

    def by_shortlist(self, device_type: str, complete: bool = True, similarity: bool = True) -> bool:
        """Whether sentences are translated by shortlist.

        A GPU searches all entries in less time than a CPU finds a shortlist for it; but where neighbours must
        say how much their sources resemble a sentence, these would have to be found among all sources.
        complete: whether all segments have their keys; where some do not, shortlists decide whose are made.
        similarity: whether neighbours must say that.
        """
        if self.mode != "auto":
            return self.mode == "shortlist"
        return device_type == "cpu" or not complete or similarity

    def all_in_shortlist(self, entries: int) -> bool:
        """Whether every sentence's shortlist has all of this many entries."""
        return self.mode == "auto" and entries <= self.shortlist_entries
