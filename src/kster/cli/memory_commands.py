"""`kster memory …`: make a memory, look into it, take care of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kster.cli.import_command import make_keys
from kster.cli.loading import load_model, open_memory, open_with_model
from kster.cli.options import Device, Directory, Json, Model, SourceLang, TargetLang
from kster.cli.output import count, emit_file, emit_result, facts, note, size
from kster.errors import KsterError

if TYPE_CHECKING:
    from kster.memory import MemoryInfo

app = typer.Typer()


@app.command()
def create(
    directory: Directory,
    model: Annotated[
        str, typer.Option(metavar="MODEL", help="A Hugging Face directory or hub id (Marian, M2M100, NLLB).")
    ],
    source_lang: SourceLang = None,
    target_lang: TargetLang = None,
    key_format: Annotated[
        str,
        typer.Option(metavar="FORMAT", help="float16, or int8 for half the disk (keys are rounded more)."),
    ] = "float16",
    json: Json = False,
) -> None:
    """Make an empty memory for a model."""
    from kster.memory import Memory

    loaded = load_model(model, device="cpu", source_lang=source_lang, target_lang=target_lang)
    with Memory.create(directory, loaded, key_format=key_format) as memory:
        made = memory.info()
    emit_result(made, f"{directory}: an empty memory for {made.model} ({_languages(made)})", json=json)


@app.command()
def info(directory: Directory, json: Json = False) -> None:
    """Say how large a memory is, which model it belongs to, and whether it is fitted."""
    with open_memory(directory) as memory:
        found = memory.info()
    shown = {
        "memory": found.directory,
        "model": f"{found.model} ({_languages(found)}, fingerprint {found.fingerprint[:12]})",
        "segments": f"{found.segments:,}{_others(found)}",
        "keys": f"{found.entries:,} of {found.dimension} dimensions{_missing_keys(found)}",
        "on disk": size(found.bytes_on_disk),
        "fitted": _fit_status(found),
        "created": found.created,
    }
    emit_result(found, facts(shown), json=json)


@app.command()
def export(
    directory: Directory,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="The file to write.", show_default="standard output, TSV"),
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
        bool, typer.Option("--drafts", help="Include drafts and rejected pairs, marked as such.")
    ] = False,
) -> None:
    """Write every pair that teaches to a file, or to standard output."""
    with open_memory(directory) as memory:
        if file is not None:
            pairs = memory.export_file(file, format=format, drafts=drafts)
            note(f"{file}: {count(pairs, 'pair')}")
            return
        if format == "moses":
            raise KsterError("moses writes two files; name them: kster memory export DIR FILE --format moses")
        emit_file(lambda place: memory.export_file(place, format=format or "tsv", drafts=drafts))


@app.command()
def verify(directory: Directory, json: Json = False) -> None:
    """Read everything and compare it with its checksums; status 1 when something is wrong."""
    from kster.smoothing import smoother_problems

    with open_memory(directory) as memory:
        problems = memory.verify() + smoother_problems(directory, memory.dimension)
        segments = 0 if problems else memory.segment_count()
    said = "\n".join(problems) or f"{directory}: {count(segments, 'segment')}, all as written"
    emit_result({"ok": not problems, "problems": problems}, said, json=json)
    if problems:
        raise typer.Exit(1)


@app.command()
def backup(
    directory: Directory, file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")]
) -> None:
    """Write a memory to one file, keys and smoother included; a server may write to it meanwhile."""
    with open_memory(directory) as memory:
        memory.back_up(file)
    note(f"{file}: {size(file.stat().st_size)}")


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `backup` wrote.")],
    directory: Directory,
) -> None:
    """Restore a memory from a backup, in a new directory."""
    from kster.memory import Memory

    Memory.restore(file, directory)
    note(f"{directory}: restored")


@app.command()
def keys(directory: Directory, model: Model = None, device: Device = "auto", json: Json = False) -> None:
    """Make all keys that imports left for later. It may be interrupted, and may run beside translations."""
    with open_with_model(directory, model, device) as memory:
        made = make_keys(memory)
    emit_result({"made": made}, f"made the keys of {count(made, 'segment')}", json=json)


@app.command()
def compact(directory: Directory, json: Json = False) -> None:
    """Give back the space that removed segments still take."""
    with open_memory(directory) as memory:
        report = memory.compact()
    dropped = count(report.segments_dropped, "removed segment")
    emit_result(report, f"dropped {dropped}, freed {size(report.bytes_freed)}", json=json)


def _others(found: MemoryInfo) -> str:
    """Segments that teach nothing."""
    names = ("drafts", "rejected", "superseded", "removed")
    counts = [f"{getattr(found, name):,} {name}" for name in names if getattr(found, name)]
    return f" ({', '.join(counts)})" if counts else ""


def _languages(found: MemoryInfo) -> str:
    return f"{found.source_lang or '?'} → {found.target_lang or '?'}"


def _missing_keys(found: MemoryInfo) -> str:
    """How much of the memory has its keys, if not all of it."""
    text = ""
    if found.without_keys:
        done = found.segments - found.without_keys - found.unusable
        text += f", of {done:,} segments; those of {found.without_keys:,} are made when they are needed"
    if found.unusable:
        text += f"; the model can make none for {count(found.unusable, 'segment')}"
    return text


def _fit_status(found: MemoryInfo) -> str:
    if not found.fitted:
        return "no (used with the smoother that its model carries, or the universal one)"
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
    return f"{_ago(since.finished)} on {count(since.segments, 'segment')}{how}{later}"


def _ago(then: str) -> str:
    """then: ISO 8601, with its time zone."""
    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(then)).total_seconds()
    except (ValueError, TypeError):
        return f"at {then}"
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            return f"{count(int(seconds // length), unit)} ago"
    return "just now"
