"""Evidence for the networks beyond the paper's vectors: `features="confidence"`.

The paper's mixing network sees [q; k̃] and has to find out by itself how far apart they are and whether the
neighbours agree. These few numbers say so directly. All are free of the decoder states' scale, and all are
known at decoding time.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kster.smoothing.geometry import Geometry

LOG_PROB_FLOOR = -12.0
"""All that is less probable than e⁻¹² counts the same: keeps −inf and outliers out of the network's input."""

SAME_CHOICE = 1e-2
"""Log-probabilities closer than this belong to the same choice: a fit computes them from decoder states in
half precision, decoding does not, and the answer must be the same."""

NAMES_OF_DISTANCES = ("log nearest distance", "log mean distance", "fraction found", "fraction distinct")
NAMES_OF_AGREEMENT = (
    "log p_e of the examples' first choice",
    "log p_m of the examples' first choice",
    "log p_m of the base model's first choice",
    "examples and base model agree",
    "log overlap of p_e and p_m",
)
BANDWIDTH_EVIDENCE_SIZE = len(NAMES_OF_DISTANCES)
WEIGHT_EVIDENCE_SIZE = len(NAMES_OF_DISTANCES) + len(NAMES_OF_AGREEMENT)


def distance_evidence(geometry: Geometry, distinct: Tensor) -> Tensor:
    """What the distances say before any kernel is applied, for the bandwidth and the mixing weight.

    distinct: (n, k) bool, the first neighbour of each value. Returns (n, 4).
    """
    if geometry.found is None:
        mean, share = (
            geometry.distances.mean(dim=-1),
            geometry.nearest.new_ones(()).expand_as(geometry.nearest),
        )
        different = distinct.sum(dim=-1) / distinct.shape[-1]
    else:
        count = geometry.found.sum(dim=-1).clamp_min(1)  # (n,)
        mean = geometry.distances.masked_fill(~geometry.found, 0.0).sum(dim=-1) / count
        share, different = geometry.found.float().mean(dim=-1), distinct.sum(dim=-1) / count
    # 0.01: closer than 1 % of the query's length is an exact match up to rounding.
    lengths = torch.stack([geometry.nearest, mean]) / geometry.query_length + 0.01
    return torch.stack([*lengths.log(), share, different], dim=-1)


def agreement_evidence(
    example_log_probs: Tensor,
    weights: Tensor,
    base_log_probs_at_values: Tensor,
    base_max_log_prob: Tensor,
) -> Tensor:
    """How sure the examples and the base model are, and whether they mean the same token.

    example_log_probs, weights, base_log_probs_at_values: (n, k); base_max_log_prob: (n,). Returns (n, 5).
    """
    base = base_log_probs_at_values.float()
    base_max = base_max_log_prob.float()
    best, where = example_log_probs.max(dim=-1, keepdim=True)  # (n, 1)
    base_of_best = base.gather(-1, where).squeeze(-1)  # (n,)
    overlap = torch.linalg.vecdot(weights, base.exp())  # (n,) Σ_v p_e(v) p_m(v)
    agree = (base_of_best >= base_max - SAME_CHOICE).float()
    log_overlap = (overlap + torch.e**LOG_PROB_FLOOR).log()
    evidence = torch.stack([best.squeeze(-1), base_of_best, base_max, agree, log_overlap], dim=-1)
    return evidence.clamp_min(LOG_PROB_FLOOR)
