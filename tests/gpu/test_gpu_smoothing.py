"""Smoother and mixing compute on a GPU what they compute on the CPU, in both precisions."""

from __future__ import annotations

import pytest
import torch

from kster.memory import Neighbours
from kster.smoothing import Smoother, SmootherSettings, mix

pytestmark = pytest.mark.gpu

ROWS, K, D, V = 33, 8, 64, 500

SETTINGS = [
    {"kernel": kernel, "learn_bandwidth": learned, "learn_weight": learned, "features": features} | extra
    for kernel in ("gaussian", "laplacian")
    for learned in (True, False)
    for features in ("paper", "confidence")
    for extra in ({}, {"exact_match": 0.98})
]


def case(dtype: torch.dtype) -> tuple[torch.Tensor, Neighbours, torch.Tensor]:
    """Queries, their neighbours and base log-probabilities: exact matches, far ones, gaps, none at all."""
    dice = torch.manual_seed(3)
    queries = (4 * torch.randn(ROWS, D, generator=dice)).to(dtype)
    keys = queries.float()[:, None] + torch.randn(ROWS, K, D, generator=dice) * torch.arange(K)[None, :, None]
    keys = keys.half()
    distances = (queries.float()[:, None] - keys.float()).norm(dim=-1)  # (n, k)
    found = torch.arange(K)[None] < torch.randint(0, K + 1, (ROWS, 1), generator=dice)
    neighbours = Neighbours(
        distances=distances.masked_fill(~found, torch.inf),
        values=torch.randint(0, 12, (ROWS, K), generator=dice) * found,
        ids=torch.where(found, torch.randperm(ROWS * K, generator=dice).view(ROWS, K), -1),
        keys=keys * found[..., None],
    )
    return queries, neighbours, torch.randn(ROWS, V, generator=dice).mul(5).log_softmax(-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=["float32", "float16"])
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "-".join(map(str, settings.values())))
def test_smoother_and_mixing_equal_the_cpus(
    settings: dict[str, object], dtype: torch.dtype, device: torch.device
) -> None:
    torch.manual_seed(0)
    smoother = Smoother(SmootherSettings(dimension=D, k=K, **settings)).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in smoother.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    queries, neighbours, base = case(dtype)

    def smoothed(place: torch.device) -> list[torch.Tensor]:
        own = Neighbours(
            *(
                part.to(place)
                for part in (neighbours.distances, neighbours.values, neighbours.ids, neighbours.keys)
            )
        )
        log_probs = base.to(place, dtype)
        with torch.inference_mode():
            smoothing = smoother.to(place)(
                queries.to(place), own, log_probs.gather(-1, own.values), log_probs.amax(-1)
            )
            mixed = mix(log_probs, own, smoothing)
        assert mixed.dtype == dtype
        return [
            part.float().cpu()
            for part in (
                smoothing.log_weights,
                smoothing.bandwidth,
                smoothing.log_mixing_weight,
                smoothing.log_base_weight,
                mixed,
            )
        ]

    expected = smoothed(torch.device("cpu"))
    for ours, theirs in zip(smoothed(device), expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)
        assert not ours.isnan().any()
    exact = 2e-3 if dtype == torch.float32 else 0.1  # 500 half-precision numbers sum to 1 about so well
    assert (expected[-1].exp().sum(-1) - 1).abs().max() < exact
