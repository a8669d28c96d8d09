"""What a fit or a tuning did, as a file that says how its numbers were made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kster.files import write_atomically
from kster.smoothing.fitting.optimisation import CurvePoint
from kster.smoothing.fitting.sweep import Trial

FIT_FILE = "fit.json"
TUNE_FILE = "tune.json"
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
BINS = 20


@dataclass(frozen=True, slots=True)
class Distribution:
    """How σ or λ is spread over the development tokens."""

    mean: float
    quantiles: dict[str, float]  # "0.05" → value
    edges: list[float]  # of the histogram's bins, one more than counts
    counts: list[int]

    @classmethod
    def of(cls, values: Tensor, low: float | None = None, high: float | None = None) -> Distribution:
        """values: (n,). The histogram spans low … high, by default the values themselves."""
        values = values.double().cpu()
        low = float(values.min()) if low is None else low
        high = float(values.max()) if high is None else high
        high = max(high, low + 1e-9)
        points = torch.quantile(values, torch.tensor(QUANTILES, dtype=torch.float64))
        counts = torch.histc(values, bins=BINS, min=low, max=high)
        return cls(
            mean=float(values.mean()),
            quantiles={str(q): float(p) for q, p in zip(QUANTILES, points, strict=True)},
            edges=torch.linspace(low, high, BINS + 1, dtype=torch.float64).tolist(),
            counts=[int(count) for count in counts],
        )


@dataclass(frozen=True, slots=True)
class DevResult:
    """Negative log-likelihood per token on one development set, lower is better."""

    tokens: int
    base: float
    knn: float  # kNN-MT with the best k, temperature and weight for these very tokens
    kster: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """How a fit has shifted confidences, and by what (`translation/calibration.py`)."""

    sentences: int
    right: float  # the share of their translations that are
    believed: float  # the mean of their confidences before
    shift: float  # of the log odds


@dataclass(frozen=True, slots=True)
class FitReport:
    """The outcome of `fit`, saved beside the smoother as fit.json."""

    settings: dict[str, Any]
    seed: int
    model: str
    fingerprint: str
    finished: str  # ISO 8601, UTC
    memory_entries: int
    memory_segments: int
    newest_segment: int  # its id; what was added to the memory since has a larger one
    train_tokens: int  # of the memory
    train_segments: int
    general_tokens: int  # of general-domain text, trained on beside them
    empty_slots: float  # share of the k neighbour slots that dropout left without a neighbour
    dev_origin: str  # "given" or "held out"
    dev_in_memory: int  # given pairs whose target is in the memory; its copies there were hidden from them
    dev: DevResult
    general: DevResult | None  # held-out general-domain text, if there was any
    knn: Trial  # the tuned kNN-MT of `dev.knn`
    bandwidth: Distribution
    mixing_weight: Distribution
    metric: int  # rows of the learned distance, if one was wanted and was better; else 0
    length_penalty: float | None  # the one chosen for translations; None where there was too little text
    lengths: dict[str, float]  # with each penalty tried, translations' length as a share of the references'
    curve: Sequence[CurvePoint]
    seconds: dict[str, float] = field(default_factory=dict)
    model_smoother_stays: bool = False  # no sure gain was found, so what is saved is the model's own
    calibration: Calibration | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def save(self, directory: Path) -> None:
        write_json(directory / FIT_FILE, self.to_json())


@dataclass(frozen=True, slots=True)
class TuneReport:
    """The outcome of `tune`: the best combination, and all of them, so that others may choose by BLEU."""

    kernel: str
    best: Trial
    base_nll: float
    tokens: int
    dev_origin: str
    dev_in_memory: int  # as in `FitReport`
    trials: Sequence[Trial]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def save(self, directory: Path) -> None:
        write_json(directory / TUNE_FILE, self.to_json())


def write_json(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode())
