"""A report says what is missing from what a run left behind."""

from __future__ import annotations

import gzip
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from experiments.catalogue import EXPERIMENTS
from experiments.data import Corpora, Slice
from experiments.experiment import result_file
from experiments.report import report
from experiments.results import Score, ScoredTable, Section, bleu_table, rare_word_recall, score_cells
from experiments.stages import write_json
from sacrebleu.metrics import BLEU

from kster.errors import KsterError

CELL: dict[str, Any] = {
    "row": "KSTER, unfitted",
    "column": "koran, 10 of koran",
    "column_coordinates": {"test": "koran", "memory": "koran", "segments": 10},
    "test": asdict(Slice("koran", "test")),
}
ORIGIN = {
    "command": "python -m experiments online",
    "machine": "",
    "precision": "",
    "seed": 1,
    "versions": {},
}


def left_behind(out: Path, **facts: Any) -> Path:
    result = {"experiment": "online", "direction": "en-de", "scale": "full", "cells": [], "baseline": None}
    write_json(result_file(out, "online", "en-de"), result | facts)
    return out


def test_translations_that_were_not_fetched_are_named(data: Path, tmp_path: Path) -> None:
    growth = {"growth": [CELL | {"translation": "translations/en-de/lost.json.gz"}]}
    out = left_behind(tmp_path, origin=ORIGIN, statistics=growth)
    with pytest.raises(KsterError, match=r"lost\.json\.gz: the translations are missing"):
        report([EXPERIMENTS["online"]], data, out)


def test_a_result_that_does_not_say_how_it_was_made_is_to_be_made_again(data: Path, tmp_path: Path) -> None:
    out = left_behind(tmp_path, statistics={"growth": []})
    with pytest.raises(KsterError, match=r"en-de\.run\.json: made by an earlier version.*run it again"):
        report([EXPERIMENTS["online"]], data, out)


@pytest.mark.parametrize(
    "content", [b"", b"no archive", gzip.compress(b"[1")], ids=["empty", "no archive", "no JSON"]
)
def test_translations_that_are_damaged_are_named(data: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cut.json.gz").write_bytes(content)
    growth = {"growth": [CELL | {"translation": "cut.json.gz"}]}
    out = left_behind(tmp_path, origin=ORIGIN, statistics=growth)
    with pytest.raises(KsterError, match=r"cut\.json\.gz: damaged .*Remove it"):
        report([EXPERIMENTS["online"]], data, out)


def test_quality_over_memory_size_is_sacrebleus_and_signed(data: Path, tmp_path: Path) -> None:
    test = Slice("koran", "test")
    references = [german for _, german in Corpora(data, ("en", "de")).pairs(test)]
    lines = [" ".join(line.split()[:-1]) for line in references]
    write_json(tmp_path / "lines.json.gz", {"lines": lines})
    at = CELL["column_coordinates"]
    growth = [
        CELL | {"translation": "lines.json.gz", "column_coordinates": at | {"segments": size}}
        for size in (0, 10)
    ]
    report([EXPERIMENTS["online"]], data, left_behind(tmp_path, origin=ORIGIN, statistics={"growth": growth}))
    score, table = BLEU().corpus_score(lines, [references]).score, (tmp_path / "online/table.md").read_text()
    assert f"| in-domain | {score:.1f} | {score:.1f} |" in table
    assert "- BLEU: `nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:" in table


def test_columns_and_their_sentences_can_be_told_apart() -> None:
    scored = ScoredTable("", {"Base": {}}, {"it, 1/45": {}}, sentences={"it, 1/45": 2_000, "it, all": 2_000})
    assert "Sentences: it, 1/45: 2,000; it, all: 2,000." in bleu_table(scored, "sizes").to_markdown()


@pytest.mark.parametrize(("direction", "quoted"), [("en-de", True), ("de-en", False)])
def test_the_speed_table_speaks_of_the_paper_where_it_quotes_it(
    direction: str, quoted: bool, tmp_path: Path
) -> None:
    row = {"memory": "mixed", "entries": 10, "device": "CPU", "seconds": {"Base": 1, "kNN-MT": 2, "KSTER": 2}}
    result = {"direction": direction, "scale": "full", "statistics": {"sentences": 4, "rows": [row]}}
    speed = EXPERIMENTS["speed"]
    section = Section(result, Corpora(tmp_path, ("en", "de")), tmp_path, speed.paper.get(direction, {}))
    speed.draw(section)
    text = section.tables[0].to_markdown()
    assert ("2.00 (1.15)" in text) == quoted
    assert ("the paper's figure" in text) == quoted


@pytest.mark.parametrize("paper", [None, 33.4])
def test_the_paper_is_spoken_of_where_it_is_quoted(paper: float | None) -> None:
    scored = ScoredTable("", {"Base": {}}, {"law": {}}, {"Base": {"law": Score(30.2, paper=paper)}})
    assert ("the paper's figure" in bleu_table(scored, "damt").to_markdown()) == (paper is not None)


def test_systems_are_compared_with_the_baseline_wherever_it_stands(data: Path, tmp_path: Path) -> None:
    """The first row is far from the baseline; the last translates as the baseline does."""
    test = Slice("koran", "train")
    references = [german for _, german in Corpora(data, ("en", "de")).pairs(test)]
    good = [line if i % 4 else "nichts" for i, line in enumerate(references)]
    rows = {"Base": ["gar nichts davon"] * len(references), "kNN-MT": good, "KSTER": good}
    cells = []
    for row, lines in rows.items():
        write_json(tmp_path / f"{row}.json.gz", {"lines": lines})
        for column in ("koran", "elsewhere"):
            if (row, column) != ("kNN-MT", "elsewhere"):
                cells.append({"row": row, "column": column, "test": asdict(test)})
                cells[-1] |= {
                    "translation": f"{row}.json.gz",
                    "row_coordinates": {},
                    "column_coordinates": {},
                }
    facts = {"experiment": "damt", "direction": "en-de", "averages": {}, "baseline": "kNN-MT"}
    corpora = Corpora(data, ("en", "de"))
    scored = score_cells(facts | {"cells": cells}, corpora, tmp_path, {}).cells
    p_values = {row: scored[row]["koran"].p_value for row in rows}
    assert p_values["kNN-MT"] is None
    assert p_values["Base"] is not None
    assert p_values["Base"] < 0.05
    assert p_values["KSTER"] is not None
    assert p_values["KSTER"] > 0.5
    assert scored["KSTER"]["elsewhere"].p_value is None  # where there is no baseline, nothing is compared


def test_the_recall_of_rare_words_counts_words_that_news_lack() -> None:
    common = {"the", "house", "is"}
    references = ["The Xylem house is Xylem.", "The phloem", "the house"]
    lines = ["the xylem is", "a house", "phloem"]
    assert rare_word_recall(lines, references, common) == pytest.approx(100 / 3)  # one of three
    assert rare_word_recall(["a"], ["the house"], common) is None
