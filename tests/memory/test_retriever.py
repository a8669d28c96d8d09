"""Search on behalf of sentences: exact within the shortlist, for every row its own sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from speller import Speller

from kster import KsterError
from kster.formats import Pair
from kster.memory import Memory, MemoryGroup, Neighbours, SearchSettings
from kster.memory.retriever import Retriever, RowsOf, ShortlistRetriever, WholeRetriever

CPU = torch.device("cpu")
SENTENCES = ["open the red valve", "close the green tank now", "nothing alike"]


def by_shortlist(length: int) -> SearchSettings:
    return SearchSettings(mode="shortlist", shortlist=length)


def fill(memory: Memory, suffix: str = "") -> None:
    words = ["open", "close", "red", "green", "valve", "tank", "pump", "now"]
    memory.import_pairs(
        Pair(f"{words[i % 2]} the {words[2 + i % 3]} {words[4 + i % 4]} {i}{suffix}", f"target {i % 5}")
        for i in range(60)
    )


def retriever_of(memory: Memory | MemoryGroup, texts: list[str] = SENTENCES) -> Retriever:
    found = memory.retriever(texts, CPU, similarity=True)
    assert isinstance(found, Retriever)
    return found


def queries(rows: int) -> torch.Tensor:
    return torch.randn(rows, 16, generator=torch.Generator().manual_seed(1))


def by_hand(memory: Memory | MemoryGroup, text: str, query: torch.Tensor, m: int, k: int) -> list[float]:
    """Distances of the k nearest among all entries of the m best segments."""
    wanted = set(memory.similar(text, m).segment_ids.tolist())
    near = memory.search(query[None], 2_000)
    segments = memory.segment_ids(near.ids)[0].tolist()
    pairs = zip(segments, near.distances[0].tolist(), strict=True)
    return [distance for segment, distance in pairs if segment in wanted][:k]


def assert_same(one: Neighbours, two: Neighbours) -> None:
    assert torch.equal(one.ids, two.ids)
    assert torch.allclose(one.distances, two.distances)
    assert one.similarity is not None
    assert two.similarity is not None
    assert torch.equal(one.similarity, two.similarity)


@pytest.mark.parametrize("shards", [20, 1 << 20])
def test_neighbours_are_exact_within_the_shortlist(tmp_path: Path, speller: Speller, shards: int) -> None:
    with Memory.create(tmp_path / "m", speller, search=by_shortlist(6), entries_per_shard=shards) as memory:
        fill(memory)
        memory.remove([1, 2, 13])
        retriever, asked = retriever_of(memory), queries(12)
        assert isinstance(retriever, ShortlistRetriever)
        found = retriever.search(asked, 7)
        for row in range(12):
            expected = by_hand(memory, SENTENCES[row // 4], asked[row], 6, 7)
            assert found.distances[row, : len(expected)].tolist() == pytest.approx(expected, abs=1e-4)
        assert torch.equal(found.keys[:8], memory.keys_of(found.ids[:8]))
        assert (found.ids[8:] == -1).all()  # "nothing alike" shares no word with any source
        assert not set(memory.segment_ids(found.ids).flatten().tolist()) & {1, 2, 13}


@pytest.mark.parametrize("mode", ["shortlist", "exact"])
def test_each_neighbour_says_how_alike_its_source_is(tmp_path: Path, speller: Speller, mode: str) -> None:
    settings = SearchSettings(mode=mode, shortlist=10)  # type: ignore[arg-type]
    with Memory.create(tmp_path / "m", speller, search=settings) as memory:
        fill(memory)
        found = retriever_of(memory).search(queries(6), 5)
        assert found.similarity is not None
        for row in range(6):
            near = memory.similar(SENTENCES[row // 2], 100)
            known = dict(zip(near.segment_ids.tolist(), near.relative.tolist(), strict=True))
            segments = memory.segment_ids(found.ids)[row].tolist()
            expected = [known.get(segment, 0.0) for segment in segments]
            assert found.similarity[row].tolist() == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("mode", ["shortlist", "exact"])
def test_a_batch_that_shrinks_gets_the_same_answers(tmp_path: Path, speller: Speller, mode: str) -> None:
    settings = SearchSettings(mode=mode, shortlist=10)  # type: ignore[arg-type]
    with Memory.create(tmp_path / "m", speller, search=settings) as memory:
        fill(memory)
        retriever, asked = retriever_of(memory), queries(12)
        kept = retriever.keep(torch.tensor([1, 2])).search(asked[4:], 5)
        rows = RowsOf(retriever, torch.tensor([1] * 4 + [2] * 4)).search(asked[4:], 5)
        assert_same(kept, rows)
        whole = retriever.search(asked, 5)
        assert torch.equal(kept.ids, whole.ids[4:])


def test_several_memories_share_one_shortlist(tmp_path: Path, speller: Speller) -> None:
    with (
        Memory.create(tmp_path / "a", speller, search=by_shortlist(6)) as first,
        Memory.create(tmp_path / "b", speller) as second,
    ):
        fill(first)
        fill(second, " b")
        group, asked = MemoryGroup([first, second]), queries(3)
        found = retriever_of(group).search(asked, 4)
        for row in range(2):
            expected = by_hand(group, SENTENCES[row], asked[row], 6, 4)
            assert found.distances[row].tolist() == pytest.approx(expected, abs=1e-4)
            assert group.provenance(found.ids[row])


def test_equal_distances_come_newest_first(tmp_path: Path, speller: Speller) -> None:
    with Memory.create(tmp_path / "m", speller, search=by_shortlist(64)) as memory:
        for i in range(50):
            memory.add("press the button", f"{chr(65 + i)}")
        query = speller.query("press the button")
        found = retriever_of(memory, ["press the button"]).search(query, 4)
        assert memory.segment_ids(found.ids)[0].tolist() == [50, 49, 48, 47]
        assert found.similarity is not None
        assert found.similarity.tolist() == [[1.0] * 4]


def test_small_memories_are_searched_whole_and_large_ones_by_shortlist(
    tmp_path: Path, speller: Speller
) -> None:
    with Memory.create(tmp_path / "m", speller, search=SearchSettings(shortlist_from=100)) as memory:
        memory.add("one", "eins")
        assert isinstance(retriever_of(memory), WholeRetriever)
        assert memory.retriever(SENTENCES, CPU, similarity=False) is memory
        fill(memory)
        assert isinstance(retriever_of(memory), ShortlistRetriever)


def test_what_is_added_during_a_batch_is_found_by_the_next(tmp_path: Path, speller: Speller) -> None:
    with Memory.create(tmp_path / "m", speller, search=by_shortlist(5)) as memory:
        fill(memory)
        added = memory.add("nothing alike", "neu")
        found = retriever_of(memory).search(speller.query("nothing alike").expand(3, -1), 1)
        assert found.distances[2, 0] == 0
        assert memory.segment_ids(found.ids)[2].tolist() == [added.id]
        memory.remove(added.id)
        assert retriever_of(memory).search(queries(3), 1).ids[2].tolist() == [-1]


def test_an_unknown_way_to_search_is_named() -> None:
    with pytest.raises(KsterError, match="auto, exact, shortlist"):
        SearchSettings(mode="quick")  # type: ignore[arg-type]
