"""A stage has the settings that decide its result in its name: a changed one is a new stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from experiments import online, pipeline, speed, systems
from experiments.budget import QUICK
from experiments.catalogue import EXPERIMENTS
from experiments.data import Slice
from experiments.engine import Engine, Fit, MemorySpec, Training
from experiments.pipeline import Pipeline

from kster.smoothing import SAFE_KNN, FitSettings
from kster.smoothing.defaults import SMOOTHER_DIRECTORY
from kster.smoothing.smoother import SETTINGS_FILE

SETTINGS: dict[str, tuple[Any, Any]] = {  # as it is, and changed
    "fingerprint": ("0123456789", "9876543210"),
    "precision": ("float32", "float16"),
    "memory": (Slice("koran", "train"), Slice("koran", "train", 500)),
    "dev": (Slice("koran", "dev"), Slice("koran", "dev", None, 10)),
    "test": (Slice("koran", "test"), Slice("koran", "test", 10)),
    "fit": (FitSettings(), FitSettings(seed=2)),
    "start": ("carried", "carried by another model"),
    "general": ([("a", "b")], [("a", "c")]),
    "ks": ((4, 8), (4, 16)),
    "smoother": (SAFE_KNN, replace(SAFE_KNN, k=3)),
    "model": (ONE := Training(MemorySpec("it", ()), (), 1, 1, 1, 1), replace(ONE, epochs=2)),
    "length penalty": (0.6, 1.0),
    "epochs": (1, 3),
    "batch": (500, 600),
    "steps": (2, 3),
    "from scratch": (False, True),
    "keys on demand": (False, True),
    "kind": ("wsd", "words"),
    "identity": ([1], [2]),
    "fitted": (FitSettings(), FitSettings(seed=2)),
    "repeats": (1, 2),
    "machine": ("NVIDIA H200", "NVIDIA A100"),
}


class Named(Exception):
    """A stage would be made now; says where."""


class World:
    """A pipeline of these settings, which makes nothing."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]) -> None:
        self.place, self.settings = place, settings
        carried = place / "model" / SMOOTHER_DIRECTORY
        carried.mkdir(parents=True, exist_ok=True)
        (carried / SETTINGS_FILE).write_text(settings["start"])
        base = SimpleNamespace(
            fingerprint=settings["fingerprint"],
            precision=settings["precision"],
            directory=place / "model",
            device=torch.device("cpu"),
            name=str(place / "model"),
            source_lang="en",
            target_lang="de",
        )
        monkeypatch.setattr(pipeline.BaseModel, "load", lambda *_, **__: base)
        monkeypatch.setattr(pipeline, "general_text", lambda *_: settings["general"])
        monkeypatch.setattr(speed, "machine", lambda device: settings["machine"])
        monkeypatch.setattr(speed, "kster", lambda _: systems.Kster(fit=settings["fitted"]))
        monkeypatch.setattr(speed, "_memories", lambda scale: [self.memory])
        monkeypatch.setattr(speed, "test_slice", lambda *_: settings["test"])
        self.pipeline = Pipeline(
            "model",
            place,
            place / "out",
            place / "cache",
        )
        monkeypatch.setattr(self.pipeline, "once", self.found)

    def found(self, path: Path, make: Callable[[], None], *, wait: bool = True) -> None:
        raise Named(str(path))

    def __getitem__(self, name: str) -> Any:
        return self.settings[name]

    @property
    def memory(self) -> MemorySpec:
        return MemorySpec("koran", (self["memory"],), self["keys on demand"])

    @property
    def engine(self) -> Engine:
        return Engine(self["model"], self.memory, self["smoother"], self["length penalty"])


def choice(world: World) -> Engine:
    pipeline: Any = world.pipeline
    pipeline.translate = lambda *_, **__: Path()
    return systems.choose(
        pipeline, [world.engine, replace(world.engine, smoother=None)], [world["dev"]], QUICK
    )


def training(world: World) -> str:
    steps = (world["epochs"], world["batch"], 1, world["steps"])
    return Training(world.memory, (world["dev"],), *steps, world["from scratch"]).name


# Each has the settings that it must not be found without.
STAGES: dict[str, tuple[Callable[[World], Any], str]] = {
    "memory": (lambda w: w.pipeline.memory(w.memory), "fingerprint, memory, keys on demand"),
    "fit": (
        lambda w: w.pipeline.fit(Fit(w.memory, w["fit"], (w["dev"],))),
        "fingerprint, memory, fit, dev, general, start",
    ),
    "tuning": (lambda w: w.pipeline.tuning(w.memory, w["ks"], [w["dev"]]), "fingerprint, memory, ks, dev"),
    "translate": (
        lambda w: w.pipeline.translate(w.engine, w["test"]),
        "fingerprint, precision, model, memory, smoother, length penalty, test",
    ),
    "measured": (
        lambda w: w.pipeline.measured(w["kind"], w["identity"], dict),
        "fingerprint, precision, kind, identity",
    ),
    "online": (
        lambda w: online._work(w.pipeline, w["test"]),
        "fingerprint, precision, test, start",
    ),
    "choice": (choice, "fingerprint, precision, model, memory, smoother, length penalty, dev"),
    "training": (training, "memory, epochs, batch, steps, from scratch"),
    "speed": (
        lambda w: EXPERIMENTS["speed"].measure(w.pipeline, replace(QUICK, repeats=w["repeats"], timed=None)),
        "fingerprint, precision, memory, test, repeats, fitted, machine",
    ),
}


@pytest.mark.parametrize(
    ("stage", "setting"),
    [(stage, setting) for stage, (_, settings) in STAGES.items() for setting in settings.split(", ")],
)
def test_a_changed_setting_is_a_new_stage(
    stage: str, setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systems, "write_json", lambda path, _: _named(path))
    monkeypatch.setattr(systems, "_bleu", lambda *_: 0.0)
    settings = {name: values[0] for name, values in SETTINGS.items()}

    def name(settings: dict[str, Any]) -> str:
        try:
            return str(STAGES[stage][0](World(tmp_path, monkeypatch, settings)))
        except Named as named:
            return str(named)

    usual = name(settings)
    assert name(settings) == usual
    assert name(settings | {setting: SETTINGS[setting][1]}) != usual


def _named(path: Path) -> None:
    raise Named(str(path))
