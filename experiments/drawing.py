"""From scores and statistics to the figures and further tables of each experiment."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import comb
from pathlib import Path
from statistics import fmean
from typing import Any

from experiments import plots
from experiments.data import Corpora, Slice
from experiments.paper import PAPER, paper_value
from experiments.parts_of_speech import shares
from experiments.scoring import ScoredTable, bleu_scorer, translated
from experiments.sections import Section, TextTable

WINDOWS = 10  # parts of a document in the curve of quality over time

Draw = Callable[[Section, "ScoredTable | None", dict[str, Any], Path, Path], None]
"""Adds to a section: its scores (if translations were scored), the run's result, data and out directory."""


def bars_of(section: Section, scored: ScoredTable | None, result: dict[str, Any], _: Path, __: Path) -> None:
    """Every row a series, every column that we have a group."""
    if scored is None:
        return
    columns = [c for c in scored.columns if any(scored.bleu(row, c) is not None for row in scored.rows)]
    rows = [row for row in scored.rows if any(scored.bleu(row, c) is not None for c in columns)]
    series = {row: [scored.bleu(row, column) for column in columns] for row in rows}
    name = result["experiment"]
    section.figures[name] = plots.bars(f"{name}, {section.direction}", columns, series, "BLEU")


def tradeoff(section: Section, scored: ScoredTable | None, result: dict[str, Any], _: Path, __: Path) -> None:
    """General against domain quality: a path for each σ of the grid, along its λ, and the other systems."""
    assert scored is not None
    named: dict[str, list[tuple[float, float, str]]] = {}
    for row in scored.rows:
        general, specific = scored.bleu(row, "general"), scored.bleu(row, "average specific")
        if general is None or specific is None:
            continue
        grid = re.fullmatch(r"kNN-MT σ=(\S+)‖q‖² λ=(\S+)", row)
        name = f"σ = {grid[1]} ‖q‖²" if grid else "kNN-MT, tuned" if row == "kNN-MT" else row
        label = f"λ {grid[2]}" if grid else ""
        named.setdefault(name, []).append((general, specific, label))
    title = f"General and domain quality of kNN-MT with fixed σ and λ, {section.direction}"
    section.figures["tradeoff"] = plots.paths(title, named, "general BLEU", "average domain BLEU")


def recipes(section: Section, scored: ScoredTable | None, result: dict[str, Any], _: Path, __: Path) -> None:
    """What each recipe gives on average, in the domains and beyond them."""
    assert scored is not None
    averages = [column for column in scored.columns if column.startswith("average")]
    series = {column: [scored.bleu(row, column) for row in scored.rows] for column in averages}
    title = f"Recipes, {section.direction}"
    section.figures["recipes"] = plots.ranked(title, scored.rows, series, "BLEU on development text")


def k(section: Section, scored: ScoredTable | None, result: dict[str, Any], _: Path, __: Path) -> None:
    assert scored is not None
    columns = {"average DAMT": "DAMT", "average MDMT": "MDMT"}
    title = f"Number of neighbours, {section.direction}"
    curves = _over(scored, "k", columns)
    section.figures["k"] = plots.lines(title, curves, "k", "average BLEU", log_x=True)


def lengths(section: Section, scored: ScoredTable | None, result: dict[str, Any], _: Path, __: Path) -> None:
    """A memory for each domain, and one for all: domain quality over the length penalty.

    The base model, which has no memory, is far below everything else and would flatten it.
    """
    assert scored is not None
    for column, name, kind in (
        ("average specific", "lengths", "a memory for each domain"),
        ("average mixed specific", "lengths-mixed", "a mixed memory"),
    ):
        curves = _over(scored, "α", {column: ""})
        curves.pop("Base", None)
        title = f"Length penalty, {kind}, {section.direction}"
        section.figures[name] = plots.lines(title, curves, "length penalty α", "average domain BLEU")


def _over(
    scored: ScoredTable, sign: str, columns: dict[str, str]
) -> dict[str, tuple[list[float], list[float]]]:
    """Rows named "method sign=number" as curves over the number, of these columns with their short names.

    Other rows are left out.
    """
    curves: dict[str, tuple[list[float], list[float]]] = {}
    rows = [row for row in scored.rows if f" {sign}=" in row]
    for row, (column, short) in product(rows, columns.items()):
        method, number = row.split(f" {sign}=")
        value = scored.bleu(row, column)
        if value is not None:
            xs, ys = curves.setdefault(f"{method}, {short}" if short else method, ([], []))
            xs.append(float(number))
            ys.append(value)
    return curves


def sizes(section: Section, scored: ScoredTable | None, result: dict[str, Any], _: Path, __: Path) -> None:
    """In-domain and general quality, each over the share of the corpus."""
    assert scored is not None
    for test in dict.fromkeys(column.split(", ")[0] for column in scored.columns):
        series: dict[str, tuple[list[float], list[float]]] = {}
        for row, column in product(scored.rows, scored.columns):
            name, part = column.split(", ")
            value = scored.bleu(row, column)
            if name == test and value is not None:
                xs, ys = series.setdefault(row, ([], []))
                xs.append(100 * float(Fraction(part.replace("all", "1"))))
                ys.append(value)
        title = f"A growing memory of IT, {test} test, {section.direction}"
        section.figures[f"sizes-{test}"] = plots.lines(title, series, "% of the corpus", "BLEU", log_x=True)


def kernels(section: Section, scored: ScoredTable | None, result: dict[str, Any], a: Path, b: Path) -> None:
    """BLEU as bars, and the distributions of σ and λ of both kernels."""
    bars_of(section, scored, result, a, b)
    section.data["spread"] = result["statistics"]
    for kernel, columns in result["statistics"].items():
        for what, sign in (("bandwidth", "σ"), ("mixing_weight", "λ")):
            drawn = {
                column.removeprefix("mixed "): (found[what]["edges"], found[what]["counts"])
                for column, found in columns.items()
            }
            title = f"{sign}, {kernel} kernel, mixed memory, {section.direction}"
            section.figures[f"{what}-{kernel.lower()}"] = plots.histograms(title, drawn, sign)


def speed(section: Section, _: ScoredTable | None, result: dict[str, Any], __: Path, ___: Path) -> None:
    statistics = result["statistics"]
    rows = [["memory", "entries", "base s", "kNN-MT / base", "KSTER / base"]]
    series: dict[str, tuple[list[float], list[float]]] = {"kNN-MT": ([], []), "KSTER": ([], [])}
    for row in statistics["rows"]:
        seconds = row["seconds"]
        cells = []
        for name, (xs, ys) in series.items():
            ratio = seconds[name] / seconds["Base"]
            xs.append(row["entries"])
            ys.append(ratio)
            paper = paper_value("speed", section.direction, name, "time / base")
            quoted = row["memory"] == "mixed" and paper is not None
            cells.append(f"{ratio:.2f}" + (f" ({paper:.2f})" if quoted else ""))
        rows.append([row["memory"], f"{row['entries']:,}", f"{seconds['Base']:.2f}", *cells])
    devices = " and ".join(dict.fromkeys(row["device"] for row in statistics["rows"]))
    notes = [f"{statistics['sentences']} sentences on {devices}, the shortest of several times."]
    if section.direction in PAPER["speed"]:
        notes.append("In brackets the paper's figure, for a memory of 172 million entries.")
    title = f"speed, {section.direction} ({result['scale']})"
    section.tables.append(TextTable(title, rows, tuple(notes)))
    section.data["speed"] = statistics
    figure = plots.lines(title, series, "entries in the memory", "time / base", log_x=True)
    section.figures["speed"] = figure


def pos(section: Section, _: ScoredTable | None, result: dict[str, Any], __: Path, ___: Path) -> None:
    by_domain = {
        domain: shares(sentences, section.direction.split("-")[1])
        for domain, sentences in result["statistics"].items()
    }
    tags = sorted({tag for found in by_domain.values() for tag in found})
    rows = [["part of speech", *by_domain]]
    for tag in tags:
        cells = []
        for found in by_domain.values():
            decided, total = found.get(tag, (0, 0))
            cells.append(f"{100 * decided / total:.1f} % of {total:,}" if total else "–")
        rows.append([tag, *cells])
    title = f"Words decided by the memory, {section.direction} ({result['scale']})"
    note = "A word counts when one of its tokens is the memory's favourite but not the base model's."
    section.tables.append(TextTable(title, rows, (note, "Parts of speech: HanTa.")))
    section.data["pos"] = by_domain
    series = {
        domain: [100 * found[tag][0] / found[tag][1] if tag in found else None for tag in tags]
        for domain, found in by_domain.items()
    }
    section.figures["pos"] = plots.bars(title, tags, series, "% of words")


def wsd(section: Section, _: ScoredTable | None, result: dict[str, Any], __: Path, ___: Path) -> None:
    statistics = result["statistics"]
    rows = [["domain", "system", "examples", "accuracy %", "won and lost against base", "BLEU"]]
    series: dict[str, list[float | None]] = {}
    base = {row["domain"]: row["right"] for row in statistics["rows"] if row["system"] == "Base"}
    for row in statistics["rows"]:
        accuracy = [f"{row['examples']:,}", f"{row['accuracy']:.1f}"]
        compared = "" if row["system"] == "Base" else won_and_lost(base[row["domain"]], row["right"])
        rows.append([row["domain"], row["system"], *accuracy, compared, f"{row['bleu']:.1f}"])
        series.setdefault(row["system"], []).append(row["accuracy"])
    notes = (
        f"Examples: {statistics['origin']}; {statistics['pool']:,} in all, each domain's chosen by "
        f"{statistics['embeddings']} similarity.",
        "p: two-sided sign test over the examples that one system has right and the other wrong.",
        "BLEU as sacreBLEU computes it (13a, exponential smoothing), by our own counting.",
    )
    title = f"Word senses, {section.direction} ({result['scale']})"
    section.tables.append(TextTable(title, rows, notes))
    section.data["wsd"] = statistics
    domains = list(dict.fromkeys(row["domain"] for row in statistics["rows"]))
    section.figures["wsd"] = plots.bars(title, domains, series, "accuracy %")


def won_and_lost(base: list[int], ours: list[int]) -> str:
    """Examples that only we have right, that only the base model has, and how likely that is by chance."""
    won = sum(we > they for they, we in zip(base, ours, strict=True))
    lost = sum(we < they for they, we in zip(base, ours, strict=True))
    n = won + lost
    tail = sum(comb(n, i) for i in range(min(won, lost) + 1)) / 2**n
    return f"{won}, {lost} (p = {min(1.0, 2 * tail):.2g})"


def online(
    section: Section, scored: ScoredTable | None, result: dict[str, Any], data: Path, out: Path
) -> None:
    """Quality over the document, and over the size of a memory."""
    source, target = section.direction.split("-")
    corpora = Corpora(data, (source, target))
    bleu, signature = bleu_scorer()
    over_time: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for cell in result["cells"]:
        lines, references = _texts(cell, corpora, out)
        size = max(1, len(lines) // WINDOWS)
        starts = range(0, len(lines) - size + 1, size)
        scores = [bleu(lines[i : i + size], references[i : i + size]) for i in starts]
        curve = ([float(i + size) for i in starts], scores)
        over_time.setdefault(cell["column"], {})[cell["row"]] = curve
    growth: dict[str, dict[str, dict[int, list[float]]]] = {}  # domain → test → segments → BLEU, each draw
    for cell in result["statistics"]["growth"]:
        scores_of = growth.setdefault(cell["column"], {}).setdefault(cell["row"], {})
        scores_of.setdefault(cell["segments"], []).append(bleu(*_texts(cell, corpora, out)))
    for domain, series in over_time.items():
        title = f"Learning while translating, {domain}, {section.direction}"
        section.figures[f"online-{domain}"] = plots.lines(title, series, "sentence", "BLEU of the last part")
    for domain, curves in growth.items():
        title = f"Quality over memory size, {domain}, {section.direction}"
        section.figures[f"size-{domain}"] = plots.lines(title, _shown(curves), "segments", "BLEU", log_x=True)
        sizes = next(iter(curves.values()))
        rows = [["test", *(f"{size:,}" if size else "base" for size in sizes)]]
        rows += [[name, *map(_mean_and_range, curve.values())] for name, curve in curves.items()]
        notes = (
            "Segments; where several memories of a size were drawn: mean (lowest to highest) BLEU.",
            f"BLEU: `{signature}`",
        )
        section.tables.append(TextTable(title, rows, notes))
    section.data["online"] = {"over_time": over_time, "growth": growth, "signature": signature}


def _shown(curves: dict[str, dict[int, list[float]]]) -> dict[str, tuple[list[float], list[float]]]:
    """Means over the draws, and the base model's level; a logarithmic axis has no place for no segments."""
    shown = {}
    for name, curve in curves.items():
        sizes = [float(size) for size in curve if size]
        shown[name] = (sizes, [fmean(scores) for size, scores in curve.items() if size])
        shown[f"{name}, base"] = ([sizes[0], sizes[-1]], [curve[0][0]] * 2)
    return shown


def _mean_and_range(scores: list[float]) -> str:
    mean = f"{fmean(scores):.1f}"
    return mean if len(scores) == 1 else f"{mean} ({min(scores):.1f}–{max(scores):.1f})"


def _texts(cell: dict[str, Any], corpora: Corpora, out: Path) -> tuple[list[str], list[str]]:
    references = [target for _, target in corpora.pairs(Slice(**cell["test"]))]
    return translated(out / cell["translation"]), references


DRAWINGS: dict[str, Draw] = {
    "tradeoff": tradeoff,
    "recipes": recipes,
    "k": k,
    "sizes": sizes,
    "lengths": lengths,
    "kernels": kernels,
    "speed": speed,
    "pos": pos,
    "wsd": wsd,
    "online": online,
}
