"""What every format is read into: an example pair, or the reason why a unit gave none."""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_CHARS = 10_000
"""Limit on one side of a pair. Far above any sentence, far below what would stall a model."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One example: a text and its translation."""

    source: str
    target: str
    id: str | None = None
    """The unit's own id in its file (tuid, XLIFF id, PO context, `id` column)."""
    line: int | None = field(default=None, compare=False)
    """Where it was read, for messages about it; it does not count when pairs are compared."""
    context: str | None = None
    """Where the source stands (PO context, XLIFF resource name or note, TMX property)."""
    status: str = "approved"
    """`draft` for what a machine made or nobody has looked at, `rejected` for what is known to be wrong."""
    author: str | None = field(default=None, compare=False)
    """Who translated it, where its file says so."""
    remark: str | None = field(default=None, compare=False)
    """What its file says, where it is not approved: `fuzzy`, `not finished (state initial)` …"""


@dataclass(frozen=True, slots=True)
class Rejection:
    """One unit that could not be used, and why."""

    file: str
    line: int | None
    unit: str | None
    reason: str

    def __str__(self) -> str:
        line = f", line {self.line}" if self.line is not None else ""
        unit = f", unit {self.unit}" if self.unit else ""
        return f"{self.file}{line}{unit}: {self.reason}"


class UnusableUnit(Exception):
    """Raised inside this package while one unit is read; its reader turns it into a `Rejection`."""
