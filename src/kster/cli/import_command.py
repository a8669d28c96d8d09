"""`kster memory import`: files of example pairs into a memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from kster.cli.lines import binary_kind, require_text
from kster.cli.loading import open_memory, open_with_model
from kster.cli.options import Device, Directory, Json, Model, SourceLang, TargetLang
from kster.cli.output import emit, emit_json, flush, if_interrupted, note, note_rejections
from kster.cli.progress import is_watched, progress_bar
from kster.cli.segment_commands import user
from kster.errors import KsterError

if TYPE_CHECKING:
    from kster.formats import Pair, Rejection
    from kster.memory import ImportReport, Memory

app = typer.Typer()

Tags = Literal["strip", "keep"]


class _Input(NamedTuple):
    """One file, or one pair of files, still to be read."""

    name: str
    read: Callable[[], Iterator[Pair | Rejection]]

    def total(self) -> int | None:
        """How many pairs there are; None if no progress is shown."""
        from kster.formats import Pair

        return sum(isinstance(item, Pair) for item in self.read()) if is_watched() else None


@app.command("import")
def import_files(
    directory: Directory,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help=".tmx .xlf .xliff .sdlxliff .mqxliff .mxliff .po .tsv .csv, also with .gz or .xz.",
        ),
    ] = None,
    source: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Instead of files: one source text per line, with …")
    ] = None,
    target: Annotated[
        Path | None, typer.Option(metavar="FILE", help="… their translations, line by line.")
    ] = None,
    source_lang: SourceLang = None,
    target_lang: TargetLang = None,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT", help="tmx, xliff, po, tsv, csv or moses.", show_default="by the file's name"
        ),
    ] = None,
    tags: Annotated[Tags, typer.Option(help="What to do with inline tags of TMX and XLIFF.")] = "strip",
    approve_drafts: Annotated[
        bool,
        typer.Option("--approve-drafts", help="Also learn from fuzzy, unfinished and machine translations."),
    ] = False,
    keys: Annotated[
        Literal["auto", "now", "later"],
        typer.Option(
            help="When to make keys. now: before the command ends; later: when translations need them, or by "
            "`kster memory keys`; auto: now for up to 2,000 new pairs a file."
        ),
    ] = "auto",
    model: Model = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Add the pairs of files of examples: each file whole or not at all, known pairs skipped.

    Translations use them from then on, whether or not their keys are made.
    Languages are the memory's unless given; `en-GB` in a file serves `en`.
    """
    languages = _languages(directory, source_lang, target_lang)
    inputs = _inputs(files or [], source, target, languages, format, tags)
    finished: list[dict[str, Any]] = []
    with open_with_model(directory, model, device) as memory:
        try:
            for name, report in _import_all(memory, inputs, keys, approve_drafts):
                finished.append({"file": name, **asdict(report)})
                if not json:
                    _show(name, report)
            if keys == "now":
                make_keys(memory)
            elif left := len(memory.ids_without_keys()):
                note(
                    f"{left:,} segments have no keys yet: translations make those they need, "
                    f"`kster memory keys {directory}` makes all"
                )
        finally:
            # Files that went in before one that failed stay in, so their reports are due as well.
            if json and finished:
                emit_json(finished)
    if useless := [report["file"] for report in finished if _is_useless(report)]:
        raise KsterError(f"{', '.join(useless)}: every pair was rejected; nothing of it was imported")


def _is_useless(report: dict[str, Any]) -> bool:
    used = report["added"] or report["duplicates"] or report["approved"]
    return bool(report["rejected"]) and not used


def _languages(
    directory: Path, source_lang: str | None, target_lang: str | None
) -> tuple[str | None, str | None]:
    """The languages to read of a file: those given, which must suit the memory, or else the memory's."""
    from kster.text.languages import match_rank

    with open_memory(directory) as memory:
        own = memory.description
    given = (("--source-lang", source_lang, own.source_lang), ("--target-lang", target_lang, own.target_lang))
    for option, language, known in given:
        if language and known and not match_rank(_without_region(known), _without_region(language)):
            raise KsterError(
                f"{option} {language}: the examples of {directory} are {own.source_lang or '?'} → "
                f"{own.target_lang or '?'}; nothing was imported"
            )
    return source_lang or own.source_lang, target_lang or own.target_lang


def _without_region(code: str) -> str:
    """`pt-BR` becomes `pt`: naming another region asks for its examples."""
    return re.sub(r"[-_]([A-Za-z]{2}|[0-9]{3})(?=[-_]|$)", "", code.strip())


def _show(name: str, report: ImportReport) -> None:
    emit(
        f"{name}: {report.added:,} added{f' ({report.drafts:,} as drafts)' if report.drafts else ''}, "
        f"{report.duplicates:,} there already, {len(report.rejected):,} rejected"
        + (f", {len(report.approved):,} approved" if report.approved else "")
    )
    flush()
    note_rejections(report.rejected)


def _inputs(
    files: list[Path],
    source: Path | None,
    target: Path | None,
    languages: tuple[str | None, str | None],
    format: str | None,
    tags: Tags,
) -> list[_Input]:
    """What to read, checked as far as possible before the first pair goes in."""
    from kster.formats import FORMATS, detect_format, read_moses, read_pairs

    if (source is None) != (target is None):
        raise KsterError("--source and --target belong together; nothing was imported")
    if not files and source is None:
        raise KsterError("no files to import: name some, or give --source FILE --target FILE")
    inputs = []
    for file in files:
        if not file.exists() and not list(file.parent.glob(f"{escape(file.name)}.*")):
            raise KsterError(f"{file}: no such file; nothing was imported")
        if file.is_file() and (binary := binary_kind(file)):
            raise KsterError(
                f"{file}: {binary}, which is not accepted here. Accepted: {', '.join(FORMATS)} (also with "
                ".gz or .xz); nothing was imported"
            )
        read = partial(
            read_pairs, file, *languages, format=format or detect_format(file), tags=tags, drafts=True
        )
        inputs.append(_Input(str(file), read))
    if source is not None and target is not None:
        for file in (source, target):
            if not file.exists():
                raise KsterError(f"{file}: no such file; nothing was imported")
            require_text(file)
        inputs.append(_Input(f"{source}, {target}", partial(read_moses, source, target)))
    return inputs


def make_keys(memory: Memory) -> int:
    """Make the keys that were left for later, with a bar; if interrupted, those made so far are kept."""
    left = len(memory.ids_without_keys())
    with (
        if_interrupted("the keys made so far are kept; the others are made when they are needed"),
        progress_bar("keys", "segments", left) as show,
    ):
        return memory.make_keys(progress=show)


def _import_all(
    memory: Memory, inputs: list[_Input], keys: Literal["auto", "now", "later"], approve_drafts: bool
) -> Iterator[tuple[str, ImportReport]]:
    done: list[str] = []
    for item in inputs:
        before = f" ({', '.join(done)} went in before it)" if done else ""
        kept = f"nothing of {item.name} was imported{before}"
        try:
            with if_interrupted(kept), progress_bar(item.name, "pairs", item.total()) as show:
                report = memory.import_pairs(
                    item.read(),
                    item.name,
                    show,
                    keys="later" if keys == "later" else "auto",
                    author=user(),
                    approve_drafts=approve_drafts,
                )
        except KsterError as error:
            raise KsterError(f"{error}; nothing of this file was imported{before}") from error
        done.append(item.name)
        yield item.name, report
