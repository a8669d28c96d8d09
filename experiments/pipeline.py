"""One pipeline under all experiments: memories, fits, tunings and translations, each made once.

    cache/<direction>/memories/…   keys; large, stay where they were made
    cache/<direction>/lookups/…    force-decoded tokens and their neighbours, shared by fits
    cache/<direction>/fits/…       smoothers
    cache/<direction>/models/…     fine-tuned baselines
    cache/<direction>/rivals/…     Adaptive and Robust kNN-MT
    out/tunings/<direction>/…      kNN-MT's likelihood over its grid
    out/translations/<direction>/… what the report reads; small, as all in `out`

A stage's name is a digest of the settings that decide its result, so a changed setting is a new stage and a
rerun finds the old ones. What the code itself does is not in it: begin a new `out` and cache after changing
that. Of the text it has line numbers; `text_checksums` sees that the lines stay what they were. A kill leaves
a stage either whole or absent. Fits and models are made when a translation needs them: with `out` alone, on
another machine, only what is missing is done. Each stage is made under a lock, so that several processes can
share the work.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save

from experiments.building import build_memory, open_memory, train_baseline
from experiments.data import Corpora, Slice, languages_of
from experiments.engine import Engine, Fit, MemorySpec, RivalFit, SentenceSearch, Training
from experiments.rivals import Rival, learn, look_up, rival_of
from experiments.sentence_knn import DistanceAwareKnn
from experiments.stages import Clock, OutOfTime, digest, locked, read_json, say, write_json
from kster.files import new_directory, write_atomically
from kster.memory import Memory
from kster.model import BaseModel
from kster.smoothing import Smoother, SmootherSettings, fit, tune
from kster.smoothing.defaults import unfitted_smoother
from kster.smoothing.fitting.general import general_text
from kster.smoothing.fitting.sweep import Trial
from kster.smoothing.smoother import SETTINGS_FILE
from kster.translation import Translator


class Pipeline:
    """The stages for one base model, that is, one direction."""

    def __init__(
        self,
        model: str | Path,
        data: Path,
        out: Path,
        cache: Path,
        *,
        made: Path | None = None,
        device: str = "auto",
        clock: Clock | None = None,
    ) -> None:
        self.base = BaseModel.load(model, device=device)
        self.languages = languages_of(self.base)
        self.direction = "-".join(self.languages)
        self.corpora = Corpora(data, self.languages, made=made or cache / "data")
        self.out, self.clock, self.device = out, clock or Clock(), device
        self.cache = cache / f"{self.direction}-{self.base.fingerprint[:8]}"
        self._memory: tuple[MemorySpec, int | None, Memory] | None = None
        self._trained: tuple[Training, BaseModel] | None = None

    @property
    def base_identity(self) -> dict[str, str]:
        """Of the base model, what decides a result."""
        return {"fingerprint": self.base.fingerprint, "precision": self.base.precision}

    def identity(self, engine: Engine) -> dict[str, Any]:
        """What an engine's translations depend on, apart from the base model."""
        smoother: Any = engine.smoother
        if smoother == "carried":
            smoother = self._carried
        elif isinstance(smoother, SmootherSettings):
            smoother = smoother.to_json()
        elif isinstance(smoother, RivalFit | SentenceSearch):
            smoother = smoother.name
        elif smoother is not None:
            smoother = f"fit {self._fit_name(smoother)}"
        return {
            "model": None if engine.model is None else engine.model.name,
            "memory": None if engine.memory is None else engine.memory.identity,
            "smoother": smoother,
            "length_penalty": engine.length_penalty,
        }

    def once(self, path: Path, make: Callable[[], None], *, wait: bool = True) -> None:
        """Make a stage's file or directory, unless it is there or another process makes it meanwhile.

        wait: for the other process, or leave it at that.
        """
        if path.exists():
            return
        with locked(self.cache / "locks" / digest(str(path)), wait=wait) as ours:
            if ours and not path.exists():
                self.clock.check()
                make()

    # Memories ----------------------------------------------------------------------------------------

    def memory(self, spec: MemorySpec, sentences: int | None = None) -> Memory:
        """The memory, built if need be. Only one is held open: keys of large ones fill a GPU.

        sentences: of it that SK-MT searches for each that is translated.
        """
        if self._memory is not None and self._memory[:2] == (spec, sentences):
            return self._memory[2]
        self.close()
        directory = self.cache / "memories" / f"{spec.name}-{digest(spec.identity)}"
        pairs = partial(self.corpora.learnable_pairs, *spec.slices)
        self.once(directory, lambda: build_memory(spec, pairs(), directory, self.base, self.clock))
        self._memory = (spec, sentences, open_memory(directory, self.base, sentences))
        return self._memory[2]

    def close(self) -> None:
        if self._memory is not None:
            self._memory[2].close()
            self._memory = None

    # Smoothers ---------------------------------------------------------------------------------------

    def _fit_name(self, wanted: Fit) -> str:
        """Like any fit it looks at the general text that ships, unless its settings say otherwise, and may
        start from the smoother that the base model carries."""
        settings = wanted.settings
        identity = {
            "memory": wanted.memory.identity,
            "settings": settings.to_json(),
            "dev": [str(slice) for slice in wanted.dev],
            "general": digest(general_text(*self.languages)) if settings.general_share else None,
            "start": self._carried if settings.start == "carried" else None,
        }
        return f"{wanted.memory.name}-{digest(identity)}"

    def fit(self, wanted: Fit) -> Path:
        """The directory of the fitted smoother."""
        directory = self.cache / "fits" / self._fit_name(wanted)

        def make() -> None:
            memory, spec = self.memory(wanted.memory), wanted.memory
            say(f"fitting {directory.name}")
            with new_directory(directory) as part:
                report = fit(
                    self.base,
                    memory,
                    replace(wanted.settings, length=False, calibrate=False),  # engines name theirs
                    self.corpora.fitting_pairs(*wanted.dev),
                    caches=self.cache / "lookups" / digest(spec.identity),
                    directory=part,
                )
                say(f"  dev nats/token: base {report.dev.base:.3f}, kster {report.dev.kster:.3f}")
                write_json(self.out / "fits" / self.direction / f"{directory.name}.json", report.to_json())

        self.once(directory, make)
        return directory

    def tuning(self, spec: MemorySpec, ks: tuple[int, ...], dev: Sequence[Slice]) -> list[Trial]:
        """kNN-MT as published, on a grid: every trial with its likelihood on `dev`."""
        identity = {"memory": spec.identity, "ks": ks, "dev": [str(slice) for slice in dev]}
        name = f"{spec.name}-{digest([identity, self.base.fingerprint])}.json"
        path = self.out / "tunings" / self.direction / name

        def make() -> None:
            memory, pairs = self.memory(spec), self.corpora.fitting_pairs(*dev)
            say(f"sweeping kNN-MT's grid on {spec.name}")
            report = tune(self.base, memory, pairs, ks=ks, exact_match=None, save=False)
            write_json(path, [[t.k, t.bandwidth, t.mixing_weight, t.nll] for t in report.trials])

        self.once(path, make)
        return [Trial(*row) for row in read_json(path)]

    @cached_property
    def _carried(self) -> str:
        """A name for the smoother that the base model carries, or else the universal one, by its content."""
        settings = unfitted_smoother(self.base) / SETTINGS_FILE
        # The settings name the weights by their content.
        return f"carried {digest(settings.read_text(encoding='utf-8'))}"

    def _rival(self, wanted: RivalFit) -> Rival:
        """Adaptive or Robust kNN-MT, learned if need be."""
        path = self.cache / "rivals" / f"{wanted.name}.safetensors"
        rival = rival_of(wanted, self.base)

        def make() -> None:
            say(f"learning {wanted.name}")
            pairs = self.corpora.fitting_pairs(*wanted.dev)
            learn(rival, look_up(rival, self.base, self.memory(wanted.memory), pairs), wanted.steps)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, save(rival.state_dict()))

        self.once(path, make)
        rival.load_state_dict(load_file(path))
        return rival.eval()

    def smoother(self, engine: Engine) -> Smoother | Rival:
        """Ready for use on the model's device."""
        wanted = engine.smoother
        assert wanted is not None
        if isinstance(wanted, RivalFit):
            return self._rival(wanted)
        if isinstance(wanted, SentenceSearch):
            return DistanceAwareKnn(wanted.k, wanted.temperature)
        if isinstance(wanted, SmootherSettings):
            return Smoother(wanted).eval().to(self.base.device)
        directory = self.fit(wanted) if isinstance(wanted, Fit) else unfitted_smoother(self.base)
        return Smoother.load(directory, dimension=self.base.dimension).to(self.base.device)

    # Translations ------------------------------------------------------------------------------------

    def translator(self, engine: Engine) -> Translator:
        """A translator with the engine's model; its memory is named in each call.

        Test lines stay whole, as the paper has them; cut into sentences they would be translated better, by
        all systems.
        """
        if engine.model is None:
            return Translator(self.base, split_sentences=False, keep_codes=False)
        if self._trained is None or self._trained[0] != engine.model:
            model = BaseModel.load(self._train(engine.model), device=self.device)
            self._trained = (engine.model, model)
        return Translator(self._trained[1], split_sentences=False, keep_codes=False)

    def _train(self, wanted: Training) -> Path:
        """The directory of the trained model."""
        output = self.cache / "models" / wanted.name

        def make() -> None:
            say(f"training on {wanted.memory.name}, {wanted.epochs} epochs")
            if not train_baseline(wanted, self.base, self.corpora, self.cache, output, self.clock.left):
                raise OutOfTime
            shutil.rmtree(output / "checkpoints", ignore_errors=True)  # several times the model's size

        self.once(output / "model", make)
        return output / "model"

    def translate(self, engine: Engine, test: Slice, *, wait: bool = True) -> Path:
        """The file with the translations of a test set; not yet there where another process is at it."""
        settings = {"engine": self.identity(engine), "test": str(test), **self.base_identity}
        path = self.out / "translations" / self.direction / f"{digest(settings)}.json.gz"

        def make() -> None:
            self.make_ready(engine)
            began = time.monotonic()
            sources = [source for source, _ in self.corpora.pairs(test)]
            lines = self.translating(engine)(sources)
            seconds = round(time.monotonic() - began, 2)
            say(f"translated {test} in {seconds} s: {engine}")
            write_json(path, {**settings, "seconds": seconds, "lines": lines})

        self.once(path, make, wait=wait)
        return path

    def make_ready(self, engine: Engine) -> None:
        """What the engine needs, so that the time it takes to make is not counted as the translation's.

        The memory comes last: a fit opens its own.
        """
        if engine.model is not None:
            self.translator(engine)
        if isinstance(engine.smoother, Fit | RivalFit):
            self.smoother(engine)
        if engine.memory is not None:
            self._memory_of(engine)

    def measured(self, kind: str, identity: Any, measure: Callable[[], Any]) -> Any:
        """Any other result that JSON can hold, made once and kept among the small results."""
        settings = {"identity": identity, **self.base_identity}
        path = self.out / "statistics" / self.direction / f"{kind}-{digest(settings)}.json.gz"

        def make() -> None:
            say(f"measuring {kind}")
            write_json(path, measure())

        self.once(path, make)
        return read_json(path)

    def translating(self, engine: Engine) -> Callable[[list[str]], list[str]]:
        """The engine, ready to translate: its memory open, its smoother on the device."""
        options = self.options(engine) | {"length_penalty": engine.length_penalty}
        translate = self.translator(engine).translate
        return lambda sources: [str(text) for text in translate(sources, **options)]

    def options(self, engine: Engine) -> dict[str, Any]:
        """What to tell a translator, so that it translates or scores as the engine does."""
        if engine.memory is None or engine.smoother is None:
            return {"method": "base"}
        smoother = self.smoother(engine)  # first: a fit opens a memory of its own
        return {"memory": self._memory_of(engine), "smoother": smoother}

    def _memory_of(self, engine: Engine) -> Memory:
        assert engine.memory is not None
        few = engine.smoother.sentences if isinstance(engine.smoother, SentenceSearch) else None
        return self.memory(engine.memory, few)
