"""From pieces to outputs: batches, beam search and, where they are wanted, explanations and links."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import torch

from kster.memory import SearchableMemory
from kster.model import BaseModel
from kster.model.step import Predict, StepDecoder
from kster.smoothing import Smoother
from kster.terms import Term
from kster.text.marks import MARK, same_marks
from kster.text.negation import loses_negation
from kster.text.projection import Link
from kster.text.voice import Voice
from kster.translation.batches import ON_GPU, batches
from kster.translation.beam import PerSentence, Steering, beam_search
from kster.translation.beams import Hypothesis
from kster.translation.choice import NEARLY, InOneVoice, chosen
from kster.translation.confidence import shipped_confidence
from kster.translation.decoding import Decoding
from kster.translation.explanation import Lesson, TokenExplanation, explain, with_terms
from kster.translation.links import links_of
from kster.translation.predictor import LookedUp, SearchClock, SmoothedPredictor, base_predictor
from kster.translation.result import Output
from kster.translation.side_by_side import shared_out, side_by_side, threads_for
from kster.translation.taught_words import TaughtWords, with_agreement
from kster.translation.term_constraints import written_terms
from kster.translation.term_guide import Guided, TermGuide
from kster.translation.term_search import LEAST_BEAM

Lacking = Mapping[int, Mapping[Term, Lesson]]  # by the numbers of outputs: taught words that they do not have


def outputs_of(
    decoder: StepDecoder,
    pieces: list[str],
    decoding: Decoding,
    memory: SearchableMemory | None,
    smoother: Smoother | None,
    batch_sentences: int | None,
    progress: Callable[[int], None],
    terms: TermGuide | None = None,
    on_search: Callable[[float], None] | None = None,
    taught: TaughtWords | None = None,
) -> list[Output]:
    """Outputs in the pieces' order. progress: called with the number of pieces done; terms: must be kept.

    on_search: on a CPU, called with the seconds that a batch's examples were searched for.
    taught: the words that the memory's segments taught, which are used where that is nearly as probable.
    """
    model = decoder.model
    penalty = decoding.penalty(smoother.settings.length_penalty if smoother is not None else None)
    guided = [terms.guide(piece) if terms else Guided(piece, ()) for piece in pieces]
    sources = model.tokenise_source([own.text for own in guided])
    outputs: dict[int, Output] = {}
    threads, on_gpu = threads_for(model.device), model.device.type == "cuda"
    for group, beam in _by_beam(guided, decoding.beam):
        order = sorted(group, key=lambda i: -len(sources[i]))
        limits = [longest_translation(model, len(sources[i])) for i in order]
        parts = [order[part] for part in batches(model, limits, beam, batch_sentences)]

        def batch_of(own: list[int], beam: int = beam) -> _Batch:
            call = _Call(decoder, decoding, penalty, memory, smoother, terms or TermGuide((), model))
            return _Batch(
                call, [pieces[i] for i in own], [guided[i] for i in own], [sources[i] for i in own], beam
            )

        def translated(own: list[int]) -> tuple[list[int], list[Output], Lacking, float]:
            batch = batch_of(own)
            made = batch.outputs()
            lacking: Lacking = {}
            if taught is not None and memory is not None:
                lacking = taught.missing(memory, batch.texts, [one.hypotheses[0][0] for one in made])
                if not on_gpu:
                    made = batch.with_taught_words(made, lacking, taught, memory)
            return own, made, lacking, batch.call.clock.seconds

        later: dict[int, Mapping[Term, Lesson]] = {}
        jobs = parts if on_gpu else shared_out(parts, threads)
        for own, made, lacking, seconds in side_by_side(translated, jobs, threads):
            outputs.update(zip(own, made, strict=True))
            later |= {own[at]: lessons for at, lessons in lacking.items()}
            if on_search is not None and memory is not None and model.device.type == "cpu":
                on_search(seconds)
            progress(len(outputs))
        if taught is not None and memory is not None and on_gpu:
            # Few sentences are searched again, and a batch of a few takes a GPU as long as one of many.
            again = list(later)
            for first in range(0, len(again), ON_GPU):
                own = again[first : first + ON_GPU]
                made, lessons = [outputs[i] for i in own], {at: later[i] for at, i in enumerate(own)}
                made = batch_of(own).with_taught_words(made, lessons, taught, memory)
                outputs.update(zip(own, made, strict=True))
    return [outputs[i] for i in range(len(pieces))]


@dataclass(frozen=True, slots=True)
class _Call:
    """What all pieces of a call of `outputs_of` have in common."""

    decoder: StepDecoder
    decoding: Decoding
    length_penalty: float
    memory: SearchableMemory | None
    smoother: Smoother | None
    terms: TermGuide
    clock: SearchClock = field(default_factory=SearchClock)


class _Batch:
    """Pieces that are searched for together; sources: as the model reads them."""

    def __init__(
        self, call: _Call, texts: list[str], guided: list[Guided], sources: list[list[int]], beam: int
    ) -> None:
        model = call.decoder.model
        self.call, self.texts, self.guided, self.sources, self.beam = call, texts, guided, sources, beam
        self.limits = [longest_translation(model, len(ids)) for ids in sources]

    @cached_property
    def looked_up(self) -> LookedUp | None:
        """What searches the memory for these pieces."""
        call = self.call
        if call.memory is None or call.smoother is None:
            return None
        with call.clock.running():
            model = call.decoder.model
            return LookedUp.of(call.memory, call.smoother, self.texts, model, self.sources)

    @cached_property
    def predict(self) -> Predict:
        if self.looked_up is None or self.call.smoother is None:
            return base_predictor
        return SmoothedPredictor(self.looked_up.searcher, self.call.smoother, self.call.clock)

    def outputs(self) -> list[Output]:
        call, model = self.call, self.call.decoder.model
        found = self._search(range(len(self.texts)), self.predict)
        found = chosen(model, self.texts, found, call.memory, self._in_one_voice)
        found = [with_agreement(model, one.lessons, own) for one, own in zip(self.guided, found, strict=True)]
        return _outputs(
            *(model, self.texts, self.guided, self.sources, found),
            *(call.decoding, self.looked_up, call.smoother),
        )

    def with_taught_words(
        self, made: list[Output], missing: Lacking, taught: TaughtWords, memory: SearchableMemory
    ) -> list[Output]:
        """Search again for outputs that lack taught words, which must then be used; taken if as good.

        missing: of each output that lacks any, by its number.
        """
        model = self.call.decoder.model
        guides = {i: self._with_lessons(i, lessons) for i, lessons in missing.items()}
        missing = {i: lessons for i, lessons in missing.items() if guides[i] is not None}
        if not missing:
            return made
        texts = [self.texts[i] for i in missing]
        guided = [one for one in guides.values() if one is not None]
        sources = model.tokenise_source([one.text for one in guided])
        again = _Batch(self.call, texts, guided, sources, max(self.beam, LEAST_BEAM))
        new = dict(zip(missing, again.outputs(), strict=True))
        left = taught.missing(memory, texts, [one.hypotheses[0][0] for one in new.values()])
        for at, (i, lessons) in enumerate(missing.items()):
            brought = left.get(at, {}).keys() < lessons.keys()  # and nothing else was lost
            if brought and self._is_as_good(i, made[i].hypotheses[0], new[i].hypotheses[0]):
                made[i] = new[i]
        return made

    def _with_lessons(self, i: int, lessons: Mapping[Term, Lesson]) -> Guided | None:
        """A text with the words that it lacks as further terms; None where they would take a term's place."""
        terms = [one.term for one in self.guided[i].requirements]
        guided = TermGuide([*terms, *lessons], self.call.decoder.model).guide(self.texts[i])
        kept = {one.term for one in guided.requirements}
        return guided._replace(lessons=lessons) if kept.issuperset(terms) else None

    def _is_as_good(self, i: int, old: tuple[str, float], new: tuple[str, float]) -> bool:
        """Whether a translation is nearly as probable as another, and has what that has of the source."""
        piece, model = self.texts[i], self.call.decoder.model
        languages = model.source_lang or "", model.target_lang or ""
        denied = loses_negation(piece, new[0], *languages) <= loses_negation(piece, old[0], *languages)
        marked = same_marks(piece, new[0]) >= same_marks(piece, old[0])
        return denied and marked and new[1] >= old[1] - NEARLY

    def _search(
        self, places: Sequence[int], predict: Predict, voices: Sequence[Voice] = ()
    ) -> list[list[Hypothesis]]:
        """Hypotheses of the sentences at these places, by a predictor that knows them alone.

        voices: that each of them is to speak in, if any.
        """
        guided = [self.guided[i] for i in places]
        steering: Steering | None = self.call.terms.search(guided, self.beam, self.call.decoding.n_best)
        if voices:
            texts = [self.texts[i] for i in places]
            steering = InOneVoice(self.call.decoder.model, texts, voices, self.beam, steering)
        return beam_search(
            self.call.decoder,
            [self.sources[i] for i in places],
            predict,
            beam=self.beam,
            length_penalty=self.call.length_penalty,
            limits=[self.limits[i] for i in places],
            n_best=self.beam,  # one of the others may have kept what the best has lost
            terms=steering,
        )

    def _in_one_voice(self, places: list[int], voices: list[Voice]) -> list[list[Hypothesis]]:
        """The search again, for these sentences alone, each without what speaks in the other voice."""
        predict = self.predict
        if isinstance(predict, PerSentence):
            predict = predict.keep(torch.tensor(places, device=self.call.decoder.model.device))
        return self._search(places, predict, voices)


def _by_beam(guided: Sequence[Guided], beam: int) -> Iterator[tuple[list[int], int]]:
    """The pieces that are searched with the same beam; terms need some room."""
    with_terms = [i for i, own in enumerate(guided) if own.requirements and beam < LEAST_BEAM]
    others = sorted(set(range(len(guided))).difference(with_terms))
    return iter([(others, beam), (with_terms, LEAST_BEAM)])


def longest_translation(model: BaseModel, source_tokens: int) -> int:
    """The most tokens a translation may have: twice its source and a little, as far as the model goes."""
    return min(2 * source_tokens + 20, model.max_length)


def _is_damaged(written: str) -> bool:
    return not any(map(str.isalnum, written)) or "\ufffd" in written


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
    """What was found for some pieces, as text; hypotheses that keep the marks of their piece come first, and
    last those without a word or with broken characters."""
    kept: list[list[tuple[str, Hypothesis]]] = []
    for piece, hypotheses in zip(texts, found, strict=True):
        own = hypotheses[: decoding.n_best]
        written = model.detokenise([one.tokens for one in own])
        if MARK.search(piece) or any(map(_is_damaged, written)):
            own, written = hypotheses, model.detokenise([one.tokens for one in hypotheses])
        pairs = sorted(
            zip(written, own, strict=True),
            key=lambda pair: (_is_damaged(pair[0]), not same_marks(piece, pair[0])),
        )
        kept.append(pairs[: decoding.n_best])
    best = [[*own[0][1].tokens, model.eos_id] for own in kept]
    tokens: list[tuple[TokenExplanation, ...] | None] = [None] * len(found)
    links: list[tuple[tuple[Link, ...], ...] | None] = [None] * len(found)
    confidences: list[float | None] = [None] * len(found)
    if decoding.explain or decoding.confidence:
        explained = explain(model, sources, best, memory, smoother, examples=decoding.explain)
        if decoding.confidence:
            shift = 0.0 if smoother is None else smoother.settings.confidence_shift
            for i, own_tokens in enumerate(explained):
                match = 0 if memory is None else memory.best_match(texts[i])
                confidences[i], explained[i] = shipped_confidence().judge(
                    own_tokens, texts[i], kept[i][0][0], match, shift
                )
        tokens = [
            tuple(with_terms(own, written_terms(one.requirements, target), one.lessons))
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
