"""The shift of confidences that a fit chooses, so that they are true of the memory's own domain.

How near to a reference translations come differs between domains in ways that decoding does not see. But a
memory is text of its domain with known translations: some of it is translated as if it were not in the
memory, and the odds of all confidences are shifted by what makes its own right on average.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log
from statistics import fmean

import torch

from kster.memory import Entries, Memory
from kster.model import BaseModel
from kster.smoothing.fitting.report import Calibration
from kster.smoothing.smoother import Smoother
from kster.text.chrf import sentence_chrf
from kster.text.marks import marked_pair
from kster.translation.confidence import probability, shipped_confidence
from kster.translation.decoding import Decoding
from kster.translation.translator import Translator
from kster.translation.unseen import MemoryWithout, SmootherWithout

SENTENCES = 128  # that are translated
FEWEST = 16  # of fewer, chance decides how many are right
SPREAD = 0.9  # standard deviation of the shifts of eleven corpora (docs/results/confidence.md)
STEPS = 30  # of Newton's method, which needs five


def calibrate(
    model: BaseModel,
    memory: Memory,
    smoother: Smoother,
    dev: Sequence[tuple[str, str]],
    entries: Entries,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> Calibration | None:
    """Give the smoother the shift of confidences that suits a memory; with too little text none, and None.

    dev: (source, target) pairs of its domain; without any, segments of the memory are taken. Those that are
    in the memory (entries) are translated as if they were not. progress: called with sentences done, and of
    how many.
    """
    smoother.settings = replace(smoother.settings, confidence_shift=0.0)
    pairs = _sample(memory, dev, entries, seed)
    if len(pairs) < FEWEST:
        return None
    without = MemoryWithout(memory, pairs)
    unseen = SmootherWithout(smoother, without.entries_of(entries).to(model.device))
    read = [marked_pair(*pair) for pair in pairs]
    made = Translator(model).translate_pieces(
        [source for source, _ in read],
        Decoding(confidence=True),
        memory=without,
        smoother=unseen,
        progress=None if progress is None else lambda done: progress(done, len(pairs)),
    )
    judge = shipped_confidence()
    right = [
        sentence_chrf(output.hypotheses[0][0], target) >= judge.chrf
        for output, (_, target) in zip(made, read, strict=True)
    ]
    believed = [output.confidence or 0.0 for output in made]
    shift = round(shift_of(believed, right), 4) + 0.0  # not −0.0
    smoother.settings = replace(smoother.settings, confidence_shift=shift)
    return Calibration(len(pairs), round(fmean(right), 4), round(fmean(believed), 4), shift)


def shift_of(believed: Sequence[float], right: Sequence[bool]) -> float:
    """The likeliest shift of the odds' logarithm, if shifts are normally distributed about 0."""
    odds = [log(max(own, 1e-9) / max(1.0 - own, 1e-9)) for own in believed]
    shift = 0.0
    for _ in range(STEPS):
        shifted = [probability(own + shift) for own in odds]
        slope = sum(right) - sum(shifted) - shift / SPREAD**2
        shift += slope / (sum(own * (1.0 - own) for own in shifted) + 1 / SPREAD**2)
    return shift


def _sample(
    memory: Memory, dev: Sequence[tuple[str, str]], entries: Entries, seed: int
) -> list[tuple[str, str]]:
    draw = random.Random(seed)
    if dev:
        return draw.sample(list(dev), min(SENTENCES, len(dev)))
    known = torch.unique(entries.segment_ids).tolist()
    chosen = memory.segments_of(draw.sample(known, min(SENTENCES, len(known))))
    return [(segment.source, segment.target) for segment in chosen]
