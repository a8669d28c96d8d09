"""The corpora of a data directory, `<corpus>/<split>.<language>.xz`, and the slices experiments take."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import itemgetter
from pathlib import Path

from kster.errors import KsterError
from kster.files import atomic_text
from kster.formats import Pair, read_pairs
from kster.model import BaseModel
from kster.training.corpus import read_lines, read_parallel

Pairs = list[tuple[str, str]]

LANGUAGES = ("en", "de")
LONGEST_TO_FIT = 480  # bytes; shorter than any model's limit in tokens, whatever its vocabulary
EXAMPLE = "example"  # the translation memory that ships with the project, as a corpus: train and test
EXAMPLE_DIRECTORY = Path(__file__).parents[1] / "examples"
DISTURBED = "_disturbed"  # ends the name of a corpus whose English side has noise in it
TEST_SPLITS = {"newstest": "newstest2014"}  # any other corpus has a split named "test"


@dataclass(frozen=True, slots=True)
class Slice:
    """Lines of a corpus: `count` pairs from line `first` on, or all that follow; perhaps not every one.

    every: 5 takes the first, sixth, … of the whole corpus, shift: 2 the third, eighth, … instead; `first` and
    `count` are counted among those.
    """

    corpus: str
    split: str
    count: int | None = None
    first: int = 0
    every: int = 1
    shift: int = 0  # less than `every`

    def __str__(self) -> str:
        end = "" if self.count is None else str(self.first + self.count)
        step = "" if self.every == 1 else f", every {self.every}"
        step += f" from {self.shift}" if self.shift else ""
        return f"{self.corpus}/{self.split}[{self.first or ''}:{end}]{step}"

    @property
    def end(self) -> int | None:
        """The line of the corpus after the last that may be needed; None: all are."""
        return None if self.count is None else (self.first + self.count) * self.every

    def at_most(self, count: int | None) -> Slice:
        """The beginning of this slice."""
        if count is None or (self.count is not None and self.count <= count):
            return self
        return replace(self, count=count)

    def sample(self, size: int, available: int, draw: int = 0, draws: int = 1) -> Slice:
        """`size` lines spread evenly over this slice, which has so many and begins with the corpus.

        Each of several draws gets others, as far as there are any.
        """
        if size >= available:
            return self
        every = self.every * (available // size)
        return replace(self, count=size, every=every, shift=self.shift + every * draw // draws)

    @property
    def undisturbed(self) -> Slice:
        """What a disturbed slice was made of; any other is its own."""
        return replace(self, corpus=self.corpus.removesuffix(DISTURBED))

    @property
    def tests(self) -> Slice:
        """The test set of the same corpus."""
        corpus = self.corpus.removesuffix(DISTURBED)
        return Slice(corpus, TEST_SPLITS.get(corpus, "test"))


class Corpora:
    """Line-aligned text in both languages, read in one direction.

    made: where text that experiments make themselves (noise) is kept, if it did not come with the data.
    """

    def __init__(self, root: Path, direction: tuple[str, str], made: Path | None = None) -> None:
        self.root, self.direction = root, direction
        self.made = made or root
        if not root.is_dir():
            raise KsterError(f"{root}: no such data directory; expected <corpus>/<split>.<language>.xz in it")

    def file(self, corpus: str, split: str, language: str) -> Path:
        """The file of one side, compressed or not."""
        name = f"{split}.{language}"
        for root in (self.root, self.made):
            for ending in (".xz", ".gz", ""):
                path = root / corpus / (name + ending)
                if path.is_file():
                    return path
        expected = self.root / corpus / name
        raise KsterError(
            f"{expected}.xz: no such file; nor {expected}.gz, nor {expected}; the experiment needs it"
        )

    def has(self, slice: Slice) -> bool:
        try:
            self.files(slice)
        except KsterError:
            return False
        return True

    def files(self, slice: Slice) -> list[Path]:
        if slice.corpus == EXAMPLE:
            return []  # comes with the project
        return [self.file(slice.corpus, slice.split, language) for language in sorted(LANGUAGES)]

    def pairs(self, *slices: Slice) -> Pairs:
        """All pairs of these slices, in order, in the direction of translation."""
        return [pair for slice in slices for pair in self._read(slice)]

    def learnable_pairs(self, *slices: Slice) -> Pairs:
        """What memories and training get of these slices: no pair that stands word for word in the corpus's
        test set, as 94 of IT's 2,000 test pairs do in its training text."""
        kept: Pairs = []
        for slice in slices:
            judging = set(self._read(slice.tests))
            kept += [pair for pair in self._read(slice) if pair not in judging]
        return kept

    def fitting_pairs(self, *slices: Slice) -> Pairs:
        """The pairs that any model reads whole, for fitting and tuning."""
        return [
            (source, target)
            for source, target in self.pairs(*slices)
            if 0 < len(source.encode()) <= LONGEST_TO_FIT and 0 < len(target.encode()) <= LONGEST_TO_FIT
        ]

    def _read(self, slice: Slice) -> Pairs:
        if slice.corpus == EXAMPLE:
            lines = example_pairs(slice.split, self.direction)
        else:
            source, target = (self.file(slice.corpus, slice.split, language) for language in self.direction)
            lines = list(_lines(source, target, slice.end))
        return lines[slice.shift :: slice.every][slice.first :][: slice.count]


@lru_cache(maxsize=4)
def _lines(source: Path, target: Path, end: int | None) -> tuple[tuple[str, str], ...]:
    if end is None:
        return tuple(read_parallel(source, target))
    # Both sides by themselves: only a whole file can be checked for being line-aligned.
    sides = []
    for path in (source, target):
        lines: list[str] = []
        for line in read_lines(path):
            if len(lines) == end:
                break
            lines.append(line)
        sides.append(lines)
    if len(sides[0]) != len(sides[1]):
        shorter, count = min((source, len(sides[0])), (target, len(sides[1])), key=itemgetter(1))
        raise KsterError(f"{source} and {target} are not line-aligned: {shorter} ends after {count} lines")
    return tuple(zip(*sides, strict=True))


def example_pairs(split: str, direction: tuple[str, str]) -> Pairs:
    if not EXAMPLE_DIRECTORY.is_dir():
        raise KsterError(
            f"{EXAMPLE_DIRECTORY}: no example memory there; it comes with a checkout of the repository"
        )
    if split == "train":
        pairs = read_pairs(EXAMPLE_DIRECTORY / "ombravella.tmx", *direction)
        return [(pair.source, pair.target) for pair in pairs if isinstance(pair, Pair)]
    sides = [read_lines(EXAMPLE_DIRECTORY / f"heldout.{language}") for language in direction]
    return list(zip(*sides, strict=True))


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """A text file, compressed if its name says so; whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_text(path) as file:
        file.writelines(line + "\n" for line in lines)


def pack(corpora: Corpora, slices: Iterable[Slice], destination: Path) -> list[Path]:
    """Copy what the slices need, and no more, to a smaller data directory; returns the files written."""
    ends: dict[tuple[str, str], int | None] = {}
    for slice in slices:
        if slice.corpus == EXAMPLE:
            continue
        key = (slice.corpus, slice.split)
        known = ends.get(key, 0)
        ends[key] = None if slice.end is None or known is None else max(slice.end, known)
    written = []
    for (corpus, split), end in sorted(ends.items()):
        pairs = corpora.pairs(Slice(corpus, split, end))
        for side, language in enumerate(corpora.direction):
            path = destination / corpus / f"{split}.{language}.xz"
            write_lines(path, (pair[side] for pair in pairs))
            written.append(path)
    return written


def languages_of(model: BaseModel) -> tuple[str, str]:
    """The direction a model translates in, as the corpora name it."""
    if model.source_lang is None or model.target_lang is None:
        raise KsterError(
            f"{model.name}: does not say which languages it translates; experiments need to know"
        )
    source, target = (re.split("[_-]", code)[0].lower() for code in (model.source_lang, model.target_lang))
    return source, target
