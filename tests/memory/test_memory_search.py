"""Exact search: the right neighbours, in the right order, whatever the shape of the question."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from speller import Speller
from torch import Tensor

from kster import KsterError
from kster.formats import Pair
from kster.limits import LARGEST_SEARCH
from kster.memory import Memory, Neighbours
from kster.memory.search import block_index
from kster.memory.search.block_index import BlockIndex, positions_of_newest_smallest, smallest
from kster.memory.store.entry_files import Appender, EntryFiles, MappedEntries
from kster.memory.store.snapshot import Snapshot
from kster.memory.store.spans import Spans

CPU = torch.device("cpu")


def snapshot_of(directory: Path, keys: Tensor, removed: list[int] | None = None) -> Snapshot:
    """A snapshot of segments of one entry each, whose value is its place. keys: (n, d)."""
    files = EntryFiles(directory / "entries", keys.shape[1], entries_per_shard=700)
    if not files.directory.exists():
        files.create()
    n = len(keys)
    appender = Appender(files, 0)
    appender.append(keys.half().numpy(), np.arange(n, dtype=np.int32))
    appender.sync()
    live = np.ones(n, np.bool_)
    live[removed or []] = False
    line = np.arange(n, dtype=np.int64)
    spans = Spans(line, line, line, np.ones_like(line), line, line, line, (~live).astype(np.int64))
    return Snapshot(1, 0, MappedEntries(files, n), spans, live, ~live)


def by_hand(keys: Tensor, queries: Tensor, k: int, removed: list[int] | None = None) -> tuple[Tensor, Tensor]:
    """Distances in float64, and ids, sorted by distance and then by age, newest first."""
    distances = (queries.double()[:, None] - keys.half().double()).norm(dim=2)  # (n, N)
    distances[:, removed or []] = torch.inf
    best = distances.flip(1).sort(dim=1, stable=True)
    return best.values[:, :k], len(keys) - 1 - best.indices[:, :k]


def assert_exact(
    found: Neighbours, keys: Tensor, queries: Tensor, k: int, removed: list[int] | None = None
) -> None:
    distances, ids = by_hand(keys, queries, k, removed)
    torch.testing.assert_close(found.distances.double(), distances, rtol=1e-5, atol=1e-6)
    assert torch.equal(found.ids, ids)
    assert torch.equal(found.values, ids)
    assert torch.equal(found.keys, keys.half()[ids])


def test_distances_by_hand(tmp_path: Path) -> None:
    keys = torch.tensor([[0.0, 0.0], [3.0, 4.0], [1.0, 0.0]])
    found = BlockIndex(snapshot_of(tmp_path, keys), CPU).search(torch.tensor([[0.0, 0.0], [3.0, 0.0]]), 3)
    assert found.distances.tolist() == [[0, 1, 5], [2, 3, 4]]
    assert found.ids.tolist() == [[0, 2, 1], [2, 0, 1]]


@pytest.mark.parametrize("n", [1, 5, 255, 256, 257, 5_000, 12_345])
@pytest.mark.parametrize("k", [1, 4, 16, 64])
def test_search_is_exact_at_every_size(tmp_path: Path, n: int, k: int) -> None:
    torch.manual_seed(n)
    keys, queries = torch.randn(n, 24), torch.randn(7, 24)
    found = BlockIndex(snapshot_of(tmp_path, keys), CPU).search(queries, k)
    there = min(n, k)
    part = Neighbours(*(x[:, :there] for x in (found.distances, found.values, found.ids, found.keys)))
    assert_exact(part, keys, queries, there)
    assert (found.ids[:, there:] == -1).all()
    assert found.distances[:, there:].isinf().all()
    assert (found.keys[:, there:] == 0).all()
    assert (found.values[:, there:] == 0).all()


def test_queries_are_searched_in_parts_when_their_scores_would_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(block_index.SCORES_AT_ONCE, "cpu", 3_000)
    torch.manual_seed(1)
    keys, queries = torch.randn(1_000, 8), torch.randn(10, 8)
    assert_exact(BlockIndex(snapshot_of(tmp_path, keys), CPU).search(queries, 5), keys, queries, 5)


@pytest.mark.parametrize("tier", ["cpu", "gpu"])
def test_of_duplicates_the_newest_come_first_however_many_there_are(
    tmp_path: Path, tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(2)
    keys = torch.randn(30_000, 32)
    same = torch.arange(7, 30_000, 11)  # 2,727 copies in all blocks, far more than k and its margin
    keys[same] = keys[7].clone()
    index = BlockIndex(snapshot_of(tmp_path, keys), CPU)
    monkeypatch.setattr(block_index, "RANKED", 40)
    if tier == "gpu":  # as there: no second look, and of equal scores the newest
        monkeypatch.setattr(block_index, "positions_of_smallest", positions_of_newest_smallest)
        monkeypatch.setattr(BlockIndex, "_settle_ties", lambda *_: None)
    found = index.search(torch.stack([keys[7].half().float(), keys[8]]), 16)
    assert found.ids[0].tolist() == same.flip(0)[:16].tolist()
    assert found.distances[0].tolist() == [0.0] * 16


def test_of_equal_scores_the_last_are_chosen() -> None:
    torch.manual_seed(3)
    for width, c in ((5, 5), (256, 7), (40 * 256, 20), (40 * 256, 39)):
        scores = torch.randint(-3, 4, (6, width)).float() * 0.5
        scores[0] = -0.0
        scores[1, ::2] = torch.inf
        expected = width - 1 - scores.flip(1).sort(dim=1, stable=True).indices[:, :c]
        assert torch.equal(positions_of_newest_smallest(scores, c), expected)
        if width % block_index.BLOCK == 0:
            values, places = smallest(scores, c, positions_of_newest_smallest)
            assert torch.equal(places, expected)
            assert torch.equal(values, scores.gather(1, expected))


def test_search_is_exact_even_where_scores_have_no_digits_left(tmp_path: Path) -> None:
    """Far from the origin ‖k‖² − 2q·k is a small difference of large numbers."""
    torch.manual_seed(3)
    keys = 0.2 * torch.randn(5_000, 64) + 100
    queries = keys[:50].half().float()
    found = BlockIndex(snapshot_of(tmp_path, keys), CPU).search(queries, 4)
    assert found.ids[:, 0].tolist() == list(range(50))
    assert (found.distances[:, 0] == 0).all()
    assert not found.distances.isnan().any()
    assert_exact(found, keys, queries, 4)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_queries_that_are_not_finite_find_nothing(memory: Memory, speller: Speller, value: float) -> None:
    memory.import_pairs(Pair(f"s{i}", "abc") for i in range(300))
    queries = torch.cat([speller.query("s5"), speller.query("s7"), speller.query("s9")])
    queries[1, 3] = value
    found = memory.search(queries, 4)
    assert found.ids[1].tolist() == [-1] * 4
    assert found.distances[1].isinf().all()
    assert found.distances[[0, 2], 0].tolist() == [0, 0]
    assert not found.distances.isnan().any()
    assert (found.keys[1] == 0).all()
    assert (found.values[1] == 0).all()


def test_removed_entries_are_not_candidates(tmp_path: Path) -> None:
    torch.manual_seed(4)
    keys, queries = torch.randn(2_000, 8), torch.randn(5, 8)
    gone = by_hand(keys, queries, 100)[1].flatten().unique().tolist()
    snapshot = snapshot_of(tmp_path, keys, gone)
    assert_exact(BlockIndex(snapshot, CPU).search(queries, 8), keys, queries, 8, gone)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_queries_of_any_precision(tmp_path: Path, dtype: torch.dtype) -> None:
    torch.manual_seed(5)
    keys, queries = torch.randn(1_500, 16), torch.randn(6, 16).to(dtype)
    assert_exact(BlockIndex(snapshot_of(tmp_path, keys), CPU).search(queries, 8), keys, queries, 8)


def test_the_gpu_tier_finds_the_same_from_float16_storage(tmp_path: Path) -> None:
    """Storage as on a GPU, on the CPU's tensors; `-m gpu` runs the same on a GPU."""
    torch.manual_seed(6)
    keys, queries = torch.randn(9_000, 64), torch.randn(20, 64)
    index = BlockIndex(snapshot_of(tmp_path, keys), CPU, dtype=torch.float16)
    assert index._keys.dtype == torch.float16
    assert_exact(index.search(queries, 16), keys, queries, 16)


@pytest.mark.gpu
def test_search_on_a_gpu_is_exact(tmp_path: Path) -> None:
    torch.manual_seed(7)
    keys, queries = torch.randn(200_000, 512), torch.randn(64, 512)
    gone = [3, 77, 199_999]
    index = BlockIndex(snapshot_of(tmp_path, keys, gone), torch.device("cuda"))
    for given in (queries, queries.half()):
        found = index.search(given.cuda(), 16)
        assert found.keys.is_cuda
        on_cpu = Neighbours(*(x.cpu() for x in (found.distances, found.values, found.ids, found.keys)))
        assert_exact(on_cpu, keys, given, 16, gone)


def test_block_selection_equals_a_full_top_k() -> None:
    torch.manual_seed(8)
    scores = torch.randn(9, 40 * block_index.BLOCK)
    values, places = smallest(scores, 20)
    assert torch.equal(values, scores.topk(20, largest=False).values)
    assert torch.equal(scores.gather(1, places), values)


def test_an_older_index_keeps_its_answers_while_newer_ones_grow_from_it(tmp_path: Path) -> None:
    torch.manual_seed(9)
    keys, queries = torch.randn(4_000, 8), torch.randn(5, 8)
    index = BlockIndex(snapshot_of(tmp_path, keys[:300]), CPU)
    before = index.search(queries, 8)
    newest = index
    for size in (301, 511, 513, 2_000, 4_000):
        newest = newest.advance(snapshot_of(tmp_path, keys[:size], removed=[0, 5]))
        assert_exact(newest.search(queries, 8), keys[:size], queries, 8, [0, 5])
    again = index.search(queries, 8)
    assert torch.equal(before.ids, again.ids)
    assert torch.equal(before.distances, again.distances)


def test_storage_does_not_double_when_something_is_added(tmp_path: Path) -> None:
    torch.manual_seed(10)
    keys = torch.randn(25_600, 4)  # whole blocks: the next entry needs another
    index = BlockIndex(snapshot_of(tmp_path, keys[:12_800]), CPU)
    loaded = len(index._keys)
    index = index.advance(snapshot_of(tmp_path, keys[:12_801]))
    assert len(index._keys) - loaded < 0.05 * loaded
    copies = 0
    for size in range(12_900, 25_600, 100):
        before = index._keys
        index = index.advance(snapshot_of(tmp_path, keys[:size]))
        copies += index._keys is not before
        assert len(index._keys) <= 1.13 * size + block_index.BLOCK
    assert copies < 8


def test_searching_in_inference_mode_does_not_spoil_later_adds(memory: Memory, speller: Speller) -> None:
    memory.add("tree", "Baum")
    with torch.inference_mode():
        memory.search(speller.query("tree"), 1)
    memory.add("bird", "Vogel")
    assert memory.search(speller.query("bird"), 1).distances[0, 0] == 0


def test_no_queries_and_wrong_questions(memory: Memory, speller: Speller) -> None:
    memory.add("tree", "Baum")
    assert memory.search(torch.zeros(0, 16), 3).keys.shape == (0, 3, 16)
    for k in (0, LARGEST_SEARCH + 1, 2.0):
        with pytest.raises(
            KsterError, match=f"k = {k}: the number of neighbours must be from 1 to {LARGEST_SEARCH:,}"
        ):
            memory.search(speller.query("tree"), k)  # type: ignore[arg-type]
    assert memory.search(speller.query("tree"), 4_096).ids.shape == (1, 4_096)
    with pytest.raises(ValueError, match=r"\(n, 16\)"):
        memory.search(torch.zeros(1, 17), 3)


def test_provenance_names_segment_and_position(memory: Memory, speller: Speller) -> None:
    memory.import_pairs([Pair("tree", "Baum"), Pair("bird", "Vogel", "u7")], origin="a.tmx")
    found = memory.search(torch.cat([speller.query("bird", "Vo"), speller.query("tree", "Baum")]), 1)
    third, last = memory.provenance(found.ids[:, 0])
    assert (third.segment.target, third.position, third.segment.unit) == ("Vogel", 2, "u7")
    assert (last.segment.target, last.position, last.segment.origin) == ("Baum", 4, "a.tmx")
    assert found.values[:, 0].tolist() == [ord("g"), 0]
    assert memory.segment_ids(found.ids).tolist() == [[2], [1]]


def test_entry_ids_stay_what_they_are_when_a_memory_is_compacted(memory: Memory, speller: Speller) -> None:
    memory.import_pairs(Pair(f"s{i}", f"t{i % 3}") for i in range(30))
    query = speller.query("s20")
    before = memory.search(query, 3)
    nearest = set(memory.segment_ids(before.ids).flatten().tolist())
    memory.remove([i for i in range(1, 20) if i not in nearest])
    memory.compact()
    assert torch.equal(memory.search(query, 3).ids, before.ids)
    assert memory.provenance(before.ids[0])[0].segment.source == "s20"
    assert torch.equal(memory.keys_of(before.ids), before.keys)
    dropped = torch.tensor([0])
    assert memory.segment_ids(dropped).tolist() == ([1] if 1 in nearest else [-1])
    assert memory.add("new", "neu").id == 31
    assert memory.search(speller.query("new"), 1).distances[0, 0] == 0


def test_entries_are_the_live_ones_in_order(memory: Memory) -> None:
    memory.import_pairs([Pair("a", "xy"), Pair("b", "Xy "), Pair("c", "z")])
    memory.remove(3)
    memory.add("d", " x  Y")
    entries = memory.entries()
    assert len(entries) == memory.entry_count == 3 + 4 + 6
    assert entries.segment_ids.tolist() == [1] * 3 + [2] * 4 + [4] * 6
    assert entries.positions.tolist() == [*range(3), *range(4), *range(6)]
    assert entries.values[:3].tolist() == [ord("x"), ord("y"), 0]
    assert entries.ids.tolist() == [*range(7), *range(9, 15)]
    assert entries.keys_of(entries.ids.view(1, -1)).shape == (1, 13, 16)
    groups = memory.target_groups(torch.tensor([1, 2, 4, 3, -1]))
    assert groups[0] == groups[1] != groups[2]  # "xy" and "Xy ", but not "x Y"
    assert torch.equal(entries.target_groups, memory.target_groups(entries.segment_ids))
