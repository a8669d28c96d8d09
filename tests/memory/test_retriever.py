"""Search on behalf of sentences: exact within the shortlist, for every row its own sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from speller import Speller

from kster import KsterError
from kster.formats import Pair
from kster.memory import Memory, MemoryGroup, Neighbours, SearchableMemory, SearchSettings
from kster.memory.search import codes as codes_module
from kster.memory.search.codes import Projection
from kster.memory.search.retriever import Batch, Retriever, RowsOf
from kster.memory.search.shortlist_retriever import Gathered, Shortlist, ShortlistRetriever, retriever_of

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


def made_for(memory: SearchableMemory, texts: list[str] = SENTENCES) -> Retriever:
    found = memory.retriever(Batch(texts, CPU, words=[text.split() for text in texts]))
    assert isinstance(found, Retriever)
    return found


def queries(rows: int) -> torch.Tensor:
    return torch.randn(rows, 16, generator=torch.Generator().manual_seed(1))


def by_hand(memory: SearchableMemory, text: str, query: torch.Tensor, m: int, k: int) -> list[float]:
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
    assert one.words is not None
    assert two.words is not None
    assert torch.equal(one.words, two.words)


@pytest.mark.parametrize("shards", [20, 1 << 20])
def test_neighbours_are_exact_within_the_shortlist(tmp_path: Path, speller: Speller, shards: int) -> None:
    with Memory.create(tmp_path / "m", speller, search=by_shortlist(6), entries_per_shard=shards) as memory:
        fill(memory)
        memory.remove([1, 2, 13])
        retriever, asked = made_for(memory), queries(12)
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
        found = made_for(memory).search(queries(6), 5)
        assert found.similarity is not None
        for row in range(6):
            near = memory.similar(SENTENCES[row // 2], 100)
            known = dict(zip(near.segment_ids.tolist(), near.relative.tolist(), strict=True))
            segments = memory.segment_ids(found.ids)[row].tolist()
            expected = [known.get(segment, 0.0) for segment in segments]
            assert found.similarity[row].tolist() == pytest.approx(expected, abs=1e-3)
        assert found.words is not None
        for row, ids in enumerate(found.ids):
            for mask, id in zip(found.words[row].tolist(), ids.tolist(), strict=True):
                words = SENTENCES[row // 2].split()
                if id >= 0:
                    source = memory.provenance([id])[0].segment.source.split()
                    assert [mask >> i & 1 for i in range(len(words))] == [word in source for word in words]


def test_neighbours_by_another_measure_are_chosen_among_the_nearest(tmp_path: Path, speller: Speller) -> None:
    def measure(distances: torch.Tensor, similarity: torch.Tensor) -> torch.Tensor:
        return distances * (1.0 - 0.5 * similarity)

    with Memory.create(tmp_path / "m", speller, search=by_shortlist(6)) as memory:
        fill(memory)
        retriever, asked = made_for(memory), queries(12)
        assert isinstance(retriever, ShortlistRetriever)
        plain = retriever.search(asked, 10)
        assert plain.similarity is not None
        expected = plain.measured(measure(plain.distances, plain.similarity), 4)
        found = retriever.search_measured(asked, 10, 4, measure)
        assert_same(found, expected)
        assert torch.equal(found.keys, expected.keys)
        assert found.plain is not None
        assert expected.plain is not None
        assert torch.equal(found.plain, expected.plain)


@pytest.mark.parametrize("mode", ["shortlist", "exact"])
def test_a_batch_that_shrinks_gets_the_same_answers(tmp_path: Path, speller: Speller, mode: str) -> None:
    settings = SearchSettings(mode=mode, shortlist=10)  # type: ignore[arg-type]
    with Memory.create(tmp_path / "m", speller, search=settings) as memory:
        fill(memory)
        retriever, asked = made_for(memory), queries(12)
        kept = retriever.keep(torch.tensor([1, 2])).search(asked[4:], 5)
        rows = RowsOf(retriever, torch.tensor([1] * 4 + [2] * 4)).search(asked[4:], 5)
        assert_same(kept, rows)
        whole = retriever.search(asked, 5)
        assert torch.equal(kept.ids, whole.ids[4:])


@pytest.mark.parametrize("mode", ["shortlist", "exact"])
def test_a_sentence_that_is_searched_for_twice_gets_the_same_answers(
    tmp_path: Path, speller: Speller, mode: str
) -> None:
    settings = SearchSettings(mode=mode, shortlist=10)  # type: ignore[arg-type]
    with Memory.create(tmp_path / "m", speller, search=settings) as memory:
        fill(memory)
        retriever, asked = made_for(memory), queries(12)
        doubled = retriever.keep(torch.tensor([0, 0, 1, 1, 2, 2]))
        found = doubled.search(asked.view(3, 4, 16).repeat_interleave(2, dim=0).view(24, 16), 5)
        once = retriever.search(asked, 5)
        expected = once.ids.view(3, 4, 5).repeat_interleave(2, dim=0).view(24, 5)
        assert torch.equal(found.ids, expected)


def test_several_sentences_without_a_shortlist_find_nothing(tmp_path: Path, speller: Speller) -> None:
    with Memory.create(tmp_path / "m", speller, search=by_shortlist(6)) as memory:
        fill(memory)
        retriever = made_for(memory, ["nothing alike", "open the valve", "else", "whatever"])
        found = retriever.search(queries(8), 3)
        assert (found.ids[[0, 1, 4, 5, 6, 7]] == -1).all()
        assert (found.ids[2:4] >= 0).all()


def search_among(keys: torch.Tensor, asked: torch.Tensor, k: int) -> Neighbours:
    """By codes made of these keys, in sixteen sentences that share them."""
    numbers, projection = torch.arange(len(keys)), Projection.of(keys)
    nothing = torch.zeros(len(keys))
    own = Shortlist(
        numbers, *projection.codes(keys), numbers.int() * 0, numbers, nothing, torch.full_like(numbers, -1)
    )
    return retriever_of([own] * 16, Gathered(keys), projection, CPU).search(asked, k)


def keys_in_groups(dimension: int) -> tuple[torch.Tensor, torch.Tensor]:
    """4,095 keys and 64 queries near some of them."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(64, dimension, generator=generator)
    keys = (centres[torch.randint(64, (4_095,), generator=generator)] * 2 + 3).half()
    keys += torch.randn(keys.shape, generator=generator).half()
    return keys, keys[:64].float() + torch.randn(64, dimension, generator=generator) / 2


def exact_distances(asked: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    return torch.cdist(asked, keys.float(), compute_mode="donot_use_mm_for_euclid_dist")


def test_codes_that_keep_every_coordinate_miss_no_neighbour() -> None:
    """The margin that is ranked exactly is wider than rounding: of 32 neighbours none is missed."""
    keys, asked = keys_in_groups(512)
    found = search_among(keys, asked, 32)
    assert torch.equal(found.ids, exact_distances(asked, keys).topk(32, largest=False).indices)


def test_short_codes_miss_little_of_what_is_near() -> None:
    """Keys that differ most in 64 directions, less in the others: of the nearest 8 hardly any is missed."""
    generator = torch.Generator().manual_seed(0)
    spread = torch.cat([torch.full((64,), 3.0), torch.linspace(1.0, 0.1, 448)])
    keys = (torch.randn(8_192, 512, generator=generator) * spread).half()
    asked = keys[:64].float() + torch.randn(64, 512, generator=generator) * spread / 4
    found = search_among(keys, asked, 32)
    nearest = exact_distances(asked, keys).topk(8, largest=False).indices
    missed = ~(nearest[:, :, None] == found.ids[:, None]).any(-1)
    assert 0 < Projection.of(keys).width < 512
    assert missed.float().mean() < 0.05
    assert torch.equal(found.ids[:, 0], torch.arange(64))


def test_codes_are_made_anew_when_a_memory_has_grown_or_was_compacted(
    tmp_path: Path, speller: Speller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codes_module, "ENOUGH", 64)
    monkeypatch.setattr(codes_module, "BLOCKS", 4)
    monkeypatch.setattr(codes_module, "DIRECTIONS", 15)
    with Memory.create(tmp_path / "m", speller, search=by_shortlist(6)) as memory:
        asked = queries(12)
        for times in range(4):
            fill(memory, " again" * times)
            if times == 2:
                memory.remove([7, 8, 70])
                memory.compact()
            retriever = made_for(memory)
            assert isinstance(retriever, ShortlistRetriever)
            found = retriever.search(asked, 2)
            for row in range(8):
                expected = by_hand(memory, SENTENCES[row // 4], asked[row], 6, 2)
                assert found.distances[row].tolist() == pytest.approx(expected, abs=1e-4)
            assert torch.equal(found.keys[:8], memory.keys_of(found.ids[:8]))


@pytest.mark.parametrize("in_8_bits", [True, False])
def test_sentences_without_entries_and_processors_without_8_bits(
    tmp_path: Path, speller: Speller, monkeypatch: pytest.MonkeyPatch, in_8_bits: bool
) -> None:
    if not in_8_bits:
        monkeypatch.setattr("kster.memory.search.scores.has_instructions_for", lambda precision: False)
    with Memory.create(tmp_path / "m", speller, search=by_shortlist(6)) as memory:
        fill(memory)
        found = made_for(memory, ["nothing alike", "or such", *SENTENCES[:2]]).search(queries(8), 5)
        assert (found.ids[:4] == -1).all()
        for row in range(4, 8):
            expected = by_hand(memory, SENTENCES[row // 2 - 2], queries(8)[row], 6, 5)
            assert found.distances[row].tolist() == pytest.approx(expected, abs=1e-4)


def test_several_memories_share_one_shortlist(tmp_path: Path, speller: Speller) -> None:
    with (
        Memory.create(tmp_path / "a", speller, search=by_shortlist(6)) as first,
        Memory.create(tmp_path / "b", speller) as second,
    ):
        fill(first)
        fill(second, " b")
        group, asked = MemoryGroup([first, second]), queries(3)
        found = made_for(group).search(asked, 4)
        for row in range(2):
            expected = by_hand(group, SENTENCES[row], asked[row], 6, 4)
            assert found.distances[row].tolist() == pytest.approx(expected, abs=1e-4)
            assert group.provenance(found.ids[row])


def test_equal_distances_come_newest_first(tmp_path: Path, speller: Speller) -> None:
    with Memory.create(tmp_path / "m", speller, search=by_shortlist(64)) as memory:
        memory.import_pairs(Pair("press the button", chr(65 + i)) for i in range(50))
        query = speller.query("press the button")
        found = made_for(memory, ["press the button"]).search(query, 4)
        assert memory.segment_ids(found.ids)[0].tolist() == [50, 49, 48, 47]
        assert found.similarity is not None
        assert found.similarity.tolist() == [[1.0] * 4]


def test_a_small_memory_is_searched_whole_and_a_large_one_by_shortlist(
    tmp_path: Path, speller: Speller
) -> None:
    asked = queries(6)
    with Memory.create(tmp_path / "m", speller, search=SearchSettings(shortlist_entries=700)) as memory:
        fill(memory)
        memory.remove([1, 2])
        small = made_for(memory)
        assert isinstance(small, ShortlistRetriever)
        found, exact = small.search(asked, 7), memory.search(asked, 7)
        assert torch.equal(found.ids, exact.ids)
        assert torch.allclose(found.distances, exact.distances)
        fill(memory, " again")
        large = made_for(memory, SENTENCES[:1])
        assert isinstance(large, ShortlistRetriever)
        assert len(large.entries) - 1 <= 700 < memory.entry_count


def test_a_shortlist_has_no_more_entries_than_asked_for(tmp_path: Path, speller: Speller) -> None:
    settings = SearchSettings(mode="shortlist", shortlist_entries=30)
    with Memory.create(tmp_path / "m", speller, search=settings) as memory:
        fill(memory)
        retriever = made_for(memory, SENTENCES[:1])
        assert isinstance(retriever, ShortlistRetriever)
        best = memory.similar(SENTENCES[0], 3).segment_ids.tolist()
        ids = retriever.entries[:, 2]
        assert set(best) <= set(memory.segment_ids(ids[ids >= 0]).tolist())
        assert len(retriever.entries) - 1 <= 30


def test_what_is_added_during_a_batch_is_found_by_the_next(tmp_path: Path, speller: Speller) -> None:
    with Memory.create(tmp_path / "m", speller, search=by_shortlist(5)) as memory:
        fill(memory)
        added = memory.add("nothing alike", "neu")
        found = made_for(memory).search(speller.query("nothing alike").expand(3, -1), 1)
        assert found.distances[2, 0] == 0
        assert memory.segment_ids(found.ids)[2].tolist() == [added.id]
        memory.remove(added.id)
        assert made_for(memory).search(queries(3), 1).ids[2].tolist() == [-1]


def test_an_unknown_way_to_search_is_named() -> None:
    with pytest.raises(KsterError, match="auto, exact, shortlist"):
        SearchSettings(mode="quick")  # type: ignore[arg-type]
