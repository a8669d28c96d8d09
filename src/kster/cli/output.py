"""What commands write: lines for people, JSON for machines, tables on a terminal."""

from __future__ import annotations

import json as json_module
import logging
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from enum import IntEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SHOWN_REJECTIONS = 20  # --json has them all


class Talk(IntEnum):
    """How much is said beside the output, on stderr."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


_talk = Talk.NORMAL


def set_talk(talk: Talk) -> None:
    """For the rest of this command: notes, progress and the warnings of the package."""
    global _talk
    _talk = talk
    logging.getLogger("kster").setLevel(logging.INFO if talk is Talk.VERBOSE else logging.NOTSET)


def is_quiet() -> bool:
    return _talk is Talk.QUIET


class ReaderGone(Exception):
    """Nobody reads the output any more: time to stop quietly."""


def emit(text: str, end: str = "\n") -> None:
    """Write to standard output."""
    try:
        sys.stdout.write(text + end)
    except BrokenPipeError as error:
        raise ReaderGone from error


def flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ReaderGone from error


def note(text: str) -> None:
    """A line for the person at the keyboard, on stderr, so that output stays what was asked for."""
    if not is_quiet():
        print(text, file=sys.stderr, flush=True)


@contextmanager
def if_interrupted(kept: str) -> Iterator[None]:
    """If the user presses Ctrl-C meanwhile, say what was kept."""
    try:
        yield
    except KeyboardInterrupt:
        note(f"kster: interrupted; {kept}")
        raise


def as_json(value: Any, indent: int | None = None) -> str:
    """JSON, on one line unless it is indented; dataclasses as objects."""

    def written(other: Any) -> Any:
        return asdict(other) if is_dataclass(other) and not isinstance(other, type) else str(other)

    return json_module.dumps(value, ensure_ascii=False, indent=indent, default=written)


def emit_json(value: Any) -> None:
    """A result for a machine, indented so that people can read it, too."""
    emit(as_json(value, indent=2))


def emit_result(value: Any, text: str, *, json: bool) -> None:
    """The value for a machine that asks for JSON, else the text for a person."""
    if json:
        emit_json(value)
    else:
        emit(text)


def emit_json_list(values: Iterable[Any]) -> None:
    """A JSON list, written element by element: it may be long."""
    separator = "["
    for value in values:
        emit(f"{separator}\n  {as_json(value)}", end="")
        separator = ","
    emit("[]" if separator == "[" else "\n]")


def emit_row(fields: Sequence[str], for_people: str) -> None:
    """A line: for people on a terminal, else fields separated by tabs."""
    emit(for_people if on_terminal() else "\t".join(fields))


def emit_file(write: Callable[[Path], object]) -> None:
    """Show what `write` writes to a file. It is written completely first, so that an error shows nothing."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "export"
        write(file)
        with file.open(encoding="utf-8", newline="") as text:
            shutil.copyfileobj(text, sys.stdout)
    flush()


def note_rejections(rejected: Sequence[object]) -> None:
    """Say what was not imported of a file, and why."""
    for rejection in rejected[:SHOWN_REJECTIONS]:
        note(f"  {rejection}")
    if len(rejected) > SHOWN_REJECTIONS:
        note(f"  … and {len(rejected) - SHOWN_REJECTIONS:,} more (--json lists them all)")


def on_terminal() -> bool:
    return sys.stdout.isatty()


def table(rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Aligned columns, the first row as heading; the first `left` columns to the left, numbers right."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    heading, *body = rows
    drawn = Table(box=SIMPLE_HEAD)
    for i, name in enumerate(heading):
        drawn.add_column(Text(name), justify="left" if i < left else "right")
    for row in body:
        drawn.add_row(*(Text(cell) for cell in row))
    console = Console(file=sys.stdout)
    with console.capture() as captured:
        console.print(drawn)
    return captured.get().rstrip("\n")


def facts(items: Mapping[str, str]) -> str:
    """Names and values, one line each, aligned."""
    width = max(map(len, items))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in items.items())


def size(bytes: int) -> str:
    """Bytes for people: 1,234 B, 5.6 MB."""
    amount = float(bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{amount:,.0f} {unit}" if unit == "B" else f"{amount:,.1f} {unit}"
        amount /= 1000
    raise AssertionError("unreachable")


def count(number: int, noun: str) -> str:
    """1 segment, 2,000 segments."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def one_line(text: str) -> str:
    """Text as one field of a tab-separated line."""
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
