"""`kster terms …`: term bases, which say what things must be called in a translation."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kster.cli.options import Json
from kster.cli.output import (
    count,
    emit,
    emit_file,
    emit_json,
    emit_json_list,
    emit_result,
    emit_row,
    flush,
    note,
    note_rejections,
    one_line,
)
from kster.errors import KsterError

if TYPE_CHECKING:
    from kster.terms import Term, TermBase, TermImport

app = typer.Typer(help="Make, fill and look after term bases: what things must be called in a translation.")

Base = Annotated[Path, typer.Argument(metavar="BASE", help="The term base, a file.")]
Format = Annotated[
    str | None, typer.Option(metavar="FORMAT", help="tbx, tsv or csv.", show_default="by the file's name")
]


@app.command()
def create(
    base: Base,
    source_lang: Annotated[str, typer.Option(metavar="CODE", help="Source language.")],
    target_lang: Annotated[str, typer.Option(metavar="CODE", help="Target language.")],
) -> None:
    """Make an empty term base for a pair of languages."""
    from kster.terms import TermBase

    TermBase.create(base, source_lang, target_lang).close()
    emit(f"{base}: an empty term base ({source_lang} → {target_lang})")


@app.command()
def add(
    base: Base,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The term in the source language.")],
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="TARGET", help="Its translations, the preferred one first."),
    ] = None,
    part_of_speech: Annotated[
        str | None,
        typer.Option("--pos", metavar="POS", help="noun, verb, adjective, adverb, proper noun or other."),
    ] = None,
    case: Annotated[
        Literal["any", "exact"], typer.Option(help="Whether upper and lower case must match.")
    ] = "any",
    note_text: Annotated[str, typer.Option("--note", metavar="TEXT", help="A note for people.")] = "",
    do_not_translate: Annotated[
        bool, typer.Option("--do-not-translate", help="Keep it as it is; TARGET is not needed.")
    ] = False,
    inside_words: Annotated[
        bool, typer.Option("--inside-words", help="Also find it inside longer words.")
    ] = False,
    gender: Annotated[
        str | None,
        typer.Option(metavar="GENDER", help="Of a German target whose ending does not tell: m, f or n."),
    ] = None,
    json: Json = False,
) -> None:
    """Add a term, or replace the one with the same source and part of speech."""
    from kster.terms import term

    new = term(
        source,
        targets or [],
        part_of_speech=part_of_speech,
        case=case,
        note=note_text,
        translate=not do_not_translate,
        inside_words=inside_words,
        gender=gender,
    )
    with _open(base) as opened:
        added = opened.add(new)
    emit_result(added, f"term {added.id}: {_shown(added)}", json=json)


@app.command()
def remove(
    base: Base,
    ids: Annotated[list[int] | None, typer.Argument(metavar="ID", help="Terms to remove.")] = None,
    source: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Instead of ids: the terms of exactly this source.")
    ] = None,
) -> None:
    """Remove terms, by id or by their source."""
    if bool(ids) == (source is not None):
        raise KsterError("name what to remove: either ids, or --source; nothing was removed")
    with _open(base) as opened:
        removed = opened.remove(ids) if ids else opened.remove_source(source or "")
    if removed == 0:
        raise KsterError(f"{base}: no term has the source {source!r}; nothing was removed")
    emit(f"removed {count(removed, 'term')}")


@app.command("list")
def list_terms(base: Base, json: Json = False) -> None:
    """List terms in the order they were added: id, source, targets."""
    with _open(base) as opened:
        terms = opened.terms()
    if json:
        emit_json_list(terms)
        return
    for one in terms:
        fields = [str(one.id), one_line(one.source), ", ".join(map(one_line, one.targets))]
        emit_row(fields, f"{one.id:>6}  {_shown(one)}")


@app.command("import")
def import_files(
    base: Base,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help=".tbx .tsv .csv, also with .gz or .xz.")
    ],
    format: Format = None,
    json: Json = False,
) -> None:
    """Add the terms of files: each file whole or not at all, but without its unusable rows or entries.

    In a TSV or CSV file two columns are enough: source and target. Several rows with one source give its
    accepted targets, the preferred one first.
    """
    finished: list[dict[str, Any]] = []
    with _open(base) as opened:
        try:
            for file in files:
                report = _import(opened, file, format)
                finished.append({"file": str(file), **dataclasses.asdict(report)})
                if not json:
                    _show_import(file, report)
        finally:
            if json and finished:
                emit_json(finished)
    counts = ("added", "replaced", "unchanged")
    if useless := [own["file"] for own in finished if own["rejected"] and not any(map(own.get, counts))]:
        raise KsterError(f"{', '.join(useless)}: every term was rejected; nothing of it was imported")


def _import(base: TermBase, file: Path, format: str | None) -> TermImport:
    try:
        return base.import_file(file, format=format)
    except KsterError as error:
        raise KsterError(f"{error}; nothing of this file was imported") from error


def _show_import(file: Path, report: TermImport) -> None:
    emit(
        f"{file}: {report.added:,} added, {report.replaced:,} replaced, {report.unchanged:,} there already, "
        f"{len(report.rejected):,} rejected"
    )
    flush()
    note_rejections(report.rejected)


@app.command()
def export(
    base: Base,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="The file to write.", show_default="standard output, TSV"),
    ] = None,
    format: Format = None,
) -> None:
    """Write all terms to a TBX, TSV or CSV file, or to standard output."""
    with _open(base) as opened:
        if file is not None:
            note(f"{file}: {count(opened.export_file(file, format=format), 'term')}")
            return
        emit_file(lambda place: opened.export_file(place, format=format or "tsv"))


@app.command()
def check(
    base: Base,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="Translations to check: .tmx .xliff .po .tsv .csv, …; none: the terms themselves.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Say where translations have not kept the terms, or which terms contradict each other; then status 1."""
    from kster.terms.checking import contradictions

    with _open(base) as opened:
        problems = [problem for file in files or [] for problem in _lost_terms(opened, file)]
        if not files:
            problems = contradictions(opened.terms())
    said = "\n".join(_problem(problem) for problem in problems) or f"{base}: no problems found"
    emit_result({"ok": not problems, "problems": problems}, said, json=json)
    if problems:
        raise typer.Exit(1)


def _lost_terms(base: TermBase, file: Path) -> Iterator[dict[str, Any]]:
    from kster.formats import Pair, read_pairs
    from kster.terms.checking import lost_terms

    read = read_pairs(file, base.source_lang, base.target_lang)
    pairs = (pair for pair in read if isinstance(pair, Pair))
    for problem in lost_terms(base.terms(), pairs, base.source_lang, base.target_lang):
        yield {"file": str(file), **problem}


def _problem(problem: dict[str, Any]) -> str:
    targets = ", ".join(problem["targets"])
    if "ids" in problem:
        return f"terms {problem['ids'][0]} and {problem['ids'][1]}: {problem['term']} → {targets}"
    line = f", line {problem['line']}" if problem["line"] else ""
    return f"{problem['file']}{line}: {problem['term']} → {targets} is not in: {one_line(problem['target'])}"


def _open(base: Path) -> TermBase:
    from kster.terms import TermBase

    return TermBase.open(base)


def _shown(one: Term) -> str:
    return f"{one.source} → {', '.join(one.targets) if one.translate else '(not translated)'}"
