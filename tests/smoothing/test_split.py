"""Held-out segments are never trained on, nor are their copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from kster.errors import KsterError
from kster.memory import Memory
from kster.model import BaseModel
from kster.smoothing.fitting.lookup import groups_of
from kster.smoothing.fitting.split import split_segments


def test_no_segment_and_no_target_text_is_on_both_sides(memory: Memory) -> None:
    split = split_segments(memory.entries(), 0.2, max_tokens=10**9, seed=3)
    target = {s.id: " ".join(s.target.casefold().split()) for s in memory.segments()}
    assert sorted(split.train + split.held_out) == sorted(target)
    assert not {target[i] for i in split.train} & {target[i] for i in split.held_out}
    assert 0.1 < len(split.held_out) / len(target) < 0.3


def test_the_split_depends_on_the_seed_only(memory: Memory) -> None:
    entries = memory.entries()
    assert split_segments(entries, 0.2, 500, seed=3) == split_segments(entries, 0.2, 500, seed=3)
    assert split_segments(entries, 0.2, 500, seed=3) != split_segments(entries, 0.2, 500, seed=4)


def test_training_tokens_are_limited(memory: Memory) -> None:
    entries = memory.entries()
    split = split_segments(entries, 0.1, max_tokens=200, seed=1)
    tokens = sum(int((entries.segment_ids == segment).sum()) for segment in split.train)
    assert 200 <= tokens < 300  # whole segments, so a little more


def test_what_a_fit_is_judged_by_is_not_trained_on_either(memory: Memory) -> None:
    entries, segments = memory.entries(), list(memory.segments())
    judged = [(segment.source, segment.target.upper()) for segment in segments[::2]]
    split = split_segments(entries, 0.0, max_tokens=10**9, seed=3, apart=groups_of(judged))
    kept_apart = {target.casefold() for _, target in judged}
    expected = {segment.id for segment in segments if segment.target.casefold() not in kept_apart}
    assert set(split.train) == expected
    assert expected
    everything = groups_of([(segment.source, segment.target) for segment in segments])
    with pytest.raises(KsterError, match="nothing is left to learn from"):
        split_segments(entries, 0.0, max_tokens=10**9, seed=3, apart=everything)


def test_a_memory_of_one_target_cannot_be_split(model: BaseModel, tmp_path: Path) -> None:
    with Memory.create(tmp_path / "one", model) as memory:
        memory.add("the red house", "das rote Haus")
        with pytest.raises(KsterError, match="too small to fit"):
            split_segments(memory.entries(), 0.1, 100, seed=1)
