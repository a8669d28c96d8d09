"""The prepared directory: tokens of all sentences end to end, and where each sentence begins."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kster.errors import KsterError
from kster.training.corpus import read_lines
from kster.training.vocabulary import FILES, Vocabulary

FORMAT = 1
MANIFEST = "manifest.json"
SIDES = ("source", "target")
_FILES = (
    *(
        f"{split}.{side}.{part}.npy"
        for split in ("train", "dev")
        for side in SIDES
        for part in ("tokens", "offsets")
    ),
    *(f"dev.{side}.txt" for side in SIDES),
    *(f"tokenizer/{name}" for name in FILES),
)


@dataclass
class Side:
    """One language of a split: sentence i is tokens[offsets[i]:offsets[i + 1]], end of sentence included."""

    tokens: np.ndarray  # (total,) uint16
    offsets: np.ndarray  # (n + 1,) int32 or int64

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)


@dataclass
class PreparedData:
    """What `prepare` wrote. Sides are in the order (source_lang, target_lang) of the settings."""

    directory: Path
    manifest: dict[str, Any]

    @classmethod
    def open(cls, directory: Path) -> PreparedData:
        try:
            manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise KsterError(f"{directory} holds no prepared data: {error}") from None
        found = manifest.get("format") if isinstance(manifest, dict) else None
        if found != FORMAT:
            raise KsterError(
                f"{directory} holds prepared data of format {found}, this version reads "
                f"{FORMAT}: prepare them again into another directory"
            )
        for name in _FILES:
            if not (directory / name).is_file():
                raise KsterError(
                    f"{directory / name} is missing: delete {directory} and prepare the data again"
                )
        return cls(directory, manifest)

    def split(self, name: str, *, swap: bool = False) -> tuple[Side, Side]:
        """(translated from, translated into) of "train" or "dev", memory-mapped."""
        sides = [
            Side(self._array(f"{name}.{side}.tokens.npy"), self._array(f"{name}.{side}.offsets.npy"))
            for side in SIDES
        ]
        return (sides[1], sides[0]) if swap else (sides[0], sides[1])

    def _array(self, name: str) -> np.ndarray:
        path = self.directory / name
        try:
            return np.load(path, mmap_mode="r")
        except (OSError, ValueError, EOFError) as error:
            raise KsterError(
                f"{path} is missing or damaged ({error}): delete {self.directory} and prepare the data again"
            ) from None

    def dev_text(self, *, swap: bool = False) -> tuple[list[str], list[str]]:
        pairs, texts = self.manifest["dev"]["pairs"], []
        for side in SIDES:
            path = self.directory / f"dev.{side}.txt"
            texts.append(list(read_lines(path)))
            if len(texts[-1]) != pairs:
                raise KsterError(
                    f"{path} has {len(texts[-1]):,} lines for {pairs:,} pairs: "
                    f"delete {self.directory} and prepare the data again"
                )
        return (texts[1], texts[0]) if swap else (texts[0], texts[1])

    def vocabulary(self) -> Vocabulary:
        return Vocabulary.load(self.directory / "tokenizer")

    @property
    def corpus_sizes(self) -> list[int]:
        """Training pairs of each corpus; they lie one after the other in the arrays."""
        return [int(corpus["pairs"]) for corpus in self.manifest["corpora"]]
