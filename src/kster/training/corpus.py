"""Line-aligned parallel text, plain or compressed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from kster.errors import KsterError
from kster.formats.encoding import open_bytes


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 text without their ends; only \\n ends a line."""
    if not path.is_file():
        raise KsterError(f"there is no file {path}")
    number = 0
    with open_bytes(path) as file:
        try:
            for number, line in enumerate(file, 1):  # noqa: B007
                yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise KsterError(f"{path}, line {number}: not UTF-8 ({error.reason})") from None


def read_parallel(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """The pairs of two line-aligned files."""
    for count, (left, right) in enumerate(zip_longest(read_lines(source), read_lines(target))):
        if left is None or right is None:
            shorter = source if left is None else target
            raise KsterError(
                f"{source} and {target} are not line-aligned: {shorter} ends after {count} lines"
            )
        yield left, right
