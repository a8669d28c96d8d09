"""How soon does a large file of pairs change translations, and what does that cost?

    python benchmarks/large_import.py --source TEXT --target TEXT [--model models/en-de] [--sentences 20]

Runs the commands a user would: create, import (keys are made later), one sentence without the memory and with
it, in a new process each, so that everything is read from the disk; then some sentences, whose keys are made
on the spot, and the same sentences again. Sentences are sources of the memory with one word left out. The
first is a source as it is: its translation must be the one that was imported. Wall and CPU seconds of each.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kster.memory import Memory
from machine import describe


def run(what: str, *arguments: object, text: str = "") -> str:
    """Output of a command; its time is printed."""
    wall, cpu = time.monotonic(), _cpu()
    command = [sys.executable, "-m", "kster", *map(str, arguments)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    print(f"{what:<44} {time.monotonic() - wall:8.1f} s wall {_cpu() - cpu:8.1f} s CPU", flush=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def without_a_word(text: str) -> str:
    words = text.split()
    del words[random.randrange(len(words))]
    return " ".join(words) or text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--model", default="models/en-de")
    parser.add_argument("--sentences", type=int, default=20)
    options = parser.parse_args()
    random.seed(1)
    print(describe(model=options.model, sentences=options.sentences))
    with tempfile.TemporaryDirectory() as scratch:
        memory = Path(scratch) / "m"
        run("create", "memory", "create", memory, "--model", options.model)
        files = "--source", options.source, "--target", options.target
        print(run("import", "memory", "import", memory, *files).strip())
        with Memory.open(memory) as opened:
            count = opened.segment_count()
            picked = [opened.segments(1, random.randrange(count))[0] for _ in range(options.sentences + 1)]
        first, *others = picked
        sentences = "".join(f"{without_a_word(segment.source)}\n" for segment in others)
        one = f"{first.source}\n"
        run("one sentence without the memory", "translate", "--model", options.model, text=one)
        answer = run("the same with it", "translate", "--memory", memory, text=one).strip()
        print(f"its translation is the one imported: {answer == first.target}")
        run(f"{len(others)} sentences, keys on the spot", "translate", "--memory", memory, text=sentences)
        run(f"{len(others)} sentences again", "translate", "--memory", memory, text=sentences)
        with Memory.open(memory) as opened:
            info = opened.info()
        made = info.segments - info.without_keys
        print(f"{info.segments:,} segments, {made:,} of them with keys ({info.entries:,} entries)")


if __name__ == "__main__":
    main()
