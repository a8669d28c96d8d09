"""`train`: from a configuration file to a Hugging Face directory, resuming whatever was begun."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor

from kster.training.batching import DeviceCorpus
from kster.training.bleu import dev_bleu, find_sacrebleu
from kster.training.checkpoint import (
    build,
    check_init,
    export_directory,
    languages_of,
    load_init,
    new_config,
    with_vocabulary,
)
from kster.training.distributed import Workers
from kster.training.loop import Position, Trainer, dev_loss, fast_attention, readable
from kster.training.network import Layout, Network, initialise
from kster.training.prepare import prepare, require_files
from kster.training.prepared import PreparedData
from kster.training.progress import Progress
from kster.training.recipe import load_settings
from kster.training.scoring import kept
from kster.training.settings import TrainSettings, expand
from kster.training.state import TrainingState, checkpoints, load_checkpoint
from kster.training.vocabulary import Vocabulary


@dataclass(frozen=True)
class TrainReport:
    """The outcome of a call of `train`."""

    prepared: Path
    model: Path | None  # the exported directory; None when the run is not finished
    step: int
    steps: int
    finished: bool
    dev: dict[str, float]  # "loss" (nats per target token) and, with sacrebleu, "bleu"
    target_tokens: int  # trained on so far, repetitions included
    seconds: float  # of this call
    stopped_by: int | None = None  # the signal that ended it before the last step


def train(
    config_path: str | Path,
    *,
    overrides: Mapping[str, Any] | None = None,
    prepare_only: bool = False,
    max_seconds: float | None = None,
) -> TrainReport:
    """Prepare the data, train, and export the model that `config_path` describes.

    Continues from the newest checkpoint in `output` if there is one. overrides: dotted keys and their
    values, which win over the file. max_seconds: stop with a checkpoint after so long; calling again
    continues, and the model comes out as if nothing had happened. The model is exported to
    `output`/model.
    """
    started = time.monotonic()
    settings = load_settings(config_path, overrides)
    if settings.init is not None:
        check_init(
            expand(settings.init, "init"), settings.cleaning.max_tokens, swap=settings.direction == "swap"
        )
    workers = Workers.start(settings.device)
    if workers.is_first:
        require_files(settings)  # before a log is begun
    progress = Progress(
        settings.output_directory, quiet=not workers.is_first, tensorboard=settings.report.tensorboard
    )
    try:
        if settings.init is not None:
            _check_direction(settings, progress)
        prepared = _prepare(settings, workers, progress)
        if prepare_only:
            return _report(settings, prepared, None, started)
        run = _Run(settings, prepared, workers, progress)
        finished = run.train(started + max_seconds if max_seconds is not None else None)
        return _report(settings, prepared, run.trainer, started, model=run.export() if finished else None)
    finally:
        progress.close()
        workers.stop()


def _check_direction(settings: TrainSettings, progress: Progress) -> None:
    path = expand(settings.init or "", "init")
    own = languages_of(path)
    if own and own != settings.languages:
        wanted = " → ".join(settings.languages)
        progress.say(f"{path} translates {' → '.join(own)}; this run trains it for {wanted}")


def _prepare(settings: TrainSettings, workers: Workers, progress: Progress) -> PreparedData:
    if workers.is_first:
        prepare(settings, progress.say)
    workers.wait()
    return prepare(settings, lambda line: None)


def _report(
    settings: TrainSettings,
    prepared: PreparedData,
    trainer: Trainer | None,
    started: float,
    model: Path | None = None,
) -> TrainReport:
    return TrainReport(
        prepared=prepared.directory,
        model=model,
        step=trainer.state.step if trainer else 0,
        steps=settings.training.steps,
        finished=model is not None,
        dev=dict(trainer.facts.get("dev", {})) if trainer else {},
        target_tokens=trainer.target_tokens if trainer else 0,
        seconds=time.monotonic() - started,
        stopped_by=trainer.stopped_by if trainer else None,
    )


class _Run:
    """The parts of one run, put together."""

    def __init__(
        self, settings: TrainSettings, prepared: PreparedData, workers: Workers, progress: Progress
    ) -> None:
        self.settings, self.prepared, self.workers, self.progress = settings, prepared, workers, progress
        self.swap = settings.direction == "swap"
        self.vocabulary = prepared.vocabulary()
        self.config, initial, self.bias = self._initial_weights()
        self.layout = Layout(self.config)
        device = workers.device
        if initial is None:
            flat = torch.empty(self.layout.size)
            initialise(flat, self.layout, self.config, settings.seed)
        else:
            flat = torch.zeros(self.layout.size)
            self.layout.load(flat, initial)
        dtype = self._precision()
        self.state = TrainingState(self.layout, settings.training, device=device, dtype=dtype)
        self.state.start_from(flat)
        bias = self.bias.to(device, dtype) if self.bias is not None else None
        self.network = Network(self.config, device=device)
        self.dev_text = prepared.dev_text(swap=self.swap)
        self.dev, train = (self._corpus(split) for split in ("dev", "train"))
        readable(self.dev, settings.report.dev_pairs, self.config.max_position_embeddings)  # before training
        repeats = [
            (pairs, corpus.weight)
            for pairs, corpus in zip(prepared.corpus_sizes, settings.corpora, strict=True)
        ]
        facts = {"prepared": prepared.manifest["hash"], "settings": _deciding(settings)}
        self.trainer = Trainer(
            settings,
            self.network,
            self.state,
            bias,
            train,
            repeats,
            kept(settings, prepared.corpus_sizes),
            workers,
            progress,
            dict(facts),
        )
        self.scores: bool | None = None  # not yet known
        self._resume(facts)
        if self._compiles():
            self._compile(train)

    def _initial_weights(
        self,
    ) -> tuple[transformers.MarianConfig, dict[str, Tensor] | None, Tensor | None]:
        if self.settings.init is None:
            return new_config(self.settings.network, self.settings.training, self.vocabulary), None, None
        path = expand(self.settings.init, "init")
        config, state, bias = load_init(path, self.settings.training)
        if self.settings.vocabulary.transplant:
            config, state, bias = with_vocabulary(config, state, bias, Vocabulary.load(path), self.vocabulary)
        return config, state, bias if bias.any() else None

    def _precision(self) -> torch.dtype:
        wanted = self.settings.training.precision
        if wanted == "auto":
            wanted = "bfloat16" if self.workers.device.type == "cuda" else "float32"
        return torch.bfloat16 if wanted == "bfloat16" else torch.float32

    def _compiles(self) -> bool:
        wanted = self.settings.training.compile
        return self.workers.device.type == "cuda" if wanted == "auto" else wanted is True

    def _compile(self, train: DeviceCorpus) -> None:
        """Try compiled layers on real batches; a machine where they do not work trains without them."""
        self.network.compile()
        size = min(len(train), 64)
        try:
            for pairs in (np.arange(size), np.arange(len(train) - size, len(train))):
                with fast_attention(self.workers.device):
                    batch = train.gather(pairs)
                    self.network.states(self.state.weights, batch, training=True).sum().backward()
        except Exception as error:  # compilers fail in many ways, none of them worth a failed run
            self.network.use_eager()
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            self.progress.say(f"torch.compile does not work here, training without it: {reason}")
        self.state.gradient().zero_()

    def _corpus(self, split: str) -> DeviceCorpus:
        return DeviceCorpus(
            self.prepared.split(split, swap=self.swap),
            pad_id=self.config.pad_token_id,
            start_id=self.config.decoder_start_token_id,
            device=self.workers.device,
        )

    def _resume(self, facts: dict[str, Any]) -> None:
        found = checkpoints(self.trainer.checkpoints)
        if not found:
            return
        saved = load_checkpoint(self.state, found[-1], facts)
        self.trainer.position = Position(saved["epoch"], saved["batch"])
        self.trainer.target_tokens = saved["target_tokens"]
        self.trainer.facts["dev"] = saved.get("dev", {})
        self.progress.say(f"continuing from {found[-1]} at step {self.state.step:,}")

    def train(self, deadline: float | None) -> bool:
        """True when the last step is done."""
        settings, counts = self.settings, self.prepared.manifest["train"]
        parameters = sum(weight.size for weight in self.layout.weights)
        self.progress.say(
            f"{' → '.join(settings.languages)}: {parameters:,} parameters, {counts['pairs']:,} pairs, "
            f"{settings.training.steps:,} steps of {settings.training.batch_tokens:,} tokens on "
            f"{self.workers.count} × {self.workers.device.type}"
        )
        finished = self.trainer.run(deadline=deadline, evaluate=self._evaluate)
        if not finished:
            self.progress.say(
                f"stopped at step {self.state.step:,} of {settings.training.steps:,} with a checkpoint; "
                f"the same command continues"
            )
        return finished

    def _evaluate(self) -> dict[str, float]:
        report, last = self.settings.report, self.state.step >= self.settings.training.steps
        values = {
            "loss": dev_loss(
                self.network,
                self.state,
                self.trainer.bias,
                self.dev,
                pairs=report.dev_pairs,
                batch_tokens=self.settings.training.batch_tokens,
            )
        }
        evaluations = self.state.step // report.dev_every  # of the whole run, however often it was resumed
        due = last or (report.bleu_every > 0 and evaluations % report.bleu_every == 0)
        if due and report.bleu_every >= 0 and self._can_score():
            bleu = dev_bleu(
                self._built().to(self.workers.device),
                self.vocabulary,
                *self.dev_text,
                pairs=report.dev_pairs,
                swap=self.swap,
            )
            values["bleu"] = bleu
        return values

    def _can_score(self) -> bool:
        """Whether sacrebleu is installed; says so once if it is not."""
        if self.scores is None:
            self.scores = find_sacrebleu()
            if not self.scores:
                self.progress.say("sacrebleu is not installed: dev loss only, no BLEU")
        return self.scores

    def _built(self) -> transformers.MarianMTModel:
        return build(self.config, self.layout, self.state.average, self.bias, self.settings.export)

    def export(self) -> Path:
        """Write the averaged weights as a Hugging Face directory."""
        directory = self.settings.output_directory / "model"
        if self.workers.is_first:
            export_directory(
                directory,
                self._built(),
                self.vocabulary,
                self.settings.languages,
                self.settings.export,
                swap=self.swap,
            )
            self.progress.say(f"model written to {directory}")
        self.workers.wait()
        return directory


def _deciding(settings: TrainSettings) -> dict[str, Any]:
    """The settings that decide the model; a checkpoint made with others is not continued."""
    training = asdict(settings.training)
    training.pop("compile")
    training["betas"] = list(training["betas"])
    return {
        "training": training,
        "network": asdict(settings.network) if settings.init is None else settings.init,
        "weights": [corpus.weight for corpus in settings.corpora],
        "keep": [corpus.keep for corpus in settings.corpora],
        "direction": settings.direction,
        "seed": settings.seed,
    }
