"""Reads lines from a pipe, a terminal or a file, in blocks, without waiting for more than there is."""

from __future__ import annotations

import select
import sys
from collections.abc import Iterator
from io import UnsupportedOperation
from itertools import count, zip_longest
from pathlib import Path
from typing import BinaryIO

from kster.errors import KsterError

CHUNK = 1 << 18
MAX_LINE_BYTES = 4_000_000  # what formats.encoding.MAX_LINE characters can take in UTF-8
PATIENCE = 0.01  # seconds a half-full block waits for a busy writer
HEAD = 4096  # bytes by which files that are not text are recognised
KINDS = {
    b"PK\x03\x04": "a zip archive, as Word documents and spreadsheets are",
    b"\xd0\xcf\x11\xe0": "a document of an old office program",
    b"%PDF-": "a PDF",
}


def line_blocks(path: Path | None, size: int) -> Iterator[list[str]]:
    """The lines of a file, or of standard input for None, `size` at a time.

    A block from standard input is shorter when no more lines are waiting: what a person or a program
    has written is answered before it writes more. A line that cannot be read raises `KsterError`, after
    the lines before it.
    """
    if path is not None:
        yield from _grouped(file_lines(path), size)
    elif sys.stdin is None:
        raise KsterError("standard input is closed; give it lines to read, or name a file with --input")
    else:
        yield from _stdin_blocks(sys.stdin.buffer, size)


def _stdin_blocks(stream: BinaryIO, size: int) -> Iterator[list[str]]:
    number, lines, rest = 0, [], b""
    while len(rest) <= MAX_LINE_BYTES and (chunk := _read(stream)):
        *complete, rest = (rest + chunk).split(b"\n")
        lines += complete
        while lines and (len(lines) >= size or not _more_waiting(stream)):
            block, lines = lines[:size], lines[size:]
            yield from _grouped((_decoded(line, number + i) for i, line in enumerate(block, 1)), size)
            number += len(block)
    if rest:
        lines.append(rest)
    yield from _grouped((_decoded(line, number + i) for i, line in enumerate(lines, 1)), size)


def file_lines(path: Path) -> Iterator[str]:
    """The lines of a text file, perhaps compressed, in any Unicode encoding."""
    from kster.formats.encoding import text_lines

    if path.is_dir():
        raise KsterError(f"{path}: is a directory, not a file")
    require_text(path)
    number = 0
    try:
        for number, line in enumerate(text_lines(path), 1):
            if line is None:
                raise _too_long(str(path), number)
            yield line
    except KsterError as error:
        if isinstance(error.__cause__, UnicodeDecodeError) and error.__cause__.encoding == "utf-8":
            yield from _lines_before_damage(path, number)
        raise


def _lines_before_damage(path: Path, given: int) -> Iterator[str]:
    """The lines of a UTF-8 file after the first `given`, up to the damaged one. Many lines are decoded at
    once, so that the damage hides intact lines before it."""
    from kster.formats.encoding import open_bytes

    with open_bytes(path) as stream:
        for number in count(1):
            line = stream.readline(MAX_LINE_BYTES + 1)
            if number <= given:
                continue
            try:
                text = _decoded(line.removesuffix(b"\n"), number)
            except KsterError:
                return
            yield text


def paired_lines(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Lines of two files side by side; KsterError when one has more."""
    for number, (one, other) in enumerate(zip_longest(file_lines(source), file_lines(target)), 1):
        if one is None or other is None:
            shorter, longer = (source, target) if one is None else (target, source)
            raise KsterError(
                f"{shorter} has {number - 1:,} {'line' if number == 2 else 'lines'}, {longer} has more; "
                "they must pair up line by line"
            )
        yield one, other


def _grouped(lines: Iterator[str], size: int) -> Iterator[list[str]]:
    """Blocks of lines; those before a line that cannot be read are not lost with it."""
    block: list[str] = []
    try:
        for line in lines:
            block.append(line)
            if len(block) == size:
                yield block
                block = []
    except KsterError:
        if block:
            yield block
        raise
    if block:
        yield block


def _read(stream: BinaryIO) -> bytes:
    read = getattr(stream, "read1", stream.read)  # read1: what is there, not a full chunk
    data: bytes = read(CHUNK)
    return data


def _more_waiting(stream: BinaryIO) -> bool:
    try:
        return bool(select.select([stream], [], [], 0 if stream.isatty() else PATIENCE)[0])
    except (OSError, ValueError, UnsupportedOperation):  # nothing to select on: read until it ends
        return True


def _decoded(line: bytes, number: int) -> str:
    from kster.formats.encoding import MAX_LINE

    if len(line) > MAX_LINE_BYTES:  # perhaps only its beginning, which may end within a character
        raise _too_long("standard input", number)
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise KsterError(f"standard input, line {number}: not valid UTF-8 ({error.reason})") from error
    if len(text) > MAX_LINE:
        raise _too_long("standard input", number)
    return text.removesuffix("\r")


def _too_long(where: str, number: int) -> KsterError:
    from kster.formats.encoding import MAX_LINE

    return KsterError(f"{where}, line {number}: longer than {MAX_LINE:,} characters")


def binary_kind(path: Path) -> str | None:
    """What kind of file it is if not text; None if it may be text, perhaps with a few wrong bytes."""
    from kster.formats.encoding import detect_encoding, open_bytes

    with open_bytes(path) as stream:
        head = stream.read(HEAD)
    for magic, kind in KINDS.items():
        if head.startswith(magic):
            return kind
    try:
        head.decode(detect_encoding(head), "surrogatepass")
    except UnicodeDecodeError as error:
        cut_off = error.end == len(head)  # within a character
        return "a binary file" if 0 in head and not cut_off else None
    return None


def require_file(path: Path) -> None:
    if not path.is_file():
        raise KsterError(f"{path}: {'is a directory, not a file' if path.is_dir() else 'no such file'}")


def require_text(path: Path) -> None:
    """Raises KsterError for a file that is no text at all, such as a Word document."""
    if kind := binary_kind(path):
        raise KsterError(f"{path}: {kind}, which is not accepted here; accepted: plain text, one text a line")
