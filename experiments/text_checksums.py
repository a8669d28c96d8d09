"""One directory of results, one text: a stage is named by the lines it reads, not by what stands in them.

So `--out` and `--cache` each keep, in `text.json`, checksums of the slices that were read, and a run with
other text is refused before it would find stages of the text of before. They are checksums of lines, not of
files: packed text is the same text.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from experiments.data import LANGUAGES, Corpora, Slice
from experiments.stages import locked, read_json, write_json
from kster.errors import KsterError

FILE = "text.json"
LENGTH = 16  # hexadecimal digits

Checksums = dict[str, str]  # slice → checksum of its pairs


def remember_text(corpora: Corpora, slices: Iterable[Slice], out: Path, cache: Path) -> None:
    """Refuse text other than what was read for these directories before, and note what is new to them."""
    with locked(cache / "locks" / "text"):
        found = _compare(corpora, slices, {"--out": out, "--cache": cache})
        for directory in (out, cache):
            before = _read(directory)
            if before | found != before:
                write_json(directory / FILE, before | found)


def require_same_text(corpora: Corpora, slices: Iterable[Slice], out: Path) -> None:
    """Refuse text other than what the results in `out` were made with, as far as that is known."""
    _compare(corpora, slices, {"--out": out})


def _read(directory: Path) -> Checksums:
    path = directory / FILE
    known: Checksums = read_json(path) if path.is_file() else {}
    return known


def _compare(corpora: Corpora, slices: Iterable[Slice], directories: dict[str, Path]) -> Checksums:
    """The checksums of the slices. directories: by the option that names each."""
    english_german = Corpora(corpora.root, LANGUAGES, made=corpora.made)  # the same in both directions
    known = {option: _read(directory) for option, directory in directories.items()}
    found: Checksums = {}
    for slice in sorted(slices, key=str):
        content = "".join(f"{english}\n{german}\n" for english, german in english_german.pairs(slice))
        found[str(slice)] = sha256(content.encode()).hexdigest()[:LENGTH]
        for option, directory in directories.items():
            if known[option].get(str(slice), found[str(slice)]) != found[str(slice)]:
                raise KsterError(
                    f"{slice}: not the text that {directory} was made with ({FILE} there has its checksums). "
                    f"Give the text of before, or another {option}, so that one report has one text"
                )
    return found
