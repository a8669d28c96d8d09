"""A backup is one consistent state, taken while others write, and comes back as it was."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from speller import Speller

from kster import KsterError
from kster.formats import Pair
from kster.memory import Memory


def test_a_backup_taken_while_others_write_and_compact_is_whole(
    memory: Memory, speller: Speller, tmp_path: Path
) -> None:
    memory.import_pairs(Pair(f"source {i}", f"t{i}") for i in range(40))
    (memory.directory / "smoother").mkdir()
    (memory.directory / "smoother" / "note.json").write_text("{}")
    stop = threading.Event()

    def write() -> None:
        i = 0
        while not stop.is_set():
            i += 1
            added = memory.add(f"new {i}", "x")
            memory.remove(added.id)
            if i % 3 == 0:
                memory.compact()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(4):
            memory.back_up(tmp_path / f"{number}.backup")
    finally:
        stop.set()
        writer.join()
    for number in range(4):
        Memory.restore(tmp_path / f"{number}.backup", tmp_path / f"restored {number}")
        with Memory.open(tmp_path / f"restored {number}", speller) as restored:
            assert restored.verify() == []
            assert {f"source {i}" for i in range(40)} <= {s.source for s in restored.segments()}
            assert restored.search(speller.query("source 7"), 1).distances[0, 0] == 0
            assert restored.add("after", "danach").id > 40
            assert (restored.directory / "smoother" / "note.json").exists()


def test_a_damaged_backup_restores_nothing(memory: Memory, tmp_path: Path) -> None:
    memory.add("tree", "Baum")
    file = tmp_path / "a.backup"
    memory.back_up(file)
    data = file.read_bytes()
    place = data.index(b"Baum")
    file.write_bytes(data[:place] + b"Raum" + data[place + 4 :])
    with pytest.raises(KsterError, match="damaged"):
        Memory.restore(file, tmp_path / "restored")
    file.write_bytes(data[:300])
    with pytest.raises(KsterError, match="cannot be restored"):
        Memory.restore(file, tmp_path / "restored")
    with pytest.raises(KsterError, match="not empty"):
        Memory.restore(file, memory.directory)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.backup", "memory"]
