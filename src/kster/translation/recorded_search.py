"""Beam search whose step is recorded as one graph, bookkeeping and all: the host launches one thing a step.

Everything that a step reads and writes lies in tensors of the decoder's static state, which serve batch after
batch (`model/state.py`): the beams themselves, the number of the step, what scores are divided by. So the
host knows nothing of a search while it goes on, and asks only now and then whether it is over. Sentences that
are done stay where they are, since a step takes about as long for 64 sentences as for 16.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from kster.model.state import DecodingState
from kster.model.step import Freezable, FrozenPredict, Predict, StepDecoder
from kster.translation.beams import Beams, Hypothesis, advance, choose, collect, open_beams

STEPS_BETWEEN_CHECKS = 4
STEPS_BEFORE_RECORDING = 2  # recording takes as long as launching a few steps
LEAST_SHRUNK = 64  # sentences; so many or fewer are not made fewer
MOVED = ("open_scores", "scores", "ends")  # of beams: what bookkeeping makes anew


@runtime_checkable
class Settling(Protocol):
    """A predictor whose data recorded steps can be given."""

    def settled(self, state: DecodingState) -> Predict:
        """The predictor with its data where every step of this state looks for it."""


def settled(predict: Predict, state: DecodingState) -> Predict:
    return predict.settled(state) if isinstance(predict, Settling) else predict


@dataclass(frozen=True, slots=True)
class _Room:
    """The search's part of a static state: all its S sentences, in use or not, for at most T steps."""

    beams: Beams
    step: Tensor  # (1,) int64
    penalties: Tensor  # (T,) what scores are divided by after each step
    floor: Tensor  # (S,) and what open hypotheses' are divided by at least, see `beam.py`

    @classmethod
    def of(cls, state: DecodingState) -> _Room:
        """The room of a state, made when it is first asked for."""
        room = state.room.get("search")
        if room is None:
            shape, device = state.shape, state.position.device
            room = state.room["search"] = cls(
                beams=open_beams(shape.sentences, shape.beam, shape.capacity, [1] * shape.sentences, device),
                step=torch.zeros(1, dtype=torch.int64, device=device),
                penalties=torch.ones(shape.capacity, device=device),
                floor=torch.zeros(shape.sentences, device=device),
            )
        assert isinstance(room, cls)
        return room

    def begin(self, limits: list[int], length_penalty: float, extra: int) -> None:
        """For other sentences; the rows behind them count as done."""
        used, (every, beam) = len(limits), self.beams.open_scores.shape
        most, device = len(self.penalties), self.step.device
        fresh = open_beams(every, beam, most, limits + [most] * (every - used), device)
        fresh.done[used:] = True
        self._take(fresh)
        self.step.zero_()
        penalties = [(step + 1 + extra) ** length_penalty for step in range(most)]
        self.penalties.copy_(torch.tensor(penalties))
        self.floor.zero_()
        if length_penalty >= 1.0:
            self.floor[:used] = torch.tensor([float(limit + extra) ** length_penalty for limit in limits])

    def only(self, kept: Tensor) -> _Room:
        """A copy of what these sentences have; kept: (k,) ascending."""
        columns = {field.name: getattr(self.beams, field.name) for field in fields(Beams)}
        beams = Beams(**{name: column.index_select(0, kept) for name, column in columns.items()})
        return _Room(beams, self.step.clone(), self.penalties.clone(), self.floor.index_select(0, kept))

    def go_on(self, other: _Room) -> None:
        """With the sentences of another's, no more than there is room for."""
        rows = len(other.floor)
        for field in fields(Beams):
            if field.name != "first_row":
                getattr(self.beams, field.name)[:rows] = getattr(other.beams, field.name)
        self.beams.done[rows:] = True
        self.floor[:rows] = other.floor
        self.step.copy_(other.step)
        self.penalties.copy_(other.penalties)

    def _take(self, beams: Beams) -> None:
        for field in fields(Beams):
            getattr(self.beams, field.name).copy_(getattr(beams, field.name))


class RecordedSearch:
    """One batch's search in a static state."""

    @classmethod
    def of(
        cls, decoder: StepDecoder, state: DecodingState, predict: Predict, watch: bool
    ) -> RecordedSearch | None:
        """None where the step cannot be recorded as a whole, or it would not pay.

        watch: whether `predict` is told what the rows look at in the source.
        """
        if state.recorded is None or not isinstance(predict, Freezable) or predict.frozen(state) is None:
            return None
        return cls(decoder, state, predict, watch)

    def __init__(self, decoder: StepDecoder, state: DecodingState, predict: Predict, watch: bool) -> None:
        self._decoder, self._state, self._predict, self._watch = decoder, state, predict, watch
        self._room = _Room.of(state)

    def run(self, limits: list[int], length_penalty: float, n_best: int) -> list[list[Hypothesis]]:
        """As `beam_search`."""
        decoder = self._decoder
        extra, eos = len(decoder.model.layout.prefix) - 1, decoder.model.eos_id
        self._room.begin(limits, length_penalty, extra)
        self._begin_with(decoder.model.layout.prefix[-1])
        found: list[list[Hypothesis]] = [[] for _ in limits]
        steps = max(limits)
        sentences = len(limits)  # in use
        for step in range(1, steps + 1):
            self._step()
            if step % STEPS_BETWEEN_CHECKS == 0 and step < steps:
                done = self._room.beams.done[:sentences]
                left = sentences - int(done.sum())
                if not left:
                    break
                if sentences > LEAST_SHRUNK and 2 * left <= self._state.shape.sentences:
                    collect(self._room.beams, self._used(done), found, n_best, eos)
                    self._shrink((~done).nonzero()[:, 0])
                    sentences = left
        every = torch.ones(sentences, dtype=torch.bool, device=self._room.step.device)
        collect(self._room.beams, self._used(every), found, n_best, eos)
        decoder.finish(self._state)
        return found

    def _used(self, marked: Tensor) -> Tensor:
        """Marks, (s,), of the sentences in use, as marks of all there is room for."""
        return torch.nn.functional.pad(marked, (0, self._state.shape.sentences - len(marked)))

    def _begin_with(self, token: int) -> None:
        recorded = self._state.recorded
        assert recorded is not None
        recorded.tokens.fill_(token)
        recorded.parents.copy_(recorded.themselves)

    def _step(self) -> None:
        state, predict = self._state, self._predict
        assert state.recorded is not None
        assert isinstance(predict, Freezable)
        frozen = predict.frozen(state)
        if frozen is None:  # a memory that has grown too large, or is empty by now
            self._bookkept(state.recorded.tokens, state.recorded.parents, predict)
        else:
            fixed = frozen
            state.recorded.again(
                lambda tokens, parents: self._bookkept(tokens, parents, fixed),
                (state.stretch, self._watch, fixed, RecordedSearch),
                STEPS_BEFORE_RECORDING,
            )
        state.length += 1

    def _bookkept(
        self, tokens: Tensor, parents: Tensor, predict: Predict | FrozenPredict
    ) -> tuple[Tensor, ...]:
        """All of a step. tokens, parents: (rows,), what it reads, and then what the next one reads."""
        decoder, room = self._decoder, self._room
        queries, logits, focus = decoder.decoded(self._state, tokens, parents, self._watch)
        count = 2 * self._state.shape.beam + 1  # one more than wanted, because padding is not a word
        candidates = predict(queries, logits, count, None, focus)
        penalty = room.penalties[room.step]  # (1,)
        beams = replace(room.beams)
        new_parents, new_tokens = advance(
            beams,
            choose(beams, candidates, decoder.model.pad_id),
            room.step,
            decoder.model.eos_id,
            penalty,
            torch.maximum(penalty, room.floor),
        )
        for name in MOVED:
            getattr(room.beams, name).copy_(getattr(beams, name))
        tokens.copy_(new_tokens)
        parents.copy_(new_parents)
        room.step.add_(1)
        return ()

    def _shrink(self, kept: Tensor) -> None:
        """Go on with these sentences alone, (k,) ascending, in a smaller state."""
        old, predict = self._state, self._predict
        assert old.recorded is not None
        # All is copied before the old state is given back: another thread may take it at once.
        room = self._room.only(kept)
        if isinstance(predict, _Keeping):
            predict = predict.keep(kept)
        beam = old.shape.beam
        rows = (kept[:, None] * beam + torch.arange(beam, device=kept.device)).flatten()
        tokens = old.recorded.tokens.index_select(0, rows)
        within = old.recorded.parents.index_select(0, rows) % beam
        self._state = state = self._decoder.keep(old, kept)
        assert state.recorded is not None
        assert state is not old
        self._room = _Room.of(state)
        self._room.go_on(room)
        recorded = state.recorded
        recorded.tokens[: len(rows)] = tokens
        recorded.parents.copy_(recorded.themselves)
        recorded.parents[: len(rows)] = recorded.themselves[: len(rows)] // beam * beam + within
        self._predict = settled(predict, state)


@runtime_checkable
class _Keeping(Protocol):
    def keep(self, sentences: Tensor) -> Predict: ...
