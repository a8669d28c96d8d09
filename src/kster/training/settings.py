"""What a training run is told, as dataclasses; `recipe.py` reads them from a YAML file.

`recipes/example.yaml` documents every key. Paths of corpora are relative to `data`, all other paths to
the current directory; `${NAME}` stands for an environment variable.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from kster.errors import SettingsError
from kster.typed_settings import FRACTION, POSITIVE, Range

PRESETS: dict[str, dict[str, int]] = {
    "transformer-base": {"encoder_layers": 6, "decoder_layers": 6},  # the paper's base model
    "small": {"encoder_layers": 6, "decoder_layers": 2},  # most of the quality, a third of the decoding time
}


@dataclass(frozen=True)
class CorpusSettings:
    """One line-aligned parallel text."""

    source: str
    target: str
    name: str | None = None  # used in reports; the source path when absent
    # How often each pair is seen per epoch; 0.5 draws a new half every epoch.
    weight: Annotated[float, Range(0, 1000)] = 1.0
    # The share that is trained on, the best by the scores of `kster.training.scoring`.
    keep: Annotated[float, Range(0, 1, ends="(]")] = 1.0
    reverse: bool = False  # the files are given the other way round

    @property
    def label(self) -> str:
        return self.name or self.source

    @property
    def sides(self) -> tuple[str, str]:
        """The files in the languages (source_lang, target_lang)."""
        return (self.target, self.source) if self.reverse else (self.source, self.target)


@dataclass(frozen=True)
class CleaningSettings:
    """Which training pairs are left out."""

    min_characters: Annotated[int, Range(0)] = 1
    max_characters: Annotated[int, Range(1)] = 1500
    max_length_ratio: Annotated[float, Range(1, math.inf)] = 2.5  # of characters, 15 added to both sides
    max_tokens: Annotated[int, Range(2)] = 200  # after tokenisation, end of sentence included
    # A target equal to its source is kept up to this many words (names, codes).
    max_copied_words: Annotated[int, Range(0)] = 3
    language_identity: bool = True
    same_numbers: bool = False  # both sides have the same digits, in whatever order, and euros or dollars
    same_placeholders: bool = False  # and the same placeholders and tags
    duplicates: bool = True
    held_out: tuple[str, ...] = ()  # text files whose sentences must not be trained on (tests)


@dataclass(frozen=True)
class VocabularySettings:
    """The joint subword vocabulary."""

    size: Annotated[int, Range(300, 65535)] = 16000  # end of sentence, unknown, 256 bytes, padding included
    sample: Annotated[int, Range(2)] = 2_000_000  # lines it is learned from, both languages together
    reuse: str | None = None  # a directory with source.spm, target.spm and vocab.json
    transplant: bool = False  # with `init`: another than its own, to which its embeddings are carried over


@dataclass(frozen=True)
class AugmentationSettings:
    """Pairs made of other pairs, with something in them that must be copied (`augmentation.py`)."""

    share: Annotated[float, Range(0, 1)] = 0.0  # of the pairs of each corpus


@dataclass(frozen=True)
class NetworkSettings:
    """The shape of a network that is trained from scratch; ignored when `init` is given."""

    preset: Literal["transformer-base", "small"] = "transformer-base"
    encoder_layers: Annotated[int | None, Range(1, 1000)] = None  # the preset's when absent
    decoder_layers: Annotated[int | None, Range(1, 1000)] = None
    dimension: Annotated[int, Range(2, 1 << 16)] = 512
    feed_forward: Annotated[int, Range(1, 1 << 20)] = 2048
    heads: Annotated[int, Range(1, 1 << 16)] = 8
    activation: Literal["relu", "swish", "gelu"] = "relu"
    positions: Annotated[int, Range(2, 1 << 16)] = 512  # longest sentence in tokens

    @property
    def depth(self) -> tuple[int, int]:
        preset = PRESETS[self.preset]
        return (
            self.encoder_layers if self.encoder_layers is not None else preset["encoder_layers"],
            self.decoder_layers if self.decoder_layers is not None else preset["decoder_layers"],
        )


@dataclass(frozen=True)
class OptimisationSettings:
    """The training loop."""

    steps: Annotated[int, Range(1)] = 13_000
    batch_tokens: Annotated[int, Range(1)] = 40_000  # padded tokens of the longer side, over all processes
    learning_rate: Annotated[float, POSITIVE] = 1e-3  # at its peak
    warmup_steps: Annotated[int, Range(0)] = 1_500
    decay: Literal["linear", "cosine", "inverse-sqrt"] = "linear"
    betas: tuple[Annotated[float, FRACTION], ...] = (0.9, 0.98)
    weight_decay: Annotated[float, Range(0)] = 0.0
    clip_norm: Annotated[float, Range(0)] = 1.0  # 0 switches clipping off
    label_smoothing: Annotated[float, FRACTION] = 0.1
    dropout: Annotated[float, FRACTION] = 0.1
    attention_dropout: Annotated[float, FRACTION] = 0.0
    average_decay: Annotated[float, FRACTION] = 0.9995  # moving average of the weights; 0 keeps the last ones
    chunk_pairs: Annotated[int, Range(1)] = 2_000_000  # pairs sorted by length together
    precision: Literal["auto", "bfloat16", "float32"] = "auto"  # auto: bfloat16 on a GPU
    compile: bool | Literal["auto"] = False  # torch.compile of the layers; auto: on a GPU


@dataclass(frozen=True)
class ReportSettings:
    """Progress, evaluation and checkpoints."""

    log_every: Annotated[int, Range(1)] = 100
    dev_every: Annotated[int, Range(1)] = 1_000
    dev_pairs: Annotated[int, Range(1)] = 3_000
    bleu_every: Annotated[int, Range(-1)] = 0  # in dev evaluations; 0: only at the end; -1: never
    checkpoint_every: Annotated[int, Range(1)] = 2_000
    checkpoint_seconds: Annotated[float, Range(0)] = 0.0  # additionally every so many seconds; 0: never
    keep_checkpoints: Annotated[int, Range(1)] = 2
    tensorboard: bool = True


@dataclass(frozen=True)
class ExportSettings:
    """The finished Hugging Face directory."""

    dtype: Literal["float16", "bfloat16", "float32"] = "float16"
    num_beams: Annotated[int, Range(1, 256)] = 4
    length_penalty: Annotated[float, Range(-10, 10)] = 0.6


@dataclass(frozen=True)
class DomainSettings:
    """A run of neighbouring lines of a parallel text."""

    source: str
    target: str
    name: str | None = None  # used in reports; the source path when absent
    first: Annotated[int, Range(0)] = 0  # lines before it
    lines: Annotated[int, Range(1)] = 12_000

    @property
    def label(self) -> str:
        return self.name or self.source


@dataclass(frozen=True)
class CarriedSmootherSettings:
    """What the smoother that the model carries is fitted on; best text that is not trained on."""

    domains: tuple[DomainSettings, ...] = ()  # of each one a memory of its own, as a customer has
    general: tuple[DomainSettings, ...] = ()  # text that these memories should leave alone
    steps: Annotated[int, Range(1)] = 3_000


@dataclass(frozen=True)
class TrainSettings:
    """A whole configuration file."""

    source_lang: str
    target_lang: str
    prepared: str
    output: str
    corpora: tuple[CorpusSettings, ...]
    dev: CorpusSettings
    data: str = "."
    direction: Literal["forward", "swap"] = "forward"  # swap: train target_lang → source_lang
    init: str | None = None  # a Hugging Face Marian directory to fine-tune
    seed: Annotated[int, Range(0)] = 1
    device: str = "auto"
    cleaning: CleaningSettings = field(default_factory=CleaningSettings)
    augmentation: AugmentationSettings = field(default_factory=AugmentationSettings)
    vocabulary: VocabularySettings = field(default_factory=VocabularySettings)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    training: OptimisationSettings = field(default_factory=OptimisationSettings)
    report: ReportSettings = field(default_factory=ReportSettings)
    export: ExportSettings = field(default_factory=ExportSettings)
    smoother: CarriedSmootherSettings = field(default_factory=CarriedSmootherSettings)

    @property
    def languages(self) -> tuple[str, str]:
        """(translated from, translated into), after `direction`."""
        pair = (self.source_lang, self.target_lang)
        return pair if self.direction == "forward" else (pair[1], pair[0])

    @property
    def prepared_directory(self) -> Path:
        return expand(self.prepared, "prepared")

    @property
    def output_directory(self) -> Path:
        return expand(self.output, "output")

    @property
    def vocabulary_directory(self) -> Path | None:
        """Where the vocabulary is taken from; None: it is learned. Fine-tuning keeps the model's own, unless
        its embeddings are to be carried over to another."""
        given = self.vocabulary.reuse or (None if self.vocabulary.transplant else self.init)
        return expand(given, "vocabulary.reuse" if self.vocabulary.reuse else "init") if given else None

    def preparation(self) -> dict[str, Any]:
        """The settings that decide what the prepared data look like (`direction` and weights do not)."""
        learned = {"size": self.vocabulary.size, "sample": self.vocabulary.sample}
        return {
            "source_lang": self.source_lang,
            "target_lang": self.target_lang,
            "corpora": [list(corpus.sides) for corpus in self.corpora],
            "dev": list(self.dev.sides),
            "cleaning": json.loads(json.dumps(asdict(self.cleaning))),
            "augmentation": asdict(self.augmentation),
            "vocabulary": vocabulary_identity(self.vocabulary_directory) or learned,
        }

    def preparation_hash(self) -> str:
        return hashlib.sha256(json.dumps(self.preparation(), sort_keys=True).encode()).hexdigest()[:16]

    def corpus_path(self, name: str) -> Path:
        return expand(self.data, "data") / expand(name, "corpora")


def vocabulary_identity(directory: Path | None) -> dict[str, str] | None:
    """The content of a given vocabulary as hashes, so that a copy of it elsewhere is the same one."""
    if directory is None:
        return None
    names = ("source.spm", "target.spm", "vocab.json")
    missing = [name for name in names if not (directory / name).is_file()]
    if missing:
        raise SettingsError(
            f"{directory} is not a Marian vocabulary: {', '.join(missing)} missing "
            f"(needed: {', '.join(names)}); nothing was written"
        )
    return {name: hashlib.sha256((directory / name).read_bytes()).hexdigest() for name in names}


def expand(text: str, key: str) -> Path:
    """`text` as a path, with environment variables and ~ filled in."""
    for match in re.finditer(r"\$\{(\w+)\}", text):
        if match[1] not in os.environ:
            raise SettingsError(
                f"{key}: the environment variable {match[1]} is not set (value: {text!r}); "
                f"set it or pass another value with --set {key}=…"
            )
    return Path(os.path.expandvars(text)).expanduser()
