"""benchmarks/key_variants.py: text that is in the memory is found there, whatever is done to its keys."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from smoothing.conftest import make_pairs

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "key_variants.py"


def test_every_kind_of_key_is_measured_beside_the_base_model(tiny_marian: Path, tmp_path: Path) -> None:

    files = [tmp_path / "text.source", tmp_path / "text.target"]
    pairs = make_pairs(20, seed=1)
    for side, path in enumerate(files):
        path.write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
    text = [str(path) for path in files]
    options = ["--model", str(tiny_marian), "--memory", *text, "--held-out", *text, "--tokens", "40"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    base, *variants = done.stdout.splitlines()[4:]
    nats = [float(line[34:].split()[0]) for line in (base, *variants)]
    assert len(variants) == 10
    assert all(variant < nats[0] for variant in nats[1:])
    assert all(line.endswith("right token among 16: 100.0%") for line in variants)
