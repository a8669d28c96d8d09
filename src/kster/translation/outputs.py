"""From pieces to outputs: batches, beam search and, where they are wanted, explanations and links."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import NamedTuple

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
from kster.translation.choice import (
    NEARLY,
    InOneVoice,
    in_one_voice,
    searched_voices,
    true_to_source,
    wished_voices,
)
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

    def new_call() -> _Call:
        return _Call(decoder, decoding, penalty, memory, smoother, terms or TermGuide((), model))

    for numbers, beam in _by_beam(guided, decoding.beam):
        group = _Group(new_call, pieces, guided, sources, beam, taught)
        order = sorted(numbers, key=lambda i: -len(sources[i]))
        while order:
            limits = [longest_translation(model, len(sources[i])) for i in order]
            parts = [order[part] for part in batches(model, limits, beam, batch_sentences)]
            jobs = parts if on_gpu else shared_out(parts, threads)
            for own, seconds in side_by_side(group.translate, jobs, threads):
                if on_search is not None and memory is not None and not on_gpu:
                    on_search(seconds)
                progress(len(outputs) + len(group.outputs))
                group.searched.update(own)
            order = [i for i in order if i in group.wished]
        group.use_taught_words()
        outputs |= group.outputs
    return [outputs[i] for i in range(len(pieces))]


class _Wish(NamedTuple):
    """What was found for a piece, and the voices in which it should be said instead."""

    found: list[Hypothesis]
    voices: tuple[Voice, ...]


class _Group:
    """Pieces, by their numbers, that are searched with the same beam."""

    def __init__(
        self,
        new_call: Callable[[], _Call],
        pieces: list[str],
        guided: list[Guided],
        sources: list[list[int]],
        beam: int,
        taught: TaughtWords | None,
    ) -> None:
        self.new_call, self.pieces, self.guided, self.sources = new_call, pieces, guided, sources
        self.beam, self.taught = beam, taught
        self.outputs: dict[int, Output] = {}
        self.searched: set[int] = set()
        self.wished: dict[int, _Wish] = {}  # what is to be searched for again, all of it together
        self.lacking: dict[int, Mapping[Term, Lesson]] = {}  # on a GPU, also that

    def _batch(self, own: list[int]) -> _Batch:
        return _Batch(
            self.new_call(),
            [self.pieces[i] for i in own],
            [self.guided[i] for i in own],
            [self.sources[i] for i in own],
            self.beam,
        )

    def translate(self, own: list[int]) -> tuple[list[int], float]:
        """Make the outputs of these pieces, or make them again in the voices that were wished for.

        Returns them and the seconds of search. Several threads may do so with different pieces.
        """
        batch = self._batch(own)
        if own[0] in self.searched:
            before = [self.wished.pop(i) for i in own]
            found = batch.in_voices([one.found for one in before], [one.voices for one in before])
        else:
            found, voices = batch.search()
            each = zip(own, found, voices, strict=True)
            self.wished.update({i: _Wish(hypotheses, wish) for i, hypotheses, wish in each if wish})
        made = batch.outputs(found)
        memory = batch.call.memory
        if self.taught is not None and memory is not None:
            missing = self.taught.missing(memory, batch.texts, [one.hypotheses[0][0] for one in made])
            if batch.on_gpu:
                self.lacking.update({i: missing.get(at, {}) for at, i in enumerate(own)})
            else:
                made = batch.with_taught_words(made, missing, self.taught, memory)
        self.outputs.update(zip(own, made, strict=True))
        return own, batch.call.clock.seconds

    def use_taught_words(self) -> None:
        """Search again, on a GPU, for what lacks taught words.

        That is not done batch by batch: few sentences lack any, and a few take a GPU as long as many.
        """
        again = [i for i, lessons in self.lacking.items() if lessons]
        for first in range(0, len(again), ON_GPU):
            own = again[first : first + ON_GPU]
            batch = self._batch(own)
            made, missing = [self.outputs[i] for i in own], {at: self.lacking[i] for at, i in enumerate(own)}
            if self.taught is not None and batch.call.memory is not None:
                made = batch.with_taught_words(made, missing, self.taught, batch.call.memory)
            self.outputs.update(zip(own, made, strict=True))


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
        self.on_gpu = model.device.type == "cuda"
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

    def search(self) -> tuple[list[list[Hypothesis]], list[tuple[Voice, ...]]]:
        """The hypotheses of each text, and the voices in which to search for it again, if any."""
        model = self.call.decoder.model
        found = self._search(range(len(self.texts)), self.predict)
        found = [true_to_source(model, text, own) for text, own in zip(self.texts, found, strict=True)]
        wishes = wished_voices(model, self.texts, found, self.call.memory)
        for i, voices in enumerate(wishes):
            if voices == ("less",):  # perhaps one that was found can be said anew
                said = self._in_one_voice(i, found[i], (), voices)
                if said[0] is not found[i][0]:
                    found[i], wishes[i] = said, ()
        return found, wishes

    def in_voices(
        self, found: list[list[Hypothesis]], wishes: Sequence[tuple[Voice, ...]]
    ) -> list[list[Hypothesis]]:
        """What was found, searched for again where other voices are wished for."""
        model, predict = self.call.decoder.model, self.predict
        rows = [(i, voice) for i, voices in enumerate(wishes) for voice in searched_voices(voices)]
        if not rows:
            return found
        places = [i for i, _ in rows]
        if isinstance(predict, PerSentence):
            predict = predict.keep(torch.tensor(places, device=model.device))
        more = self._search(places, predict, [voice for _, voice in rows])
        result = list(found)
        for i, voices in enumerate(wishes):
            if voices:
                new = [one for at, own in zip(places, more, strict=True) if at == i for one in own]
                result[i] = self._in_one_voice(i, found[i], new, voices)
        return result

    def _in_one_voice(
        self, i: int, own: list[Hypothesis], more: Sequence[Hypothesis], voices: tuple[Voice, ...]
    ) -> list[Hypothesis]:
        model = self.call.decoder.model
        return in_one_voice(model, self.texts[i], own, more, voices, self.guided[i].requirements)

    def outputs(self, found: list[list[Hypothesis]]) -> list[Output]:
        call, model = self.call, self.call.decoder.model
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
        new = dict(zip(missing, again.outputs(again.in_voices(*again.search())), strict=True))
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
