"""`kster memory …`: make a memory, look into it, take care of it."""

from __future__ import annotations

import dataclasses
import shutil
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kster.cli.import_command import make_keys
from kster.cli.loading import load_model, open_memory, open_with_model
from kster.cli.options import Device, Directory, Json, Model, SourceLang, TargetLang
from kster.cli.output import (
    emit,
    emit_json,
    emit_json_list,
    facts,
    flush,
    note,
    on_terminal,
    one_line,
    size,
)
from kster.cli.status_commands import user
from kster.errors import KsterError

if TYPE_CHECKING:
    from kster.memory import Memory, MemoryInfo, Segment

PAGE = 5_000  # segments read at a time

app = typer.Typer(help="Make, fill and look after memories: the examples a translation learns from.")


@app.command()
def create(
    directory: Directory,
    model: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="A Hugging Face directory or hub id (Marian, M2M100, NLLB).",
            show_default=False,
        ),
    ],
    source_lang: SourceLang = None,
    target_lang: TargetLang = None,
    json: Json = False,
) -> None:
    """Make an empty memory for a model."""
    from kster.memory import Memory

    with Memory.create(directory, load_model(model, "cpu", source_lang, target_lang)) as memory:
        info = memory.info()
    if json:
        emit_json(dataclasses.asdict(info))
    else:
        emit(f"{directory}: an empty memory for {info.model} ({_languages(info)})")


@app.command()
def add(
    directory: Directory,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A text.", show_default=False)],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Its translation.", show_default=False)],
    context: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Where it stands, if it means other things elsewhere."),
    ] = None,
    model: Model = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Add one example; the next translation uses it."""
    with open_with_model(directory, model, device) as memory:
        segment = memory.add(source, target, origin="kster memory add", context=context, author=user())
    if json:
        emit_json(dataclasses.asdict(segment))
    else:
        emit(f"segment {segment.id}: {one_line(segment.source)} → {one_line(segment.target)}")


@app.command()
def remove(
    directory: Directory,
    ids: Annotated[
        list[int] | None, typer.Argument(metavar="ID", help="Segments to remove.", show_default=False)
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Instead of ids: exactly this source …")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="TEXT", help="… with exactly this translation.")
    ] = None,
    json: Json = False,
) -> None:
    """Remove segments for good, by id or by their text."""
    if bool(ids) == (source is not None and target is not None) or (source is None) != (target is None):
        raise KsterError("name what to remove: either ids, or --source with --target; nothing was removed")
    with open_memory(directory) as memory:
        count = (
            memory.remove(ids, author=user())
            if ids
            else memory.remove_pair(source or "", target or "", author=user())
        )
    if count == 0:
        raise KsterError(f"{directory}: no segment has this source and this target; nothing was removed")
    if json:
        emit_json({"removed": count})
    else:
        emit(f"removed {_count(count, 'segment')}")


@app.command("list")
def list_segments(
    directory: Directory,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many.", show_default="all")] = None,
    offset: Annotated[int, typer.Option(min=0, help="Leave out the first so many.")] = 0,
    state: Annotated[
        str,
        typer.Option(
            metavar="STATE",
            help="live (they teach), draft, rejected, superseded (by newer ones), or kept: all of them.",
        ),
    ] = "live",
    json: Json = False,
) -> None:
    """List segments in the order they were added: id, source, target."""
    with open_memory(directory) as memory:
        _emit_segments(_pages(memory, limit, offset, None, state), json)


@app.command()
def search(
    directory: Directory,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Text to look for.", show_default=False)],
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many.", show_default="all")] = None,
    json: Json = False,
) -> None:
    """Find segments whose source or target contains a text, in upper or lower case."""
    with open_memory(directory) as memory:
        _emit_segments(_pages(memory, limit, 0, text), json)


@app.command()
def matches(
    directory: Directory,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A source text.", show_default=False)],
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 5,
    least: Annotated[int, typer.Option(min=0, max=100, help="The lowest percentage shown.")] = 50,
    context: Annotated[str | None, typer.Option(metavar="TEXT", help="Where the text stands.")] = None,
    json: Json = False,
) -> None:
    """Find the segments whose sources are most like a text: how much, id, source, target.

    100 % is equal but for case and white space, 101 % that in the same context; each word that would have to
    be changed counts against it.
    """
    with open_memory(directory) as memory:
        found = memory.matches(text, limit, least=least, context=context)
    if json:
        emit_json([dataclasses.asdict(match) for match in found])
        return
    for match in found:
        segment = match.segment
        texts = one_line(segment.source), one_line(segment.target)
        if on_terminal():
            emit(f"{match.percentage:>3} %  {segment.id:>6}  {' → '.join(texts)}")
        else:
            emit("\t".join([str(match.percentage), str(segment.id), *texts]))


@app.command()
def info(directory: Directory, json: Json = False) -> None:
    """Say how large a memory is, which model it belongs to, and whether it is fitted."""
    with open_memory(directory) as memory:
        found = memory.info()
    if json:
        emit_json(dataclasses.asdict(found))
        return
    emit(
        facts(
            [
                ("memory", found.directory),
                ("model", f"{found.model} ({_languages(found)}, fingerprint {found.fingerprint[:12]})"),
                (
                    "segments",
                    f"{found.segments:,}{_others(found)}",
                ),
                ("keys", f"{found.entries:,} of {found.dimension} dimensions{_missing_keys(found)}"),
                ("on disk", size(found.bytes_on_disk)),
                ("fitted", _fit_status(found)),
                ("created", found.created),
            ]
        )
    )


@app.command()
def export(
    directory: Directory,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Where to.", show_default="standard output, TSV")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="tmx, xliff, xliff2, po, tsv, csv or moses.",
            show_default="by the file's name",
        ),
    ] = None,
    drafts: Annotated[
        bool, typer.Option("--drafts", help="Also drafts and rejected pairs, marked as such.")
    ] = False,
) -> None:
    """Write every pair that teaches to a file, or to standard output."""
    with open_memory(directory) as memory:
        if file is not None:
            count = memory.export_file(file, format=format, drafts=drafts)
            note(f"{file}: {_count(count, 'pair')}")
            return
        if format == "moses":
            raise KsterError("moses writes two files; name them: kster memory export DIR FILE --format moses")
        # Written whole before any of it is shown, as every export is.
        with tempfile.TemporaryDirectory() as folder:
            written = Path(folder) / "export"
            memory.export_file(written, format=format or "tsv", drafts=drafts)
            with written.open(encoding="utf-8", newline="") as text:
                shutil.copyfileobj(text, sys.stdout)
    flush()


@app.command()
def verify(directory: Directory, json: Json = False) -> None:
    """Read everything and compare it with its checksums; status 1 when something is wrong."""
    from kster.smoothing import smoother_problems

    with open_memory(directory) as memory:
        problems = memory.verify() + smoother_problems(directory, memory.dimension)
        count = 0 if problems else memory.segment_count()
    if json:
        emit_json({"ok": not problems, "problems": problems})
    else:
        emit("\n".join(problems) if problems else f"{directory}: {_count(count, 'segment')}, all as written")
    if problems:
        raise typer.Exit(1)


@app.command()
def backup(
    directory: Directory,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to.", show_default=False)],
) -> None:
    """Write a memory to one file, keys and smoother included; a server may write to it meanwhile."""
    with open_memory(directory) as memory:
        memory.back_up(file)
    note(f"{file}: {size(file.stat().st_size)}")


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `backup` wrote.", show_default=False)],
    directory: Directory,
) -> None:
    """Make a memory of a backup, in a new directory."""
    from kster.memory import Memory

    Memory.restore(file, directory)
    note(f"{directory}: restored")


@app.command()
def keys(directory: Directory, model: Model = None, device: Device = "auto", json: Json = False) -> None:
    """Make all keys that an import left for later. It can be interrupted, and go on beside translations."""
    with open_with_model(directory, model, device) as memory:
        made = make_keys(memory)
    if json:
        emit_json({"made": made})
    else:
        emit(f"made the keys of {_count(made, 'segment')}")


@app.command()
def compact(directory: Directory, json: Json = False) -> None:
    """Give back the space that removed segments still take."""
    with open_memory(directory) as memory:
        report = memory.compact()
    if json:
        emit_json(dataclasses.asdict(report))
    else:
        emit(
            f"dropped {_count(report.segments_dropped, 'removed segment')}, freed {size(report.bytes_freed)}"
        )


def _pages(
    memory: Memory, limit: int | None, offset: int, query: str | None, state: str = "live"
) -> Iterator[Segment]:
    end = None if limit is None else offset + limit
    while end is None or offset < end:
        wanted = PAGE if end is None else min(PAGE, end - offset)
        page = memory.segments(limit=wanted, offset=offset, query=query, state=state)
        yield from page
        if len(page) < wanted:
            return
        offset += wanted


def _emit_segments(segments: Iterator[Segment], json: bool) -> None:
    if json:
        emit_json_list(dataclasses.asdict(segment) for segment in segments)
        return
    for segment in segments:
        source, target = one_line(segment.source), one_line(segment.target)
        emit(
            f"{segment.id:>6}  {source} → {target}" if on_terminal() else f"{segment.id}\t{source}\t{target}"
        )


def _others(found: MemoryInfo) -> str:
    """Segments that teach nothing."""
    names = ("drafts", "rejected", "superseded", "removed")
    counts = [f"{getattr(found, name):,} {name}" for name in names if getattr(found, name)]
    return f" ({', '.join(counts)})" if counts else ""


def _languages(found: MemoryInfo) -> str:
    return f"{found.source_lang or '?'} → {found.target_lang or '?'}"


def _missing_keys(found: MemoryInfo) -> str:
    """How much of the memory has its keys, where that is not all of it."""
    text = ""
    if found.without_keys:
        done = found.segments - found.without_keys - found.unusable
        text += f", of {done:,} segments; those of {found.without_keys:,} are made when they are needed"
    if found.unusable:
        text += f"; of {_count(found.unusable, 'segment')} the model can make none"
    return text


def _fit_status(found: MemoryInfo) -> str:
    if not found.fitted:
        return "no (used with its model's default smoother, or safe kNN-MT)"
    kernel = ((found.fit or {}).get("settings") or {}).get("kernel")
    learned = ", learned distance" if (found.fit or {}).get("metric") else ""
    how = f" ({kernel} kernel{learned})" if kernel else ""
    since = found.since_fit
    if since is None:
        return f"yes{how}"
    changes = [
        f"{number:,} {what}"
        for number, what in ((since.added, "added"), (since.removed, "removed"))
        if number
    ]
    later = f"; {' and '.join(changes)} since" if changes else "; unchanged since"
    return f"{_ago(since.finished)} on {_count(since.segments, 'segment')}{how}{later}"


def _ago(then: str) -> str:
    """then: ISO 8601, with its time zone."""
    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(then)).total_seconds()
    except (ValueError, TypeError):
        return f"at {then}"
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            return f"{_count(int(seconds // length), unit)} ago"
    return "just now"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
