"""From setting to setting, as long as a neighbouring one is better."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Settings = TypeVar("Settings")


def climb(
    best: Settings,
    around: Callable[[Settings], list[Settings]],
    choose: Callable[[list[Settings]], Settings],
    steps: int,
) -> Settings:
    """around: the neighbours of a setting; choose: the best of several, among equals the first."""
    for _ in range(steps):
        before, best = best, choose([best, *around(best)])
        if best == before:
            break
    return best
