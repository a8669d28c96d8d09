"""What is probably wrong in a memory: pairs that do not fit together, and segments that disagree.

Nothing here needs a model. Every check errs on the side of silence: nobody reads a list that is mostly wrong.
`benchmarks/memory_cleaning.py` measures all of them on memories with seeded errors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from kster.errors import KsterError
from kster.memory.checks.languages import LanguageCheck
from kster.memory.checks.lengths import LengthCheck
from kster.memory.checks.pairs import codes_differ, is_copy, is_empty, numbers_differ
from kster.memory.checks.repeats import Repeats
from kster.memory.segment import Segment

KINDS = {
    "contradictions": "the same source in the same context with another, newer target",
    "duplicates": "equal to a newer segment except for case, punctuation and white space",
    "numbers": "a number of one side is not on the other",
    "codes": "a placeholder or tag of one side is not on the other",
    "empty": "the target has no letter or digit, the source has",
    "copies": "the target equals the source, which has words",
    "language": "a side is in another language",
    "length": "the target is far too long or too short",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A segment that is probably wrong."""

    kind: str  # one of KINDS
    segment: Segment
    reason: str
    other: int | None = None  # the newer segment that it repeats or contradicts


def findings(
    segments: Callable[[], Iterable[Segment]],
    languages: tuple[str | None, str | None],
    kinds: Collection[str] | None = None,
) -> Iterator[Finding]:
    """What is wrong with segments, in their order.

    segments: gives the same ones each time it is called, the oldest first; languages: theirs, source and
    target; kinds: what to look for, by default everything.
    """
    if unknown := sorted(set(kinds or ()) - KINDS.keys()):
        raise KsterError(f"unknown kind {unknown[0]!r}; accepted: {', '.join(KINDS)}")
    wanted = set(kinds or KINDS)
    checks: dict[str, Callable[[str, str], str | None]] = {
        "numbers": numbers_differ,
        "codes": codes_differ,
        "empty": is_empty,
        "copies": is_copy,
    }
    repeats, lengths = Repeats(), LengthCheck()
    if wanted & {"contradictions", "duplicates", "length"}:
        for segment in segments():
            repeats.add(segment)
            lengths.add(segment.source, segment.target)
    checks["length"] = lengths.problem
    if "language" in wanted:
        checks["language"] = LanguageCheck(*languages).problem
    for segment in segments():
        if (repeat := repeats.newer(segment)) and repeat.kind in wanted:
            yield Finding(repeat.kind, segment, repeat.reason, repeat.other)
        for kind, check in checks.items():
            if kind in wanted and (reason := check(segment.source, segment.target)):
                yield Finding(kind, segment, reason)
