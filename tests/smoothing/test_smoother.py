"""The smoother: the paper's equations by hand, every combination of parts, extremes, and its files."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings

from kster.errors import KsterError
from kster.memory.search.neighbours import Neighbours
from kster.smoothing import SAFE_KNN, Smoother, SmootherSettings
from kster.smoothing.mixing_weight import LearnedMixingWeight
from smoothing.cases import ALL_SETTINGS, DIMENSION, neighbours_of, random_smoother, searches, smooth


def test_the_papers_setting_has_526338_parameters_at_512_dimensions() -> None:
    smoother = Smoother(SmootherSettings(dimension=512))
    assert sum(p.numel() for p in smoother.parameters() if p.requires_grad) == 526_338


def test_a_learned_bandwidth_starts_at_100_for_gaussian_and_10_for_laplacian() -> None:
    for kernel, start in (("gaussian", 100.0), ("laplacian", 10.0)):
        smoother = Smoother(SmootherSettings(kernel=kernel, dimension=DIMENSION))  # type: ignore[arg-type]
        result = smoother(torch.randn(2, DIMENSION), neighbours_of([[1.0, 2.0]] * 2, [[1, 2]] * 2))
        assert result.bandwidth.tolist() == pytest.approx([start, start])


def test_equations_4_to_7_by_hand() -> None:
    """d = 1, a query of 2 and two neighbours: keys 1 and 3, at distances chosen as 0.5 and 1."""
    smoother = Smoother(SmootherSettings(kernel="laplacian", dimension=1))
    w1, b1 = smoother.bandwidth.affine.weight, smoother.bandwidth.affine.bias  # type: ignore[union-attr]
    w2, b2 = smoother.mixing_weight.hidden.weight, smoother.mixing_weight.hidden.bias  # type: ignore[union-attr]
    w3, b3 = smoother.mixing_weight.output.weight, smoother.mixing_weight.output.bias  # type: ignore[union-attr]
    with torch.no_grad():
        w1.copy_(torch.tensor([[0.5, -0.25]])), b1.fill_(0.1)
        w2.copy_(torch.tensor([[1.0, 0.5]])), b2.fill_(-2.0)
        w3.copy_(torch.tensor([[2.0]])), b3.fill_(-1.0)
    neighbours = Neighbours(
        distances=torch.tensor([[0.5, 1.0]]),
        values=torch.tensor([[4, 5]]),
        ids=torch.tensor([[0, 1]]),
        keys=torch.tensor([[[1.0], [3.0]]]).half(),
    )
    result = smoother(torch.tensor([[2.0]]), neighbours)
    # σ = exp(0.5·2 − 0.25·k̄ + 0.1), k̄ = (1 + 3)/2 = 2: exp(0.6) = 1.822119
    assert result.bandwidth.item() == pytest.approx(1.822119, abs=1e-5)
    # w ∝ exp(−0.5/1.822119) = 0.760016, exp(−1/1.822119) = 0.577624; sum 1.337640: 0.568177, 0.431823
    assert result.log_weights.exp()[0].tolist() == pytest.approx([0.568177, 0.431823], abs=1e-5)
    # k̃ = 0.568177·1 + 0.431823·3 = 1.863646; hidden = ReLU(1·2 + 0.5·1.863646 − 2) = 0.931823
    # λ = sigmoid(2·0.931823 − 1) = sigmoid(0.863646) = 0.703430
    assert result.mixing_weight.item() == pytest.approx(0.703430, abs=1e-5)
    assert result.log_base_weight.exp().item() == pytest.approx(1 - 0.703430, abs=1e-5)


def test_knn_mt_is_the_fixed_case_and_has_nothing_to_learn() -> None:
    smoother = Smoother(
        SmootherSettings(
            kernel="gaussian", learn_bandwidth=False, learn_weight=False, bandwidth=10.0, mixing_weight=0.4
        )
    )
    assert list(smoother.parameters()) == []
    result = smoother(torch.randn(1, DIMENSION), neighbours_of([[1.0, 2.0, 3.0]], [[1, 2, 3]]))
    # the numbers of test_kernels.test_gaussian_weights_by_hand
    assert result.log_weights.exp()[0].tolist() == pytest.approx([0.456590, 0.338250, 0.205159], abs=2e-6)
    assert result.mixing_weight.item() == pytest.approx(0.4)


@pytest.mark.parametrize("chosen", ALL_SETTINGS)
def test_gradients_reach_every_learned_parameter(chosen: dict[str, Any]) -> None:
    smoother = random_smoother(**chosen)
    # The last row found nothing: its NaN would reach every parameter.
    neighbours = neighbours_of([[0.2, 1.0, 2.0], [1.0, 1.0, math.inf], [math.inf] * 3], [[1, 2, 1]] * 3)
    base = torch.log_softmax(torch.randn(3, 5, generator=torch.Generator().manual_seed(3)), -1)
    queries = torch.randn(3, DIMENSION, generator=torch.Generator().manual_seed(2))
    result = smooth(smoother, queries, neighbours, base)
    (
        result.log_weights[:2, 0].sum() + result.log_base_weight.sum()
    ).backward() if smoother.settings.learned else None
    for name, parameter in smoother.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().sum() > 0, name


@settings(deadline=None, max_examples=30)
@given(search=searches())
def test_weights_are_a_distribution_and_nothing_is_nan(
    search: tuple[torch.Tensor, Neighbours, torch.Tensor],
) -> None:
    queries, neighbours, base = search
    any_found = (neighbours.ids >= 0).any(-1)
    for chosen in [*ALL_SETTINGS, None]:
        smoother = random_smoother(**chosen) if chosen else Smoother(SAFE_KNN)
        with torch.no_grad():
            result = smooth(smoother, queries, neighbours, base)
        total = result.log_weights.exp().sum(-1)
        assert torch.allclose(total, any_found.float(), atol=1e-5)
        assert torch.isfinite(result.bandwidth).all()
        assert (result.bandwidth > 0).all()
        assert ((result.mixing_weight >= 0) & (result.mixing_weight <= 1)).all()
        assert (result.mixing_weight[~any_found] == 0).all()
        assert torch.isfinite(result.log_base_weight).all()
        assert (result.log_weights[neighbours.ids < 0] == -math.inf).all()


def test_an_exact_match_outvotes_its_neighbours_and_is_believed() -> None:
    """A wide kernel gives the exact one of three 1/(1 + 2·exp(−6/10)) = 0.4767; the rule gives it all."""
    queries = torch.full((1, DIMENSION), 10.0)  # ‖q‖² = 400
    neighbours = neighbours_of([[0.0, 6.0, 6.0]], [[1, 2, 2]])
    plain = Smoother(SmootherSettings(dimension=DIMENSION))
    ruled = Smoother(SmootherSettings(dimension=DIMENSION, exact_match=0.98))
    assert plain(queries, neighbours).log_weights.exp()[0, 0].item() == pytest.approx(0.4767, abs=1e-4)
    result = ruled(queries, neighbours)
    assert result.log_weights.exp()[0, 0].item() == pytest.approx(1.0, abs=1e-6)
    assert result.mixing_weight.item() == pytest.approx(0.5 + 0.5 * 0.98)  # λ + (1 − λ) · weight


def test_rounding_does_not_make_an_exact_match_less_exact() -> None:
    """In bfloat16 a context's query lies up to 1 % of its length from its own key."""
    queries = torch.full((1, DIMENSION), 1.0)
    length = DIMENSION**0.5
    smoother = Smoother(SmootherSettings(dimension=DIMENSION, exact_match=0.98))
    for rounded in (0.0, 0.004, 0.0099):
        with torch.no_grad():
            found = smoother(queries, neighbours_of([[rounded * length, 0.5 * length]], [[3, 4]]))
        assert found.mixing_weight.item() > 0.98
        assert found.log_weights[0, 0].exp().item() > 0.999


def test_the_exact_match_rule_changes_nothing_for_ordinary_neighbours() -> None:
    queries = torch.full((1, DIMENSION), 10.0)
    neighbours = neighbours_of([[5.0, 6.0, 7.0]], [[1, 2, 2]])
    plain = Smoother(SmootherSettings(dimension=DIMENSION))(queries, neighbours)
    ruled = Smoother(SmootherSettings(dimension=DIMENSION, exact_match=0.98))(queries, neighbours)
    assert torch.allclose(plain.log_weights, ruled.log_weights)
    assert torch.allclose(plain.mixing_weight, ruled.mixing_weight)


def test_safe_settings_believe_an_exact_match_and_ignore_unrelated_text() -> None:
    queries = torch.full(
        (2, DIMENSION), 10.0
    )  # ‖q‖ = 20; unrelated states lie about as far apart as they are long
    result = Smoother(SAFE_KNN)(queries, neighbours_of([[0.01, 15.0], [20.0, 22.0]], [[1, 2], [1, 2]]))
    assert result.mixing_weight[0] > 0.97
    assert result.mixing_weight[1] < 1e-3


@pytest.mark.parametrize("gate", [None, 0.1])
def test_the_base_model_keeps_its_say_at_the_largest_weights(gate: float | None) -> None:
    largest = 1.0 - 1e-6
    fixed = {"learn_bandwidth": False, "learn_weight": False, "mixing_weight": largest, "gate": gate}
    for exact_match, say in ((None, 1e-6), (largest, 1e-12)):
        smoother = Smoother(SmootherSettings(**fixed, exact_match=exact_match))  # type: ignore[arg-type]
        result = smoother(torch.full((1, DIMENSION), 10.0), neighbours_of([[0.0]], [[1]]))
        assert result.log_base_weight.item() == pytest.approx(math.log(say), abs=1e-3)


def test_confidence_features_must_be_given_what_they_read() -> None:
    smoother = Smoother(SmootherSettings(dimension=DIMENSION, features="confidence"))
    assert smoother.needs_base_log_probs
    with pytest.raises(ValueError, match="base log-probabilities"):
        smoother(torch.randn(1, DIMENSION), neighbours_of([[1.0]], [[1]]))


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("kernel", "cosine", "gaussian, laplacian"),
        ("features", "all", "paper, confidence"),
        ("k", 0, "from 1 to 1,024"),
        ("k", True, "a whole number"),
        ("k", 1025, "from 1 to 1,024"),
        ("k", 2.0, "a whole number"),
        ("dimension", None, "length of the model's keys"),
        ("bandwidth", -1.0, "above 0"),
        ("bandwidth", float("nan"), "above 0"),
        ("mixing_weight", 1.0, "from 0 to 0.999999"),
        ("mixing_weight", 0.99999999, "from 0 to 0.999999"),
        ("mixing_weight", 0.0, "above 0 when it is to be learned"),
        ("exact_match", 1.0, "at most 0.999999"),
        ("exact_tolerance", 0.0, "above 0"),
        ("gate", 0.0, "above 0"),
        ("relative", True, "fixed bandwidth only"),
        ("learn_weight", "yes", "true or false"),
    ],
)
def test_a_wrong_setting_is_named_with_what_is_accepted(setting: str, value: object, message: str) -> None:
    with pytest.raises(KsterError, match=message) as caught:
        SmootherSettings(**{"dimension": 4, setting: value})  # type: ignore[arg-type]
    assert setting in str(caught.value)


def test_a_large_network_answers_as_in_float32_and_notices_that_it_has_learned() -> None:
    torch.manual_seed(0)
    weight = LearnedMixingWeight(256)
    torch.nn.init.normal_(weight.output.weight, std=0.1)
    queries, keys = torch.randn(8, 256), torch.randn(8, 256)
    for _ in range(2):
        with torch.no_grad():
            fast = weight(queries, keys).examples
        assert fast.tolist() == pytest.approx(weight(queries, keys).examples.tolist(), abs=0.02)
        with torch.no_grad():
            weight.hidden.weight.mul_(-3)
