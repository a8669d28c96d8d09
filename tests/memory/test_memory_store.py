"""Opening, verifying, compacting and locking: what people see, and the errors they get."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import subprocess
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import torch
from speller import Speller

from kster import KsterError
from kster.formats import Pair
from kster.memory import Memory
from kster.memory.adding import Origin, checked_drafts
from kster.memory.store.entry_files import EntryFiles

KINDS = (("keys", "f16"), ("values", "i32"))

# Opening ---------------------------------------------------------------------------------------------


def test_creating_refuses_a_directory_with_anything_in_it(tmp_path: Path, speller: Speller) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(KsterError, match="not empty"):
        Memory.create(tmp_path, speller)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
    (tmp_path / "empty").mkdir()
    Memory.create(tmp_path / "empty", speller)
    Memory.create(tmp_path / "a" / "b", speller)


def test_creating_says_what_is_in_the_way(tmp_path: Path, speller: Speller) -> None:
    (tmp_path / "letter.txt").touch()
    with pytest.raises(KsterError, match="is not a directory; a memory needs"):
        Memory.create(tmp_path / "letter.txt", speller)
    (tmp_path / "nowhere").symlink_to(tmp_path / "letter.txt" / "further")
    with pytest.raises(KsterError, match="cannot be created") as caught:
        Memory.create(tmp_path / "nowhere", speller)
    assert "backup" not in str(caught.value)  # nothing that was never there can be restored


def test_what_is_no_memory_is_not_opened(tmp_path: Path, memory: Memory) -> None:
    with pytest.raises(KsterError, match="no such memory"):
        Memory.open(tmp_path / "nowhere")
    with pytest.raises(KsterError, match=r"no memory\.json"):
        Memory.open(tmp_path)
    description = memory.directory / "memory.json"
    content = json.loads(description.read_text())
    for text, complaint in (
        ("{", "cannot be read"),
        ("[]", "not a memory's description"),
        (json.dumps({**content, "format": 99}), "newer version"),
        (json.dumps({"format": 1}), "damaged"),
    ):
        description.write_text(text)
        with pytest.raises(KsterError, match=complaint):
            Memory.open(memory.directory)
    description.write_text(json.dumps(content))
    memory.close()
    (memory.directory / "memory.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(KsterError, match="cannot be used"):
        Memory.open(memory.directory)


def test_a_memory_finds_its_model_when_both_are_moved_together(tmp_path: Path, tiny_marian: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(tiny_marian, home / "model")
    Memory.create(home / "memory", str(home / "model")).close()
    home.rename(tmp_path / "away")
    memory = Memory.open(tmp_path / "away" / "memory")
    assert memory.model.name == str(tmp_path / "away" / "model")
    (tmp_path / "away" / "model").rename(tmp_path / "lost")
    with pytest.raises(KsterError, match="its model is neither at"):
        _ = Memory.open(tmp_path / "away" / "memory").model


def test_the_memory_room_needs_nothing_for_people() -> None:
    code = "import sys, kster.memory; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    unwanted = {"lxml", "polib", "pydantic", "rich", "typer", "sacrebleu"}
    assert unwanted & set(done.stdout.split()) == set()


# Verifying and compacting ----------------------------------------------------------------------------


def test_verify_names_the_damaged_segment(memory: Memory) -> None:
    memory.import_pairs(Pair(f"s{i}", "abc") for i in range(10))  # 4 entries each, 20 a shard
    assert memory.verify() == []
    shard = memory.directory / "entries" / "0" / "keys-00001.f16"
    damaged = bytearray(shard.read_bytes())
    damaged[16 * 2 * 5] ^= 1  # a bit of shard 1's sixth key: segment 7
    shard.write_bytes(damaged)
    assert memory.verify() == ["segment 7: keys or values are not what was written (checksum)"]
    memory.remove(1)
    memory.compact()  # does not read the file that is damaged
    memory.remove(6)
    with pytest.raises(KsterError, match="segment 7 is damaged on disk; nothing was changed"):
        memory.compact()
    memory.remove(7)
    memory.compact()
    assert memory.verify() == []
    assert memory.segment_count() == 7


def test_verify_and_open_notice_files_that_are_too_short(memory: Memory, speller: Speller) -> None:
    memory.import_pairs(Pair(f"s{i}", "abc") for i in range(9))
    values = memory.directory / "entries" / "0" / "values-00001.i32"
    values.write_bytes(values.read_bytes()[:-1])
    assert memory.verify() == ["values-00001.i32 has 63 bytes, 64 are recorded"]
    with pytest.raises(KsterError, match="damaged"):
        Memory.open(memory.directory, speller).search(speller.query("s1"), 1)
    with pytest.raises(KsterError, match="nothing was changed"):
        memory.add("more", "mehr")


def test_what_a_dead_writer_left_is_ignored_and_cut_off(memory: Memory, speller: Speller) -> None:
    memory.import_pairs(Pair(f"s{i}", "abc") for i in range(3))
    files = memory.directory / "entries" / "0"
    (files / "keys-00000.f16").open("ab").write(b"\xff" * 333)
    (files / "keys-00001.f16").write_bytes(b"\xff" * 40)
    (files / "values-00000.i32").open("ab").write(b"\xff" * 7)
    (memory.directory / "entries" / "1").mkdir()  # a compaction of an older version that died
    assert memory.verify() == []
    assert Memory.open(memory.directory, speller).entry_count == 12
    memory.import_pairs(Pair(f"more{i}", "abc") for i in range(5))
    assert memory.verify() == []
    assert memory.search(speller.query("more4"), 1).distances[0, 0] == 0
    assert [path.name for path in (memory.directory / "entries").iterdir()] == ["0"]


def test_compaction_gives_space_back_and_changes_nothing_else(memory: Memory, speller: Speller) -> None:
    memory.import_pairs(Pair(f"s{i}", f"t{i}") for i in range(100))
    memory.remove(range(1, 61))
    query = speller.query("s99", "t")
    before, listed = memory.search(query, 5), memory.segments()
    report = memory.compact()
    assert (report.segments_dropped, report.entries_dropped) == (60, 10 * 3 + 50 * 4)
    assert report.bytes_freed > 0
    assert memory.segments() == listed
    after = memory.search(query, 5)
    assert torch.equal(before.ids, after.ids)
    assert torch.equal(before.distances, after.distances)
    assert torch.equal(before.keys, after.keys)
    assert memory.verify() == []
    assert memory.compact().segments_dropped == 0
    assert b"s33" not in (memory.directory / "memory.sqlite").read_bytes()


# One writer at a time --------------------------------------------------------------------------------


def write_slowly(directory: str, said: Connection) -> None:
    speller = Speller()
    memory = Memory.open(directory, speller)
    drafts = checked_drafts(speller, [Pair("slow", "langsam")], Origin())
    with memory._store.writing() as change:
        change.add(drafts["slow", "langsam"])
        said.send("writing")
        said.recv()
    said.send("done")


def test_a_second_writer_waits_and_then_says_so(memory: Memory, speller: Speller) -> None:
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe()
    child = context.Process(target=write_slowly, args=(str(memory.directory), theirs))
    child.start()
    theirs.close()  # a child that dies ends the connection instead of leaving the test to wait for ever
    assert ours.recv() == "writing"
    hasty = Memory.open(memory.directory, speller, lock_timeout=0.1)
    with pytest.raises(KsterError, match=r"another writer has been busy for 0\.1 s; nothing was changed"):
        hasty.add("tree", "Baum")
    assert hasty.search(speller.query("slow"), 1).ids.tolist() == [[-1]]  # not there before it is committed
    threading.Timer(0.2, ours.send, ["go on"]).start()
    memory.add("tree", "Baum")  # waits
    assert ours.recv() == "done"
    child.join()
    assert [s.source for s in hasty.segments()] == ["slow", "tree"]
    assert hasty.search(speller.query("slow"), 1).distances[0, 0] == 0


def files_of(memory: Memory) -> dict[str, tuple[int, bytes]]:
    """Inode and content of each file of entries."""
    files = (memory.directory / "entries" / "0").iterdir()
    return {path.name: (path.stat().st_ino, path.read_bytes()) for path in files}


def test_a_compaction_touches_only_the_files_that_hold_what_was_removed(memory: Memory) -> None:
    segments = memory.add_many([Pair(f"s{i:02}", "abc") for i in range(30)])  # 4 entries each, 20 a file
    query = Speller().query("s17")
    before, found = files_of(memory), memory.search(query, 1)
    memory.remove([segments[7].id, segments[21].id])  # in files 1 and 4
    assert memory.compact().segments_dropped == 2
    after = files_of(memory)
    untouched = {name: file for name, file in before.items() if "00001" not in name and "00004" not in name}
    assert {name: after.pop(name) for name in untouched} == untouched
    assert sorted(after) == sorted(f"{kind}-0000{n}.{end}" for n in (6, 7) for kind, end in KINDS)
    assert memory.verify() == []
    assert [s.source for s in memory.segments()] == [f"s{i:02}" for i in range(30) if i not in (7, 21)]
    again = memory.search(query, 1)
    assert torch.equal(again.ids, found.ids)
    assert torch.equal(again.keys, found.keys)
    memory.add("another", "noch eines")
    memory.remove([segment.id for segment in memory.segments()])
    memory.compact()
    assert files_of(memory) == {}
    memory.add("and", "noch eines")
    assert memory.verify() == []
    assert memory.search(Speller().query("and"), 1).distances[0, 0] == 0


def test_a_search_that_has_begun_keeps_the_files_that_a_compaction_drops(
    memory: Memory, speller: Speller
) -> None:
    memory.add_many([Pair(f"s{i:02}", "abc") for i in range(30)])
    snapshot = memory._reader.snapshot()
    every = snapshot.spans.entries_of_lines(snapshot.lines_with_keys)[0]
    keys, values = snapshot.entries.gather(every), snapshot.entries.values_of(every)
    memory.remove(range(1, 29))
    memory.compact()
    memory.add("other", "in files of their own")
    assert (snapshot.entries.gather(every) == keys).all()
    assert (snapshot.entries.values_of(every) == values).all()


def test_what_a_killed_compaction_has_not_deleted_the_next_writer_deletes(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.add_many([Pair(f"s{i:02}", "abc") for i in range(10)])
    memory.remove(1)
    with monkeypatch.context() as patched:
        patched.setattr(EntryFiles, "drop", lambda *_: None)  # as if it had been killed after its commit
        memory.compact()
    assert "keys-00000.f16" in files_of(memory)
    assert memory.verify() == []
    memory.add("tree", "Baum")
    assert "keys-00000.f16" not in files_of(memory)
    assert memory.verify() == []
