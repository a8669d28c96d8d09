"""Figures: bars, lines, points and histograms, in one style, as PNG and SVG."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # no display is needed

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
COLOURS = ("#4c6a92", "#d1782c", "#3b8f5a", "#a83f52", "#7a5ca0", "#6f6f6f", "#b59a2b", "#2b9db5")


def _empty(title: str, x: str, y: str) -> Figure:
    with matplotlib.rc_context(STYLE):
        figure = Figure(layout="constrained")
        axes = figure.subplots()
    axes.set_title(title, loc="left")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure


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
    thickness = 0.8 / max(1, len(series))
    for number, (name, values) in enumerate(series.items()):
        places = [i + (number - (len(series) - 1) / 2) * thickness for i in range(groups)]
        lengths = [0.0 if value is None else value for value in values]
        yield places, lengths, thickness, {"label": name, "color": COLOURS[number % len(COLOURS)]}


def _with_legend_below(figure: Figure) -> Figure:
    """Bars fill their frame: there is no room for a legend in it."""
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8)
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
    figure = _empty(title, x, y)
    axes = figure.axes[0]
    for number, (name, (xs, ys)) in enumerate(series.items()):
        axes.plot(xs, ys, marker="o", markersize=3, label=name, color=COLOURS[number % len(COLOURS)])
    if log_x:
        places = sorted({place for xs, _ in series.values() for place in xs})
        axes.set_xscale("log")
        axes.set_xticks(places, [f"{place:,.0f}" for place in places])
        axes.minorticks_off()
    axes.legend(frameon=False, fontsize=8)
    return figure


def points(title: str, named: Mapping[str, list[tuple[float, float, str]]], x: str, y: str) -> Figure:
    """Name → points (x, y, label); a label may be empty."""
    figure = _empty(title, x, y)
    axes = figure.axes[0]
    for number, (name, spots) in enumerate(named.items()):
        colour = COLOURS[number % len(COLOURS)]
        axes.scatter([s[0] for s in spots], [s[1] for s in spots], label=name, color=colour, s=24)
        for left, up, label in spots:
            if label:
                axes.annotate(label, (left, up), fontsize=6, xytext=(3, 3), textcoords="offset points")
    axes.legend(frameon=False, fontsize=8)
    return figure


def histograms(
    title: str, distributions: Mapping[str, tuple[Sequence[float], Sequence[int]]], x: str
) -> Figure:
    """Name → (edges, counts), drawn as shares."""
    figure = _empty(title, x, "share of tokens")
    axes = figure.axes[0]
    for number, (name, (edges, counts)) in enumerate(distributions.items()):
        total = max(1, sum(counts))
        axes.stairs(
            [c / total for c in counts], list(edges), label=name, color=COLOURS[number % len(COLOURS)]
        )
    axes.legend(frameon=False, fontsize=8)
    return figure


@lru_cache(maxsize=64)  # the page and the file show the same
def svg_text(figure: Figure) -> str:
    """The figure as an SVG element, to be put into a page."""
    buffer = io.StringIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def save(figure: Figure, stem: Path) -> None:
    """Write stem.png and stem.svg."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figure.savefig(stem.with_name(stem.name + ".png"), metadata={"Software": None})
    stem.with_name(stem.name + ".svg").write_text(svg_text(figure), encoding="utf-8")
