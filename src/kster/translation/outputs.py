"""What the model makes of pieces: batches, beam search, and where asked for explanations and links."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import torch

from kster.model import BaseModel
from kster.model.step import Predict, StepDecoder
from kster.smoothing import Smoother
from kster.text.marks import MARK, same_marks
from kster.text.projection import Link
from kster.text.voice import Voice
from kster.translation.batches import batches
from kster.translation.beam import Hypothesis, PerSentence, beam_search
from kster.translation.choice import InOneVoice, chosen
from kster.translation.confidence import shipped_confidence
from kster.translation.decoding import Decoding
from kster.translation.explanation import TokenExplanation, explain, with_terms
from kster.translation.links import links_of
from kster.translation.open_memories import OpenMemory
from kster.translation.predictor import LookedUp, SearchClock, SmoothedPredictor, base_predictor
from kster.translation.result import Output
from kster.translation.term_constraints import written_terms
from kster.translation.term_guide import Guided, TermGuide
from kster.translation.term_search import LEAST_BEAM


def outputs_of(
    decoder: StepDecoder,
    pieces: list[str],
    decoding: Decoding,
    memory: OpenMemory | None,
    smoother: Smoother | None,
    batch_sentences: int | None,
    progress: Callable[[int], None],
    terms: TermGuide | None = None,
    on_search: Callable[[float], None] | None = None,
) -> list[Output]:
    """Outputs in the pieces' order. progress: called with the number of pieces done; terms: to be kept.

    on_search: on a CPU, called with the seconds that a batch's examples were searched for.
    """
    model = decoder.model
    penalty = decoding.penalty(smoother.settings.length_penalty if smoother is not None else None)
    guided = [terms.guide(piece) if terms else Guided(piece, ()) for piece in pieces]
    ids = model.tokenise_source([own.text for own in guided])
    outputs: dict[int, Output] = {}
    for group, beam in _by_beam(guided, decoding.beam):
        order = sorted(group, key=lambda i: -len(ids[i]))
        limits = [longest_translation(model, len(ids[i])) for i in order]
        for part in batches(model, limits, beam, batch_sentences):
            batch = order[part]
            sources = [ids[i] for i in batch]
            texts, own = [pieces[i] for i in batch], [guided[i] for i in batch]
            predict: Predict = base_predictor
            looked_up, clock = None, SearchClock()
            if memory is not None and smoother is not None:
                with clock.running():
                    looked_up = LookedUp.of(memory, smoother, texts, model, sources)
                predict = SmoothedPredictor(looked_up.searcher, smoother, clock)
            search = _Search(decoder, predict, sources, limits[part], own, beam, decoding, penalty, terms)
            found = search.run()
            found = chosen(model, texts, found, memory, search.in_one_voice)
            if on_search is not None and looked_up is not None and model.device.type == "cpu":
                on_search(clock.seconds)
            made = _outputs(model, texts, own, sources, found, decoding, looked_up, smoother)
            outputs.update(zip(batch, made, strict=True))
            progress(len(outputs))
    return [outputs[i] for i in range(len(pieces))]


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """The beam search of a batch."""

    decoder: StepDecoder
    predict: Predict
    sources: list[list[int]]
    limits: list[int]
    guided: list[Guided]
    beam: int
    decoding: Decoding
    length_penalty: float
    terms: TermGuide | None

    def run(self) -> list[list[Hypothesis]]:
        return beam_search(
            self.decoder,
            self.sources,
            self.predict,
            beam=self.beam,
            length_penalty=self.length_penalty,
            limits=self.limits,
            n_best=self.beam,  # one of the others may have kept what the best has lost
            terms=self.terms.search(self.guided, self.beam, self.decoding.n_best) if self.terms else None,
        )

    def in_one_voice(self, sentences: list[int], voices: list[Voice]) -> list[list[Hypothesis]]:
        """The search again, for these sentences alone, each without the words of the other voice."""
        predict = self.predict
        if isinstance(predict, PerSentence):
            predict = predict.keep(torch.tensor(sentences, device=self.decoder.model.device))
        return replace(
            self,
            predict=InOneVoice.of(predict, self.decoder.model, voices),
            sources=[self.sources[i] for i in sentences],
            limits=[self.limits[i] for i in sentences],
            guided=[self.guided[i] for i in sentences],
        ).run()


def _by_beam(guided: Sequence[Guided], beam: int) -> Iterator[tuple[list[int], int]]:
    """The pieces that are searched with the same beam; terms need some room."""
    with_terms = [i for i, own in enumerate(guided) if own.requirements and beam < LEAST_BEAM]
    others = sorted(set(range(len(guided))).difference(with_terms))
    return iter([(others, beam), (with_terms, LEAST_BEAM)])


def longest_translation(model: BaseModel, source_tokens: int) -> int:
    """The most tokens a translation may have: twice its source and a little, as far as the model goes."""
    return min(2 * source_tokens + 20, model.max_length)


def _outputs(
    model: BaseModel,
    texts: list[str],
    guided: list[Guided],
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
    links: list[tuple[tuple[Link, ...], ...] | None] = [None] * len(found)
    confidences: list[float | None] = [None] * len(found)
    if decoding.explain or decoding.confidence:
        explained = explain(model, sources, best, memory, smoother, examples=decoding.explain)
        if decoding.confidence:
            for i, own_tokens in enumerate(explained):
                match = 0 if memory is None else memory.best_match(texts[i])
                confidences[i], explained[i] = shipped_confidence().judge(
                    own_tokens, texts[i], kept[i][0][0], match
                )
        tokens = [
            tuple(with_terms(own, written_terms(one.requirements, target)))
            for own, one, target in zip(explained, guided, best, strict=True)
        ]
    if decoding.align:
        read = model.tokenise_source(texts)
        each = [(i, text, [*one.tokens, model.eos_id]) for i, own in enumerate(kept) for text, one in own]
        at, written, targets = (list(column) for column in zip(*each, strict=True))
        found_links = iter(links_of(model, [texts[i] for i in at], [read[i] for i in at], written, targets))
        links = [tuple(islice(found_links, len(own))) for own in kept]
    return [
        Output(tuple((text, one.score) for text, one in own), explanation, link, confidence)
        for own, explanation, link, confidence in zip(kept, tokens, links, confidences, strict=True)
    ]
