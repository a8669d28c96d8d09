"""Fuzzy matches, as translators know them: how many of the words would have to be changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from heapq import heappop, heappush
from typing import Literal

from kster.memory.segment import Segment
from kster.memory.sources.words import folded, tokens_of

CANDIDATES = 128  # sources looked at closely, or four for each match that is wanted
_PARTS = re.compile(r"\w+|\s+|[^\w\s]")

Change = tuple[Literal["same", "removed", "added"], str]


@dataclass(frozen=True, slots=True)
class Match:
    """A segment whose source resembles a text."""

    segment: Segment
    percentage: int  # 100: equal but for case and white space; 101: in the same context, too
    memory: str = ""  # the memory's directory, which tells members of a group apart

    def changes(self, text: str) -> list[Change]:
        """How the segment's source becomes another text; case does not count.

        Args:
            text: The other text.

        Returns:
            Its parts in order, each the same, removed or added.
        """
        old, new = _PARTS.findall(self.segment.source), _PARTS.findall(text)
        folded_old, folded_new = ([part.casefold() for part in side] for side in (old, new))
        compared = SequenceMatcher(None, folded_old, folded_new, autojunk=False)
        found: list[Change] = []
        for kind, i, i_end, j, j_end in compared.get_opcodes():
            if kind == "equal":
                found.append(("same", "".join(new[j:j_end])))
                continue
            if i < i_end:
                found.append(("removed", "".join(old[i:i_end])))
            if j < j_end:
                found.append(("added", "".join(new[j:j_end])))
        return found


@dataclass(frozen=True, slots=True)
class Resembling:
    """A segment whose source has terms in common with a text."""

    segment: Segment
    memory: str = ""  # as of a `Match`

    def percentage(self, text: str) -> int:
        """As of a match.

        Args:
            text: What the source is compared with.

        Returns:
            100 for the same text, but for case and white space.
        """
        source = self.segment.source
        if folded(source) == folded(text):
            return 100
        return similarity(tokens_of(text), tokens_of(source))


def best_matches(
    source: str,
    candidates: Iterable[Segment],
    n: int,
    least: int,
    memory: str = "",
    context: str | None = None,
) -> list[Match]:
    """The n best with at least this percentage, best first, of equally good ones the newest first."""
    whole, tokens = folded(source), tokens_of(source)
    known = set(tokens)
    found = []
    best: list[int] = []  # a heap of the n highest percentages so far
    for segment in candidates:
        if folded(segment.source) == whole:
            fits = context is not None and segment.context == context
            percentage = 101 if fits else 100
        else:
            others = tokens_of(segment.source)
            equal = min(len(tokens), sum(map(known.__contains__, others)))  # no more than these
            if 100 * equal < least * max(len(tokens), len(others)):
                continue
            percentage = similarity(tokens, others)
        if percentage >= least:
            found.append(Match(segment, percentage, memory))
            heappush(best, percentage)
            if len(best) > n:
                heappop(best)
                least = max(least, best[0])
    return sorted_matches(found, n)


def sorted_matches(matches: Iterable[Match], n: int) -> list[Match]:
    return sorted(matches, key=lambda match: (-match.percentage, -match.segment.id))[:n]


def similarity(first: Sequence[str], second: Sequence[str]) -> int:
    """The percentage of two texts that are not equal: 99 at most."""
    longest = max(len(first), len(second))
    share = 1 - edit_distance(first, second) / longest if longest else 0.0
    return min(99, int(100 * share))


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """The fewest insertions, deletions and replacements that make one of the other (Levenshtein).

    A column of the table at a time, as the bits of integers: in cell i bit i of `up` says that the number is
    one greater than above it, of `down` one less (Myers 1999, as described by Hyyrö 2003).
    """
    if not first:
        return len(second)
    places: dict[str, int] = {}  # of each token in the first, as bits
    for i, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << i
    every, last = (1 << len(first)) - 1, 1 << len(first) - 1
    up, down, distance = every, 0, len(first)
    for token in second:
        equal = places.get(token, 0)
        level = ((equal & up) + up ^ up) | equal  # no more than diagonally above
        right, left = down | ~(level | up), up & level  # one more, or less, than in the column before
        distance += bool(right & last) - bool(left & last)
        right = right << 1 | 1
        changed = equal | down
        up, down = (left << 1 | ~(changed | right)) & every, right & changed & every
    return distance
