"""Kernels and their normalised weights against arithmetic done by hand."""

from __future__ import annotations

import math

import pytest
import torch

from kster.smoothing.kernels import log_kernel, normalise


def weights(kernel: str, distances: list[float], bandwidth: float) -> list[float]:
    row = torch.tensor([distances])
    logs = log_kernel(kernel, row, torch.tensor([bandwidth]))  # type: ignore[arg-type]
    return normalise(logs, torch.ones_like(row, dtype=torch.bool)).exp()[0].tolist()


def test_gaussian_weights_by_hand() -> None:
    # K = exp(−d²/σ), σ = 10: exp(−1/10) = 0.904837, exp(−4/10) = 0.670320, exp(−9/10) = 0.406570
    # sum = 1.981727; weights 0.904837/1.981727 = 0.456590, 0.338250, 0.205159
    assert weights("gaussian", [1.0, 2.0, 3.0], 10.0) == pytest.approx(
        [0.456590, 0.338250, 0.205159], abs=2e-6
    )


def test_laplacian_weights_by_hand() -> None:
    # K = exp(−d/σ), σ = 2: exp(−0.5) = 0.606531, exp(−1) = 0.367879, exp(−1.5) = 0.223130
    # sum = 1.197540; weights 0.506480, 0.307196, 0.186324
    assert weights("laplacian", [1.0, 2.0, 3.0], 2.0) == pytest.approx(
        [0.506480, 0.307196, 0.186324], abs=2e-6
    )


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_equal_distances_weigh_the_same_even_where_the_kernel_itself_underflows(kernel: str) -> None:
    # exp(−10¹²/10) is 0 in every floating type; the weights are still a half each.
    assert weights(kernel, [1e6, 1e6], 10.0) == [0.5, 0.5]
    assert weights(kernel, [0.0, 0.0], 10.0) == [0.5, 0.5]


def test_far_neighbours_that_differ_a_little_keep_their_ratio() -> None:
    # d = 1000 and 1000.5, σ = 1 (Laplacian): ratio exp(−0.5), so the first weighs 1/(1 + e^−0.5) = 0.622459
    assert weights("laplacian", [1000.0, 1000.5], 1.0)[0] == pytest.approx(0.622459, abs=1e-5)


def test_what_was_not_found_has_no_weight_and_the_rest_sums_to_one() -> None:
    logs = log_kernel("laplacian", torch.tensor([[1.0, 3.0, 1.0]]), torch.tensor([2.0]))
    log_weights = normalise(logs, torch.tensor([[True, True, False]]))
    assert log_weights[0, 2] == -math.inf
    assert log_weights.exp().sum() == pytest.approx(1.0)


def test_a_row_without_neighbours_has_no_gradient_and_no_nan() -> None:
    bandwidth = torch.tensor([2.0], requires_grad=True)
    log_weights = normalise(
        log_kernel("gaussian", torch.zeros(1, 3), bandwidth), torch.zeros(1, 3, dtype=torch.bool)
    )
    assert (log_weights == -math.inf).all()
    log_weights.exp().sum().backward()
    assert bandwidth.grad is not None
    assert bandwidth.grad.item() == 0.0
