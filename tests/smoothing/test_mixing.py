"""Equation 2 against a dense reference in double precision, and at its edges."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings

from kster.memory.search.neighbours import Neighbours
from kster.smoothing import SmootherSettings, Smoothing, mix
from kster.smoothing.mixing import mix_candidates
from kster.smoothing.smoother import Smoother
from smoothing.cases import ALL_SETTINGS, DIMENSION, neighbours_of, random_smoother, searches


def dense_mix(base_log_probs: torch.Tensor, neighbours: Neighbours, smoothing: Smoothing) -> torch.Tensor:
    """λ p_e + (1 − λ) p_m as written in the paper, one neighbour at a time, in float64."""
    weight = smoothing.log_mixing_weight.double().exp()[:, None]
    example = torch.zeros_like(base_log_probs, dtype=torch.float64)
    for row in range(base_log_probs.shape[0]):
        for j in range(neighbours.values.shape[1]):
            if neighbours.ids[row, j] >= 0:
                example[row, neighbours.values[row, j]] += smoothing.log_weights[row, j].double().exp()
    return (
        weight * example + smoothing.log_base_weight.double().exp()[:, None] * base_log_probs.double().exp()
    )


def test_mix_by_hand() -> None:
    """λ = 0.4; neighbours say token 2 with 0.75 (0.5 + 0.25) and token 0 with 0.25."""
    base = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log()
    neighbours = neighbours_of([[1.0, 1.0, 1.0]], [[2, 0, 2]])
    smoothing = Smoothing(
        log_weights=torch.tensor([[0.5, 0.25, 0.25]]).log(),
        bandwidth=torch.ones(1),
        log_mixing_weight=torch.tensor([0.4]).log(),
        log_base_weight=torch.tensor([0.6]).log(),
    )
    # 0.6·0.1 + 0.4·0.25, 0.6·0.2, 0.6·0.3 + 0.4·0.75, 0.6·0.4
    assert mix(base, neighbours, smoothing).exp()[0].tolist() == pytest.approx([0.16, 0.12, 0.48, 0.24])


@settings(deadline=None, max_examples=40)
@given(search=searches())
def test_mix_equals_the_dense_reference_and_loses_no_mass(
    search: tuple[torch.Tensor, Neighbours, torch.Tensor],
) -> None:
    queries, neighbours, base = search
    for chosen in ALL_SETTINGS[::5]:
        with torch.no_grad():
            smoothing = random_smoother(**chosen)(
                queries, neighbours, base.gather(1, neighbours.values), base.amax(-1)
            )
            mixed = mix(base, neighbours, smoothing)
        assert not torch.isnan(mixed).any()
        assert torch.isfinite(mixed[torch.isfinite(base)]).all()
        assert torch.allclose(mixed.double().exp(), dense_mix(base, neighbours, smoothing), atol=1e-6)
        assert torch.allclose(mixed.exp().sum(-1), torch.ones(len(mixed)), atol=1e-4)


@settings(deadline=None, max_examples=40)
@given(search=searches())
def test_the_best_of_the_mixture_are_among_the_candidates_once_each(
    search: tuple[torch.Tensor, Neighbours, torch.Tensor],
) -> None:
    queries, neighbours, base = search
    at_values, count = base.gather(1, neighbours.values), min(4, base.shape[1])
    best, tokens = base.topk(count)
    for chosen in ALL_SETTINGS[::5]:
        with torch.no_grad():
            smoothing = random_smoother(**chosen)(queries, neighbours, at_values, base.amax(-1))
            mixed = mix(base, neighbours, smoothing)
            candidates, log_probs = mix_candidates(tokens, best, at_values, neighbours.values, smoothing)
        assert torch.equal(log_probs.topk(count).values, mixed.topk(count).values)
        for row, names, values in zip(mixed, candidates, log_probs, strict=True):
            named = names[values > -math.inf]
            assert len(named) == len(set(named.tolist()))
            assert torch.equal(row[named], values[values > -math.inf])


def test_a_row_without_neighbours_is_the_base_row_bit_for_bit() -> None:
    base = torch.log_softmax(torch.randn(2, 9, generator=torch.Generator().manual_seed(0)), -1)
    neighbours = neighbours_of([[1.0, 2.0], [math.inf, math.inf]], [[3, 4], [5, 5]])
    for chosen in ALL_SETTINGS:
        smoother = random_smoother(**chosen)
        smoothing = smoother(
            torch.ones(2, DIMENSION), neighbours, base.gather(1, neighbours.values), base.amax(-1)
        )
        mixed = mix(base, neighbours, smoothing)
        assert torch.equal(mixed[1], base[1])
        assert not torch.equal(mixed[0], base[0])


def test_a_forbidden_token_stays_forbidden_and_a_slot_without_neighbour_touches_nothing() -> None:
    base = torch.log_softmax(torch.tensor([[0.0, 1.0, -math.inf, 2.0]]), -1)
    neighbours = neighbours_of([[1.0, math.inf]], [[3, 0]])  # the empty slot holds value 0
    smoother = Smoother(SmootherSettings(learn_bandwidth=False, learn_weight=False, mixing_weight=0.25))
    mixed = mix(base, neighbours, smoother(torch.ones(1, DIMENSION), neighbours))
    assert mixed[0, 2] == -math.inf
    assert mixed[0, 0].item() == pytest.approx(math.log(0.75) + base[0, 0].item())
    assert mixed[0, 3].exp().item() == pytest.approx(0.25 + 0.75 * base[0, 3].exp().item())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_the_type_is_kept_and_the_result_can_take_the_base_rows_place(dtype: torch.dtype) -> None:
    base = torch.log_softmax(torch.randn(3, 50, generator=torch.Generator().manual_seed(0)), -1).to(dtype)
    neighbours = neighbours_of([[1.0, 2.0, 2.0]] * 3, [[3, 4, 3]] * 3)
    smoothing = random_smoother()(torch.ones(3, DIMENSION), neighbours)
    expected = mix(base, neighbours, smoothing)
    assert expected.dtype == dtype
    assert torch.allclose(expected.double().exp(), dense_mix(base, neighbours, smoothing), atol=1e-2)
    assert mix(base, neighbours, smoothing, out=base) is base
    assert torch.equal(base, expected)
