"""`python -m experiments NAME …`: reproduce a table or figure of the paper.

Everything is kept as it is made: a run that was stopped continues with the same command, and ends with
status 75 when --max-seconds was not enough. Plain argparse, so that it also runs on GPU machines that have
little more than torch, transformers and sacreBLEU.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from experiments import NAMES
from kster.errors import KsterError

NOT_FINISHED = 75  # the shell's "temporary failure, try again": the same command continues


def main(arguments: list[str] | None = None) -> int:
    purpose = (
        "Reproduce a table or figure of the paper. A run that was stopped continues with the same command."
    )
    parser = argparse.ArgumentParser(prog="python -m experiments", description=purpose)
    parser.add_argument("name", help=f"{', '.join(NAMES)}, or all")
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        metavar="DIR",
        help="corpora: <corpus>/<split>.<language>.xz; for wsd, if you have it, ContraWSD: "
        "wsd/contrawsd.<direction>.json",
    )
    parser.add_argument("--model", action="append", default=[], help="base model; repeat for both directions")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/experiments"), metavar="DIR", help="results, small"
    )
    parser.add_argument(
        "--cache", type=Path, metavar="DIR", help="memories, fits and models, large (default: OUT/cache)"
    )
    parser.add_argument(
        "--stage", choices=("run", "report", "both"), default="both", help="run translates, report scores"
    )
    parser.add_argument("--quick", action="store_true", help="a small sample: minutes on a CPU")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--max-seconds", type=float, metavar="S", help="begin nothing new after so long")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes that share the work")
    parser.add_argument(
        "--unseen", action="append", default=[], metavar="CORPUS", help="a further corpus with a test split"
    )
    parser.add_argument(
        "--pack", type=Path, metavar="DIR", help="copy what it reads to a smaller data directory, and stop"
    )
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
