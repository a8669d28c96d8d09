"""Keys from anywhere, as the indexes of a memory want them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kster.memory.store.entry_files import Appender, EntryFiles, MappedEntries
from kster.memory.store.snapshot import Snapshot
from kster.memory.store.spans import Spans

AT_ONCE = 1 << 16  # keys copied at a time


def snapshot_of(arrays: np.ndarray | Sequence[np.ndarray], directory: Path) -> Snapshot:
    """Keys from arrays of (n, d) as a snapshot; each is a segment of its own."""
    parts = [arrays] if isinstance(arrays, np.ndarray) else list(arrays)
    n = sum(map(len, parts))
    files = EntryFiles(directory / "entries", parts[0].shape[1], entries_per_shard=1 << 20)
    files.create()
    appender = Appender(files, 0)
    for part in parts:
        for first in range(0, len(part), AT_ONCE):
            keys = part[first : first + AT_ONCE].astype(np.float16)
            appender.append(keys, np.zeros(len(keys), np.int32))
    appender.sync()
    line = np.arange(n, dtype=np.int64)
    spans = Spans(line, line, line, np.ones_like(line), line, line, line, np.zeros_like(line))
    return Snapshot(1, 0, MappedEntries(files, n), spans, np.ones(n, np.bool_), np.zeros(n, np.bool_))
