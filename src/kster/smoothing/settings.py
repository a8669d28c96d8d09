"""What a smoother is: kernel, which parts are learned, and the numbers of the fixed parts."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from kster.errors import SettingsError
from kster.limits import LARGEST_K
from kster.smoothing.kernels import INITIAL_BANDWIDTH, Kernel
from kster.smoothing.metric import candidates
from kster.smoothing.source_similarity import CANDIDATES
from kster.typed_settings import POSITIVE, Range, read_dataclass, require_valid

Features = Literal["paper", "confidence", "scale-free"]

LARGEST_SHARE = 1.0 - 1e-6
"""Of the examples: the base model must keep a say that single precision can hold."""


@dataclass(frozen=True, slots=True)
class SmootherSettings:
    """The defaults are the paper's. kNN-MT is `learn_bandwidth=False, learn_weight=False`.

    kernel: "gaussian" or "laplacian".
    k: how many neighbours to use.
    dimension: d, the length of a key; needed when something is learned.
    learn_bandwidth, learn_weight: learned networks (section 3) or fixed numbers.
    bandwidth: the fixed σ, or where a learned σ starts. None: 100 (Gaussian) or 10 (Laplacian).
    mixing_weight: the fixed λ, or where a learned λ starts.
    features: what the networks see: "paper", "confidence" for `evidence.py` besides, or "scale-free" for that
        evidence alone, without the states themselves: such a smoother serves any model.
    relative: the fixed σ is in units of ‖q‖² (Gaussian) or ‖q‖ (Laplacian).
    gate: a fixed λ fades as exp(−d₁² / (gate · ‖q‖²)); None: it does not.
    exact_match: how much to believe a context the memory holds exactly; None: no rule (`exact_match.py`).
    exact_tolerance: what counts as exact, as a fraction of ‖q‖²: 2·10⁻⁴ is a distance of 1.4 % of the query's
        length, above the rounding of half-precision states, below the distance of different contexts.
    metric: how many rows the W of a learned distance has (`metric.py`); 0: distances are plain.
    similarity: whether neighbours from similar source sentences are nearer (`source_similarity.py`).
    length_penalty: for translations where the caller names none; None: the same as without a memory.
    confidence_shift: added to the log odds of a sentence's confidence (`translation/calibration.py`).
    """

    kernel: Kernel = "laplacian"
    k: Annotated[int, Range(1, LARGEST_K)] = 16
    dimension: Annotated[int | None, Range(1)] = None
    learn_bandwidth: bool = True
    learn_weight: bool = True
    bandwidth: Annotated[float | None, POSITIVE] = None
    mixing_weight: Annotated[float, Range(0, LARGEST_SHARE)] = 0.5
    features: Features = "paper"
    relative: bool = False
    gate: Annotated[float | None, POSITIVE] = None
    exact_match: Annotated[float | None, Range(0, LARGEST_SHARE, ends="(]")] = None
    exact_tolerance: Annotated[float, POSITIVE] = 2e-4
    metric: Annotated[int, Range(0)] = 0
    similarity: bool = False
    length_penalty: Annotated[float | None, Range(-10, 10)] = None
    confidence_shift: Annotated[float, Range(-30, 30)] = 0.0

    def __post_init__(self) -> None:
        require_valid(self, "smoother settings")
        if self.learned and not self.scale_free and self.dimension is None:
            raise SettingsError("Smoother setting dimension, the length of the model's keys, is missing.")
        if self.learn_weight and self.mixing_weight == 0:
            raise SettingsError("Smoother setting mixing_weight must be above 0 when it is to be learned.")
        if self.relative and self.learn_bandwidth:
            raise SettingsError(
                "Smoother setting relative applies to a fixed bandwidth only; learn_bandwidth is on."
            )
        if self.gate is not None and self.learn_weight:
            raise SettingsError(
                "Smoother setting gate applies to a fixed mixing weight only; learn_weight is on."
            )

    @property
    def scale_free(self) -> bool:
        """Whether no decoder state is looked at, only numbers that have no scale."""
        return self.features == "scale-free"

    @property
    def learned(self) -> bool:
        """Whether anything is learned; a smoother without is kNN-MT."""
        return self.learn_bandwidth or self.learn_weight or self.metric > 0 or self.similarity

    @property
    def candidates(self) -> int:
        """How many neighbours to search for, to use k of them."""
        return max(candidates(self.k, self.metric), CANDIDATES * self.k if self.similarity else 0)

    @property
    def initial_bandwidth(self) -> float:
        """The fixed σ, or where a learned σ starts."""
        return INITIAL_BANDWIDTH[self.kernel] if self.bandwidth is None else self.bandwidth

    def to_json(self) -> dict[str, Any]:
        """All settings; a metric, similarity, a length penalty and a shift only where there are any."""
        settings = dataclasses.asdict(self)
        unset = {"metric": 0, "similarity": False, "length_penalty": None, "confidence_shift": 0.0}
        return {k: v for k, v in settings.items() if k not in unset or v != unset[k]}

    @classmethod
    def from_json(cls, data: Any, where: str) -> SmootherSettings:
        """Settings from a parsed JSON object; `where` names the file in errors."""
        return read_dataclass(cls, data, file=where)
