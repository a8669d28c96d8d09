"""A report says what is missing from what a run left behind."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from kster.errors import KsterError
from kster.experiments.data import Slice
from kster.experiments.report import report
from kster.experiments.run import result_file
from kster.experiments.scoring import Score, ScoredTable
from kster.experiments.sections import bleu_table
from kster.experiments.stages import write_json

CELL = {"row": "in-domain", "column": "koran", "test": asdict(Slice("koran", "test")), "segments": 10}
ORIGIN = {"command": "kster experiment online", "machine": "", "precision": "", "seed": 1, "versions": {}}


def left_behind(out: Path, **facts: Any) -> Path:
    result = {"experiment": "online", "direction": "en-de", "scale": "full", "cells": [], "baseline": None}
    write_json(result_file(out, "online", "en-de"), result | facts)
    return out


def test_translations_that_were_not_fetched_are_named(data: Path, tmp_path: Path) -> None:
    growth = {"growth": [CELL | {"translation": "translations/en-de/lost.json.gz"}]}
    out = left_behind(tmp_path, origin=ORIGIN, statistics=growth)
    with pytest.raises(KsterError, match=r"lost\.json\.gz: the translations are missing"):
        report(["online"], data, out)


def test_a_result_that_does_not_say_how_it_was_made_is_to_be_made_again(data: Path, tmp_path: Path) -> None:
    out = left_behind(tmp_path, statistics={"growth": []})
    with pytest.raises(KsterError, match=r"en-de\.run\.json: made by an earlier version.*run it again"):
        report(["online"], data, out)


@pytest.mark.parametrize("paper", [None, 33.4])
def test_the_paper_is_spoken_of_where_it_is_quoted(paper: float | None) -> None:
    scored = ScoredTable("", ["Base"], ["law"], {"Base": {"law": Score(30.2, paper=paper)}})
    assert ("the paper's figure" in bleu_table(scored, "damt").to_markdown()) == (paper is not None)
