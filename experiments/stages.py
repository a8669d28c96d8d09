"""What makes a run resumable, by several processes at once, too.

Stages named by their settings, files that are whole or absent, a lock for each stage, and a clock.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kster.errors import KsterError
from kster.files import atomic_text, try_lock


class OutOfTime(Exception):
    """The time given to this command is over; what was finished is kept, and the same command continues."""


class Clock:
    """How long a command may go on. Asked between stages: a stage that was begun is finished."""

    def __init__(self, max_seconds: float | None = None) -> None:
        self._end = None if max_seconds is None else time.monotonic() + max_seconds

    @property
    def left(self) -> float | None:
        """Seconds; None when there is no limit."""
        return None if self._end is None else self._end - time.monotonic()

    def check(self) -> None:
        """Raises OutOfTime when nothing new may be begun."""
        if self.left is not None and self.left <= 0:
            raise OutOfTime


def say(line: str) -> None:
    """What is being done, for whoever watches."""
    print(line, file=sys.stderr, flush=True)


def digest(settings: Any) -> str:
    """A short name for anything JSON can hold; other settings get another name."""
    text = json.dumps(settings, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Only one process at a time; who waited finds what the other has made. Released however it ends.

    wait: or go on at once, and be told that the lock is another's.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        yield try_lock(file, wait=wait)


def write_json(path: Path, data: Any) -> None:
    """Whole or not at all; a name in .gz is compressed, always to the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_text(path) as file:
        file.write(json.dumps(data, ensure_ascii=False, indent=None if path.suffix == ".gz" else 2) + "\n")


def read_json(path: Path) -> Any:
    content = path.read_bytes()
    try:
        return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise KsterError(
            f"{path}: damaged ({error}). Remove it: the run that made it makes it again"
        ) from None
