"""Figures: bars, lines, points and histograms, in one style, as PNG and SVG.

matplotlib is imported where it draws: a run, which draws nothing, does without it.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE: dict[Any, Any] = {
    "figure.figsize": (6.4, 3.6),
    "figure.dpi": 120,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "font.size": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "kster",  # the same figure gives the same file
}
COLOURS = ("#a83f52", "#7a5ca0", "#b59a2b", "#2b9db5", "#8c6d5a", "#5a8c84", "#c27ba0", "#4f4f4f")
SYSTEMS = {  # the same colour in every figure
    "Base": "#8a8a8a",
    "Finetuning": "#d1782c",
    "Joint-training": "#d1782c",
    "kNN-MT": "#4c6a92",
    "KSTER": "#3b8f5a",
}
PALER = 0.3  # each variant of a system than the one before it
LEGEND_WIDTH = 84  # characters
TICKS_APART = 1.9  # on a logarithmic axis; closer ones would run into each other


def _empty(title: str, x: str, y: str) -> Figure:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(layout="constrained")
        axes = figure.subplots()
    axes.set_title(title, loc="left")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure


def _colours(names: Iterable[str]) -> dict[str, str]:
    """A system's own colour, paler for each further variant of it; anything else takes what is left."""
    colours, variants, others = {}, Counter[str](), 0
    for name in names:
        system = next((system for system in SYSTEMS if name.startswith(system)), None)
        if system is None:
            colours[name] = COLOURS[others % len(COLOURS)]
            others += 1
        else:
            colours[name] = _paler(SYSTEMS[system], (1 - PALER) ** variants[system])
            variants[system] += 1
    return colours


def _paler(colour: str, strength: float) -> str:
    """Mixed with white; a strength of 1 leaves it as it is."""
    from matplotlib.colors import to_hex, to_rgb

    red, green, blue = (1 - strength * (1 - part) for part in to_rgb(colour))
    return to_hex((red, green, blue))


def bars(title: str, groups: Sequence[str], series: Mapping[str, Sequence[float | None]], y: str) -> Figure:
    """One group of bars for each name in `groups`; a missing value leaves a gap."""
    figure = _empty(title, "", y)
    axes = figure.axes[0]
    for places, heights, width, look in _side_by_side(series, len(groups)):
        axes.bar(places, heights, width, **look)
    axes.set_xticks(range(len(groups)), groups)
    if len(groups) > 5:
        axes.tick_params("x", labelrotation=20)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")
    return _with_legend_below(figure)


def ranked(title: str, rows: Sequence[str], series: Mapping[str, Sequence[float | None]], x: str) -> Figure:
    """Many named rows, one below the other, a bar for each series; a missing value leaves a gap."""
    figure = _empty(title, x, "")
    figure.set_figheight(1.2 + 0.28 * len(rows))
    axes = figure.axes[0]
    for places, lengths, height, look in _side_by_side(series, len(rows)):
        axes.barh(places, lengths, height, **look)
    axes.set_yticks(range(len(rows)), rows)
    axes.invert_yaxis()
    return _with_legend_below(figure)


def _side_by_side(
    series: Mapping[str, Sequence[float | None]], groups: int
) -> Iterator[tuple[list[float], list[float], float, dict[str, Any]]]:
    """For each series: places and lengths of its bars, one in each group, their thickness and their look."""
    thickness, colours = 0.8 / max(1, len(series)), _colours(series)
    for number, (name, values) in enumerate(series.items()):
        places = [i + (number - (len(series) - 1) / 2) * thickness for i in range(groups)]
        lengths = [0.0 if value is None else value for value in values]
        yield places, lengths, thickness, {"label": name, "color": colours[name]}


def _with_legend_below(figure: Figure) -> Figure:
    """What is drawn may fill the frame: no room in it is sure to stay free for a legend."""
    _, names = figure.axes[0].get_legend_handles_labels()
    longest = max((len(name) for name in names), default=0) + 6  # with its sign
    columns = min(len(names), max(1, LEGEND_WIDTH // longest))
    figure.legend(loc="outside lower center", ncols=columns, frameon=False, fontsize=8)
    return figure


def lines(
    title: str,
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    x: str,
    y: str,
    *,
    log_x: bool = False,
) -> Figure:
    """Name → (xs, ys)."""
    figure, colours = _empty(title, x, y), _colours(series)
    axes = figure.axes[0]
    for name, (xs, ys) in series.items():
        axes.plot(xs, ys, marker="o", markersize=3, label=name, color=colours[name])
    if log_x:
        places = _apart({place for xs, _ in series.values() for place in xs})
        axes.set_xscale("log")
        axes.set_xticks(places, [f"{place:,.0f}" if place >= 10 else f"{place:.2g}" for place in places])
        axes.minorticks_off()
    return _with_legend_below(figure)


def _apart(places: Iterable[float]) -> list[float]:
    """Those that have room for a label, from the last one on."""
    kept: list[float] = []
    for place in sorted(places, reverse=True):
        if not kept or kept[-1] >= TICKS_APART * place:
            kept.append(place)
    return kept[::-1]


def paths(title: str, named: Mapping[str, list[tuple[float, float, str]]], x: str, y: str) -> Figure:
    """Name → points (x, y, label) in order, joined by a line; one alone is drawn larger."""
    figure, colours = _empty(title, x, y), _colours(named)
    axes = figure.axes[0]
    for name, spots in named.items():
        marker, size = ("o", 3) if len(spots) > 1 else ("D", 6)
        xs, ys = [spot[0] for spot in spots], [spot[1] for spot in spots]
        axes.plot(xs, ys, label=name, color=colours[name], marker=marker, markersize=size)
        for left, up, label in spots:
            axes.annotate(label, (left, up), fontsize=7, xytext=(4, 3), textcoords="offset points")
    return _with_legend_below(figure)


def histograms(
    title: str, distributions: Mapping[str, tuple[Sequence[float], Sequence[int]]], x: str
) -> Figure:
    """Name → (edges, counts), drawn as densities: bins may differ in width from one to the next."""
    figure, colours = _empty(title, x, "density of tokens"), _colours(distributions)
    axes = figure.axes[0]
    for name, (edges, counts) in distributions.items():
        total = max(1, sum(counts))
        widths = [right - left for left, right in pairwise(edges)]
        heights = [c / total / (w or 1.0) for c, w in zip(counts, widths, strict=True)]
        axes.stairs(heights, list(edges), label=name, color=colours[name])
    return _with_legend_below(figure)


@lru_cache(maxsize=64)  # the page and the file show the same
def svg_text(figure: Figure) -> str:
    """The figure as an SVG element, to be put into a page."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def save(figure: Figure, stem: Path) -> None:
    """Write stem.png and stem.svg."""
    import matplotlib

    stem.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figure.savefig(stem.with_name(stem.name + ".png"), metadata={"Software": None})
    stem.with_name(stem.name + ".svg").write_text(svg_text(figure), encoding="utf-8")
