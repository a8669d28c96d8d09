"""`kster memory check`: what is probably wrong in a memory, and what to do about it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from kster.cli.loading import open_memory
from kster.cli.options import Directory, Json
from kster.cli.output import emit, emit_json, note, on_terminal, one_line
from kster.cli.status_commands import user
from kster.errors import KsterError

if TYPE_CHECKING:
    from kster.memory import Finding


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

    Contradictions and duplicates are the older ones of two. `kster memory approve` brings rejected ones back.
    """
    if reject and remove:
        raise KsterError("--reject and --remove cannot both be had; choose one")
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
        emit_json({"findings": [_json(finding) for finding in found], **counts})
        return
    for finding in found:
        segment = finding.segment
        texts = one_line(segment.source), one_line(segment.target)
        if on_terminal():
            emit(f"{finding.kind:<14} {segment.id:>6}  {' → '.join(texts)}\n{'':23}{finding.reason}")
        else:
            emit("\t".join([finding.kind, str(segment.id), finding.reason, *texts]))
    kinds = Counter(finding.kind for finding in found)
    by_kind = f" ({', '.join(f'{name} {number:,}' for name, number in kinds.items())})" if found else ""
    note(f"{len(ids):,} of {total:,} segments listed{by_kind}{f'; {done}' if done and ids else ''}")


def _json(finding: Finding) -> dict[str, object]:
    segment = finding.segment
    return {
        "kind": finding.kind,
        "segment": segment.id,
        "reason": finding.reason,
        "other": finding.other,
        "source": segment.source,
        "target": segment.target,
    }
