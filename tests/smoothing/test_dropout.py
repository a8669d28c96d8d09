"""Retrieval dropout hides what will not be there at test time, and only that."""

from __future__ import annotations

import torch

from kster.memory import Memory
from kster.model import BaseModel
from kster.smoothing.fitting.dropout import drop, first_k
from kster.smoothing.fitting.lookup import Lookup, cache_segments

FOUND = torch.tensor([[True, True, True, True, False]] * 2)
RELATED = torch.tensor([[True, False, True, False, False], [True, True, True, True, False]])
NONE_KEPT = torch.tensor([False, False])


def test_the_papers_form_drops_the_nearest_only() -> None:
    columns, found = first_k(drop(FOUND, RELATED, NONE_KEPT, "nearest"), 3)
    assert columns.tolist() == [[1, 2, 3]] * 2
    assert found.all()


def test_provenance_drops_all_related_and_marks_what_is_missing() -> None:
    columns, found = first_k(drop(FOUND, RELATED, NONE_KEPT, "provenance"), 3)
    assert columns[0, :2].tolist() == [1, 3]
    assert found.tolist() == [[True, True, False], [False, False, False]]


def test_kept_tokens_keep_everything_that_was_found() -> None:
    for dropout in ("nearest", "provenance", "none"):
        columns, found = first_k(drop(FOUND, RELATED, torch.tensor([True, False]), dropout), 5)  # type: ignore[arg-type]
        assert columns[0].tolist() == [0, 1, 2, 3, 4]
        assert found[0].tolist() == [True, True, True, True, False]


def test_provenance_never_leaves_a_neighbour_of_the_same_segment_or_target(
    model: BaseModel, memory: Memory
) -> None:
    entries = memory.entries()
    segments = memory.segments()
    cache = cache_segments(Lookup(model, memory, entries), [s.id for s in segments], neighbours=24)
    assert len(cache) == len(entries)
    kept = torch.zeros(len(cache), dtype=torch.bool)
    columns, found = first_k(drop(cache.ids >= 0, cache.related, kept, "provenance"), 16)
    ids = cache.ids.gather(1, columns).long()
    target = {s.id: " ".join(s.target.casefold().split()) for s in segments}
    own = {s.id for s in segments}
    same_target = 0
    for row in range(len(cache)):
        segment = int(cache.segment_ids[row])
        assert segment in own
        for other in memory.segment_ids(ids[row][found[row]]).tolist():
            assert other != segment
            assert target[other] != target[segment]
        everything = memory.segment_ids(cache.ids[row].long()).tolist()
        same_target += sum(o != segment and target[o] == target[segment] for o in everything)
    assert same_target > 0  # there were copies to be left out


def test_the_papers_form_leaves_copies_of_the_target(model: BaseModel, memory: Memory) -> None:
    """Why the provenance-aware form exists: dropping one neighbour leaves the target's other copies."""
    entries = memory.entries()
    cache = cache_segments(Lookup(model, memory, entries), [s.id for s in memory.segments()], neighbours=24)
    kept = torch.zeros(len(cache), dtype=torch.bool)
    columns, found = first_k(drop(cache.ids >= 0, cache.related, kept, "nearest"), 16)
    assert (cache.related.gather(1, columns) & found).any()
