"""Terms in TSV and CSV: a row is a source and one of its targets, or several with ";" between them, the
preferred one first.

Without a header a row is source and target. A header names them as `source` and `target`, or by the codes of
their languages, and may have the columns `part_of_speech` (or `pos`), `case`, `note`, `translate`,
`inside_words` and `gender`; other columns are ignored.
"""

from __future__ import annotations

import csv as csv_module
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from kster.errors import KsterError
from kster.formats.language_picker import best_two
from kster.formats.pair import Rejection, UnusableUnit
from kster.formats.tabular import csv_rows, tsv_rows
from kster.formats.text import one_line, readable_id
from kster.terms.term import Term, term
from kster.text.languages import bcp47, looks_like_code, match_rank

FURTHER = ("part_of_speech", "case", "note", "translate", "inside_words", "gender")
NO = frozenset({"no", "false", "0", "nein", "n"})
YES = frozenset({"yes", "true", "1", "ja", "y", "x"})


def read_rows(path: Path, source_lang: str, target_lang: str, *, csv: bool) -> Iterator[Term | Rejection]:
    columns: list[str] | None = None
    for line, cells in csv_rows(path) if csv else tsv_rows(path):
        source = None
        try:
            if isinstance(cells, UnusableUnit):
                raise cells
            if columns is None:
                columns = _header(cells, source_lang, target_lang)
                if columns:
                    continue
                columns = ["source", "target"]
            if len(cells) != len(columns):
                raise UnusableUnit(f"{len(cells)} columns where {len(columns)} were expected")
            row = dict(zip(columns, cells, strict=True))
            source = row["source"]
            yield _term(row)
        except (UnusableUnit, KsterError) as reason:
            yield Rejection(str(path), line, readable_id(source), str(reason))


def _header(cells: Sequence[str], source_lang: str, target_lang: str) -> list[str] | None:
    """What each column holds, "" where it is ignored; None if this row is no header."""
    names = [cell.strip().lower().replace(" ", "_") for cell in cells]
    chosen = best_two(
        [_rank(name, ("source", "src", "source_term"), source_lang) for name in names],
        [_rank(name, ("target", "tgt", "target_term", "translation"), target_lang) for name in names],
    )
    if chosen is None:
        return None
    columns = [("part_of_speech" if name == "pos" else name) for name in names]
    columns = [name if name in FURTHER else "" for name in columns]
    columns[chosen[0]], columns[chosen[1]] = "source", "target"
    return columns


def _rank(name: str, words: Sequence[str], language: str) -> int:
    if name in words:
        return 3
    return match_rank(language, name) if looks_like_code(name) else 0


def _term(row: dict[str, str]) -> Term:
    translate = _answer(row, "translate", default=True)
    return term(
        row["source"],
        [target for target in row["target"].split(";") if target.strip()],
        part_of_speech=row.get("part_of_speech"),
        case=row.get("case", "").strip().lower() or "any",
        note=row.get("note", ""),
        translate=translate,
        inside_words=_answer(row, "inside_words", default=False),
        gender=row.get("gender"),
    )


def _answer(row: dict[str, str], column: str, *, default: bool) -> bool:
    text = row.get(column, "").strip().lower()
    if text in YES or text in NO:
        return text in YES
    if text:
        raise UnusableUnit(f"{column} is {text!r}; accepted: yes, no")
    return default


def write_rows(out: TextIO, terms: Iterable[Term], source_lang: str, target_lang: str, *, csv: bool) -> int:
    """A header and a row for every target; returns the number of terms."""
    writer = csv_module.writer(out, lineterminator="\r\n")

    def write(cells: Sequence[str]) -> None:
        if csv:
            writer.writerow(cells)
        else:
            out.write("\t".join(map(one_line, cells)) + "\n")

    write([bcp47(source_lang), bcp47(target_lang), *FURTHER])
    count = 0
    for one in terms:
        rules = (
            one.part_of_speech or "",
            one.case,
            one.note,
            "yes" if one.translate else "no",
            "yes" if one.inside_words else "no",
            one.gender or "",
        )
        for target in one.targets:
            write([one.source, target, *rules])
        count += 1
    return count
