"""The lists of large memories: kept in files, made while others search, outgrown and given up."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import torch
from large import EXACT, SMALL, index_of, stored_keys
from speller import Speller

from kster import KsterError
from kster.formats import Pair
from kster.memory import Memory, SearchSettings
from kster.memory.index.lists import Lists
from kster.memory.store.snapshot import Snapshot


def test_the_index_file_is_reused_and_is_only_a_copy(
    large: Memory, speller: Speller, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = stored_keys(large)[1]
    expected = large.search(queries, 4)
    (file,) = (large.directory / "index").iterdir()

    def reopened() -> Memory:
        memory = Memory.open(large.directory, speller, search=SMALL)
        memory.build_index()
        return memory

    trained: list[int] = []
    train = Lists.train

    def noted(snapshot: Snapshot, directory: Path, settings: SearchSettings) -> Lists:
        trained.append(snapshot.rows)
        return train(snapshot, directory, settings)

    monkeypatch.setattr(Lists, "train", noted)
    assert torch.equal(reopened().search(queries, 4).ids, expected.ids)
    assert trained == []  # read from the file
    for spoil in (lambda: file.unlink(), lambda: os.truncate(file, 1_000), lambda: file.write_bytes(b"")):
        spoil()
        assert torch.equal(reopened().search(queries, 4).ids, expected.ids)
        assert trained.pop() == large.entry_count
        assert file.exists()
    large.remove(1)
    large.compact()
    assert (large.search(speller.query("source 5"), 1).distances == 0).all()
    large.build_index()
    assert trained == [large.entry_count]  # rows have moved: the old file is of no use
    assert [path.name != file.name for path in (large.directory / "index").iterdir()] == [True]


def test_files_of_an_index_that_are_of_no_use_any_more_are_deleted(large: Memory) -> None:
    index = large.directory / "index"
    (file,) = index.iterdir()
    (index / f"{file.name}.1-2.new").touch()  # another process is writing it
    (index / f"{file.name}.3-4.new").touch()  # another process died writing it
    os.utime(index / f"{file.name}.3-4.new", (0, 0))
    file.unlink()
    with Memory.open(large.directory, large.model, search=SMALL) as memory:
        memory.build_index()
        assert {path.name for path in index.iterdir()} == {file.name, f"{file.name}.1-2.new"}
        memory.remove(range(1, 391))
        memory.compact()
        assert memory.info().index == "exact"
        assert list(index.iterdir()) == []


def test_an_index_of_other_contents_is_not_used(tmp_path: Path, large: Memory, speller: Speller) -> None:
    index_of(large)
    other = Memory.create(tmp_path / "other", speller, search=SMALL)
    other.import_pairs(Pair(f"SOURCE {i}", f"target {i:02d}"[-9:]) for i in range(400))
    assert other.entry_count == large.entry_count
    (other.directory / "index").mkdir()
    for path in (large.directory / "index").iterdir():
        (other.directory / "index" / path.name).write_bytes(path.read_bytes())
    assert (other.search(speller.query("SOURCE 7"), 1).distances == 0).all()


def test_a_memory_that_outgrows_its_index_trains_anew(large: Memory, speller: Speller) -> None:
    before = index_of(large)._lists
    large.import_pairs(Pair(f"growth {i}", "abcdefghi") for i in range(1_300))
    after = index_of(large)._lists
    assert after.trained_on == large.entry_count
    assert after is not before
    assert (large.search(speller.query("growth 1234", "abc"), 1).distances == 0).all()


def test_searches_do_not_wait_for_the_lists(large: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact until there are lists, and then by lists; the same for lists that are outgrown."""
    ids, queries = stored_keys(large)
    train, may_go_on, began = Lists.train, threading.Event(), threading.Event()

    def slowly(snapshot: Snapshot, directory: Path, settings: SearchSettings) -> Lists:
        began.set()
        assert may_go_on.wait(timeout=60)
        return train(snapshot, directory, settings)

    monkeypatch.setattr(Lists, "train", slowly)
    for file in (large.directory / "index").iterdir():
        file.unlink()
    with Memory.open(large.directory, large.model, search=SMALL) as memory:
        exact = Memory.open(large.directory, large.model, search=EXACT).search(queries + 0.3, 16)
        assert memory.size().index == "unused"
        assert torch.equal(memory.search(queries + 0.3, 16).ids, exact.ids)
        assert began.wait(timeout=60)
        assert memory.size().index == "outdated"
        added = memory.add("meanwhile", "inzwischen")
        assert torch.equal(memory.search(queries, 1).ids[:, 0], ids)
        may_go_on.set()
        index = index_of(memory)
        assert (index._indexed, index.outdated) == (4_000, False)  # what was added meanwhile lies beside
        assert memory.size().index == "ivf"
        memory.remove(added.id)
        before = index._lists
        may_go_on.clear()
        began.clear()
        memory.import_pairs(Pair(f"growth {i}", "abcdefghi") for i in range(1_300))
        assert (memory.search(queries, 1).distances == 0).all()
        assert began.wait(timeout=60)
        memory.compact()  # the lists being made are of no use any more
        assert (memory.search(queries, 1).distances == 0).all()
        may_go_on.set()
        assert index_of(memory)._lists is not before
        assert index_of(memory)._indexed == memory.entry_count == 17_000


def test_a_memory_that_is_closed_leaves_its_lists_for_the_next(large: Memory, speller: Speller) -> None:
    for file in (large.directory / "index").iterdir():
        file.unlink()
    with Memory.open(large.directory, speller, search=SMALL) as memory:
        memory.search(speller.query("source 5"), 1)
    assert len(list((large.directory / "index").iterdir())) == 1


def test_searches_stay_exact_when_the_lists_cannot_be_made(
    large: Memory, speller: Speller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Lists:
        raise MemoryError("no room")

    monkeypatch.setattr(Lists, "train", fail)
    for file in (large.directory / "index").iterdir():
        file.unlink()
    with Memory.open(large.directory, speller, search=SMALL) as memory:
        for _ in range(3):
            assert memory.search(speller.query("source 5"), 1).distances[0, 0] == 0
        with pytest.raises(KsterError, match="cannot be built"):
            memory.build_index()


def test_a_memory_too_large_for_exact_search_waits_for_its_lists(large: Memory, speller: Speller) -> None:
    for file in (large.directory / "index").iterdir():
        file.unlink()
    settings = SearchSettings(exact_limit=1_000, delta_limit=100, meanwhile_limit=1_500)
    with Memory.open(large.directory, speller, search=settings) as memory:
        memory.search(speller.query("source 5"), 1)
        assert memory._reader._view is not None
        index = memory._reader._view.indexes[torch.device("cpu")]
        assert not index.outdated
        memory.import_pairs(Pair(f"more {i}", "noch mehr") for i in range(200))
        assert memory.search(speller.query("more 7"), 1).distances[0, 0] == 0
        assert memory._reader._view.indexes[torch.device("cpu")]._indexed == 6_000  # type: ignore[attr-defined]


def test_a_few_hundred_keys_never_train_a_quantiser(tmp_path: Path, speller: Speller) -> None:
    memory = Memory.create(tmp_path / "m", speller, search=SearchSettings(exact_limit=0))
    memory.import_pairs(Pair(f"s{i}", "abcd") for i in range(150))
    assert (memory.search(speller.query("s7"), 16).ids >= 0).all()
    assert memory.info().index == "exact"


def test_removing_most_of_a_large_memory_returns_to_exact_search(large: Memory, speller: Speller) -> None:
    index_of(large)
    large.remove(range(1, 391))
    found = large.search(speller.query("source 395"), 16)
    assert found.distances[0, 0] == 0
    assert large.info().index == "exact"
    assert set(large.segment_ids(found.ids).flatten().tolist()) <= set(range(391, 401))
