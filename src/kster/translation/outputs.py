"""What the model makes of pieces: batches, beam search, and where asked for explanations and links."""

from __future__ import annotations

from collections.abc import Callable

from kster.model import BaseModel
from kster.model.step import Predict, StepDecoder
from kster.smoothing import Smoother
from kster.text.marks import MARK, same_marks
from kster.text.projection import Link
from kster.translation.batches import batches
from kster.translation.beam import Hypothesis, beam_search
from kster.translation.decoding import Decoding
from kster.translation.explanation import TokenExplanation, explain
from kster.translation.links import links_of
from kster.translation.open_memories import OpenMemory
from kster.translation.predictor import LookedUp, SmoothedPredictor, base_predictor
from kster.translation.result import Output


def outputs_of(
    decoder: StepDecoder,
    pieces: list[str],
    decoding: Decoding,
    memory: OpenMemory | None,
    smoother: Smoother | None,
    batch_sentences: int | None,
    progress: Callable[[int], None] | None,
) -> list[Output]:
    """Outputs in the pieces' order. progress: called with the number of pieces done."""
    model = decoder.model
    ids = model.tokenise_source(pieces)
    order = sorted(range(len(pieces)), key=lambda i: -len(ids[i]))
    limits = [longest_translation(model, len(ids[i])) for i in order]
    outputs: dict[int, Output] = {}
    for part in batches(model, limits, decoding.beam, batch_sentences):
        batch = order[part]
        sources = [ids[i] for i in batch]
        predict: Predict = base_predictor
        looked_up = None
        texts = [pieces[i] for i in batch]
        if memory is not None and smoother is not None:
            looked_up = LookedUp.of(memory, smoother, texts, model.device)
            predict = SmoothedPredictor(looked_up.searcher, smoother)
        found = beam_search(
            decoder,
            sources,
            predict,
            beam=decoding.beam,
            length_penalty=decoding.length_penalty,
            limits=limits[part],
            n_best=decoding.beam,  # one of the others may have kept what the best has lost
        )
        made = _outputs(model, texts, sources, found, decoding, looked_up, smoother)
        outputs.update(zip(batch, made, strict=True))
        if progress is not None:
            progress(len(outputs))
    return [outputs[i] for i in range(len(pieces))]


def longest_translation(model: BaseModel, source_tokens: int) -> int:
    """The most tokens a translation may have: twice its source and a little, as far as the model goes."""
    return min(2 * source_tokens + 20, model.max_length)


def _outputs(
    model: BaseModel,
    texts: list[str],
    sources: list[list[int]],
    found: list[list[Hypothesis]],
    decoding: Decoding,
    memory: LookedUp | None,
    smoother: Smoother | None,
) -> list[Output]:
    """What was found for some pieces, as text; hypotheses that keep the marks of their piece come first."""
    kept: list[list[tuple[str, Hypothesis]]] = []
    for piece, hypotheses in zip(texts, found, strict=True):
        own = hypotheses if MARK.search(piece) else hypotheses[: decoding.n_best]
        written = model.detokenise([one.tokens for one in own])
        pairs = sorted(zip(written, own, strict=True), key=lambda pair: not same_marks(piece, pair[0]))
        kept.append(pairs[: decoding.n_best])
    best = [[*own[0][1].tokens, model.eos_id] for own in kept]
    tokens: list[tuple[TokenExplanation, ...] | None] = [None] * len(found)
    links: list[tuple[Link, ...] | None] = [None] * len(found)
    if decoding.explain:
        tokens = [tuple(own) for own in explain(model, sources, best, memory, smoother)]
    if decoding.align:
        links = list(links_of(model, texts, sources, [own[0][0] for own in kept], best))
    return [
        Output(tuple((text, one.score) for text, one in own), explanation, link)
        for own, explanation, link in zip(kept, tokens, links, strict=True)
    ]
