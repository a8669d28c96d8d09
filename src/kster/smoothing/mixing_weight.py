"""Equations 5–7: the mixing weight λ, learned per query or fixed.

    λ = sigmoid(W₃ ReLU(W₂ [q; k̃] + b₂) + b₃)          k̃ = Σⱼ wⱼ kⱼ,  wⱼ ∝ K(q, kⱼ; σ)

λ and 1 − λ are both returned as logarithms: a λ that rounds to 1 must leave the base model its say.
"""

from __future__ import annotations

import math
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from kster.model.layers import SMALLEST, Bfloat16, Layer, has_instructions_for

EVIDENCE_WIDTH = 32
"""Hidden units of a network that sees evidence alone."""


class LogShares(NamedTuple):
    """How a prediction is shared between examples and base model, as logarithms that exponentiate to 1."""

    examples: Tensor  # (n,) log λ
    base: Tensor  # (n,) log(1 − λ)


def log_one_minus(log_share: Tensor) -> Tensor:
    """log(1 − exp(log_share)), accurate to the last digits at both ends; finite for any log_share below 0."""
    near_one = (-torch.expm1(log_share)).log()
    return torch.where(log_share > -math.log(2), near_one, torch.log1p(-log_share.exp()))


class LearnedMixingWeight(nn.Module):
    """λ from the query and the kernel-weighted keys, and from further evidence where the settings ask."""

    def __init__(self, dimension: int, initial: float = 0.5, evidence_size: int = 0) -> None:
        super().__init__()
        width = dimension or EVIDENCE_WIDTH
        self.hidden = nn.Linear(2 * dimension + evidence_size, width)  # W₂, b₂
        self.output = nn.Linear(width, 1)  # W₃, b₃
        nn.init.zeros_(self.output.weight)  # the first λ is `initial` for every query
        nn.init.constant_(self.output.bias, math.log(initial / (1.0 - initial)))

    def forward(
        self, queries: Tensor | None, weighted_keys: Tensor | None, evidence: Tensor | None = None
    ) -> LogShares:
        """queries, weighted_keys: (n, d), or None with a dimension of 0; evidence: (n, evidence_size)."""
        parts = [part for part in (queries, weighted_keys, evidence) if part is not None]
        hidden = fastest(self.hidden)(torch.cat(parts, dim=-1))  # (n, width)
        logit = self.output(hidden.to(self.output.weight.dtype)).squeeze(-1)  # (n,)
        return LogShares(F.logsigmoid(logit), F.logsigmoid(-logit))


def fastest(linear: nn.Linear) -> Layer:
    """ReLU of the product, in bfloat16 where nothing is learned and the processor is made for it."""
    weight = linear.weight
    short = (
        weight.device.type == "cpu"
        and not torch.is_grad_enabled()
        and not weight.is_inference()  # such tensors do not record that they change
        and min(weight.shape) >= SMALLEST
        and has_instructions_for("bfloat16")
    )
    if not short:
        return lambda x: F.relu(linear(x))
    version, packed = _packed.get(linear, (-1, None))
    if packed is None or version != weight._version:
        packed = Bfloat16(weight.detach(), linear.bias.detach(), F.relu)
        _packed[linear] = weight._version, packed
    return packed


_packed: WeakKeyDictionary[nn.Linear, tuple[int, Layer]] = WeakKeyDictionary()


class FixedMixingWeight(nn.Module):
    """One λ for every query, as in kNN-MT, or one that fades with distance:

        λ(q) = λ · exp(−d₁² / (gate · ‖q‖²))          d₁ the distance of the nearest neighbour

    The gate makes an untuned weight safe: far from every example λ is 0 and the base model speaks alone.
    It is measured against the query's own length because a memory of one segment has no statistics of
    its own to say what "far" means.
    """

    def __init__(self, mixing_weight: float, gate: float | None = None) -> None:
        super().__init__()
        self.log_mixing_weight = math.log(mixing_weight) if mixing_weight > 0 else -math.inf
        self.gate = gate

    def forward(self, relative_distance: Tensor) -> LogShares:
        """relative_distance: (n,) d₁² / ‖q‖², finite."""
        examples = torch.full_like(relative_distance, self.log_mixing_weight)
        if self.gate is not None:
            examples = examples - relative_distance / self.gate
        return LogShares(examples, log_one_minus(examples))
