"""A long import holds nobody up, and whatever becomes of it, the memory is whole."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from speller import Speller

from kster import KsterError
from kster.formats import Pair
from kster.memory import Memory
from kster.memory.importing import CHUNK
from kster.memory.memory import Keys
from kster.memory.store.locks import own_new_directory


def areas(memory: Memory) -> list[str]:
    staging = memory.directory / "staging"
    return [path.name for path in staging.iterdir()] if staging.exists() else []


def import_slowly(directory: str, said: Connection, keys: Keys) -> None:
    """An import of three chunks that stops after two and waits for a word. keys: see `import_pairs`."""

    def pairs() -> Iterator[Pair]:
        for i in range(2 * CHUNK):
            yield Pair(f"slow {i}", "langsam")
        yield Pair("tree", "Baum")
        said.send("reading")
        said.recv()
        yield Pair("last", "letztes")

    report = Memory.open(directory, Speller()).import_pairs(pairs(), keys=keys)
    said.send((report.added, report.duplicates))


def start(memory: Memory, keys: Keys = "auto") -> tuple[multiprocessing.process.BaseProcess, Connection]:
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe()
    child = context.Process(target=import_slowly, args=(str(memory.directory), theirs, keys))
    child.start()
    assert ours.recv() == "reading"
    return child, ours


@pytest.mark.parametrize("keys", ["now", "later"])
def test_others_write_while_an_import_reads_its_file(memory: Memory, speller: Speller, keys: Keys) -> None:
    child, said = start(memory, keys)
    hasty = Memory.open(memory.directory, speller, lock_timeout=0)
    hasty.add("tree", "Baum")
    hasty.add("bird", "Vogel")
    hasty.remove_pair("bird", "Vogel")
    hasty.compact()
    assert len(areas(memory)) == 1  # an area in use is not swept
    said.send("go on")
    assert said.recv() == (2 * CHUNK + 1, 1)  # the tree is looked for once more at the end
    child.join()
    assert memory.segment_count() == 2 * CHUNK + 2
    assert memory.verify() == []
    assert memory.make_keys() == (2 * CHUNK + 1 if keys == "later" else 0)
    assert memory.search(speller.query("last"), 1).distances[0, 0] == 0
    assert areas(memory) == []


def test_what_a_killed_import_left_is_swept_by_the_next_writer(memory: Memory) -> None:
    memory.add("bird", "Vogel")
    child, _ = start(memory)
    child.kill()
    child.join()
    (area,) = areas(memory)
    assert area.startswith(f"{child.pid}-")
    assert sum(path.stat().st_size for path in (memory.directory / "staging" / area).rglob("*")) > 10_000
    (memory.directory / "staging" / "1-died-before-it-had-a-lock").mkdir()
    assert memory.segment_count() == 1
    assert memory.verify() == []
    memory.add("tree", "Baum")
    assert areas(memory) == []
    assert memory.verify() == []


def test_an_import_that_fails_leaves_no_area(memory: Memory) -> None:
    def stop(done: int) -> None:
        raise RuntimeError(f"stopped after {done}")

    with pytest.raises(RuntimeError, match="stopped after 7"):
        memory.import_pairs((Pair(f"s{i}", "t") for i in range(20)), progress=stop, at_once=7)
    assert areas(memory) == []
    assert memory.segment_count() == 0
    with pytest.raises(KsterError, match="at_once is 0; it must be at least 1"):
        memory.import_pairs([Pair("s", "t")], at_once=0)


def test_an_import_finds_duplicates_in_the_memory_and_in_itself(memory: Memory) -> None:
    memory.add("s3", "t")
    twice = [Pair(f"s{i}", "t") for i in range(10)] * 2
    report = memory.import_pairs(twice, at_once=4)
    assert (report.added, report.duplicates) == (9, 11)
    assert [s.source for s in memory.segments()] == ["s3", *(f"s{i}" for i in range(10) if i != 3)]
    with memory._store.writing():  # somebody else's change: an import without news does not wait for it
        assert memory.import_pairs(twice).duplicates == 20


def test_a_pair_removed_while_it_is_added_again_is_there_afterwards(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known when its keys would have been made, gone when it is written."""
    known = {("tree", "Baum"), ("bird", "Vogel")}
    monkeypatch.setattr("kster.memory.adding.known_texts", lambda store, pairs: known)
    added = memory.add_many([Pair("tree", "Baum"), Pair("bird", "Vogel"), Pair("tree", "Baum")])
    assert [s.source for s in added] == ["tree", "bird", "tree"]
    assert memory.verify() == []
    assert memory.segment_count() == 2


def test_an_import_into_a_memory_that_was_deleted_meanwhile_says_so(memory: Memory, tmp_path: Path) -> None:
    def pairs() -> Iterator[Pair]:
        yield Pair("tree", "Baum")
        os.rename(memory.directory, tmp_path / "elsewhere")

    with pytest.raises(KsterError, match=r"memory\.sqlite is missing"):
        memory.import_pairs(pairs())


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc here")
def test_a_place_where_no_directory_can_be_made_is_refused_and_not_tried_for_ever() -> None:
    with pytest.raises(OSError, match=r"No such file|Permission|vanish"):
        own_new_directory(Path("/proc"), "lock")
