"""Does it help to know how similar the source sentences are? The loss of held-out text, with and without.

    python benchmarks/source_similarity.py --model models/en-de \\
        --memory koran/train.en.xz koran/train.de.xz --held-out koran/dev.en.xz koran/dev.de.xz

Prints nats a token for the base model and, each with and without source similarity, for the smoother that the
model carries and for one that is fitted on the memory.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import islice
from pathlib import Path

from kster import BaseModel, Memory
from kster.formats import Pair, read_moses
from kster.smoothing import FitSettings, Smoother, fit
from kster.smoothing.fitting.fit import over_fetch
from kster.smoothing.fitting.key_table import KeyTable
from kster.smoothing.fitting.lookup import Lookup, cache_pairs
from kster.smoothing.fitting.optimisation import Source, evaluate
from kster.smoothing.fitting.start import carried_smoother
from machine import describe


def pairs_of(files: tuple[Path, Path], count: int) -> list[Pair]:
    return list(islice((pair for pair in read_moses(*files) if isinstance(pair, Pair)), count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--memory", nargs=2, type=Path, required=True, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--held-out", nargs=2, type=Path, required=True, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--segments", type=int, default=2_000, help="of the memory (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=200, help="of held-out text (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=200, help="of a fit (default: %(default)s)")
    options = parser.parse_args()
    print(describe(segments=options.segments, lines=options.lines, steps=options.steps))
    model = BaseModel.load(options.model)
    held_out = [(pair.source, pair.target) for pair in pairs_of(options.held_out, options.lines)]
    known = FitSettings(steps=options.steps, similarity=True)
    unknown = FitSettings(steps=options.steps)
    with tempfile.TemporaryDirectory() as scratch, Memory.create(Path(scratch) / "m", model) as memory:
        memory.import_pairs(pairs_of(options.memory, options.segments))
        entries = memory.entries()
        lookup = Lookup(model, memory, entries)
        source = Source(cache_pairs(lookup, held_out, over_fetch(known)), KeyTable(entries, model.device))
        print(f"\n{len(entries):,} entries, {len(source.cache):,} held-out tokens\n")
        print(f"{'base':32} {source.cache.base_nll:.4f}")
        for name, settings in (("without similarity", unknown), ("with similarity", known)):
            carried = carried_smoother(model, settings)
            if carried is not None:
                print(
                    f"{'carried, ' + name:32} {evaluate(carried, source, model.device).nll:.4f}", flush=True
                )
        for name, settings in (("without similarity", unknown), ("with similarity", known)):
            place = Path(scratch) / name
            fit(model, memory, settings, directory=place)
            smoother = Smoother.load(place)
            beta = "" if smoother.similarity is None else f"   β = {smoother.similarity.beta.item():.2f}"
            loss = evaluate(smoother, source, model.device).nll
            print(f"{'fitted, ' + name:32} {loss:.4f}{beta}", flush=True)


if __name__ == "__main__":
    main()
