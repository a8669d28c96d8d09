"""`kster memory approve`, `reject` and `history`: which segments teach, and who decided it."""

from __future__ import annotations

import dataclasses
import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from kster.cli.loading import open_memory
from kster.cli.options import Directory, Json
from kster.cli.output import emit, emit_json, on_terminal, one_line

if TYPE_CHECKING:
    from kster.memory import Event

Ids = Annotated[list[int], typer.Argument(metavar="ID", help="Segments.", show_default=False)]


def approve(directory: Directory, ids: Ids, json: Json = False) -> None:
    """Let segments teach: drafts, rejected ones, and older ones that others took the place of.

    An approved segment takes the place of others with the same source and context.
    """
    _set_status(directory, ids, "approved", json)


def reject(directory: Directory, ids: Ids, json: Json = False) -> None:
    """Keep segments, but learn nothing from them; `approve` brings them back."""
    _set_status(directory, ids, "rejected", json)


def history(
    directory: Directory,
    id: Annotated[
        int | None, typer.Argument(metavar="ID", help="A segment.", show_default="the whole memory")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, of the whole memory.")] = 50,
    json: Json = False,
) -> None:
    """Say what happened to a segment and its other versions, or lately to a memory: when, who, what."""
    with open_memory(directory) as memory:
        events = memory.history(id, limit=limit)
    if json:
        emit_json([dataclasses.asdict(event) for event in events])
        return
    for event in events:
        emit(_line(event))


def user() -> str | None:
    """The author of what is done on the command line."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as in a container
        return None


def _set_status(directory: Directory, ids: list[int], status: str, json: bool) -> None:
    with open_memory(directory) as memory:
        segments = memory.set_status(ids, status, author=user())
    if json:
        emit_json([dataclasses.asdict(segment) for segment in segments])
        return
    for segment in segments:
        emit(f"segment {segment.id}: {status}: {one_line(segment.source)} → {one_line(segment.target)}")


def _line(event: Event) -> str:
    what = event.action if event.other is None else f"{event.action} by {event.other}"
    texts = [one_line(text) for text in (event.source, event.target) if text is not None]
    if on_terminal():
        return f"{event.time}  {event.author or '?':<12} {event.segment:>6} {what:<18} {' → '.join(texts)}"
    return "\t".join([event.time, event.author or "", str(event.segment), what, *texts])
