"""`kster experiment`: the same as `python -m experiments`."""

from __future__ import annotations

from pathlib import Path

import pytest
from experiments.__main__ import NOT_FINISHED

from kster.cli import main


def test_it_names_the_experiments_it_knows(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "damtt", "--data", str(data), "--list-data"]) == 2
    error = capsys.readouterr().err
    assert "experiment 'damtt' is unknown; accepted: damt, mdmt" in error
    assert error.count("\n") == 1


def test_it_lists_the_files_it_reads(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "all", "--data", str(data), "--list-data"]) == 0
    assert str(data / "newstest" / "newstest2014.de.xz") in capsys.readouterr().out.splitlines()


def test_its_status_says_when_time_was_too_short(taught_marian: Path, data: Path, tmp_path: Path) -> None:
    options = ["--data", str(data), "--model", str(taught_marian), "--out", str(tmp_path), "--device", "cpu"]
    assert main(["experiment", "unseen", *options, "--max-seconds", "0"]) == NOT_FINISHED
