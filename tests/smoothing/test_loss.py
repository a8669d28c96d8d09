"""The loss from k numbers per token equals the loss from the whole distribution."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings

from kster.memory.search.neighbours import Neighbours
from kster.smoothing import Smoothing, mix
from kster.smoothing.fitting.loss import BasePrediction, token_losses
from smoothing.cases import ALL_SETTINGS, neighbours_of, random_smoother, searches


def base_prediction(base: torch.Tensor, gold: torch.Tensor, values: torch.Tensor) -> BasePrediction:
    return BasePrediction(
        gold=gold,
        log_probs=base.gather(1, gold[:, None])[:, 0],
        log_probs_at_values=base.gather(1, values),
        mean_log_prob=base.mean(-1),
        max_log_prob=base.amax(-1),
    )


def test_loss_by_hand() -> None:
    """The case of test_mixing.test_mix_by_hand: p = 0.16, 0.12, 0.48, 0.24; the gold token is 2."""
    base = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log()
    values = torch.tensor([[2, 0, 2]])
    smoothing = Smoothing(
        torch.tensor([[0.5, 0.25, 0.25]]).log(),
        torch.ones(1),
        torch.tensor([0.4]).log(),
        torch.tensor([0.6]).log(),
    )
    found = torch.ones(1, 3, dtype=torch.bool)
    prediction = base_prediction(base, torch.tensor([2]), values)
    # −ln 0.48 = 0.733969
    assert token_losses(prediction, values, found, smoothing).item() == pytest.approx(0.733969, abs=1e-5)
    # Σ ln p = −1.832581 − 2.120264 − 0.733969 − 1.427116 = −6.113930; mean −1.528483
    # 0.9 · 0.733969 + 0.1 · 1.528483 = 0.813420
    smoothed = token_losses(prediction, values, found, smoothing, label_smoothing=0.1, vocabulary_size=4)
    assert smoothed.item() == pytest.approx(0.813420, abs=1e-5)


@settings(deadline=None, max_examples=40)
@given(search=searches())
def test_loss_equals_the_dense_computation_with_and_without_label_smoothing(
    search: tuple[torch.Tensor, Neighbours, torch.Tensor],
) -> None:
    queries, neighbours, base = search
    n, vocabulary = base.shape
    found = neighbours.ids >= 0
    gold = torch.arange(n) % vocabulary
    prediction = base_prediction(base, gold, neighbours.values)
    for chosen in ALL_SETTINGS[::5]:
        with torch.no_grad():
            smoothing = random_smoother(**chosen)(
                queries, neighbours, prediction.log_probs_at_values, prediction.max_log_prob
            )
            dense = mix(base, neighbours, smoothing)  # (n, V), itself tested against float64
        for epsilon in (0.0, 0.1):
            loss = token_losses(
                prediction,
                neighbours.values,
                found,
                smoothing,
                label_smoothing=epsilon,
                vocabulary_size=vocabulary,
            )
            expected = -(1 - epsilon) * dense.gather(1, gold[:, None])[:, 0] - epsilon * dense.mean(-1)
            assert torch.allclose(loss, expected, rtol=1e-4, atol=1e-4)


def test_gradient_is_finite_where_no_neighbour_has_the_gold_token_or_none_was_found() -> None:
    inf = float("inf")
    neighbours = neighbours_of([[1.0, 2.0], [1.0, inf], [inf, inf]], [[3, 4], [3, 3], [0, 0]])
    base = torch.log_softmax(torch.randn(3, 6, generator=torch.Generator().manual_seed(0)), -1)
    prediction = base_prediction(base, torch.tensor([0, 1, 0]), neighbours.values)
    smoother = random_smoother(features="confidence", exact_match=0.98)
    smoothing = smoother(
        torch.ones(3, 4), neighbours, prediction.log_probs_at_values, prediction.max_log_prob
    )
    loss = token_losses(
        prediction, neighbours.values, neighbours.ids >= 0, smoothing, label_smoothing=0.1, vocabulary_size=6
    )
    loss.sum().backward()
    for parameter in smoother.parameters():
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all()
