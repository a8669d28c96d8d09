"""Which of a search's hypotheses is taken: the best, or one nearly as good without an error of the best.

Two things are checked in the finished text, since no single token shows them:

- A source with a negation must not become a translation without one.
- One sentence speaks to its reader in one voice ("Sie" or "du"), that of the memory's similar segments if
  they have a clear one. If no hypothesis does, the sentence is searched for once more without the words of
  the other voice. A taught sentence keeps its own: any other is far less probable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kster.memory import SearchableMemory
from kster.model import BaseModel
from kster.model.step import Candidates, Predict
from kster.text.negation import loses_negation
from kster.text.voice import TOLD, WORDS, Voice, includes_writer, speaks, voice_of, voices_in
from kster.translation.beam import Hypothesis, PerSentence, Watching

NEARLY = 0.8  # nats of the score, which is divided by length: how much worse the one taken may be
SIMILAR = 16  # segments whose voice is looked at
HEARD = 2  # of them that must have a voice …
CLEAR = 0.8  # … and the share of these that must have the same
MORE_CANDIDATES = 16  # in place of those that must not be taken

OTHER: dict[Voice, Voice] = {"more": "less", "less": "more"}
SearchAgain = Callable[[list[int], list[Voice]], list[list[Hypothesis]]]
"""Given sentences and a voice for each, their hypotheses without the words of the other voice."""


def chosen(
    model: BaseModel,
    texts: Sequence[str],
    found: Sequence[list[Hypothesis]],
    memory: SearchableMemory | None,
    again: SearchAgain,
) -> list[list[Hypothesis]]:
    """The hypotheses of each text, the one to take first."""
    ordered = [_with_negation(model, text, own) for text, own in zip(texts, found, strict=True)]
    if not speaks(model.target_lang or ""):
        return ordered
    wishes = {
        i: wish
        for i, (text, own) in enumerate(zip(texts, ordered, strict=True))
        if own and (wish := _wish(model, text, own[0], memory))
    }
    if not wishes:
        return ordered
    rows = [(i, voice) for i, voices in wishes.items() for voice in voices]
    more = again([i for i, _ in rows], [voice for _, voice in rows])
    for i, voices in wishes.items():
        own = ordered[i] + [one for (j, _), new in zip(rows, more, strict=True) if j == i for one in new]
        ordered[i] = _in_one_voice(model, texts[i], own, voices)[: len(ordered[i])]
    return ordered


def _with_negation(model: BaseModel, text: str, own: list[Hypothesis]) -> list[Hypothesis]:
    languages = model.source_lang or "", model.target_lang or ""
    if len(own) < 2 or not loses_negation(text, "", *languages):
        return own
    written = model.detokenise([one.tokens for one in own])
    keeps = [not loses_negation(text, one, *languages) for one in written]
    return first_good(own, keeps)


def first_good(own: list[Hypothesis], good: Sequence[bool]) -> list[Hypothesis]:
    """The hypotheses, with the best of the good ones moved to the front if it is nearly as good as the
    first."""
    best = next((i for i, is_good in enumerate(good) if is_good), 0)
    if own[best].score < own[0].score - NEARLY:
        return own
    return [own[best], *own[:best], *own[best + 1 :]]


def _wish(
    model: BaseModel, text: str, best: Hypothesis, memory: SearchableMemory | None
) -> tuple[Voice, ...]:
    """The voices to try: none if the best hypothesis speaks as it should."""
    (written,) = model.detokenise([best.tokens])
    voices = voices_in(written, text)
    if not voices:
        return ()
    wanted = None if memory is None else clear_voice(memory, text, model.target_lang or "")
    if wanted is not None:
        return () if voices == {wanted} else (wanted,)
    return ("more", "less") if len(voices) > 1 else ()


def clear_voice(memory: SearchableMemory, text: str, language: str) -> Voice | None:
    """The voice of the segments whose sources resemble a text; None if they have no clear one."""
    targets = [match.segment.target for match in memory.matches(text, SIMILAR)]
    heard = Counter(voice for target in targets if (voice := voice_of(target, language)) is not None)
    if heard.total() < HEARD:
        return None
    ((voice, count),) = heard.most_common(1)
    return voice if count >= CLEAR * heard.total() else None


def _in_one_voice(
    model: BaseModel, text: str, own: list[Hypothesis], voices: tuple[Voice, ...]
) -> list[Hypothesis]:
    languages = model.source_lang or "", model.target_lang or ""
    best, *others = own
    others = [one for one in sorted(set(others), key=lambda one: -one.score) if one.tokens != best.tokens]
    first, *written = model.detokenise([one.tokens for one in [best, *others]])
    good = [
        len(heard := voices_in(one, text)) == 1
        and heard <= set(voices)
        and includes_writer(one) <= includes_writer(first)  # "Vergessen wir" is no way out
        and not loses_negation(text, one, *languages)
        for one in written
    ]
    return first_good([best, *others], [False, *good]) if any(good) else [best, *others]


@dataclass(frozen=True, slots=True, eq=False)
class InOneVoice:
    """A predictor that leaves out the words of other voices."""

    predict: Predict
    left_out: Tensor  # (s, w) int64: tokens, of each sentence

    @classmethod
    def of(cls, predict: Predict, model: BaseModel, voices: Sequence[Voice]) -> InOneVoice:
        tokens = {voice: _tokens(model, OTHER[voice]) for voice in set(voices)}
        width = max(map(len, tokens.values()))
        rows = [tokens[voice] + [model.pad_id] * (width - len(tokens[voice])) for voice in voices]
        return cls(predict, torch.tensor(rows, device=model.device))

    @property
    def watches(self) -> bool:
        return isinstance(self.predict, Watching) and self.predict.watches

    def __call__(
        self,
        queries: Tensor,
        logits: Tensor,
        count: int,
        wanted: Tensor | None = None,
        focus: Tensor | None = None,
    ) -> Candidates:
        tokens, log_probs = self.predict(queries, logits, count + MORE_CANDIDATES, wanted, focus)
        rows = len(tokens) // len(self.left_out)
        left_out = self.left_out.repeat_interleave(rows, 0)  # (s · b, w)
        is_out = (tokens[:, :, None] == left_out[:, None]).any(-1)
        return Candidates(tokens, log_probs.masked_fill(is_out, -1.0e4))

    def keep(self, sentences: Tensor) -> InOneVoice:
        predict = self.predict.keep(sentences) if isinstance(self.predict, PerSentence) else self.predict
        return InOneVoice(predict, self.left_out.index_select(0, sentences))


def _tokens(model: BaseModel, voice: Voice) -> list[int]:
    """Tokens that write words of a voice, or begin them: "d" of "d·einen" begins hardly anything else.

    Those that also begin the polite form, as "Zieh" of "Zieh·en" does, are left out.
    """
    tokens = {ids[0] for ids in _read(model, WORDS[voice])}
    tokens |= {ids[0] for ids in _read(model, map(str.capitalize, WORDS[voice])) if len(ids) == 1}
    if voice == "less":
        told = [form for word in TOLD for form in (word, word.capitalize())]
        polite = _read(model, [word + ("n" if word.endswith("e") else "en") for word in told])
        begun = {ids[0] for ids in polite}
        tokens |= {ids[0] for ids in _read(model, told) if len(ids) == 1} - begun
    return sorted(tokens)


def _read(model: BaseModel, words: Iterable[str]) -> list[list[int]]:
    read = model.tokenise_target(list(words))
    return [[token for token in ids if token != model.eos_id] for ids in read]
