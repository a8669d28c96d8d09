"""What a smoother is: kernel, which parts are learned, and the numbers of the fixed parts."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, get_args

from kster.errors import KsterError, SettingsError
from kster.limits import LARGEST_K
from kster.smoothing.kernels import INITIAL_BANDWIDTH, KERNELS, Kernel
from kster.smoothing.metric import candidates
from kster.smoothing.source_similarity import CANDIDATES

Features = Literal["paper", "confidence", "scale-free"]
FEATURES: tuple[Features, ...] = get_args(Features)

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
    length_penalty: of the search for translations, unless a call names one; None: as without a memory.
    """

    kernel: Kernel = "laplacian"
    k: int = 16
    dimension: int | None = None
    learn_bandwidth: bool = True
    learn_weight: bool = True
    bandwidth: float | None = None
    mixing_weight: float = 0.5
    features: Features = "paper"
    relative: bool = False
    gate: float | None = None
    exact_match: float | None = None
    exact_tolerance: float = 2e-4
    metric: int = 0
    similarity: bool = False
    length_penalty: float | None = None

    def __post_init__(self) -> None:
        _one_of("kernel", self.kernel, KERNELS)
        _one_of("features", self.features, FEATURES)
        for name in ("learn_bandwidth", "learn_weight", "relative", "similarity"):
            _check(isinstance(getattr(self, name), bool), name, getattr(self, name), "true or false")
        valid = _is_int(self.k) and 1 <= self.k <= LARGEST_K
        _check(valid, "k", self.k, f"a whole number from 1 to {LARGEST_K:,}")
        _check(_is_int(self.metric) and self.metric >= 0, "metric", self.metric, "a whole number from 0")
        if (self.learned and not self.scale_free) or self.dimension is not None:
            valid = _is_int(self.dimension) and (self.dimension or 0) >= 1
            _check(valid, "dimension", self.dimension, "the length of the model's keys, at least 1")
        _check(_positive(self.initial_bandwidth), "bandwidth", self.bandwidth, "a number above 0, or null")
        _check(
            _is_number(self.mixing_weight) and 0.0 <= self.mixing_weight <= LARGEST_SHARE,
            "mixing_weight",
            self.mixing_weight,
            f"a number from 0 to {LARGEST_SHARE}",
        )
        if self.learn_weight:
            _check(
                self.mixing_weight > 0,
                "mixing_weight",
                self.mixing_weight,
                "above 0 when it is to be learned",
            )
        _check(self.gate is None or _positive(self.gate), "gate", self.gate, "a number above 0, or null")
        _check(
            self.exact_match is None
            or (_is_number(self.exact_match) and 0.0 < self.exact_match <= LARGEST_SHARE),
            "exact_match",
            self.exact_match,
            f"a number above 0 and up to {LARGEST_SHARE}, or null",
        )
        _check(_positive(self.exact_tolerance), "exact_tolerance", self.exact_tolerance, "a number above 0")
        _check(
            self.length_penalty is None or _is_number(self.length_penalty),
            "length_penalty",
            self.length_penalty,
            "a number, or null",
        )
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
        """All settings; a metric, similarity and a length penalty only where there are any."""
        settings = dataclasses.asdict(self)
        unset = {"metric": 0, "similarity": False, "length_penalty": None}
        return {k: v for k, v in settings.items() if k not in unset or v != unset[k]}

    @classmethod
    def from_json(cls, data: Any, where: str) -> SmootherSettings:
        """Settings from a parsed JSON object; `where` names the file in errors."""
        if not isinstance(data, dict):
            raise SettingsError(
                f"{where}: expected an object of smoother settings, found {type(data).__name__}."
            )
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(data) - known)
        if unknown:
            raise SettingsError(
                f"{where}: unknown smoother setting {', '.join(unknown)}; "
                f"known are {', '.join(sorted(known))}."
            )
        try:
            return cls(**data)
        except KsterError as error:
            raise SettingsError(f"{where}: {error}") from None


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


def _positive(value: object) -> bool:
    return _is_number(value) and 0.0 < value < float("inf")  # type: ignore[operator]


def _check(valid: bool, name: str, value: object, accepted: str) -> None:
    if not valid:
        raise SettingsError(f"Smoother setting {name} is {value!r}; accepted: {accepted}.")


def _one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    _check(value in choices, name, value, " or ".join(choices))
