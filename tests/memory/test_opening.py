"""Opening a large memory reads its table of segments from one file, if that is of this very memory."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from speller import Speller

from kster.formats import Pair
from kster.memory import Memory
from kster.memory.store import saved_spans
from kster.memory.store.spans import Spans

FILE = Path("index") / saved_spans.FILE


@pytest.fixture(autouse=True)
def saved_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_spans, "WORTH_SAVING", 20)


def fill(memory: Memory, first: int, last: int) -> None:
    memory.import_pairs(Pair(f"open valve {i}", f"t {i}") for i in range(first, last))


def table_of(memory: Memory) -> Spans:
    return memory.view().snapshot.spans


def require_as_in_the_database(directory: Path, speller: Speller) -> None:
    """What is found in the memory is what a reader without the file finds."""
    with Memory.open(directory, speller) as opened:
        found, live = table_of(opened), opened.view().snapshot.live_segments
    shutil.rmtree(directory / "index")
    with Memory.open(directory, speller) as opened:
        for own, expected in zip(found.columns, table_of(opened).columns, strict=True):
            assert own.tolist() == expected.tolist()
        assert live.tolist() == opened.view().snapshot.live_segments.tolist()
        assert opened.verify() == []


def test_what_changed_after_the_file_was_written_is_seen(memory: Memory, speller: Speller) -> None:
    fill(memory, 0, 40)
    with Memory.open(memory.directory, speller) as opened:
        table_of(opened)
    assert (memory.directory / FILE).is_file()
    memory.remove([3, 17])
    memory.edit(5, "close valve 4", "u")
    memory.add("the newest words", "die neuesten")
    with Memory.open(memory.directory, speller) as opened:
        assert len(opened.similar("newest words", 3)) == 1
        assert {3, 5, 17}.isdisjoint(opened.similar("open valve", 99).segment_ids.tolist())
    require_as_in_the_database(memory.directory, speller)


def test_a_memory_is_read_from_the_file(memory: Memory, speller: Speller) -> None:
    fill(memory, 0, 40)
    with Memory.open(memory.directory, speller) as opened:
        table_of(opened)
    with sqlite3.connect(memory.directory / "memory.sqlite") as database:  # behind the memory's back
        database.execute("UPDATE segments SET target_group = 7 WHERE id = 9")
    with Memory.open(memory.directory, speller) as opened:
        assert table_of(opened).target_groups[8] != 7


def test_the_file_of_a_later_state_does_not_count_when_the_database_was_put_back(
    memory: Memory, speller: Speller, tmp_path: Path
) -> None:
    fill(memory, 0, 40)
    memory.close()
    earlier = (memory.directory / "memory.sqlite").read_bytes()
    with Memory.open(memory.directory, speller) as opened:
        opened.remove([7])
    with Memory.open(memory.directory, speller) as opened:
        table_of(opened)  # written with 7 removed
    for name in ("memory.sqlite-wal", "memory.sqlite-shm"):
        (memory.directory / name).unlink(missing_ok=True)
    (memory.directory / "memory.sqlite").write_bytes(earlier)
    with Memory.open(memory.directory, speller) as opened:
        opened.remove([8])
    with Memory.open(memory.directory, speller) as opened:
        found = opened.similar("open valve", 99).segment_ids.tolist()
        assert 7 in found
        assert 8 not in found


@pytest.mark.parametrize("damage", ["cut", "flipped", "foreign", "older"])
def test_whatever_happens_to_the_file_the_database_decides(
    memory: Memory, speller: Speller, tmp_path: Path, damage: str
) -> None:
    fill(memory, 0, 40)
    with Memory.open(memory.directory, speller) as opened:
        table_of(opened)
    file = memory.directory / FILE
    old = file.read_bytes()
    if damage == "cut":
        file.write_bytes(old[: len(old) // 2])
    elif damage == "flipped":
        file.write_bytes(old[: len(old) // 2] + bytes([old[len(old) // 2] ^ 1]) + old[len(old) // 2 + 1 :])
    elif damage == "foreign":
        with Memory.create(tmp_path / "other", speller) as other:
            fill(other, 50, 99)
        with Memory.open(tmp_path / "other", speller) as other:
            table_of(other)
            file.write_bytes((other.directory / FILE).read_bytes())
    else:
        fill(memory, 40, 90)
        with Memory.open(memory.directory, speller) as opened:
            table_of(opened)
        assert file.read_bytes() != old
        file.write_bytes(old)
    require_as_in_the_database(memory.directory, speller)


def test_after_a_compaction_the_file_is_made_anew(memory: Memory, speller: Speller) -> None:
    fill(memory, 0, 60)
    with Memory.open(memory.directory, speller) as opened:
        table_of(opened)
    old = (memory.directory / FILE).read_bytes()
    memory.remove([1, 2, 30])
    memory.compact()
    with Memory.open(memory.directory, speller) as opened:
        ids = table_of(opened).segment_ids
        assert np.isin([1, 2, 30], ids).tolist() == [False] * 3
    assert (memory.directory / FILE).read_bytes() != old
    require_as_in_the_database(memory.directory, speller)
