"""Which of a search's hypotheses is taken: the best, or one nearly as good without an error of the best.

These things are checked in the finished text, since no single token shows them:

- A source with a negation must not become a translation without one, nor the other way round. No name or
  number is left out that another hypothesis has, beside all the words of the best; and no number is made
  up, where an example's digits follow those of the source ("um 50 Uhr" for "5 pm", beside "um 20 Uhr").
- Euros stay euros, and dollars dollars.
- An order is not said twice, where one example has "Füllen Sie …" and another one "… füllen"; nor is a noun.
- One sentence speaks to its reader in one voice ("Sie" or "du"), that of the memory's similar segments if
  they have a clear one. If the best does not, the sentence is searched for once more without the words of
  the other voice. A taught sentence keeps its own: any other is far less probable. Where the memory says
  "du", a translation that says "Sie" is said anew by rule (`text/informal.py`), since models that have read
  little "du" write such sentences badly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from kster.memory import SearchableMemory
from kster.memory.checks.pairs import new_numbers
from kster.model import BaseModel
from kster.model.step import Candidates, Predict
from kster.text.currencies import currencies, with_currency_of
from kster.text.du_forms import repeats_order, says_twice
from kster.text.informal import informal
from kster.text.names import lost_names, says_more
from kster.text.negation import adds_negation, is_negated, loses_negation
from kster.text.voice import Voice, includes_writer, is_mixed, lacks_verb, leaves, speaks, voice_of, voices_in
from kster.translation.beam import Steering
from kster.translation.beams import Beams, Chosen, Hypothesis
from kster.translation.term_constraints import Requirement, written_terms
from kster.translation.words import SPACE

NEARLY = 0.8  # nats of the score, which is divided by length: how much worse the one taken may be
SIMILAR = 16  # segments whose voice is looked at
HEARD = 2  # of them that must have a voice …
CLEAR = 0.8  # … and the share of these that must have the same
MORE_CANDIDATES = 16  # in place of those that must not be taken
UNWANTED = -1.0e4  # log p of those

BOTH: tuple[Voice, ...] = ("more", "less")


def wished_voices(
    model: BaseModel,
    texts: Sequence[str],
    found: Sequence[list[Hypothesis]],
    memory: SearchableMemory | None,
) -> list[tuple[Voice, ...]]:
    """The voices in which to search for each text again: none if its best hypothesis speaks as it should."""
    if not speaks(model.target_lang or ""):
        return [()] * len(texts)
    each = zip(texts, found, strict=True)
    return [_wish(model, text, own[0], memory) if own else () for text, own in each]


def _informally(
    model: BaseModel, text: str, own: Sequence[Hypothesis], requirements: Sequence[Requirement]
) -> list[Hypothesis]:
    """Those of the hypotheses that say "Sie", with "du" instead and the same score."""
    said = []
    for one, written in zip(own, model.detokenise([one.tokens for one in own]), strict=True):
        if voices_in(written, text) != {"more"} or (new := informal(written, text)) is None:
            continue
        tokens = model.tokenise_target([new])[0][:-1]
        terms, kept = (set(written_terms(requirements, each)) for each in (one.tokens, tokens))
        if terms == kept and model.detokenise([tokens]) == [new]:
            said.append(Hypothesis(tuple(tokens), one.score))
    return said


def true_to_source(model: BaseModel, text: str, own: list[Hypothesis]) -> list[Hypothesis]:
    """With the best first that says nothing twice, makes up no number, denies what its source denies, and
    leaves no name out; in its source's currency."""
    own = _in_its_currency(model, text, own)
    if len(own) < 2:
        return own
    languages = model.source_lang or "", model.target_lang or ""
    (best,) = model.detokenise([own[0].tokens])
    if speaks(languages[1]) and says_twice(text, best):
        own = first_good(
            own, [not says_twice(text, one) for one in model.detokenise([one.tokens for one in own])]
        )
        (best,) = model.detokenise([own[0].tokens])
    if new_numbers(text, best):
        written = model.detokenise([one.tokens for one in own])
        own = first_good(own, [not new_numbers(text, one) for one in written])
        (best,) = model.detokenise([own[0].tokens])
    names = lost_names(text, best)
    denies = is_negated(best, languages[1])
    if not names and denies is (is_negated(text, languages[0]) or False):
        return own
    written = model.detokenise([one.tokens for one in own])
    if loses_negation(text, best, *languages):
        good = [not loses_negation(text, one, *languages) for one in written]
    else:
        good = [says_more(best, one, names) or adds_negation(text, best, one, *languages) for one in written]
    return first_good(own, good)


def _in_its_currency(model: BaseModel, text: str, own: list[Hypothesis]) -> list[Hypothesis]:
    """With euros for dollars, or the other way round, where the source names no others."""
    if not currencies(text):
        return own
    said = list(own)
    for i, written in enumerate(model.detokenise([one.tokens for one in own])):
        new = with_currency_of(text, written)
        tokens = model.tokenise_target([new])[0][:-1]
        if new != written and model.detokenise([tokens]) == [new]:
            said[i] = Hypothesis(tuple(tokens), own[i].score)
    return said


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
    mixed = is_mixed(written, text)
    if wanted is not None:
        speaks_well = voices == {wanted} and not mixed and not lacks_verb(written, text)
        return () if speaks_well else (wanted,)
    return BOTH if mixed else ()


def searched_voices(wish: tuple[Voice, ...]) -> tuple[Voice, ...]:
    """Where "du" is wanted, "Sie" is searched for, too, and said anew."""
    return BOTH if wish == ("less",) else wish


def clear_voice(memory: SearchableMemory, text: str, language: str) -> Voice | None:
    """The voice of the segments whose sources resemble a text; None if they have no clear one."""
    targets = [match.segment.target for match in memory.matches(text, SIMILAR)]
    heard = Counter(voice for target in targets if (voice := voice_of(target, language)) is not None)
    if heard.total() < HEARD:
        return None
    ((voice, count),) = heard.most_common(1)
    return voice if count >= CLEAR * heard.total() else None


def in_one_voice(
    model: BaseModel,
    text: str,
    own: list[Hypothesis],
    more: Sequence[Hypothesis],
    voices: tuple[Voice, ...],
    requirements: Sequence[Requirement],
) -> list[Hypothesis]:
    """As many hypotheses as there were, with the best first that speaks in one of the voices.

    own: those found at first; more: those searched for in the voices; requirements: the terms it must have.
    """
    count, own = len(own), [*own, *more]
    if voices == ("less",):
        own += _informally(model, text, more or own, requirements)
    languages = model.source_lang or "", model.target_lang or ""
    best, *others = own
    others = [one for one in sorted(set(others), key=lambda one: -one.score) if one.tokens != best.tokens]
    first, *written = model.detokenise([one.tokens for one in [best, *others]])
    good = [
        bool(heard := voices_in(one, text))
        and heard <= set(voices)
        and not is_mixed(one, text)
        and not lacks_verb(one, text)
        and includes_writer(one) <= includes_writer(first)  # "Vergessen wir" is no way out
        and not loses_negation(text, one, *languages)
        for one in written
    ]
    once = [is_good and not repeats_order(one) for is_good, one in zip(good, written, strict=True)]
    good = once if any(once) else good
    chosen = first_good([best, *others], [False, *good]) if any(good) else [best, *others]
    return chosen[:count]


class InOneVoice:
    """Steers a search away from what speaks in another voice than the one wanted for each sentence."""

    def __init__(
        self,
        model: BaseModel,
        texts: Sequence[str],
        voices: Sequence[Voice],
        beam: int,
        terms: Steering | None,
    ) -> None:
        """terms: what else the translations must have."""
        self._model, self._texts, self._voices, self._terms = model, texts, voices, terms
        self._said = [[""] * beam for _ in texts]  # by each beam so far

    def predictor(self, predict: Predict, beams: Beams, step: int) -> Predict:
        inner = predict if self._terms is None else self._terms.predictor(predict, beams, step)
        rows = [(i, said) for i in beams.sentence.tolist() for said in self._said[i]]

        def in_one_voice(
            queries: Tensor,
            logits: Tensor,
            count: int,
            wanted: Tensor | None = None,
            focus: Tensor | None = None,
        ) -> Candidates:
            tokens, log_probs = inner(queries, logits, count + MORE_CANDIDATES, wanted, focus)
            columns = zip(rows, tokens.tolist(), log_probs.tolist(), strict=True)
            enough = len(self._said[0]) + 2  # beams that can go on with these, an end, and padding
            unwanted = [self._unwanted(*row, own, scores, enough) for row, own, scores in columns]
            mask = torch.tensor(unwanted, device=log_probs.device)
            return Candidates(tokens, log_probs.masked_fill(mask, UNWANTED))

        return in_one_voice

    def choose(self, beams: Beams, candidates: Candidates, chosen: Chosen, step: int) -> Chosen:
        return chosen if self._terms is None else self._terms.choose(beams, candidates, chosen, step)

    def follow(self, beams: Beams, step: int, penalty: float) -> None:
        if self._terms is not None:
            self._terms.follow(beams, step, penalty)
        parents, tokens = beams.parents[:, step].tolist(), beams.tokens[:, step].tolist()
        for i, own_parents, own in zip(beams.sentence.tolist(), parents, tokens, strict=True):
            before = self._said[i]
            self._said[i] = [
                self._with(before[parent], token) for parent, token in zip(own_parents, own, strict=True)
            ]

    def _unwanted(
        self, i: int, said: str, tokens: list[int], log_probs: list[float], count: int
    ) -> list[bool]:
        """Which tokens leave the voice of a sentence, of the likeliest, until `count` of them do not."""
        found, good = [False] * len(tokens), 0
        for at in sorted(range(len(tokens)), key=lambda at: -log_probs[at]):
            found[at] = leaves(self._voices[i], self._with(said, tokens[at]), self._texts[i])
            good += not found[at]
            if good == count:
                break
        return found

    def _with(self, said: str, token: int) -> str:
        piece = " " if token == self._model.eos_id else self._model.token_text(token)
        return (said + piece.replace(SPACE, " ")).lstrip()
