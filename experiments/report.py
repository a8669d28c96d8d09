"""The second half of an experiment: scores, tables, figures and one page, from what a run left behind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from experiments import figures
from experiments.catalogue import EXPERIMENTS
from experiments.data import LANGUAGES, Corpora, Slice
from experiments.experiment import Experiment
from experiments.origin import in_words
from experiments.results import Section, TextTable, bleu_table, further_table, score_cells
from experiments.stages import read_json, write_json
from experiments.text_checksums import require_same_text
from kster.errors import KsterError

FACTS = ("experiment", "direction", "scale", "origin")


def report(experiments: Sequence[Experiment], data: Path, out: Path) -> Path:
    """Report these experiments, and put them into one page; returns it."""
    _require_text(experiments, data, out)
    pages = []
    for experiment in experiments:
        sections = [_section(experiment, result, data, out) for result in runs_of(experiment, out)]
        if not sections:
            name = experiment.name
            raise KsterError(f"{out / name}: no results of {name!r} here; run it first (--stage run)")
        _write(experiment, sections, out)
        pages.append((experiment, sections))
    path = out / ("report.html" if len(experiments) > 1 else f"{experiments[0].name}/report.html")
    path.write_text(page("KSTER: experiments", pages), encoding="utf-8")
    return path


def _require_text(experiments: Sequence[Experiment], data: Path, out: Path) -> None:
    """What the translations are compared with is what was translated."""
    tests = {
        Slice(**cell["test"])
        for experiment in experiments
        for result in runs_of(experiment, out)
        for cell in (*result["cells"], *result["statistics"].get("growth", ()))
    }
    if tests:
        require_same_text(Corpora(data, LANGUAGES), tests, out)


def runs_of(experiment: Experiment, out: Path) -> list[dict[str, Any]]:
    results = []
    for path in sorted((out / experiment.name).glob("*.run.json")):
        result = read_json(path)
        if "origin" not in result or any("row_coordinates" not in cell for cell in result["cells"]):
            raise KsterError(f"{path}: made by an earlier version; run it again")
        results.append(result)
    return results


def finished(out: Path) -> list[Experiment]:
    """The experiments that have results here."""
    return [experiment for experiment in EXPERIMENTS.values() if runs_of(experiment, out)]


def _section(experiment: Experiment, result: dict[str, Any], data: Path, out: Path) -> Section:
    source, target = result["direction"].split("-")
    paper = experiment.paper.get(result["direction"], {})
    section = Section(result, Corpora(data, (source, target)), out, paper)
    section.data = {key: result[key] for key in FACTS}
    if result["cells"]:
        section.scored = score_cells(result, section.corpora, out, paper)
        section.tables.append(bleu_table(section.scored, section.title(experiment.name)))
        title = section.title(f"{experiment.name}: chrF and rare words")
        section.tables.append(further_table(section.scored, title))
        section.data |= {"scores": section.scored.to_json(), "cells": result["cells"]}
    experiment.draw(section)
    return section


def _write(experiment: Experiment, sections: Sequence[Section], out: Path) -> None:
    """results.json, table.md and the figures as PNG and SVG."""
    directory = out / experiment.name
    write_json(directory / "results.json", {section.direction: section.data for section in sections})
    text = [f"# {experiment.name}", "", experiment.summary, ""]
    for section in sections:
        origin = section.result["origin"]
        text += ["```sh", origin["command"], "```", "", in_words(origin), ""]
        text += [table.to_markdown() for table in section.tables]
        for file, figure in section.figures.items():
            figures.save(figure, directory / f"{file}.{section.direction}")
            text.append(f"![{file}]({file}.{section.direction}.svg)\n")
    (directory / "table.md").write_text("\n".join(text), encoding="utf-8")


# The page ----------------------------------------------------------------------------------------------

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff }
h1 { font-size: 1.6rem } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc }
h3 { margin: 1.5rem 0 .3rem }
.wide { overflow-x: auto } table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: #fff;
       border-right: 1px solid #ddd } small, li { color: #555; font-size: .85rem }
figure { margin: 1rem 0 } svg { max-width: 100%; height: auto }
code { font-size: .8rem; overflow-wrap: anywhere }
"""

_HOW_TO_READ = (
    "In brackets: the paper's figure for the same cell, where it gives a number; some of its results are "
    "only drawn. Full: on all of the data; quick: on a sample that shows no more than that everything works. "
    "Tables that are wider than the page can be moved sideways."
)


def page(title: str, experiments: Sequence[tuple[Experiment, Sequence[Section]]]) -> str:
    """One page that holds everything, and loads nothing from elsewhere."""
    body = [f"<h1>{escape(title)}</h1>", f"<p>{escape(_HOW_TO_READ)}</p>"]
    if len(experiments) > 1:
        links = (f'<a href="#{e.name}">{e.name}</a>' for e, _ in experiments)
        body.append(f"<p>{' · '.join(links)}</p>")
    for experiment, sections in experiments:
        name, summary = experiment.name, escape(experiment.summary)
        body.append(f'<h2 id="{name}">{name}</h2><p>{summary}</p>')
        for section in sections:
            made_by = section.result["origin"]
            command, made = made_by["command"], in_words(made_by)
            body.append(f"<p><code>{escape(command)}</code><br><small>{escape(made)}</small></p>")
            body += [_table(table) for table in section.tables]
            body += [f"<figure>{figures.svg_text(figure)}</figure>" for figure in section.figures.values()]
    content = "\n".join(body)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n{content}\n</body></html>\n"
    )


def _table(table: TextTable) -> str:
    heading, *rows = table.rows
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heading)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    notes = "".join(f"<li>{_with_code(note)}</li>" for note in table.notes)
    return (
        f'<h3>{escape(table.title)}</h3><div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div><ul>{notes}</ul>"
    )


def _with_code(note: str) -> str:
    """Notes are written as in Markdown: what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(note))
