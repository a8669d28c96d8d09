"""`python -m experiments NAME …`: run and report experiments where the full command line is missing."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from experiments.workers import NOT_FINISHED
from kster.errors import KsterError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("name", help="an experiment, or all")
    parser.add_argument("--data", type=Path, required=True, help="has <corpus>/<split>.<language>.xz")
    parser.add_argument("--model", action="append", default=[], help="base model; repeat for both directions")
    parser.add_argument("--out", type=Path, default=Path("runs/experiments"), help="small results")
    parser.add_argument("--cache", type=Path, help="large intermediate files (default: OUT/cache)")
    parser.add_argument("--stage", choices=("run", "report", "both"), default="both")
    parser.add_argument("--quick", action="store_true", help="a small sample, minutes on a CPU")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--max-seconds", type=float, help="begin nothing new after so long")
    parser.add_argument("--workers", type=int, default=1, help="processes that share the work")
    parser.add_argument("--unseen", action="append", default=[], help="a further corpus with a test split")
    parser.add_argument("--list-data", action="store_true", help="print the files it reads, and stop")
    parser.add_argument("--pack", type=Path, help="copy what it reads to a smaller data directory, and stop")
    options = parser.parse_args(arguments)
    try:
        from experiments.command import Request, carry_out

        finished = carry_out(Request(**vars(options)))
    except KsterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0 if finished else NOT_FINISHED


if __name__ == "__main__":
    sys.exit(main())
