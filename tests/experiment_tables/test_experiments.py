"""Every experiment, run and reported with a tiny model on tiny corpora."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from experiments import NAMES
from experiments.catalogue import EXPERIMENTS
from experiments.command import Request, carry_out


@pytest.fixture(scope="session")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for all experiments: what one has made, another finds."""
    return tmp_path_factory.mktemp("experiments")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_it_runs_and_reports(
    name: str, data: Path, taught_marian: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carry_out(Request(name, data, [str(taught_marian)], out, quick=True, device="cpu"))
    results = json.loads((out / name / "results.json").read_text())["en-de"]
    assert results["scale"] == "quick"
    for cell in results.get("cells", ()):
        assert cell["row_coordinates"]["system"]
        assert {"test", "memory"} <= cell["column_coordinates"].keys()
    page = (out / name / "report.html").read_text()
    assert "<table>" in page
    assert "<svg" in page
    assert not re.search(
        r"""(src|href)=["']?http|<script|<link|@import|url\(http""", page
    )  # it loads nothing
    table = (out / name / "table.md").read_text()
    assert table.startswith(f"# {name}")
    for text in (page, table):  # how to make it again
        assert f"python -m experiments {name} --data DIR --model" in text
        assert "float32, seed 1; kster" in text
    assert str(taught_marian.parent) not in page + table
    assert "`" not in page
    pictures = sorted(path.suffix for path in (out / name).iterdir() if path.suffix in (".png", ".svg"))
    assert {".png", ".svg"} <= set(pictures)


def test_help_names_every_experiment() -> None:
    assert tuple(EXPERIMENTS) == NAMES
