"""The shipped models, opened by `transformers` and by KSTER, translate alike from text to text."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "lang"), [("en-de", "en"), ("de-en", "de")])
def test_shipped_models_translate_as_transformers_does(model: str, lang: str) -> None:
    command = [sys.executable, ROOT / "benchmarks" / "same_as_transformers.py", ROOT / "models" / model]
    source = ROOT / "examples" / f"heldout.{lang}"
    done = subprocess.run(
        [*command, "--source", source, "--device", "cpu"], capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.search(r"^(\d+) of (\d+) lines identical", done.stdout, re.MULTILINE)
    assert counts is not None
    identical, lines = map(int, counts.groups())
    assert lines > 100
    assert identical >= lines - 2  # a tie may go either way
