"""Large memories: approximate lists, exact distances, and changes that take effect at once."""

from __future__ import annotations

import math
import os
import random
import threading
from pathlib import Path

import faiss
import numpy as np
import pytest
import torch
from speller import Speller
from torch import Tensor

from kster import KsterError
from kster.formats import Pair
from kster.memory import Memory, SearchSettings
from kster.memory.index.ivf import IvfIndex
from kster.memory.index.lists import Lists
from kster.memory.snapshot import Snapshot
from kster.model import BaseModel
from tiny import ENGLISH, GERMAN

SMALL = SearchSettings(exact_limit=1_000, probes=16, delta_limit=200)
EXACT = SearchSettings(exact_limit=1_000_000)


@pytest.fixture
def large(tmp_path: Path, speller: Speller) -> Memory:
    """4,000 entries, searched by lists."""
    memory = Memory.create(tmp_path / "m", speller, search=SMALL, entries_per_shard=1_500)
    memory.import_pairs(Pair(f"source {i}", f"target {i:02d}"[-9:]) for i in range(400))
    memory.build_index()
    return memory


def index_of(memory: Memory) -> IvfIndex:
    memory.search(torch.zeros(1, 16), 1)
    memory.build_index()
    assert memory._reader._view is not None
    index = memory._reader._view.indexes[torch.device("cpu")]
    assert isinstance(index, IvfIndex)
    return index


def stored_keys(memory: Memory, every: int = 37) -> tuple[Tensor, Tensor]:
    entries = memory.entries()
    ids = entries.ids[::every]
    return ids, entries.keys_of(ids).float()


def test_distances_are_those_of_the_stored_keys_not_of_their_codes(large: Memory) -> None:
    queries = stored_keys(large)[1] + 0.3
    found = large.search(queries, 16)
    assert large.info().index == "ivf"
    assert torch.equal(found.keys, large.keys_of(found.ids))
    torch.testing.assert_close(found.distances, (queries[:, None] - found.keys.float()).norm(dim=2))
    assert (found.distances.diff(dim=1) >= 0).all()
    assert (large.search(stored_keys(large)[1], 1).distances == 0).all()


def test_default_settings_find_95_of_100_true_neighbours_among_decoder_states(
    tmp_path: Path, tiny_marian: Path
) -> None:
    """Settings as shipped, but for the size from which they are used: 2,000 segments fit into a test."""
    model = BaseModel.load(tiny_marian, device="cpu")
    words = [line.split() for line in ENGLISH + GERMAN]
    rng = random.Random(0)

    def sentence(side: int) -> str:
        return " ".join(rng.choice(words[rng.randrange(12) + 12 * side]) for _ in range(8))

    memory = Memory.create(tmp_path / "m", model, search=SearchSettings(exact_limit=1_000))
    memory.import_pairs(Pair(sentence(0), sentence(1)) for _ in range(2_000))
    queries = torch.cat([f.keys for f in model.force_decode([(sentence(0), sentence(1)) for _ in range(20)])])
    memory.build_index()
    ours = memory.search(queries, 16)
    theirs = Memory.open(memory.directory, model, search=EXACT).search(queries, 16)
    assert memory.info().index == "ivf"
    both = [len(set(a) & set(b)) for a, b in zip(ours.ids.tolist(), theirs.ids.tolist(), strict=True)]
    assert sum(both) / theirs.ids.numel() >= 0.95


def test_probing_all_lists_finds_what_exact_search_finds(large: Memory, speller: Speller) -> None:
    thorough = Memory.open(
        large.directory,
        speller,
        search=SearchSettings(exact_limit=1_000, probes=10_000, candidates_per_neighbour=20),
    )
    exact = Memory.open(large.directory, speller, search=EXACT)
    queries = stored_keys(large)[1] + 0.3
    assert torch.equal(thorough.search(queries, 8).ids, exact.search(queries, 8).ids)


@pytest.mark.parametrize("copies", [70, 300])
def test_of_more_exact_matches_than_candidates_the_newest_are_found(
    large: Memory, speller: Speller, copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first key depends on the source alone: so many copies of it lie in one list."""
    monkeypatch.setattr("kster.memory.index.ivf.RANKED", 40)
    large.import_pairs(Pair("same", f"{i:03d}") for i in range(copies))
    newest = [segment.id for segment in large.segments()][-16:][::-1]
    assert index_of(large)._indexed == large.entry_count  # all in the lists
    queries = torch.cat([speller.query("source 3"), speller.query("same"), speller.query("source 4")])
    found = large.search(queries, 16)
    assert large.segment_ids(found.ids)[1].tolist() == newest
    assert found.distances[1].tolist() == [0.0] * 16
    large.remove(newest[:3])
    late = large.add("same", "late").id  # beside the lists
    found = large.search(queries, 3)
    assert large.segment_ids(found.ids)[1].tolist() == [late, newest[3], newest[4]]
    assert found.distances[[0, 2], 0].tolist() == [0.0, 0.0]


def test_the_number_of_probes_reaches_the_lists(large: Memory) -> None:
    lists = index_of(large)._lists._inner.nlist
    for probes, share, read in ((1, 0.0, 1), (5, 0.0, 5), (5, 0.5, math.ceil(lists / 2))):
        settings = SearchSettings(exact_limit=1_000, probes=probes, probed_share=share)
        faiss.cvar.indexIVF_stats.reset()
        with Memory.open(large.directory, search=settings) as memory:
            memory.build_index()
            memory.search(torch.randn(10, 16), 2)
        assert faiss.cvar.indexIVF_stats.nlist == 10 * read


def test_a_query_reads_the_same_share_of_the_lists_however_many_there_are() -> None:
    settings = SearchSettings()
    assert [settings.probes_of(lists) for lists in (20, 604, 1_280, 2_000, 20_000)] == [
        20,
        64,
        64,
        100,
        1_000,
    ]


def test_added_is_found_at_once_beside_the_lists_and_after_joining_them(
    large: Memory, speller: Speller
) -> None:
    before = index_of(large)
    large.add("new", "neu")
    assert large.search(speller.query("new"), 1).distances[0, 0] == 0
    assert index_of(large)._indexed == before._indexed  # beside
    large.import_pairs(Pair(f"more {i}", "noch mehr") for i in range(40))
    queries = torch.cat([speller.query(f"more {i}") for i in range(40)])
    assert (large.search(queries, 1).distances == 0).all()
    assert index_of(large)._indexed == large.entry_count  # joined
    assert index_of(large)._lists is before._lists
    # The older index shares the lists, but answers as before.
    assert (before.search(queries, 1).distances > 0).all()


def test_removed_is_not_found_and_others_take_its_place(large: Memory, speller: Speller) -> None:
    ids, queries = stored_keys(large)
    segments = large.segment_ids(ids).unique()
    assert (large.search(queries, 4).distances[:, 0] == 0).all()
    large.remove(segments.tolist())
    for memory in (large, Memory.open(large.directory, speller, search=SMALL)):
        found = memory.search(queries, 4)
        assert (found.ids >= 0).all()
        assert not np.isin(memory.segment_ids(found.ids).numpy(), segments.numpy()).any()


def test_searching_in_inference_mode_does_not_spoil_later_changes(large: Memory, speller: Speller) -> None:
    with torch.inference_mode():
        large.search(speller.query("source 5"), 1)
    large.remove(1)  # nothing new beside the lists
    assert large.search(speller.query("source 5"), 1).distances[0, 0] == 0
    large.add("new", "neu")
    assert large.search(speller.query("new"), 1).distances[0, 0] == 0


def test_enough_neighbours_are_found_when_nearly_everything_near_is_removed(large: Memory) -> None:
    large._reader._settings = SearchSettings(exact_limit=1_000, probes=1, probed_share=0)
    query = stored_keys(large)[1][:1]
    near = large.segment_ids(large.search(query, 800).ids).unique()
    large.remove(near[near >= 0].tolist()[:290])
    assert large.info().index == "ivf"
    assert (large.search(query, 64).ids >= 0).all()


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
        assert torch.equal(memory.search(queries + 0.3, 16).ids, exact.ids)
        assert began.wait(timeout=60)
        added = memory.add("meanwhile", "inzwischen")
        assert torch.equal(memory.search(queries, 1).ids[:, 0], ids)
        may_go_on.set()
        index = index_of(memory)
        assert (index._indexed, index.outdated) == (4_000, False)  # what was added meanwhile lies beside
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
