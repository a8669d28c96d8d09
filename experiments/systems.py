"""The systems that experiments compare: how each becomes an engine, settings chosen on development text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

from experiments import knn
from experiments.baselines import train_baseline
from experiments.bleu import corpus_bleu
from experiments.calibration import GENERAL_WEIGHT, calibrated
from experiments.data import Slice
from experiments.engine import LENGTH_PENALTY, Engine, MemorySpec
from experiments.pipeline import Pipeline
from experiments.scale import Scale
from experiments.stages import digest, read_json, write_json
from kster.smoothing import FitSettings, SmootherSettings
from kster.smoothing.fitting.sweep import Trial

Kind = Literal["base", "finetuned", "joint", "knn", "fixed", "kster"]


@dataclass(frozen=True, slots=True)
class System:
    """One row of a table.

    k: of kNN-MT, if it may not choose. fixed: kNN-MT with nothing left to choose.
    fit: settings of KSTER to choose from by BLEU on dev.
    from_knn: these begin with the kernel, k, σ and λ of tuned kNN-MT.
    calibrate: the chosen fit is moved to where it has the highest BLEU on dev and on general text.
    length_penalties: of beam search, to choose from by BLEU on dev when all else has been chosen with each.
    """

    name: str
    kind: Kind
    k: int | None = None
    fixed: SmootherSettings | None = None
    fit: tuple[FitSettings, ...] = ()
    from_knn: bool = False
    calibrate: bool = False
    length_penalties: tuple[float, ...] = (LENGTH_PENALTY,)


@dataclass(frozen=True, slots=True)
class Setting:
    """What a system may use: a memory (or its text, to train on), and dev sets, whose mean BLEU decides.

    searched: a memory that takes the place of the other one when everything has been learned and chosen.
    general: further dev sets, of general text, which count for less when a fit is calibrated: it learned
    from such text, too.
    """

    memory: MemorySpec
    dev: tuple[Slice, ...]
    searched: MemorySpec | None = None
    general: tuple[Slice, ...] = ()


def engine_of(pipeline: Pipeline, system: System, setting: Setting, scale: Scale) -> Engine:
    """The engine for a system in a setting: trained, fitted and chosen if need be."""
    engines = [_learned(pipeline, system, setting, scale, penalty) for penalty in system.length_penalties]
    engine = choose(pipeline, engines, setting.dev, scale)
    if engine.memory is None or setting.searched is None:
        return engine
    return replace(engine, memory=setting.searched)


def _learned(pipeline: Pipeline, system: System, setting: Setting, scale: Scale, penalty: float) -> Engine:
    memory, dev = setting.memory, tuple(slice.at_most(scale.dev) for slice in setting.dev)
    engine = partial(Engine, length_penalty=penalty)
    if system.kind == "base":
        return engine()
    if system.kind == "fixed":
        return engine(memory=memory, smoother=system.fixed)
    if system.kind in ("finetuned", "joint"):
        training = scale if system.kind == "finetuned" else scale.for_joint_training
        trained = [train_baseline(pipeline, memory, dev, epochs, training) for epochs in training.epochs]
        return choose(pipeline, [engine(model=model) for model in trained], dev, scale)
    if system.kind == "knn":
        return engine(memory=memory, smoother=tune_knn(pipeline, system, setting, scale, penalty))
    start = _start_from_knn(pipeline, system, setting, scale) if system.from_knn else {}
    fits = [pipeline.fit(memory, replace(settings, **start), dev) for settings in system.fit]

    def best_of(smoothers: list[Path], general: tuple[Slice, ...] = ()) -> Path:
        engines = [engine(memory=memory, smoother=path) for path in smoothers]
        chosen = choose(pipeline, engines, dev, scale, general).smoother
        assert isinstance(chosen, Path)
        return chosen

    best = best_of(fits)
    if system.calibrate:
        best = calibrated(pipeline, best, partial(best_of, general=setting.general), scale.climbs)
    return engine(memory=memory, smoother=best)


def tune_knn(
    pipeline: Pipeline, system: System, setting: Setting, scale: Scale, penalty: float = LENGTH_PENALTY
) -> SmootherSettings:
    memory, dev = setting.memory, tuple(slice.at_most(scale.dev) for slice in setting.dev)

    def best_of(settings: list[SmootherSettings]) -> SmootherSettings:
        engines = [Engine(None, memory, one, penalty) for one in dict.fromkeys(settings)]
        chosen = choose(pipeline, engines, dev, scale).smoother
        assert isinstance(chosen, SmootherSettings)
        return chosen

    def sweep(ks: tuple[int, ...]) -> list[Trial]:
        return pipeline.tuning(memory, ks, dev)

    if system.k is None:
        return knn.tuned(sweep, best_of, scale)
    return knn.tuned_with(system.k, sweep, best_of, scale)


def _start_from_knn(pipeline: Pipeline, system: System, setting: Setting, scale: Scale) -> dict[str, Any]:
    best = tune_knn(pipeline, system, setting, scale)
    return {
        "kernel": best.kernel,
        "k": best.k,
        "bandwidth": best.bandwidth,
        "mixing_weight": best.mixing_weight,
    }


def choose(
    pipeline: Pipeline,
    engines: list[Engine],
    dev: Sequence[Slice],
    scale: Scale,
    general: Sequence[Slice] = (),
) -> Engine:
    """The engine with the highest BLEU on the beginnings of the dev sets, on average; among equals the first.

    general: dev sets that count for less, see GENERAL_WEIGHT.
    """
    if len(engines) == 1:
        return engines[0]
    sets = [slice.at_most(scale.dev_decoded) for slice in dev]
    others = [slice.at_most(scale.dev_decoded) for slice in general]
    identity: dict[str, Any] = {"engines": [engine.identity for engine in engines], "dev": [*map(str, sets)]}
    if others:
        identity["general"] = [GENERAL_WEIGHT, *map(str, others)]
    path = pipeline.out / "choices" / pipeline.direction / f"{digest(identity)}.json"
    chosen = _chosen_before(path, pipeline)
    if chosen is None:
        # Other processes may have the same choice to make: what they are at is left to them, for now.
        for engine, slice in product(engines, (*sets, *others)):
            pipeline.translate(engine, slice, wait=False)
        candidates: list[dict[str, Any]] = []
        for engine in engines:
            bleu = {str(slice): _bleu(pipeline, engine, slice) for slice in (*sets, *others)}
            score = _mean(bleu, sets) + (GENERAL_WEIGHT * _mean(bleu, others) if others else 0.0)
            candidates.append({"engine": engine.identity, "bleu": bleu, "score": score})
        chosen = max(range(len(engines)), key=lambda i: candidates[i]["score"])
        fingerprint = pipeline.base.fingerprint
        write_json(path, {"chosen": chosen, "fingerprint": fingerprint, "candidates": candidates})
        best = _mean(candidates[chosen]["bleu"], sets)
        pipeline.say(f"chose {chosen + 1} of {len(engines)}: {best:.2f} BLEU on dev")
    return engines[chosen]


def _mean(bleu: dict[str, float], sets: Sequence[Slice]) -> float:
    return sum(bleu[str(slice)] for slice in sets) / len(sets)


def _chosen_before(path: Path, pipeline: Pipeline) -> int | None:
    """The choice, if it was made, and with the same base model: the file's name does not say with which."""
    known = read_json(path) if path.is_file() else None
    if known is None or known.get("fingerprint", pipeline.base.fingerprint) != pipeline.base.fingerprint:
        return None
    return int(known["chosen"])


def _bleu(pipeline: Pipeline, engine: Engine, dev: Slice) -> float:
    lines = read_json(pipeline.translate(engine, dev))["lines"]
    return corpus_bleu(lines, [target for _, target in pipeline.corpora.pairs(dev)])
