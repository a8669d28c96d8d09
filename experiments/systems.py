"""The systems that experiments compare: how each becomes an engine, settings chosen on development text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

from experiments import knn_tuning
from experiments.budget import Budget
from experiments.data import Slice
from experiments.domains import Setting, mixed_memory
from experiments.engine import LENGTH_PENALTY, Engine, Fit, RivalFit, SentenceSearch, Training
from experiments.pipeline import Pipeline
from experiments.results import corpus_bleu
from experiments.stages import digest, read_json, say, write_json
from kster.smoothing import FitSettings, SmootherSettings

Coordinates = dict[str, Any]
"""Where a cell stands among all results. Of its system: system, variant, noise, k, seed, bandwidth,
mixing_weight, length_penalty. Of its test: test, memory, share. As far as they say anything in a table."""

SIGNS = {"bandwidth": "σ", "mixing_weight": "λ", "length_penalty": "α"}


@dataclass(frozen=True, kw_only=True)
class System(ABC):
    """One row of a table.

    coordinates: at least "system"; they make the row's name.
    length_penalties: of beam search, to choose from by BLEU on dev when all else has been chosen with each.
    """

    coordinates: Coordinates = field(default_factory=dict)
    length_penalties: tuple[float, ...] = (LENGTH_PENALTY,)
    lines_of_work = 2_000  # that could be translated in the time which learning takes, roughly

    @property
    def name(self) -> str:
        given = dict(self.coordinates)
        name, variant, noise = (given.pop(key, "") for key in ("system", "variant", "noise"))
        settings = "".join(f" {SIGNS.get(key, key)}={value}" for key, value in given.items())
        return name + (f", {variant}" if variant else "") + settings + (f" + {noise}" if noise else "")

    def at(self, **coordinates: Any) -> System:
        """The same system at further coordinates."""
        return replace(self, coordinates=self.coordinates | coordinates)

    def engine(self, pipeline: Pipeline, setting: Setting, budget: Budget) -> Engine:
        """The engine in a setting: chosen, where there is a choice."""
        dev = tuple(slice.at_most(budget.dev) for slice in setting.dev)
        setting = replace(setting, dev=dev)
        engines = [self.learned(pipeline, setting, budget, penalty) for penalty in self.length_penalties]
        engine = choose(pipeline, engines, dev, budget)
        if engine.memory is None or setting.searched is None:
            return engine
        return replace(engine, memory=setting.searched)

    @abstractmethod
    def learned(self, pipeline: Pipeline, setting: Setting, budget: Budget, penalty: float) -> Engine:
        """The best engine with this length penalty."""


class Base(System):
    """The base model alone."""

    def learned(self, pipeline: Pipeline, setting: Setting, budget: Budget, penalty: float) -> Engine:
        return Engine(length_penalty=penalty)


@dataclass(frozen=True, kw_only=True)
class Trained(System):
    """The base model trained on the memory's text; joint: on all domains at once, for longer."""

    joint: bool = False
    lines_of_work = 30_000

    def learned(self, pipeline: Pipeline, setting: Setting, budget: Budget, penalty: float) -> Engine:
        lengths = budget.joint_epochs if self.joint else budget.epochs
        most = budget.most_joint_steps if self.joint else budget.most_steps
        trainings = [
            Training(setting.memory, setting.dev, epochs, budget.batch_tokens, budget.least_steps, most)
            for epochs in lengths
        ]
        engines = [Engine(model=training, length_penalty=penalty) for training in trainings]
        return choose(pipeline, engines, setting.dev, budget)


class TrainedFromScratch(System):
    """A model of the base model's shape, trained on all general and domain text there is."""

    lines_of_work = 300_000

    def learned(self, pipeline: Pipeline, setting: Setting, budget: Budget, penalty: float) -> Engine:
        steps = budget.scratch_steps
        text = mixed_memory(budget, budget.scratch_general)
        training = Training(text, setting.dev, 1, budget.scratch_tokens, steps, steps, from_scratch=True)
        return Engine(model=training, length_penalty=penalty)


@dataclass(frozen=True, kw_only=True)
class Knn(System):
    """kNN-MT as published, tuned; with this k, if it may not choose. fixed: nothing is left to choose."""

    k: int | None = None
    fixed: SmootherSettings | None = None

    def learned(self, pipeline: Pipeline, setting: Setting, budget: Budget, penalty: float) -> Engine:
        settings = self.fixed or self.tuned(pipeline, setting, budget, penalty)
        return Engine(memory=setting.memory, smoother=settings, length_penalty=penalty)

    def tuned(
        self, pipeline: Pipeline, setting: Setting, budget: Budget, penalty: float = LENGTH_PENALTY
    ) -> SmootherSettings:
        def best_of(candidates: list[SmootherSettings]) -> SmootherSettings:
            engines = [Engine(None, setting.memory, one, penalty) for one in dict.fromkeys(candidates)]
            chosen = choose(pipeline, engines, setting.dev, budget).smoother
            assert isinstance(chosen, SmootherSettings)
            return chosen

        def sweep(ks: tuple[int, ...]) -> list[knn_tuning.Trial]:
            return pipeline.tuning(setting.memory, ks, setting.dev)

        if self.k is None:
            return knn_tuning.tuned(sweep, best_of, budget)
        return knn_tuning.tuned_with(self.k, sweep, best_of, budget)


@dataclass(frozen=True, kw_only=True)
class Kster(System):
    """A fit. from_knn: it begins with the kernel, k, σ and λ of tuned kNN-MT."""

    fit: FitSettings
    from_knn: bool = False

    def learned(self, pipeline: Pipeline, setting: Setting, budget: Budget, penalty: float) -> Engine:
        settings = self.fit
        if self.from_knn:
            knn = Knn().tuned(pipeline, setting, budget)
            settings = replace(
                settings,
                kernel=knn.kernel,
                k=knn.k,
                bandwidth=knn.bandwidth,
                mixing_weight=knn.mixing_weight,
            )
        fit = Fit(setting.memory, settings, setting.dev)
        return Engine(memory=setting.memory, smoother=fit, length_penalty=penalty)


@dataclass(frozen=True, kw_only=True)
class LearnedKnn(System):
    """Adaptive or Robust kNN-MT; how many neighbours, and Adaptive's temperature, are chosen by BLEU on dev:
    around tuned kNN-MT's bandwidth, since temperatures depend on the model."""

    kind: Literal["adaptive", "robust"]

    def learned(self, pipeline: Pipeline, setting: Setting, budget: Budget, penalty: float) -> Engine:
        temperatures = [1.0]
        if self.kind == "adaptive":
            bandwidth = Knn().tuned(pipeline, setting, budget).bandwidth
            assert bandwidth is not None
            temperatures = [share * bandwidth for share in budget.rival_temperatures]
        fits = [
            RivalFit(self.kind, setting.memory, setting.dev, k, budget.rival_steps, temperature)
            for k in budget.rival_ks
            for temperature in temperatures
        ]
        engines = [Engine(None, setting.memory, fit, penalty) for fit in fits]
        return choose(pipeline, engines, setting.dev, budget)


class SentenceKnn(System):
    """SK-MT; how many sentences and neighbours, and the temperature, are chosen by BLEU on dev."""

    def learned(self, pipeline: Pipeline, setting: Setting, budget: Budget, penalty: float) -> Engine:
        bandwidth = Knn().tuned(pipeline, setting, budget).bandwidth
        assert bandwidth is not None
        searches = [
            SentenceSearch(sentences, k, share * bandwidth)
            for sentences, k in budget.sentence_searches
            for share in budget.sentence_temperatures
        ]
        engines = [Engine(None, setting.memory, search, penalty) for search in searches]
        return choose(pipeline, engines, setting.dev, budget)


# The usual rows ----------------------------------------------------------------------------------------

BASE: System = Base(coordinates={"system": "Base"})
FINE_TUNING: System = Trained(coordinates={"system": "Finetuning"})
JOINT_TRAINING: System = Trained(coordinates={"system": "Joint-training"}, joint=True)
JOINT_FROM_SCRATCH: System = TrainedFromScratch(
    coordinates={"system": "Joint-training", "variant": "from scratch"}
)
KNN: System = Knn(coordinates={"system": "kNN-MT"})
ADAPTIVE_KNN: System = LearnedKnn(coordinates={"system": "Adaptive kNN-MT"}, kind="adaptive")
ROBUST_KNN: System = LearnedKnn(coordinates={"system": "Robust kNN-MT"}, kind="robust")
SK_MT: System = SentenceKnn(coordinates={"system": "SK-MT"})


def kster(budget: Budget, variant: str = "", *, from_knn: bool = False, **changes: Any) -> System:
    """KSTER with changes to the settings of its fit."""
    coordinates = {"system": "KSTER"} | ({"variant": variant} if variant else {})
    return Kster(coordinates=coordinates, fit=FitSettings(**(budget.fit | changes)), from_knn=from_knn)


def kster_with_learned_distance(budget: Budget, **changes: Any) -> System:
    return kster(budget, "learned distance", metric=128, **changes)


def kster_as_published(budget: Budget, variant: str = "paper's recipe", **changes: Any) -> System:
    """With the schedule of the authors' release, unless the changes say otherwise."""
    fit = FitSettings.paper(**(budget.published_fit | changes))
    return Kster(coordinates={"system": "KSTER", "variant": variant}, fit=fit)


# Choosing ----------------------------------------------------------------------------------------------


def choose(pipeline: Pipeline, engines: list[Engine], dev: Sequence[Slice], budget: Budget) -> Engine:
    """The engine with the highest BLEU on the beginnings of the dev sets, on average; among equals the
    first."""
    if len(engines) == 1:
        return engines[0]
    sets = [slice.at_most(budget.dev_decoded) for slice in dev]
    identities = [pipeline.identity(engine) for engine in engines]
    name = digest({"engines": identities, "dev": [*map(str, sets)], **pipeline.base_identity})
    path = pipeline.out / "choices" / pipeline.direction / f"{name}.json"
    if not path.is_file():
        # Other processes may have the same choice to make: what they are at is left to them, for now.
        for engine, slice in product(engines, sets):
            pipeline.translate(engine, slice, wait=False)
        scores = [[_bleu(pipeline, engine, slice) for slice in sets] for engine in engines]
        means = [sum(of_sets) / len(sets) for of_sets in scores]
        best = means.index(max(means))
        candidates = [
            {"engine": identity, "bleu": dict(zip(map(str, sets), of_sets, strict=True)), "score": mean}
            for identity, of_sets, mean in zip(identities, scores, means, strict=True)
        ]
        write_json(path, {"chosen": best, "candidates": candidates})
        say(f"chose {best + 1} of {len(engines)}: {means[best]:.2f} BLEU on dev")
    return engines[int(read_json(path)["chosen"])]


def _bleu(pipeline: Pipeline, engine: Engine, dev: Slice) -> float:
    lines = read_json(pipeline.translate(engine, dev))["lines"]
    return corpus_bleu(lines, [target for _, target in pipeline.corpora.pairs(dev)])
