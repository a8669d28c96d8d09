"""The length penalty that a fit chooses, so that translations with a memory get as long as its own.

Beam search adds up log-probabilities, so shorter is likelier, and with a memory translations get shorter
still. Some development text is translated with each penalty in turn, until its translations are as long as
the references.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from kster.memory import Entries, Memory
from kster.model import BaseModel
from kster.smoothing.smoother import Smoother
from kster.translation.decoding import DEFAULT_LENGTH_PENALTY, Decoding
from kster.translation.translator import Translator
from kster.translation.unseen import MemoryWithout, SmootherWithout

PENALTIES = (DEFAULT_LENGTH_PENALTY, 0.8, 1.0)
"""Larger ones cost text that has nothing to do with the memory: news loses 0.2 BLEU with 1.0, 0.6 with 1.5
(docs/results/length.md)."""

LONG_ENOUGH = 0.98  # of the references' length
SENTENCES = 64  # that are translated
FEWEST = 16  # sentences; of fewer, chance decides how long they are


def choose_length(
    model: BaseModel,
    memory: Memory,
    smoother: Smoother,
    dev: Sequence[tuple[str, str]],
    entries: Entries,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> dict[float, float]:
    """Give the smoother the penalty whose translations are nearest to the references' length.

    dev: (source, target) pairs; those that are in the memory (entries) are translated as if they were not.
    progress: called with sentences done, and of how many. Returns how long translations got with each penalty
    that was tried, as a share of the references' tokens; with too few pairs none is.
    """
    if len(dev) < FEWEST:
        return {}
    pairs = random.Random(seed).sample(list(dev), min(SENTENCES, len(dev)))
    without = MemoryWithout(memory, pairs)
    unseen = SmootherWithout(smoother, without.entries_of(entries).to(model.device))
    translator = Translator(model)
    wanted = _tokens(model, [target for _, target in pairs])
    ratios: dict[float, float] = {}
    for turn, penalty in enumerate(PENALTIES):

        def told(done: int, before: int = turn * len(pairs)) -> None:
            if progress is not None:
                progress(before + done, len(PENALTIES) * len(pairs))

        sources, decoding = [source for source, _ in pairs], Decoding(length_penalty=penalty)
        made = translator.translate_pieces(sources, decoding, memory=without, smoother=unseen, progress=told)
        ratios[penalty] = _tokens(model, [output.hypotheses[0][0] for output in made]) / wanted
        if ratios[penalty] >= LONG_ENOUGH:
            break
    best = min(ratios, key=lambda penalty: abs(ratios[penalty] - 1.0))
    smoother.settings = replace(smoother.settings, length_penalty=best)
    return ratios


def _tokens(model: BaseModel, texts: Sequence[str]) -> int:
    return sum(map(len, model.tokenise_target(list(texts))))
