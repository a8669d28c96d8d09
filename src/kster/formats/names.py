"""Ids for formats in which no two units may share one."""

from __future__ import annotations


class UniqueNames:
    """Hands out names, each once: a name asked for again gets a number behind it.

    Only hashes are remembered, so that a large export stays small in memory; if two names should share
    a hash, one of them gets a number it did not need.
    """

    def __init__(self) -> None:
        self._uses: dict[int, int] = {}

    def name(self, wanted: str, within: str = "") -> str:
        """`wanted`, or `wanted-2`, `wanted-3`, … so that no name comes twice for the same `within`."""
        key = hash((wanted, within))
        name = wanted
        while hash((name, within)) in self._uses:
            self._uses[key] += 1
            name = f"{wanted}-{self._uses[key]}" if wanted else str(self._uses[key])
        self._uses[hash((name, within))] = 1
        return name
