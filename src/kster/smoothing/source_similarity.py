"""How much nearer a neighbour is because its sentence resembles the one being translated (not in the paper):

    d′  =  d · (1 − β s)          0 ≤ s ≤ 1

s is the lexical similarity of the two source sentences: the BM25 score of the neighbour's sentence for this
one, divided by what this one scores for itself. Decoder states say what comes next in a sentence like this;
s says how alike the sentences are. The index searches by the plain distance; of the candidates it finds, the
nearest by d′ are used. Whether a match is exact is decided by the plain distance.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

CANDIDATES = 2  # times k: how many neighbours by the plain distance are looked at to use the k nearest by d′
START = 0.5  # β to begin with, and of carried smoothers: `benchmarks/source_similarity.py`
NOT_ZERO = 1e-5  # the least distance: evidence takes roots, which have no slope at 0
NAMES = ("greatest similarity", "mean similarity, by kernel weight")
EVIDENCE_SIZE = len(NAMES)


class SourceSimilarity(nn.Module):
    """β, between 0 and 1."""

    def __init__(self) -> None:
        super().__init__()
        self.logit = nn.Parameter(torch.tensor(math.log(START / (1.0 - START))))

    @property
    def beta(self) -> Tensor:
        """A number, ()."""
        return torch.sigmoid(self.logit)

    def forward(self, distances: Tensor, similarity: Tensor) -> Tensor:
        """d′, (n, c). distances: (n, c), inf where nothing was found; similarity: (n, c)."""
        share = 1.0 - self.beta * similarity.float()
        if not share.requires_grad:
            return (distances * share).clamp_min(NOT_ZERO)
        found = distances.isfinite()  # times inf, even a slope of 0 would be NaN
        nearer = distances.masked_fill(~found, 0.0) * share
        return nearer.clamp_min(NOT_ZERO).masked_fill(~found, torch.inf)


def similarity_evidence(similarity: Tensor, weights: Tensor, found: Tensor | None) -> Tensor:
    """What the mixing weight is told. similarity, weights: (n, k); found: (n, k) bool, None for all.

    Returns (n, 2).
    """
    similarity = similarity.float()
    if found is not None:
        similarity = similarity.masked_fill(~found, 0.0)
    return torch.stack([similarity.amax(dim=-1), torch.linalg.vecdot(weights, similarity)], dim=-1)
