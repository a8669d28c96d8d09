"""Which smoother a translation uses when nobody names one.

A memory need not be fitted to be used. In this order:

1. the memory's own fit, `<memory>/smoother/`;
2. the default smoother that a model may carry beside its weights, `<model>/smoother/`;
3. the universal smoother that ships with the package (`universal/`), which was fitted over several models;
   for kNN-MT, the fixed settings below: they trust what the memory holds exactly, fade with distance, and
   leave unrelated text to the base model.

`smoother.json` there is KSTER (from `fit`), `knn.json` tuned kNN-MT (from `tune`).
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
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
REPORTS = {SETTINGS_FILE: "fit.json", KNN_FILE: "tune.json"}  # written beside each
UNIVERSAL = Path(__file__).parent / "universal"  # for models that carry no smoother

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
    first that has its own fit decides. Smoothers are kept while their files stay as they are and shared
    between calls: not to be changed.
    """
    if method not in ("knn", "kster"):
        raise KsterError(f"method {method!r} has no smoother; accepted: knn, kster")
    name = SETTINGS_FILE if method == "kster" else KNN_FILE
    memories = [Path(directory) / SMOOTHER_DIRECTORY / name for directory in memory_directories]
    for path in memories:
        if path.is_file():
            try:
                return ResolvedSmoother(_loaded.get(path, model), "memory", path)
            except KsterError as error:
                raise KsterError(_advised(error, path)) from error
    path = model.directory / SMOOTHER_DIRECTORY / name
    if path.is_file():
        return ResolvedSmoother(_loaded.get(path, model), "model", path)
    if method == "kster":
        return ResolvedSmoother(_loaded.get(UNIVERSAL / name, model), "default", UNIVERSAL / name)
    return ResolvedSmoother(Smoother(SAFE_KNN).eval().to(model.device), "default", None)


def unfitted_smoother(model: BaseModel) -> Path:
    """The directory of what memories use until they are fitted: the model's own, or the universal one."""
    own = model.directory / SMOOTHER_DIRECTORY
    return own if (own / SETTINGS_FILE).is_file() else UNIVERSAL


def smoother_problems(memory_directory: Path | str, dimension: int) -> list[str]:
    """Everything that is wrong with a memory's own smoothers, in words; empty when nothing is.

    dimension: the length of the memory's keys.
    """
    problems = []
    for name in (SETTINGS_FILE, KNN_FILE):
        path = Path(memory_directory) / SMOOTHER_DIRECTORY / name
        if path.is_file():
            try:
                _read(path, dimension)
            except KsterError as error:
                problems.append(_advised(error, path))
        elif path.with_name(REPORTS[name]).is_file():
            problems.append(_advised(KsterError(f"{path}: is missing"), path))
    return problems


def _advised(error: KsterError, path: Path) -> str:
    """What is wrong with a memory's smoother, and how to get another."""
    command = "fit" if path.name == SETTINGS_FILE else "tune"
    return f"{str(error).rstrip('.')}; `kster {command} {path.parent.parent}` makes a new one"


class _Loaded:
    """The smoothers read last, by file, its state and the model they serve; safe among threads.

    A translation must not wait for the disk, and must see a new fit at once.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._smoothers: OrderedDict[tuple[object, ...], Smoother] = OrderedDict()

    def get(self, path: Path, model: BaseModel) -> Smoother:
        state = path.stat()  # of a file that is replaced, never changed: a new fit is a new inode
        key = (
            *(path.resolve(), state.st_mtime_ns, state.st_size, state.st_ino),
            *(model.dimension, str(model.device)),
        )
        with self._lock:
            if key in self._smoothers:
                self._smoothers.move_to_end(key)
                return self._smoothers[key]
        smoother = _read(path, model.dimension).to(model.device)
        with self._lock:
            self._smoothers[key] = smoother
            while len(self._smoothers) > self.limit:
                self._smoothers.popitem(last=False)
        return smoother


_loaded = _Loaded(limit=32)  # 2 MiB each at d = 512


def _read(path: Path, dimension: int) -> Smoother:
    return Smoother.load(path.parent, dimension=dimension) if path.name == SETTINGS_FILE else load_knn(path)


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
