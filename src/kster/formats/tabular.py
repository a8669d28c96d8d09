"""TSV and CSV: one pair a row.

A first row that names the columns is a header: two different cells must be `source` and `target`, or
codes of the wanted languages; a column `id` is then taken along and others are ignored. Without a header
a row is source and target, no more and no less.

TSV is split at tabs and nothing else: quotes and backslashes are text, as corpora on the web have it. It
cannot hold a tab or a line break, which its writer turns into spaces. CSV follows RFC 4180 and can.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

from kster.errors import FormatError
from kster.formats.encoding import MAX_LINE, text_lines
from kster.formats.language_picker import best_two
from kster.formats.pair import Pair, Rejection, UnusableUnit
from kster.formats.text import check_pair, one_line, readable_id
from kster.text.languages import looks_like_code, match_rank

DELIMITERS = ",;"  # of CSV; spreadsheets write semicolons where a comma is in numbers
LOOKED_AT = 20  # lines, to tell which of them it is

Row = tuple[int, Sequence[str] | UnusableUnit]  # line number; cells, or why there are none


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where to find what in a row of `count` cells."""

    source: int = 0
    target: int = 1
    id: int | None = None
    count: int = 2


def read_tsv(
    path: Path, source_lang: str | None, target_lang: str | None, tags: str
) -> Iterator[Pair | Rejection]:
    """The pairs of a tab-separated file. `tags` is ignored: what looks like markup is text."""
    return _read(path, tsv_rows(path), source_lang, target_lang)


def read_csv(
    path: Path, source_lang: str | None, target_lang: str | None, tags: str
) -> Iterator[Pair | Rejection]:
    """The pairs of a comma-separated (or, as spreadsheets often write it, semicolon-separated) file."""
    return _read(path, csv_rows(path), source_lang, target_lang)


def _read(
    path: Path, rows: Iterable[Row], source_lang: str | None, target_lang: str | None
) -> Iterator[Pair | Rejection]:
    columns = None
    for line, cells in rows:
        id = None
        try:
            if isinstance(cells, UnusableUnit):
                raise cells
            if columns is None:
                header = _header(path, cells, source_lang, target_lang)
                columns = header or _Columns()
                if header:
                    continue
            if len(cells) != columns.count:
                raise UnusableUnit(f"{len(cells)} columns where {columns.count} were expected")
            id = (cells[columns.id] or None) if columns.id is not None else None
            yield check_pair(cells[columns.source], cells[columns.target], id, line)
        except UnusableUnit as reason:
            yield Rejection(str(path), line, readable_id(id), str(reason))


def _header(
    path: Path, cells: Sequence[str], source_lang: str | None, target_lang: str | None
) -> _Columns | None:
    names = [cell.strip() for cell in cells]
    has_ids = "id" in map(str.lower, names)  # also Indonesian, but then it is a wanted language
    chosen = best_two(
        [_rank(name, ("source", "src"), source_lang, has_ids) for name in names],
        [_rank(name, ("target", "tgt"), target_lang, has_ids) for name in names],
    )
    if chosen:
        id = next((i for i, name in enumerate(names) if name.lower() == "id" and i not in chosen), None)
        return _Columns(*chosen, id=id, count=len(cells))
    languages = [name for name in names if name.lower() != "id"]
    if has_ids and all(looks_like_code(name) for name in languages):
        raise FormatError(
            f"{path}, line 1: the header has no columns for {source_lang} and {target_lang}. "
            f"Languages found: {', '.join(languages)}"
        )
    return None


def _rank(name: str, words: Sequence[str], language: str | None, has_ids: bool) -> int:
    """How well a column's name says that it is the wanted one. If no language is wanted, any will do in a
    row that is a header beyond doubt."""
    if name.lower() in words:
        return 3
    if not looks_like_code(name):
        return 0
    if language is None:
        return int(has_ids and name.lower() != "id")
    return match_rank(language, name)


def tsv_rows(path: Path) -> Iterator[Row]:
    """Rows with their line numbers."""
    for number, line in enumerate(text_lines(path), 1):
        if line is None:
            yield number, UnusableUnit(f"the line has more than {MAX_LINE:,} characters")
        elif not line:
            yield number, UnusableUnit("empty line")
        else:
            yield number, line.split("\t")


def csv_rows(path: Path) -> Iterator[Row]:
    """Rows with the line each begins on. A fault within one line spoils that row; a quote that swallows
    line after line leaves no way to tell rows from text, and spoils the file."""
    too_long = "x" * (csv.field_size_limit() + 1)  # stands for a line that is: csv refuses it as such
    lines = (too_long if line is None else line for line in text_lines(path, keep_ends=True))
    first = list(islice(lines, LOOKED_AT))
    reader = csv.reader(chain(first, lines), delimiter=_delimiter(first), strict=True)
    while True:
        begin = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if reader.line_num > begin or "end of data" in str(error):
                raise FormatError(
                    f"{path}, line {begin}: a quoted field is never closed, or far too long ({error})"
                ) from error
            yield begin, UnusableUnit(f"not valid CSV ({error})")
        else:
            yield begin, cells or UnusableUnit("empty line")


def _delimiter(lines: Sequence[str]) -> str:
    """The one that divides the first of these rows, and most of the others into as many cells; of equally
    good ones that which makes two cells, then the comma."""

    def fitness(delimiter: str) -> tuple[float, bool]:
        rows = list(_lengths(lines, delimiter))
        first = rows[0] if rows else 0
        if first < 2:
            return -1.0, False
        return rows.count(first) / len(rows), first == 2

    return max(DELIMITERS, key=fitness)


def _lengths(lines: Sequence[str], delimiter: str) -> Iterator[int]:
    """The cells of each row; 0 for what is no row by this delimiter: wrong quotes, or an odd number of them,
    as where a row is cut in a quoted line break."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        begin = reader.line_num
        try:
            cells = len(next(reader))
        except StopIteration:
            return
        except csv.Error as error:
            if "end of data" in str(error):  # perhaps only because there are more lines
                return
            cells = 0
        quotes = sum(line.count('"') for line in lines[begin : reader.line_num])
        whole = quotes % 2 == 0 or begin == 0  # the first one may have inches in it: others are compared
        yield cells if whole else 0


def write_tsv(out: TextIO, pairs: Iterable[Pair], source_lang: str, target_lang: str) -> int:
    """Write rows under a header of language codes and `id`; return the number of pairs."""
    return _write(
        lambda cells: out.write("\t".join(map(one_line, cells)) + "\n"), pairs, source_lang, target_lang
    )


def write_csv(out: TextIO, pairs: Iterable[Pair], source_lang: str, target_lang: str) -> int:
    """Write rows under a header of language codes and `id`; return the number of pairs."""
    return _write(csv.writer(out, lineterminator="\r\n").writerow, pairs, source_lang, target_lang)


def _write(
    write_row: Callable[[Sequence[str]], object], pairs: Iterable[Pair], source_lang: str, target_lang: str
) -> int:
    write_row([source_lang, target_lang, "id"])
    count = 0
    for pair in pairs:
        write_row([pair.source, pair.target, pair.id or ""])
        count += 1
    return count
