"""Searching on a GPU finds what searching on the CPU finds, through adds and removals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kster.formats import Pair
from kster.memory import Memory
from kster.memory.search import block_index
from memory.speller import Spelled, Speller

pytestmark = pytest.mark.gpu

K = 16


@pytest.fixture
def speller() -> Speller:
    return Speller(dimension=64)


@pytest.fixture
def memory(tmp_path: Path, speller: Speller) -> Iterator[Memory]:
    with Memory.create(tmp_path / "memory", speller, entries_per_shard=500) as memory:
        yield memory


def queries_of(speller: Speller, count: int = 40) -> torch.Tensor:
    """Half of them exactly in the memory (where it is filled), half nowhere near."""
    known = torch.cat([speller.query(f"source {i}", "tar"[: i % 4]) for i in range(count // 2)])
    return torch.cat([known, torch.randn(count // 2, speller.dimension, generator=torch.manual_seed(1))])


def assert_same(memory: Memory, queries: torch.Tensor, device: torch.device, k: int = K) -> None:
    here = memory.search(queries, k)
    there = memory.search(queries.to(device), k)
    assert there.ids.device == device
    assert torch.equal(there.ids.cpu(), here.ids)
    assert torch.equal(there.values.cpu(), here.values)
    assert torch.equal(there.keys.cpu(), here.keys)
    torch.testing.assert_close(there.distances.cpu(), here.distances, rtol=1e-4, atol=1e-4)


def test_an_empty_memory_finds_nothing(memory: Memory, speller: Speller, device: torch.device) -> None:
    found = memory.search(queries_of(speller).to(device), K)
    assert found.ids.device == device
    assert (found.ids == -1).all()
    assert found.distances.isinf().all()
    memory.remove(memory.add("source 1", "target 1").id)
    assert_same(memory, queries_of(speller), device)
    assert (memory.search(queries_of(speller).to(device), K).ids == -1).all()


def test_fewer_entries_than_neighbours(memory: Memory, speller: Speller, device: torch.device) -> None:
    memory.add("source 1", "tar")  # four entries
    for k in (1, 4, 5, K, 64):
        assert_same(memory, queries_of(speller), device, k)
    assert (memory.search(queries_of(speller).to(device), K).ids >= 0).sum(1).tolist() == [4] * 40


def test_adds_and_removals_are_followed_at_once(
    memory: Memory, speller: Speller, device: torch.device
) -> None:
    queries = queries_of(speller)
    for start in (0, 60, 700):
        memory.import_pairs(Pair(f"source {i}", f"target {i}") for i in range(start, start + 60))
        assert_same(memory, queries, device)
    memory.import_pairs(Pair(f"s {i}", f"t {i}") for i in range(3_000))  # storage grows, blocks are chosen
    assert_same(memory, queries, device)
    memory.remove(range(1, 20))
    assert_same(memory, queries, device)
    assert not set(memory.search(queries.to(device), K).ids.flatten().tolist()) & set(range(19 * 9))
    memory.compact()
    assert_same(memory, queries, device)


def test_of_duplicates_the_newest_comes_first(memory: Memory, speller: Speller, device: torch.device) -> None:
    memory.import_pairs(Pair(f"s {i}", f"t {i}") for i in range(2_000))
    memory.import_pairs(
        Pair("one source", f"target {i}") for i in range(12)
    )  # 12 equal keys each up to "target "
    query = speller.query("one source", "targ")
    assert_same(memory, query, device)
    found = memory.search(query.to(device), 12)
    assert found.distances.tolist() == [[0.0] * 12]
    assert found.ids[0].tolist() == sorted(found.ids[0].tolist(), reverse=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_queries_of_any_precision(
    memory: Memory, speller: Speller, device: torch.device, dtype: torch.dtype
) -> None:
    memory.import_pairs(Pair(f"source {i}", f"target {i}") for i in range(900))
    assert_same(memory, queries_of(speller).to(dtype), device)


@pytest.mark.parametrize("size", [1, 255, 256, 4_097, 60_000])
@pytest.mark.parametrize("count", [1, 3, 40, 300])
def test_kernels_find_what_torch_finds(
    tmp_path: Path, device: torch.device, monkeypatch: pytest.MonkeyPatch, size: int, count: int
) -> None:
    """Among them duplicates, removed entries, and groups enough to be chosen in two stages."""
    monkeypatch.setattr(block_index, "MANY_GROUPS", 600)
    speller = Speller(dimension=128)
    keys = torch.randn(size, 128, generator=torch.manual_seed(2)).half()
    keys[size // 2 : size // 2 + 50] = keys[size // 3]  # more equal keys than neighbours
    with Memory.create(tmp_path / "memory", speller) as memory:
        monkeypatch.setattr(speller, "make_keys", lambda pairs: [Spelled(keys, torch.arange(size) % 250)])
        memory.import_pairs([Pair("source", "t" * (size - 1))])
        queries = torch.randn(count, 128, generator=torch.manual_seed(3)).to(device)
        queries[0] = keys[size // 3].float().to(device)
        if count > 1:
            queries[1] = torch.nan
        found = memory.search(queries, K)
        monkeypatch.setattr(block_index, "kernels", lambda: None)
        expected = memory.search(queries, K)
    assert torch.equal(found.ids, expected.ids)
    assert torch.equal(found.values, expected.values)
    assert torch.equal(found.keys, expected.keys)
    torch.testing.assert_close(found.distances, expected.distances, rtol=1e-5, atol=1e-5)
    if count > 1:
        assert (found.ids[1] == -1).all()
