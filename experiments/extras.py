"""Experiments, or parts of them, that are more than a table of translations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from experiments.data import Slice
from experiments.online import online, online_parts, online_reads
from experiments.pipeline import Pipeline
from experiments.scale import Scale
from experiments.speed import speed, speed_reads
from experiments.spread import decided_words, decided_words_reads, spread
from experiments.wsd import wsd, wsd_reads

Extra = Callable[[Pipeline, Scale], dict[str, Any]]
"""Returns what goes into the run's result: "statistics", and "cells" where translations are to be scored."""

EXTRAS: dict[str, Extra] = {
    "kernels": spread,
    "speed": speed,
    "pos": decided_words,
    "wsd": wsd,
    "online": online,
}

PARTS: dict[str, Callable[[Scale], list[Callable[[Pipeline], object]]]] = {
    "kernels": lambda scale: [partial(spread, scale=scale)],
    "pos": lambda scale: [partial(decided_words, scale=scale)],
    "wsd": lambda scale: [partial(wsd, scale=scale)],
    "online": online_parts,
}
"""What of these can be done side by side; not `speed`, which measures time."""

READS: dict[str, Callable[[Scale], Iterable[Slice]]] = {
    "speed": speed_reads,
    "pos": decided_words_reads,
    "wsd": wsd_reads,
    "online": online_reads,
}
"""The text these read, apart from that of a table of the same name."""
