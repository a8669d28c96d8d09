"""Files of example pairs, read and written: TMX, XLIFF, gettext PO, TSV, CSV, Moses line pairs.

    for item in read_pairs("memory.tmx", "en", "de"):
        match item:
            case Pair(source, target): ...
            case Rejection(): print(item)

Readers stream: memory does not grow with the file. A unit that cannot be used is a `Rejection`, with its
line, its id and a reason. A file that cannot be read to its end raises `KsterError` with the line and the
reason, perhaps after some pairs were given: callers that keep pairs must be able to discard them again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Literal, TextIO

from kster.errors import FormatError, KsterError
from kster.files import atomic_text
from kster.formats.encoding import text_chunks
from kster.formats.moses import read_line_pairs, write_line_pairs
from kster.formats.pair import MAX_CHARS, Pair, Rejection
from kster.formats.po import read_po, write_po
from kster.formats.tabular import read_csv, read_tsv, write_csv, write_tsv
from kster.formats.text import readable_id
from kster.formats.tmx import read_tmx, write_tmx
from kster.formats.xliff import read_xliff, write_xliff, write_xliff2
from kster.formats.xml import declared_encoding
from kster.text.characters import printable

__all__ = [
    "FORMATS",
    "MAX_CHARS",
    "Pair",
    "Rejection",
    "detect_format",
    "read_moses",
    "read_pairs",
    "write_moses",
    "write_pairs",
]

FORMATS = {
    ".tmx": "tmx",
    ".xlf": "xliff",
    ".xliff": "xliff",
    ".sdlxliff": "xliff",
    ".mqxliff": "xliff",
    ".mxliff": "xliff",
    ".po": "po",
    ".pot": "po",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".csv": "csv",
}
"""File name extension → format. Each may be followed by `.gz` or `.xz`."""


_READERS: dict[str, Callable[[Path, str | None, str | None, str], Iterator[Pair | Rejection]]] = {
    "tmx": read_tmx,
    "xliff": read_xliff,
    "xliff2": read_xliff,  # the reader takes any version; the name says which one to write
    "po": read_po,
    "tsv": read_tsv,
    "csv": read_csv,
}
_WRITERS: dict[str, Callable[[TextIO, Iterable[Pair], str, str], int]] = {
    "tmx": write_tmx,
    "xliff": write_xliff,
    "xliff2": write_xliff2,
    "po": write_po,
    "tsv": write_tsv,
    "csv": write_csv,
}


def detect_format(path: str | PathLike[str]) -> str:
    """The format of a file by its name, or for names that say nothing by how its text begins.

    `moses` is the format of a path that is no file itself but the common beginning of two, such as
    `corpus` for `corpus.en` and `corpus.de`.
    """
    path = Path(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".xz"):
        suffixes.pop()
    if suffixes and suffixes[-1] in FORMATS:
        return FORMATS[suffixes[-1]]
    if not path.is_file() and len(list(islice(path.parent.glob(_literal(path.name) + ".*"), 2))) == 2:
        return "moses"
    if path.is_file():
        try:
            begin = next(text_chunks(path, declared_encoding), "")
        except KsterError as error:
            if not isinstance(error.__cause__, UnicodeDecodeError):
                raise
            raise FormatError(
                f"{path}: not a text file of a known format; Word documents and other binary files are not "
                f"accepted here. Accepted: {_accepted()}"
            ) from error
        root = re.search(r"<(?:\w+:)?(tmx|xliff)\b", begin)
        if root:
            return root.group(1)
    raise FormatError(
        f"{path}: cannot tell its format. Accepted: {_accepted()}, or name the "
        f"format: {', '.join(_READERS)}, moses"
    )


def _accepted() -> str:
    return f"{', '.join(FORMATS)} (also with .gz or .xz)"


def _literal(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)


def read_pairs(
    path: str | PathLike[str],
    source_lang: str | None,
    target_lang: str | None,
    *,
    format: str | None = None,
    tags: Literal["strip", "keep"] = "strip",
    drafts: bool = False,
) -> Iterator[Pair | Rejection]:
    """Read the pairs of a file, and the rejections among them, in the order of the file.

    path: the file, perhaps compressed; for `moses` what comes before `.LANG` in the names of both files.
    source_lang, target_lang: matched loosely (`en-GB` serves `en`, the exact code is preferred if a unit
        has both); None lets the file say.
    format: one of `tmx xliff po tsv csv moses`; by default `detect_format` decides.
    tags: whether inline elements of TMX and XLIFF are stripped from the text or kept in it.
    drafts: whether pairs that the file marks as fuzzy, unfinished, machine-made or wrong come as pairs with
        that status; otherwise they are rejections.
    """
    path = Path(path)
    if tags not in ("strip", "keep"):
        raise FormatError(f"tags is {tags!r}; accepted: 'strip', 'keep'")
    format = format or detect_format(path)
    if format == "moses":
        if source_lang is None or target_lang is None:
            raise FormatError(f"{path}: line pairs are found by their languages; name source and target")
        return read_moses(_side(path, source_lang), _side(path, target_lang))
    reader = _READERS.get(format)
    if reader is None:
        raise FormatError(f"unknown format {format!r}; accepted: {', '.join(_READERS)}, moses")
    _require_file(path)
    items = reader(path, source_lang, target_lang, tags)
    return items if drafts else _approved_only(path, items)


def _approved_only(path: Path, items: Iterator[Pair | Rejection]) -> Iterator[Pair | Rejection]:
    for item in items:
        if isinstance(item, Pair) and item.status != "approved":
            reason = item.remark or f"marked as {item.status}"
            item = Rejection(str(path), item.line, readable_id(item.id or item.source), reason)
        yield item


def _side(beginning: Path, language: str) -> Path:
    """The file of one language, which may be there in compressed form only."""
    plain = Path(f"{beginning}.{language}")
    packed = (Path(f"{plain}{suffix}") for suffix in (".gz", ".xz"))
    return plain if plain.exists() else next((path for path in packed if path.exists()), plain)


def read_moses(
    source_path: str | PathLike[str], target_path: str | PathLike[str]
) -> Iterator[Pair | Rejection]:
    """Read line pairs. Files with different numbers of lines raise `KsterError` at the end."""
    source, target = Path(source_path), Path(target_path)
    _require_file(source)
    _require_file(target)
    return read_line_pairs(source, target)


def _require_file(path: Path) -> None:
    if not path.exists():
        raise FormatError(f"{path}: no such file")
    if path.is_dir():
        raise FormatError(f"{path}: is a directory, not a file")


def write_pairs(
    path: str | PathLike[str],
    pairs: Iterable[Pair],
    source_lang: str | None,
    target_lang: str | None,
    *,
    format: str | None = None,
) -> int:
    """Write pairs to a file, which appears whole or not at all; return how many.

    format: one of `tmx xliff xliff2 po tsv csv moses`; by default the name of the file decides (`xliff`
        is version 1.2, `xliff2` version 2.0). A name in `.gz` or `.xz` is compressed.
    source_lang, target_lang: None is written as `x-source` and `x-target`.

    Characters that no format can hold (see `kster.formats.text`) become U+FFFD. A pair with an empty
    side raises `KsterError`, and nothing is written.
    """
    path = Path(path)
    source_lang, target_lang = source_lang or "x-source", target_lang or "x-target"
    format = format or detect_format(path)
    if format == "moses":
        return write_moses(f"{path}.{source_lang}", f"{path}.{target_lang}", pairs)
    writer = _WRITERS.get(format)
    if writer is None:
        raise FormatError(f"unknown format {format!r}; accepted: {', '.join(_WRITERS)}, moses")
    with atomic_text(path) as out:
        return writer(out, _writable(path, pairs), source_lang, target_lang)


def write_moses(
    source_path: str | PathLike[str], target_path: str | PathLike[str], pairs: Iterable[Pair]
) -> int:
    """Write line pairs; both files are complete before either is put in its place."""
    source, target = Path(source_path), Path(target_path)
    with atomic_text(source) as source_out, atomic_text(target) as target_out:
        return write_line_pairs(source_out, target_out, _writable(source, pairs))


def _writable(path: Path, pairs: Iterable[Pair]) -> Iterator[Pair]:
    for number, pair in enumerate(pairs, 1):
        if not pair.source.strip() or not pair.target.strip():
            side = "target" if pair.source.strip() else "source"
            raise FormatError(f"{path}: pair {number:,} has an empty {side}; nothing was written")
        id, context, author = (
            None if text is None else printable(text) for text in (pair.id, pair.context, pair.author)
        )
        yield replace(
            pair,
            source=printable(pair.source),
            target=printable(pair.target),
            id=id,
            context=context,
            author=author,
        )
