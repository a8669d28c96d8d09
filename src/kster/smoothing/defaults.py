"""Which smoother a translation uses when nobody names one.

A memory need not be fitted to be used. In this order:

1. the memory's own fit, `<memory>/smoother/`;
2. the default smoother that a model may carry beside its weights, `<model>/smoother/`;
3. kNN-MT with the fixed settings below, which are safe on any model: they trust what the memory holds
   exactly, fade with distance, and leave unrelated text to the base model.

`smoother.json` there is KSTER (from `fit`), `knn.json` tuned kNN-MT (from `tune`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kster.errors import KsterError
from kster.smoothing.settings import SmootherSettings
from kster.smoothing.smoother import SETTINGS_FILE, Smoother

if TYPE_CHECKING:
    from kster.model import BaseModel

SMOOTHER_DIRECTORY = "smoother"
KNN_FILE = "knn.json"

Method = Literal["knn", "kster"]

SAFE_KNN = SmootherSettings(
    kernel="gaussian",
    k=8,
    learn_bandwidth=False,
    learn_weight=False,
    bandwidth=0.02,
    mixing_weight=0.5,
    relative=True,
    gate=0.1,
    exact_match=0.98,
)
"""kNN-MT for a memory nobody has fitted or tuned; distances are measured against ‖q‖²."""


@dataclass(frozen=True, slots=True)
class ResolvedSmoother:
    """A smoother and where it came from."""

    smoother: Smoother
    origin: Literal["memory", "model", "default"]
    path: Path | None  # the file it was read from


def resolve_smoother(
    method: Method, memory_directories: Sequence[Path | str], model: BaseModel
) -> ResolvedSmoother:
    """The smoother for a method, on the model's device.

    memory_directories: the memory's directory, or those of several searched as one; among several the
    first that has its own fit decides.
    """
    if method not in ("knn", "kster"):
        raise KsterError(f"method {method!r} has no smoother; accepted: knn, kster")
    name = SETTINGS_FILE if method == "kster" else KNN_FILE
    memories = [Path(directory) / SMOOTHER_DIRECTORY / name for directory in memory_directories]
    for path in memories:
        if path.is_file():
            return ResolvedSmoother(_load(path, model), "memory", path)
    path = model_directory(model) / SMOOTHER_DIRECTORY / name
    if path.is_file():
        return ResolvedSmoother(_load(path, model), "model", path)
    return ResolvedSmoother(Smoother(SAFE_KNN).eval().to(model.device), "default", None)


def model_directory(model: BaseModel) -> Path:
    """Where the checkpoint lies: the given directory, or the hub's local copy."""
    given = Path(model.name)
    return given if given.is_dir() else Path(model.network.name_or_path)


def _load(path: Path, model: BaseModel) -> Smoother:
    if path.name == SETTINGS_FILE:
        smoother = Smoother.load(path.parent, dimension=model.dimension)
    else:
        smoother = load_knn(path)
    return smoother.to(model.device)


def load_knn(path: Path) -> Smoother:
    """kNN-MT from a `knn.json` that `tune` wrote."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise KsterError(f"{path}: not valid JSON ({error}).") from None
    settings = SmootherSettings.from_json(data, str(path))
    if settings.learned:
        raise KsterError(f"{path}: expected fixed settings (kNN-MT), but something is learned here.")
    return Smoother(settings).eval()
