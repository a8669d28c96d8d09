"""Files of terms, read and written: TBX, TSV, CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from kster.errors import FormatError
from kster.files import atomic_text
from kster.formats.encoding import text_chunks
from kster.formats.pair import Rejection
from kster.formats.xml import declared_encoding
from kster.terms.tabular import read_rows, write_rows
from kster.terms.tbx import read_tbx, write_tbx
from kster.terms.term import Term

FORMATS = {".tbx": "tbx", ".tsv": "tsv", ".tab": "tsv", ".txt": "tsv", ".csv": "csv"}
"""File name extension → format. Each may be followed by `.gz` or `.xz`."""
ACCEPTED = f"{', '.join(FORMATS)} (also with .gz or .xz)"


def read_terms(
    path: Path, source_lang: str, target_lang: str, *, format: str | None = None
) -> Iterator[Term | Rejection]:
    """The terms of a file and the rejections among them, in its order. Several targets of one source may come
    as several terms."""
    if not path.is_file():
        raise FormatError(f"{path}: {'is a directory, not a file' if path.is_dir() else 'no such file'}")
    format = format or detect_format(path)
    _require_known(format)
    if format == "tbx":
        return read_tbx(path, source_lang, target_lang)
    return read_rows(path, source_lang, target_lang, csv=format == "csv")


def write_terms(
    path: Path, terms: Iterable[Term], source_lang: str, target_lang: str, *, format: str | None = None
) -> int:
    """Write terms to a file, which appears whole or not at all; returns how many."""
    format = format or detect_format(path)
    _require_known(format)
    with atomic_text(path) as out:
        if format == "tbx":
            return write_tbx(out, terms, source_lang, target_lang)
        return write_rows(out, terms, source_lang, target_lang, csv=format == "csv")


def detect_format(path: Path) -> str:
    """By the file's name, or for names that say nothing by how its text begins."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".xz")]
    if suffixes and suffixes[-1] in FORMATS:
        return FORMATS[suffixes[-1]]
    if path.is_file() and re.search(r"<(martif|tbx)\b", next(text_chunks(path, declared_encoding), "")):
        return "tbx"
    raise FormatError(f"{path}: cannot tell its format. Accepted: {ACCEPTED}, or name it: tbx, tsv, csv")


def _require_known(format: str) -> None:
    if format not in FORMATS.values():
        raise FormatError(f"unknown format {format!r}; accepted: tbx, tsv, csv")
