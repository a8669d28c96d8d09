"""A segment: one example pair as a memory keeps it, and the way from an entry back to it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

STATUSES = ("draft", "approved", "rejected")


@dataclass(frozen=True, slots=True)
class Segment:
    """One example pair. `id` is never used again, not even after the segment is removed."""

    id: int
    source: str
    target: str
    created: str  # ISO 8601, UTC
    origin: str | None = None  # where it came from: a file, a user, a tool
    unit: str | None = None  # its id there (tuid, XLIFF id, PO context …)
    status: str = "approved"  # one of STATUSES
    author: str | None = None  # who added it
    changed: str | None = None  # when its status last changed; None: never
    context: str | None = None  # where its source stands; the same source elsewhere may mean something else
    superseded_by: int | None = None  # the newer segment that took its place

    @property
    def is_live(self) -> bool:
        """Whether it teaches: drafts, rejected and superseded segments do not."""
        return self.status == "approved" and self.superseded_by is None


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where an entry comes from: the `position`-th target token (from 0) of `segment`."""

    segment: Segment
    position: int
    memory: str = ""  # the memory's directory, which tells members of a group apart


def pair_hash(source: str, target: str) -> int:
    """A signed 64-bit hash by which equal pairs are found; the texts still have to be compared."""
    return _hash64(f"{len(source)}:{source}{target}")


def target_group(target: str) -> int:
    """A number shared by all target texts that differ only in case and whitespace.

    64 bits of a cryptographic hash: two different texts share one with probability 2⁻⁶⁴.
    """
    return _hash64(" ".join(target.casefold().split()))


def _hash64(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
