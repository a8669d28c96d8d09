"""Does it help to know how similar the source sentences are? The loss of held-out text, with and without.

    python benchmarks/source_similarity.py --data DIR --model models/en-de --model models/de-en

Memories of a few hundred segments of each domain are used with the smoother that the model carries: with
plain distances, and with d · (1 − β s) for several β. Prints nats a token on development text of the domain,
and on news, which a memory should leave alone. With --steps a smoother is also fitted on each memory, without
s and with it.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

from corpora import pairs_of
from kster import BaseModel, Memory
from kster.smoothing import FitSettings, Smoother, fit
from kster.smoothing.defaults import SMOOTHER_DIRECTORY
from kster.smoothing.fitting.fit import over_fetch
from kster.smoothing.fitting.key_table import KeyTable
from kster.smoothing.fitting.lookup import Lookup, cache_pairs
from kster.smoothing.fitting.optimisation import Source, evaluate
from kster.smoothing.fitting.start import with_similarity
from machine import describe

DOMAINS = ("koran", "it", "docs_adobe")
BETAS = (0.0, 0.3, 0.5, 0.7)


def with_beta(carried: Smoother, beta: float) -> Smoother:
    """beta: 0 for plain distances."""
    smoother = carried if carried.similarity is not None else with_similarity(carried)
    assert smoother.similarity is not None
    smoother.similarity.logit.data.fill_(math.log(beta / (1.0 - beta)) if beta else -math.inf)
    return smoother


def fitted(model: BaseModel, memory: Memory, steps: int) -> Iterator[Smoother]:
    """Without similarity and with it."""
    for similarity in (False, True):
        with tempfile.TemporaryDirectory() as place:
            fit(model, memory, FitSettings(steps=steps, similarity=similarity), directory=Path(place))
            yield Smoother.load(place)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="<corpus>/<split>.<language>.xz")
    parser.add_argument("--model", action="append", required=True)
    parser.add_argument("--segments", type=int, default=700, help="of a memory (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=50, help="of development text (default: %(default)s)")
    parser.add_argument("--news", type=int, default=25, help="lines of news (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=0, help="of a fit (default: no fit)")
    options = parser.parse_args()
    print(describe(segments=options.segments, lines=options.lines, news=options.news, steps=options.steps))
    columns = [f"β = {beta}" for beta in BETAS] + (["fit", "fit, s"] if options.steps else [])
    print("\n" + f"{'':24} {'':8} {'base':>8} " + " ".join(f"{column:>8}" for column in columns))
    for name in options.model:
        model = BaseModel.load(name)
        languages = (str(model.source_lang), str(model.target_lang))
        carried = Smoother.load(Path(name) / SMOOTHER_DIRECTORY)
        for domain in DOMAINS:
            texts = {
                domain: pairs_of(options.data, f"{domain}/dev", languages, options.lines),
                "news": pairs_of(options.data, "newstest/newstest2013", languages, options.news),
            }
            with tempfile.TemporaryDirectory() as place, Memory.create(Path(place) / "m", model) as memory:
                memory.import_pairs(
                    pairs_of(options.data, f"{domain}/train", languages, options.segments), keys="now"
                )
                entries = memory.entries()
                lookup, table = Lookup(model, memory, entries), KeyTable(entries, model.device)
                fits = list(fitted(model, memory, options.steps)) if options.steps else []
                for text, pairs in texts.items():
                    cache = cache_pairs(
                        lookup, [(p.source, p.target) for p in pairs], over_fetch(FitSettings())
                    )
                    source = Source(cache, table)
                    losses = [evaluate(with_beta(carried, beta), source, model.device).nll for beta in BETAS]
                    losses += [evaluate(smoother, source, model.device).nll for smoother in fits]
                    numbers = " ".join(f"{loss:8.3f}" for loss in (cache.base_nll, *losses))
                    print(f"{name + ', ' + domain:24} {text[:8]:8} {numbers}", flush=True)


if __name__ == "__main__":
    main()
