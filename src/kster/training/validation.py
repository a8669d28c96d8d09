"""Values of a configuration that have the right type but make no sense, found before any work is done."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kster.errors import KsterError

if TYPE_CHECKING:
    from kster.training.settings import TrainSettings

MANY = 2**31 - 1

RANGES: dict[str, tuple[float, float]] = {  # both ends included
    "seed": (0, MANY),
    "cleaning.min_characters": (0, MANY),
    "cleaning.max_characters": (1, MANY),
    "cleaning.max_length_ratio": (1, math.inf),
    "cleaning.max_tokens": (2, MANY),  # a word and the end of the sentence
    "cleaning.max_copied_words": (0, MANY),
    "augmentation.share": (0, 1),
    "vocabulary.size": (300, 65535),
    "vocabulary.sample": (2, MANY),
    "network.encoder_layers": (1, 1000),
    "network.decoder_layers": (1, 1000),
    "network.dimension": (2, 1 << 16),
    "network.feed_forward": (1, 1 << 20),
    "network.heads": (1, 1 << 16),
    "network.positions": (2, 1 << 16),
    "training.steps": (1, MANY),
    "training.warmup_steps": (0, MANY),
    "training.weight_decay": (0, MANY),
    "training.clip_norm": (0, MANY),
    "training.chunk_pairs": (1, MANY),
    "report.log_every": (1, MANY),
    "report.dev_every": (1, MANY),
    "report.dev_pairs": (1, MANY),
    "report.bleu_every": (-1, MANY),
    "report.checkpoint_every": (1, MANY),
    "report.checkpoint_seconds": (0, MANY),
    "report.keep_checkpoints": (1, MANY),
    "smoother.steps": (1, MANY),
    "export.num_beams": (1, 256),
    "export.length_penalty": (-10, 10),
}
FRACTIONS = ("label_smoothing", "dropout", "attention_dropout", "average_decay")
HIGHEST_WEIGHT = 1000.0


def require_sense(settings: TrainSettings, file: str) -> None:
    """Raise `KsterError` for the first value that makes no sense: which file, which key, what is accepted."""
    problems = _out_of_range(asdict(settings)) or _contradictions(settings)
    for key, problem in problems.items():
        if problem:
            raise KsterError(f"{file}: {key}: {problem}")


def _out_of_range(values: dict[str, Any]) -> dict[str, str | bool]:
    found: dict[str, str | bool] = {}
    for key, (low, high) in RANGES.items():
        value: Any = values
        for part in key.split("."):
            value = value[part]
        if value is not None and not low <= value <= high:  # nor nan
            least = high >= MANY and not value > high
            accepted = f"at least {low:,}" if least else f"from {low:,} to {high:,}"
            found[key] = f"is {value}; must be {accepted}"
    return found


def _contradictions(settings: TrainSettings) -> dict[str, str | bool]:
    training, network, cleaning = settings.training, settings.network, settings.cleaning
    problems: dict[str, str | bool] = {
        "corpora": (not settings.corpora and "at least one corpus is needed")
        or (not any(corpus.weight for corpus in settings.corpora) and "at least one weight must not be 0"),
        "source_lang": settings.source_lang == settings.target_lang and "must differ from target_lang",
        "vocabulary.reuse": settings.init is not None
        and settings.vocabulary.reuse is not None
        and "`init` brings its own vocabulary; leave this key out",
        "smoother.general": bool(settings.smoother.domains)
        and not settings.smoother.general
        and "needed beside smoother.domains: text that memories should leave alone",
        "vocabulary.transplant": settings.vocabulary.transplant
        and settings.init is None
        and "needs `init`, a model whose embeddings are carried over",
        "training.batch_tokens": training.batch_tokens < cleaning.max_tokens
        and f"must hold the longest sentence (cleaning.max_tokens = {cleaning.max_tokens})",
        "training.betas": (len(training.betas) != 2 and "expects two numbers")
        or (not all(0 <= beta < 1 for beta in training.betas) and "must be in [0, 1)"),
        "training.learning_rate": not 0 < training.learning_rate < math.inf and "must be positive",
    }
    if settings.init is None:
        problems |= {
            "network.heads": network.dimension % network.heads != 0 and "must divide network.dimension",
            "network.dimension": network.dimension % 2 != 0 and "must be even",
            "network.positions": network.positions < cleaning.max_tokens
            and f"must be at least cleaning.max_tokens = {cleaning.max_tokens}",
        }
    for name in FRACTIONS:
        problems[f"training.{name}"] = not 0 <= getattr(training, name) < 1 and "must be in [0, 1)"
    for name in ("source_lang", "target_lang", "prepared", "output"):
        if not getattr(settings, name).strip():
            problems[name] = "must not be empty"
    for i, corpus in enumerate(settings.corpora):
        problems[f"corpora.{i}.keep"] = (
            not 0 < corpus.keep <= 1 and f"is {corpus.keep:g}; must be above 0 and at most 1"
        )
        problems[f"corpora.{i}.weight"] = (
            not 0 <= corpus.weight <= HIGHEST_WEIGHT
            and f"is {corpus.weight:g}; must be from 0 to {HIGHEST_WEIGHT:g}"
        )
    return problems
