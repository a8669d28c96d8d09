"""From which size on does fitting a memory help? The loss of text that neither the memory nor the fit has.

    python benchmarks/small_fits.py --model models/en-de --examples examples/ombravella.tmx \\
        --held-out examples/heldout.en examples/heldout.de

Memories are drawn from the examples. Each is fitted as `kster fit` does, but whatever comes out is kept; the
held-out text is scored with that fit and with the smoother that the model carries.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kster import BaseModel, Memory
from kster.formats import Pair, read_moses, read_pairs
from kster.smoothing import FitSettings, Smoother, fit
from kster.smoothing.fitting.fit import over_fetch
from kster.smoothing.fitting.key_table import KeyTable
from kster.smoothing.fitting.lookup import Lookup, cache_pairs
from kster.smoothing.fitting.optimisation import Source, evaluate
from kster.smoothing.fitting.start import carried_smoother
from machine import describe


def trial(
    model: BaseModel, pairs: Sequence[Pair], held_out: Sequence[tuple[str, str]], settings: FitSettings
) -> tuple[int, float, float]:
    """Tokens trained on, and the losses with what the model carries and with a fit."""
    carried = carried_smoother(model, settings)
    if carried is None:
        raise SystemExit("the model carries no smoother to compare with")
    with tempfile.TemporaryDirectory() as place, Memory.create(Path(place) / "memory", model) as memory:
        memory.import_pairs(pairs)
        entries = memory.entries()
        source = Source(
            cache_pairs(Lookup(model, memory, entries), held_out, over_fetch(settings)),
            KeyTable(entries, model.device),
        )
        report = fit(model, memory, settings)
        fitted = Smoother.load(memory.directory / "smoother")
        before, after = (evaluate(smoother, source, model.device).nll for smoother in (carried, fitted))
        return report.train_tokens, before, after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--examples", type=Path, required=True, help="to draw memories from: TMX, XLIFF, …")
    parser.add_argument("--held-out", nargs=2, type=Path, required=True, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 40, 60, 80, 160], help="segments")
    parser.add_argument("--draws", type=int, default=3, help="memories of each size (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=200, help="of a fit (default: %(default)s)")
    options = parser.parse_args()
    print(describe(steps=options.steps, draws=options.draws, examples=str(options.examples)))
    sys.modules["kster.smoothing.fitting.fit"].FEW_TOKENS = 0  # type: ignore[attr-defined]  # keep every fit
    model = BaseModel.load(options.model, device="cpu")
    read = read_pairs(options.examples, model.source_lang, model.target_lang)
    examples = [pair for pair in read if isinstance(pair, Pair)]
    held_out = [(p.source, p.target) for p in read_moses(*options.held_out) if isinstance(p, Pair)]
    for size in options.sizes:
        for draw in range(options.draws):
            pairs = random.Random(f"{size} {draw}").sample(examples, size)
            settings = FitSettings(steps=options.steps, seed=draw + 1)
            tokens, before, after = trial(model, pairs, held_out, settings)
            print(f"{size} segments, {tokens:,} tokens: {before:.3f} becomes {after:.3f}", flush=True)


if __name__ == "__main__":
    main()
