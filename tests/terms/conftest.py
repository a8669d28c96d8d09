"""The test set of `tests/data`: terms, and sentences that say which terms are in them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import pytest

from kster.terms import Term, TermBase

DATA = Path(__file__).parents[1] / "data"


@dataclass(frozen=True)
class Sentence:
    kind: str
    source: str
    reference: str
    terms: list[str]


@pytest.fixture(scope="session")
def terms(tmp_path_factory: pytest.TempPathFactory) -> list[Term]:
    with TermBase.create(tmp_path_factory.mktemp("terms") / "set.terms", "en", "de") as base:
        base.import_file(DATA / "terms.tsv")
        return base.terms()


@pytest.fixture(scope="session")
def sentences() -> list[Sentence]:
    with (DATA / "terms_sentences.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(rows)
        return [Sentence(kind, en, de, list(filter(None, names.split("|")))) for kind, en, de, names in rows]
