"""A model between two others: the weighted mean of their weights.

    python recipes/average.py models/en-de runs/en-de-cpu/trained/model --share 0.7 --output runs/en-de-mean

What a short training on new text made a model forget comes back with a share of the weights that knew it.
Both models must have one origin, one shape and one vocabulary; everything but the weights is the second's.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from safetensors.torch import load_file, save_file

from kster.errors import KsterError
from kster.files import new_directory

WEIGHTS = "model.safetensors"
SAME = ("vocab.json", "source.spm", "target.spm")


def average(first: Path, second: Path, share: float, output: Path) -> None:
    """share: of the second, 0 to 1; `output` must not exist."""
    if not 0 <= share <= 1:
        raise KsterError(f"--share is {share}; accepted: 0 to 1")
    for name in (WEIGHTS, *SAME):
        for model in (first, second):
            if not (model / name).is_file():
                raise KsterError(f"{model} is no model with weights in {WEIGHTS}: {name} is missing")
    if any((first / name).read_bytes() != (second / name).read_bytes() for name in SAME):
        raise KsterError(f"{first} and {second} have different vocabularies; nothing was written")
    ours, theirs = (load_file(model / WEIGHTS) for model in (first, second))
    if {name: w.shape for name, w in ours.items()} != {name: w.shape for name, w in theirs.items()}:
        raise KsterError(f"{first} and {second} are networks of different shapes; nothing was written")
    mean = {name: ours[name].float().lerp(w.float(), share).to(w.dtype) for name, w in theirs.items()}
    with new_directory(output) as unfinished:
        shutil.copytree(second, unfinished, dirs_exist_ok=True, ignore=shutil.ignore_patterns("smoother"))
        save_file(mean, unfinished / WEIGHTS, metadata={"format": "pt"})


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--share", type=float, default=0.5, help="of the second model (default: %(default)s)")
    parser.add_argument("--output", type=Path, required=True, help="the model to make")
    options = parser.parse_args(arguments)
    try:
        average(options.first, options.second, options.share, options.output)
    except KsterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
