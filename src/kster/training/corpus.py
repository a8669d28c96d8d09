"""Line-aligned parallel text, plain or compressed."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import IO

from kster.errors import KsterError


def open_bytes(path: Path) -> IO[bytes] | gzip.GzipFile:
    """The content of a file, decompressed according to its name (.xz, .gz)."""
    if not path.is_file():
        raise KsterError(f"there is no file {path}")
    if path.suffix == ".xz":
        return lzma.open(path, "rb")
    if path.suffix == ".gz":
        return gzip.open(path, "rb")
    return path.open("rb")


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 text without their ends; only \\n ends a line."""
    with open_bytes(path) as file:
        number = 0
        try:
            for number, line in enumerate(file, 1):  # noqa: B007
                yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise KsterError(f"{path}, line {number}: not UTF-8 ({error.reason})") from None
        except (lzma.LZMAError, EOFError, gzip.BadGzipFile) as error:
            raise KsterError(f"{path}, after line {number}: damaged compressed file ({error})") from None


def read_parallel(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """The pairs of two line-aligned files."""
    for count, (left, right) in enumerate(zip_longest(read_lines(source), read_lines(target))):
        if left is None or right is None:
            shorter = source if left is None else target
            raise KsterError(
                f"{source} and {target} are not line-aligned: {shorter} ends after {count} lines"
            )
        yield left, right
