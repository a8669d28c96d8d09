"""Why a translation reads as it does: for every token, what decided it and which examples counted.

An explanation reads the finished translation again: the decoder is forced along it once, and each state is
looked up again. The numbers are those that the search saw, to floating-point tolerance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import islice
from math import inf
from typing import Any

import torch
from torch import Tensor

from kster.memory import Neighbours, Provenance, SearchableMemory
from kster.memory.search.retriever import Searcher
from kster.model import BaseModel
from kster.model.forcing import ForcedSentence, force_tokens
from kster.smoothing import Smoother, Smoothing
from kster.smoothing.example_distribution import log_example_prob_of
from kster.terms import Term
from kster.translation.predictor import LookedUp

TOKENS_AT_ONCE = 2048  # searched together; 16 keys of each, d = 512, are 32 MiB, with a learned distance 400


@dataclass(frozen=True, slots=True)
class Example:
    """One retrieved entry: a token somebody once wrote in a similar place."""

    segment: int
    source: str
    target: str
    position: int  # which token of the target it is, from 0
    token: str
    distance: float  # plain, or as the smoother has learned it
    weight: float  # its normalised kernel weight
    memory: str  # the memory's directory


@dataclass(frozen=True, slots=True)
class Lesson:
    """A segment whose word a translation has taken over as a whole."""

    segment: int
    source: str
    target: str
    memory: str  # the memory's directory


@dataclass(frozen=True, slots=True)
class TokenExplanation:
    """One output token, end of sentence included."""

    token: str
    probability: float  # under the method that translated
    base_probability: float
    example_probability: float
    mixing_weight: float  # λ
    bandwidth: float | None  # σ; None where no memory was asked
    examples: tuple[Example, ...]
    favourite_probability: float = 1.0  # of the token that the base model thought likeliest here
    nearest: float | None = None  # the nearest example's distance over the state's length; None without one
    term: str | None = None  # the source of the term it was written for, as the term base has it
    taught: Lesson | None = None  # the example whose word it was written for (`taught_words.py`)
    confidence: float | None = None  # that its word is right, where that was asked for

    @property
    def memory_share(self) -> float:
        """How much of its probability came from the examples: λ p_e / ((1 − λ) p_m + λ p_e)."""
        examples = self.mixing_weight * self.example_probability
        total = (1.0 - self.mixing_weight) * self.base_probability + examples
        return examples / total if total > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def explain(
    model: BaseModel,
    sources: list[list[int]],
    targets: list[list[int]],
    memory: LookedUp | None,
    smoother: Smoother | None,
    *,
    examples: bool = True,
) -> list[list[TokenExplanation]]:
    """Explain tokenised translations (targets end with eos), one list of tokens each.

    memory: looked up for these sources, in their order. examples: whether to name them, which reads them from
    the disk.
    """
    explained: list[list[TokenExplanation]] = []
    for group in grouped(force_tokens(model, sources, targets)):
        states = ForcedSentence.join(group)
        if memory is None or smoother is None:
            tokens = _base_tokens(model, states)
        else:
            searcher = _searcher_of(memory, group, first=len(explained))
            smoothed = smooth_forced(model, states, searcher, smoother)
            tokens = _smoothed_tokens(model, states, memory.memory if examples else None, *smoothed)
        waiting = iter(tokens)
        explained += [list(islice(waiting, len(sentence.tokens))) for sentence in group]
    return explained


def with_terms(
    tokens: Sequence[TokenExplanation], terms: Sequence[Term | None], lessons: Mapping[Term, Lesson]
) -> Iterator[TokenExplanation]:
    """Tokens that say which term or which example's word they were written for."""
    for token, term in zip(tokens, terms, strict=True):
        if term is None:
            yield token
        elif term in lessons:
            yield replace(token, taught=lessons[term])
        else:
            yield replace(token, term=term.source)


def score_forced(
    model: BaseModel, forced: Iterable[ForcedSentence], memory: LookedUp | None, smoother: Smoother | None
) -> Iterator[float]:
    """log p of each sentence. memory: looked up for their sources, in their order."""
    first = 0
    for group in grouped(forced):
        if memory is None or smoother is None:
            log_probs = [sentence.log_probs for sentence in group]
        else:
            states = ForcedSentence.join(group)
            searcher = _searcher_of(memory, group, first)
            together = smooth_forced(model, states, searcher, smoother)[2].cpu()
            log_probs = list(together.split([len(sentence.tokens) for sentence in group]))
        first += len(group)
        yield from (own.sum().item() for own in log_probs)


def _searcher_of(memory: LookedUp, group: list[ForcedSentence], first: int) -> Searcher:
    """A searcher for the tokens of consecutive sentences; first: which one the group begins with."""
    return memory.tokens_of(range(first, first + len(group)), [len(one.tokens) for one in group])


def grouped(forced: Iterable[ForcedSentence]) -> Iterator[list[ForcedSentence]]:
    """Sentences together until they have TOKENS_AT_ONCE tokens: one search is faster than many."""
    group: list[ForcedSentence] = []
    for sentence in forced:
        group.append(sentence)
        if sum(len(one.tokens) for one in group) >= TOKENS_AT_ONCE:
            yield group
            group = []
    if group:
        yield group


@torch.inference_mode()
def smooth_forced(
    model: BaseModel, forced: ForcedSentence, memory: Searcher, smoother: Smoother
) -> tuple[Neighbours, Smoothing, Tensor]:
    """Look up every state of forced sentences; also returns log p of their tokens, (n,)."""
    device = model.device
    queries, gold = forced.keys.to(device), forced.tokens.to(device).long()
    neighbours = smoother.neighbours(memory, queries)
    hidden, normaliser = forced.hidden.to(device), forced.log_normaliser.to(device)
    at_values = model.output_log_probs(hidden, neighbours.values, normaliser)  # (n, k)
    smoothing = smoother(
        queries, neighbours, at_values, forced.max_log_prob.to(device), forced.focus.to(device)
    )
    example = log_example_prob_of(gold, smoothing.log_weights, neighbours.values)  # (n,) log p_e(gold)
    log_probs = torch.logaddexp(
        smoothing.log_base_weight + forced.log_probs.to(device), smoothing.log_mixing_weight + example
    )
    return neighbours, smoothing, log_probs


def _base_tokens(model: BaseModel, forced: ForcedSentence) -> list[TokenExplanation]:
    numbers = (forced.log_probs.exp().tolist(), forced.max_log_prob.exp().tolist())
    return [
        TokenExplanation(model.token_text(token), p, p, 0.0, 0.0, None, (), favourite)
        for token, p, favourite in zip(forced.tokens.tolist(), *numbers, strict=True)
    ]


def _smoothed_tokens(
    model: BaseModel,
    forced: ForcedSentence,
    memory: SearchableMemory | None,
    neighbours: Neighbours,
    smoothing: Smoothing,
    log_probs: Tensor,
) -> list[TokenExplanation]:
    """memory: where examples are read; None to name none."""
    gold = forced.tokens.to(neighbours.values)
    example = log_example_prob_of(gold, smoothing.log_weights, neighbours.values)  # (n,)
    columns = (
        log_probs.exp(),
        forced.log_probs.exp(),
        example.exp(),
        smoothing.mixing_weight,
        smoothing.bandwidth,
    )
    texts = map(model.token_text, forced.tokens.tolist())
    numbers = (column.tolist() for column in columns)
    none: list[tuple[Example, ...]] = [()] * len(forced.tokens)
    examples = none if memory is None else _examples(model, memory, neighbours, smoothing)
    length = torch.linalg.vector_norm(forced.keys.float(), dim=-1).clamp_min(1e-6)  # (n,)
    nearest = neighbours.distances.amin(dim=-1).cpu() / length
    near = (None if distance == inf else distance for distance in nearest.tolist())
    rows = zip(texts, *numbers, examples, forced.max_log_prob.exp().tolist(), near, strict=True)
    return [TokenExplanation(*row) for row in rows]


def _examples(
    model: BaseModel, memory: SearchableMemory, neighbours: Neighbours, smoothing: Smoothing
) -> list[tuple[Example, ...]]:
    """The examples of every row, nearest first."""
    found = neighbours.ids >= 0  # (n, k)
    origins: list[Provenance] = memory.provenance(neighbours.ids[found])
    columns = (neighbours.values, neighbours.distances, smoothing.log_weights.exp())
    text_of = cache(model.token_text)  # tokens come back
    flat = iter(
        Example(
            segment=origin.segment.id,
            source=origin.segment.source,
            target=origin.segment.target,
            position=origin.position,
            token=text_of(token),
            distance=distance,
            weight=weight,
            memory=origin.memory,
        )
        for origin, token, distance, weight in zip(
            origins, *(column[found].tolist() for column in columns), strict=True
        )
    )
    return [tuple(islice(flat, count)) for count in found.sum(dim=-1).tolist()]
