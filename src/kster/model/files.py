"""Reading what somebody else wrote: whatever is wrong is said in one line that names the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kster.errors import ModelError


def json_object(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ModelError(f"{path} cannot be read as JSON ({words(error)})") from error
    if not isinstance(data, dict):
        raise ModelError(f"{path}: holds a JSON {type(data).__name__}; accepted: an object")
    return data


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Libraries raise whatever they happen to trip over; people are told which file it was."""
    try:
        yield
    except Exception as error:
        if is_lack_of_memory(error):
            raise
        raise ModelError(f"{what} ({words(error)})") from error


def is_lack_of_memory(error: Exception) -> bool:
    said = str(error)
    return isinstance(error, MemoryError) or "allocate memory" in said or "out of memory" in said


def words(error: Exception) -> str:
    """On one line, and not all of a long report."""
    said = " ".join(str(error).split())
    if isinstance(error, KeyError):
        said = f"unknown: {said}"
    return (said if len(said) <= 200 else said[:199] + "…") or type(error).__name__
