"""`kster memory …` for single segments: add, find, judge and remove them."""

from __future__ import annotations

import getpass
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from kster.cli.loading import open_memory, open_with_model
from kster.cli.options import Device, Directory, Json, Limit, Model
from kster.cli.output import count, emit, emit_json, emit_json_list, emit_result, emit_row, note, one_line
from kster.errors import KsterError

if TYPE_CHECKING:
    from kster.memory import Event, Finding, Memory, Segment

app = typer.Typer()

PAGE = 5_000  # segments read at a time

Ids = Annotated[list[int], typer.Argument(metavar="ID", help="Ids of segments.")]


def user() -> str | None:
    """The author of what is done on the command line."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as in a container
        return None


@app.command()
def add(
    directory: Directory,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A text.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Its translation.")],
    context: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Where it is used, if it means something else elsewhere."),
    ] = None,
    model: Model = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Add one example; the next translation uses it."""
    with open_with_model(directory, model, device) as memory:
        segment = memory.add(source, target, origin="kster memory add", context=context, author=user())
    emit_result(segment, f"segment {segment.id}: {_texts(segment)}", json=json)


@app.command()
def remove(
    directory: Directory,
    ids: Annotated[list[int] | None, typer.Argument(metavar="ID", help="Segments to remove.")] = None,
    source: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Instead of ids: exactly this source …")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="TEXT", help="… with exactly this translation.")
    ] = None,
    json: Json = False,
) -> None:
    """Remove segments for good, by id or by their text."""
    by_text = source is not None and target is not None
    if bool(ids) == by_text or (source is None) != (target is None):
        raise KsterError("name what to remove: either ids, or --source with --target; nothing was removed")
    with open_memory(directory) as memory:
        if ids:
            removed = memory.remove(ids, author=user())
        else:
            removed = memory.remove_pair(source or "", target or "", author=user())
    if removed == 0:
        raise KsterError(f"{directory}: no segment has this source and this target; nothing was removed")
    emit_result({"removed": removed}, f"removed {count(removed, 'segment')}", json=json)


@app.command("list")
def list_segments(
    directory: Directory,
    limit: Limit = None,
    offset: Annotated[int, typer.Option(min=0, help="Skip this many first.")] = 0,
    state: Annotated[
        str,
        typer.Option(
            metavar="STATE",
            help="live (those that teach), draft, rejected, superseded (by newer ones), kept (all of these).",
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
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Text to look for.")],
    limit: Limit = None,
    json: Json = False,
) -> None:
    """Find segments whose source or target contains a text, ignoring case."""
    with open_memory(directory) as memory:
        _emit_segments(_pages(memory, limit, 0, text), json)


@app.command()
def matches(
    directory: Directory,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A source text.")],
    limit: Annotated[int, typer.Option(min=1, help="At most this many.")] = 5,
    least: Annotated[int, typer.Option(min=0, max=100, help="The lowest percentage shown.")] = 50,
    context: Annotated[str | None, typer.Option(metavar="TEXT", help="Where the text is used.")] = None,
    json: Json = False,
) -> None:
    """Find the segments whose sources are most like a text: percentage, id, source, target.

    100 % means equal except for case and white space, 101 % also in the same context; each word that would
    have to be changed lowers it.
    """
    with open_memory(directory) as memory:
        found = memory.matches(text, limit, least=least, context=context)
    if json:
        emit_json(found)
        return
    for match in found:
        _emit_segment(match.segment, [str(match.percentage)], f"{match.percentage:>3} %  ")


@app.command()
def check(
    directory: Directory,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="contradictions, duplicates, numbers, codes, empty, copies, language or length; may be "
            "repeated.",
            show_default="all",
        ),
    ] = None,
    reject: Annotated[bool, typer.Option("--reject", help="Reject what is listed.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove what is listed for good.")] = False,
    json: Json = False,
) -> None:
    """List segments that are probably wrong: kind, id, why, source, target.

    Of two contradictory or duplicate segments the older is listed. `kster memory approve` brings rejected
    ones back.
    """
    if reject and remove:
        raise KsterError("--reject and --remove cannot be combined; choose one")
    with open_memory(directory) as memory:
        total = memory.segment_count()
        found = list(memory.check(kind))
        ids = {finding.segment.id for finding in found}
        if remove and ids:
            memory.remove(ids, author=user())
        if reject and ids:
            memory.set_status(ids, "rejected", author=user())
    done = "rejected" if reject else "removed" if remove else None
    if json:
        counts = {name: len(ids) if done == name else 0 for name in ("rejected", "removed")}
        emit_json({"findings": [_finding_json(finding) for finding in found], **counts})
        return
    for finding in found:
        segment = finding.segment
        texts = one_line(segment.source), one_line(segment.target)
        emit_row(
            [finding.kind, str(segment.id), finding.reason, *texts],
            f"{finding.kind:<14} {segment.id:>6}  {' → '.join(texts)}\n{'':23}{finding.reason}",
        )
    kinds = Counter(finding.kind for finding in found)
    by_kind = f" ({', '.join(f'{name} {number:,}' for name, number in kinds.items())})" if found else ""
    note(f"{len(ids):,} of {total:,} segments listed{by_kind}{f'; {done}' if done and ids else ''}")


@app.command()
def approve(directory: Directory, ids: Ids, json: Json = False) -> None:
    """Let segments teach: drafts, rejected ones, and older ones that were superseded.

    An approved segment supersedes others with the same source and context.
    """
    _set_status(directory, ids, "approved", json)


@app.command()
def reject(directory: Directory, ids: Ids, json: Json = False) -> None:
    """Keep segments, but learn nothing from them; `approve` brings them back."""
    _set_status(directory, ids, "rejected", json)


@app.command()
def history(
    directory: Directory,
    id: Annotated[
        int | None, typer.Argument(metavar="ID", help="A segment.", show_default="the whole memory")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most this many, for the whole memory.")] = 50,
    json: Json = False,
) -> None:
    """Show what happened to a segment and its other versions, or lately to a memory: when, who, what."""
    with open_memory(directory) as memory:
        events = memory.history(id, limit=limit)
    if json:
        emit_json(events)
        return
    for event in events:
        _emit_event(event)


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
        emit_json_list(segments)
        return
    for segment in segments:
        _emit_segment(segment)


def _emit_segment(segment: Segment, before: list[str] | None = None, for_people: str = "") -> None:
    """before: further fields; for_people: what a person sees of them."""
    fields = [*(before or []), str(segment.id), one_line(segment.source), one_line(segment.target)]
    emit_row(fields, f"{for_people}{segment.id:>6}  {_texts(segment)}")


def _texts(segment: Segment) -> str:
    return f"{one_line(segment.source)} → {one_line(segment.target)}"


def _finding_json(finding: Finding) -> dict[str, object]:
    segment = finding.segment
    return {
        "kind": finding.kind,
        "segment": segment.id,
        "reason": finding.reason,
        "other": finding.other,
        "source": segment.source,
        "target": segment.target,
    }


def _set_status(directory: Directory, ids: list[int], status: str, json: bool) -> None:
    with open_memory(directory) as memory:
        segments = memory.set_status(ids, status, author=user())
    if json:
        emit_json(segments)
        return
    for segment in segments:
        emit(f"segment {segment.id}: {status}: {_texts(segment)}")


def _emit_event(event: Event) -> None:
    what = event.action if event.other is None else f"{event.action} by {event.other}"
    texts = [one_line(text) for text in (event.source, event.target) if text is not None]
    emit_row(
        [event.time, event.author or "", str(event.segment), what, *texts],
        f"{event.time}  {event.author or '?':<12} {event.segment:>6} {what:<18} {' → '.join(texts)}",
    )
