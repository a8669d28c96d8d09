"""The second half of an experiment: scores, tables, figures and one page, from what a run left behind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments import plots
from experiments.data import LANGUAGES, Corpora, Slice
from experiments.drawing import DRAWINGS, bars_of
from experiments.html import page
from experiments.origin import in_words
from experiments.run import experiment_names
from experiments.same_text import require_same_text
from experiments.scoring import ScoredTable, score_cells
from experiments.sections import Section, bleu_table
from experiments.stages import read_json, write_json
from kster.errors import KsterError

SUMMARIES = {
    "damt": "A memory for each domain: in-domain quality, and what is left of general quality with it.",
    "mdmt": "One memory of general and domain text for all.",
    "tradeoff": "General against domain quality over kNN-MT's settings, KSTER's point among them.",
    "robustness": "Noise in a tenth of a memory's English words, before it is fitted or after.",
    "unseen": "Domains that neither the model nor the memory has seen.",
    "ablation": "What learning the kernel and the mixing weight each bring.",
    "k": "How many neighbours.",
    "dropout": "Which neighbours a fit may not see.",
    "kernels": "Gaussian and Laplacian; how σ and λ are spread.",
    "recipes": "How a memory should be fitted, on development text: the choice of defaults.",
    "seeds": "How much is chance: each memory, as it is and with noise, fitted with three seeds.",
    "sizes": "A memory of IT that grows, against fine-tuning on the same text.",
    "lengths": "The length penalty of beam search, with which every system is tuned and translates anew.",
    "speed": "Decoding time over the base model's: same engine, same batch.",
    "pos": "Which parts of speech the memory decides.",
    "wsd": "Telling right translations of ambiguous words from wrong ones.",
    "online": "A translator at work: each reference joins the memory after its sentence.",
}


def report(names: Sequence[str], data: Path, out: Path) -> Path:
    """Report these experiments, and put all that have been reported into one page; returns it."""
    _require_text(names, data, out)
    pages = []
    for name in names:
        sections = build(name, data, out)
        if not sections:
            raise KsterError(f"{out / name}: no results of {name!r} here; run it first (--stage run)")
        write(name, sections, out)
        pages.append((name, SUMMARIES[name], sections))
    path = out / ("report.html" if len(names) > 1 else f"{names[0]}/report.html")
    path.write_text(page("KSTER: experiments", pages), encoding="utf-8")
    return path


def _require_text(names: Sequence[str], data: Path, out: Path) -> None:
    """What the translations are compared with is what was translated."""
    tests = {
        Slice(**cell["test"])
        for name in names
        for result in runs_of(name, out)
        for cell in (*result["cells"], *result.get("statistics", {}).get("growth", ()))
    }
    if tests:
        require_same_text(Corpora(data, LANGUAGES), tests, out)


def runs_of(name: str, out: Path) -> list[dict[str, Any]]:
    results = []
    for path in sorted((out / name).glob("*.run.json")):
        result = read_json(path)
        if "origin" not in result:
            raise KsterError(
                f"{path}: made by an earlier version, it does not say how; run it again, "
                "what is finished is found"
            )
        results.append(result)
    return results


def finished(out: Path) -> list[str]:
    """The experiments that have results here."""
    return [name for name in experiment_names() if runs_of(name, out)]


def build(name: str, data: Path, out: Path) -> list[Section]:
    sections = []
    for result in runs_of(name, out):
        direction = result["direction"]
        section = Section(direction, result["origin"], data={key: result[key] for key in _FACTS})
        scored: ScoredTable | None = None
        if result["cells"]:
            scored = score_cells(result, data, out)
            section.tables.append(bleu_table(scored, f"{name}, {direction} ({result['scale']})"))
            section.data["scores"] = scored.to_json()
            section.data["cells"] = result["cells"]
        draw = DRAWINGS.get(name, bars_of)
        draw(section, scored, result, data, out)
        sections.append(section)
    return sections


_FACTS = ("experiment", "direction", "scale", "origin")


def write(name: str, sections: Sequence[Section], out: Path) -> None:
    """results.json, table.md and the figures as PNG and SVG."""
    directory = out / name
    write_json(directory / "results.json", {section.direction: section.data for section in sections})
    text = [f"# {name}", "", SUMMARIES[name], ""]
    for section in sections:
        text += ["```sh", section.origin["command"], "```", "", in_words(section.origin), ""]
        text += [table.to_markdown() for table in section.tables]
        for file, figure in section.figures.items():
            plots.save(figure, directory / f"{file}.{section.direction}")
            text.append(f"![{file}]({file}.{section.direction}.svg)\n")
    (directory / "table.md").write_text("\n".join(text), encoding="utf-8")
