"""What the memory tells people after an import or a compaction, and about itself."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kster.formats import Rejection
from kster.memory.store.database import Database


@dataclass(slots=True)
class ImportReport:
    """What became of every pair of an import."""

    added: int = 0
    duplicates: int = 0  # already in the memory, or earlier in the same import
    drafts: int = 0  # of those added: they teach nothing until somebody approves them
    approved: list[int] = field(default_factory=list)  # segments that were drafts until now
    rejected: list[Rejection] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CompactReport:
    """What a compaction got rid of."""

    segments_dropped: int
    entries_dropped: int
    bytes_freed: int


@dataclass(frozen=True, slots=True)
class SinceFit:
    """How a memory has changed since its smoother was fitted."""

    finished: str  # when that was, ISO 8601, UTC
    segments: int  # the memory had then
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class MemorySize:
    """What is known of a memory at once, however large it is."""

    entries: int  # live keys
    segments: int  # live
    without_keys: int  # segments whose keys have yet to be made


@dataclass(frozen=True, slots=True)
class MemoryInfo:
    """A memory at a glance."""

    directory: str
    segments: int  # live
    drafts: int
    rejected: int
    superseded: int
    removed: int  # removed, still taking space until compaction
    entries: int  # live keys
    without_keys: int  # segments whose keys have yet to be made
    unusable: int  # segments of which the model can make no keys
    bytes_on_disk: int
    model: str
    fingerprint: str
    dimension: int
    source_lang: str | None
    target_lang: str | None
    created: str
    fitted: bool  # whether the memory has a smoother of its own
    tuned: bool  # whether it has kNN-MT settings of its own
    fit: dict[str, Any] | None  # the report of its fit, which says what it was fitted on
    since_fit: SinceFit | None  # None without a fit, or with one that does not say when it was made


def fit_status(smoother: Path) -> tuple[bool, bool, dict[str, Any] | None]:
    """Whether a memory has a smoother of its own, whether kNN-MT settings, and the report of the fit.

    The names are those `kster.smoothing` writes, a room that this one does not know.
    """
    fitted, tuned = (smoother / "smoother.json").is_file(), (smoother / "knn.json").is_file()
    try:
        report = json.loads((smoother / "fit.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        report = None
    return fitted, tuned, report if fitted and isinstance(report, dict) else None


def since_fit(fit: dict[str, Any] | None, database: Database) -> SinceFit | None:
    """fit: the report of the fit, as `fit_status` gives it."""
    finished, segments, newest = (
        (fit or {}).get(n) for n in ("finished", "memory_segments", "newest_segment")
    )
    if not (isinstance(finished, str) and isinstance(segments, int) and isinstance(newest, int)):
        return None
    kept, added = database.counts_around(newest)
    return SinceFit(finished, segments, added, removed=max(0, segments - kept))


def bytes_under(directory: Path) -> int:
    """What the files of a directory take."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(FileNotFoundError):  # another process tidied up
                total += os.stat(os.path.join(folder, name)).st_size
    return total
