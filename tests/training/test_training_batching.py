"""Batches hold every pair once, fit their budget, and come out the same every time."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kster.training.batching import DeviceCorpus, plan_epoch, round_up
from kster.training.prepared import Side


def random_lengths(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.integers(1, 60, count), random.integers(1, 60, count)


@given(
    count=st.integers(1, 300), budget=st.integers(60, 900), chunk=st.integers(1, 400), seed=st.integers(0, 9)
)
@settings(max_examples=60, deadline=None)
def test_every_pair_is_in_exactly_one_batch_within_the_budget(
    count: int, budget: int, chunk: int, seed: int
) -> None:
    lengths = random_lengths(count, seed)
    plan = plan_epoch(lengths, [(count, 1.0)], batch_tokens=budget, chunk_pairs=chunk, seed=seed, epoch=0)
    assert sorted(np.concatenate(plan).tolist()) == list(range(count))
    for batch in plan:
        for side in lengths:
            assert len(batch) * round_up(side[batch]).max() <= budget


def test_weights_repeat_and_thin_out_corpora() -> None:
    lengths = random_lengths(300)
    repeats = [(100, 2.0), (100, 0.25), (100, 0.0)]
    arguments = {"batch_tokens": 400, "chunk_pairs": 1000, "seed": 3}
    counts = [
        np.bincount(np.concatenate(plan_epoch(lengths, repeats, epoch=epoch, **arguments)), minlength=300)
        for epoch in (0, 1)
    ]
    assert (counts[0][:100] == 2).all()
    assert counts[0][100:200].sum() == 25
    assert counts[0][100:200].max() == 1
    assert counts[0][200:].sum() == 0
    assert (counts[0][100:200] != counts[1][100:200]).any()  # another quarter in the next epoch


def test_the_plan_depends_on_seed_and_epoch_only() -> None:
    lengths = random_lengths(200)

    def plan(seed: int, epoch: int) -> list[list[int]]:
        batches = plan_epoch(lengths, [(200, 1.0)], batch_tokens=300, chunk_pairs=90, seed=seed, epoch=epoch)
        return [batch.tolist() for batch in batches]

    assert plan(1, 2) == plan(1, 2)
    assert plan(1, 2) != plan(1, 3) != plan(2, 2)


def test_gather_pads_shifts_and_finds_the_target_tokens() -> None:
    source = Side(np.array([5, 6, 0, 7, 0], np.uint16), np.array([0, 3, 5], np.int32))
    target = Side(np.array([8, 0, 9, 10, 11, 12, 0], np.uint16), np.array([0, 2, 7], np.int32))
    corpus = DeviceCorpus((source, target), pad_id=99, start_id=98, device=torch.device("cpu"))
    batch = corpus.gather(np.array([1, 0]))
    assert batch.source.tolist() == [[7, 0, 99, 99], [5, 6, 0, 99]]
    assert batch.source_mask.tolist() == [[True, True, False, False], [True, True, True, False]]
    assert batch.decoder_input.tolist() == [[98, 9, 10, 11, 12, 0, 99, 99], [98, 8, 0, 99, 99, 99, 99, 99]]
    assert batch.labels.tolist() == [9, 10, 11, 12, 0, 8, 0]
    assert batch.positions.tolist() == [0, 1, 2, 3, 4, 8, 9]
