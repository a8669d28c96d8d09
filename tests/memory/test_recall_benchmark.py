"""benchmarks/search_recall.py measures the same from a memory and from the arrays written from it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from speller import Speller

from kster.formats import Pair
from kster.memory import Memory

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "search_recall.py"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_recall_is_measured_from_a_memory_and_from_arrays(tmp_path: Path, speller: Speller) -> None:
    with Memory.create(tmp_path / "m", speller) as memory:
        memory.import_pairs(Pair(f"source {i}", f"target {i:03d}") for i in range(300))
        memory.remove(range(1, 11))
    direct = run(tmp_path / "m", "-n", 50, "-k", 4)
    assert direct.returncode == 0, direct.stderr
    lines = direct.stdout.splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == ["machine", "versions", "settings"]
    assert "exact_limit 131072" in lines[2]
    # 50 queries come from 10 segments, of 11 entries each, which are left out.
    assert lines[3] == f"{(300 - 10 - 10) * 11:,} entries, d = 16, 50 queries"
    (default,) = [line for line in lines if line.endswith("← default")]
    assert "recall@4 1.0000" in default  # more probes than lists
    assert run(tmp_path / "m", "-n", 50, "--write", tmp_path / "arrays").returncode == 0
    keys, queries = tmp_path / "arrays" / "keys-000.npy", tmp_path / "arrays" / "queries.npy"
    assert np.load(keys).dtype == np.load(queries).dtype == np.float16
    halves = np.array_split(np.load(keys), 2)
    for number, half in enumerate(halves):
        np.save(tmp_path / f"half-{number}.npy", half)
    by_arrays = run("--keys", tmp_path / "half-0.npy", tmp_path / "half-1.npy", "--queries", queries, "-k", 4)
    assert by_arrays.returncode == 0, by_arrays.stderr
    assert by_arrays.stdout.splitlines()[3] == lines[3]
    assert "recall@4 1.0000" in by_arrays.stdout


def test_mistaken_arrays_are_named(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 4), np.float16))
    np.save(tmp_path / "b.npy", np.zeros((3, 5), np.float16))
    assert "give a memory, or both" in run("--keys", tmp_path / "a.npy").stderr
    done = run("--keys", tmp_path / "a.npy", "--queries", tmp_path / "b.npy")
    assert done.returncode == 2
    assert "b.npy: float16 (3, 5); all must be (n, d) floats with one d" in done.stderr
