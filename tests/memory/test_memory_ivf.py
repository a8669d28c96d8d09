"""Large memories: approximate lists, exact distances, and changes that take effect at once."""

from __future__ import annotations

import math
import random
from pathlib import Path

import faiss
import numpy as np
import pytest
import torch
from large import EXACT, SMALL, index_of, stored_keys
from speller import Speller

from kster.formats import Pair
from kster.memory import Memory, SearchSettings
from kster.model import BaseModel
from tiny import ENGLISH, GERMAN


def test_distances_are_those_of_the_stored_keys_not_of_their_codes(large: Memory) -> None:
    queries = stored_keys(large)[1] + 0.3
    found = large.search(queries, 16)
    assert large.info().index == "ivf"
    assert torch.equal(found.keys, large.keys_of(found.ids))
    torch.testing.assert_close(found.distances, (queries[:, None] - found.keys.float()).norm(dim=2))
    assert (found.distances.diff(dim=1) >= 0).all()
    assert (large.search(stored_keys(large)[1], 1).distances == 0).all()


def test_info_says_what_a_search_will_hold_before_there_was_one(large: Memory) -> None:
    for settings in (EXACT, SMALL):
        with Memory.open(large.directory, search=settings) as memory:
            expected = memory.info().bytes_in_ram
            memory.search(torch.zeros(1, 16), 1)
            memory.build_index()
            assert expected == pytest.approx(memory.info().bytes_in_ram, rel=0.2)
            assert expected > memory.entry_count * 16


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
    queries = torch.cat([f.keys for f in model.make_keys([(sentence(0), sentence(1)) for _ in range(20)])])
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
    late = large.add("same", "late", context="another").id  # beside the lists; the older ones stay
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
