"""Neighbours made by hand for the tests of kernels, smoother, mixing and loss."""

from __future__ import annotations

import torch
from hypothesis import strategies as st

from kster.memory.search.neighbours import Neighbours
from kster.smoothing import Smoother, SmootherSettings
from kster.smoothing.smoother import Smoothing

DIMENSION = 4


def neighbours_of(
    distances: list[list[float]], values: list[list[int]], keys: torch.Tensor | None = None
) -> Neighbours:
    """A distance of inf means that nothing was found there."""
    distance = torch.tensor(distances)
    found = torch.isfinite(distance)
    n, k = distance.shape
    if keys is None:
        keys = torch.randn(n, k, DIMENSION, generator=torch.Generator().manual_seed(1))
    return Neighbours(
        distances=distance,
        values=torch.tensor(values) * found,
        ids=torch.where(found, torch.arange(n * k).reshape(n, k), -1),
        keys=(keys * found[..., None]).half(),
    )


def random_smoother(seed: int = 0, **settings: object) -> Smoother:
    """A smoother whose learned parts are far from their start."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        smoother = Smoother(SmootherSettings(dimension=DIMENSION, **settings))  # type: ignore[arg-type]
        with torch.no_grad():
            for parameter in smoother.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
    return smoother


ALL_SETTINGS = [
    {"kernel": kernel, "learn_bandwidth": learn_bandwidth, "learn_weight": learn_weight, "features": features}
    | extra
    for kernel in ("gaussian", "laplacian")
    for learn_bandwidth in (True, False)
    for learn_weight in (True, False)
    for features in ("paper", "confidence")
    for extra in ({}, {"exact_match": 0.98})
]

# Exact duplicates, ordinary states, product-quantisation outliers, and nothing found.
distance = st.one_of(
    st.just(0.0), st.just(1e6), st.just(float("inf")), st.floats(0.0, 50.0, width=32), st.floats(0.0, 1e-6)
)


@st.composite
def searches(draw: st.DrawFn, vocabulary: int = 7) -> tuple[torch.Tensor, Neighbours, torch.Tensor]:
    """(queries (n, d), neighbours (n, k), base log-probabilities (n, V)), extreme ones included."""
    n, k = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    distances = draw(st.lists(st.lists(distance, min_size=k, max_size=k), min_size=n, max_size=n))
    values = st.lists(st.integers(0, vocabulary - 1), min_size=k, max_size=k)
    seed, scale = draw(st.integers(0, 2**20)), draw(st.sampled_from([0.0, 1.0, 100.0, 1000.0]))
    dtype = draw(st.sampled_from([torch.float32, torch.float16, torch.bfloat16]))
    generator = torch.Generator().manual_seed(seed)
    queries = (draw(st.sampled_from([0.0, 1.0, 30.0])) * torch.randn(n, DIMENSION, generator=generator)).to(
        dtype
    )
    neighbours = neighbours_of(
        [sorted(row) for row in distances], draw(st.lists(values, min_size=n, max_size=n))
    )
    # scale 1000: probabilities that underflow to 0 while their logarithms are finite
    base = torch.log_softmax(scale * torch.randn(n, vocabulary, generator=generator), dim=-1)
    return queries, neighbours, base


def smooth(
    smoother: Smoother, queries: torch.Tensor, neighbours: Neighbours, base: torch.Tensor
) -> Smoothing:
    return smoother(queries, neighbours, base.gather(1, neighbours.values), base.amax(-1))
