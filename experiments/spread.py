"""What a smoother does token by token: how σ and λ are spread, and which words the memory decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

import torch

from experiments.blocks import DOMAINS, domain_setting, kster, test_slice
from experiments.data import LONGEST_TO_FIT, Pairs, Slice
from experiments.engine import Engine
from experiments.pipeline import Pipeline
from experiments.scale import Scale
from experiments.stages import read_json
from experiments.systems import engine_of
from experiments.tables import kernels
from kster.memory import Neighbours
from kster.model import ForcedSentence
from kster.smoothing import Smoothing
from kster.smoothing.example_distribution import log_example_prob_of, log_example_probs
from kster.smoothing.fitting.report import Distribution
from kster.translation.explanation import smooth_forced

Smoothed = tuple[ForcedSentence, Neighbours, Smoothing]


def _smooth(pipeline: Pipeline, engine: Engine, pairs: Pairs) -> Iterator[Smoothed]:
    """Force the decoder along each translation and look every state up."""
    assert engine.memory is not None
    assert engine.smoother is not None
    memory, smoother = pipeline.memory(engine.memory), pipeline.smoother(engine.smoother)
    for forced in pipeline.base.force_decode(pairs):
        neighbours, smoothing, _ = smooth_forced(pipeline.base, forced, memory, smoother)
        yield forced, neighbours, smoothing


# Figure: the distributions of bandwidth and mixing weight ------------------------------------------------


def spread(pipeline: Pipeline, scale: Scale) -> dict[str, Any]:
    """σ and λ of each kernel's smoother for the mixed memory, on the reference translations of each test."""
    block = kernels(scale).blocks[-1]
    statistics: dict[str, Any] = {}
    for system in block.systems:
        engine = engine_of(pipeline, system, block.setting, scale)
        for column, test in block.tests:
            statistics.setdefault(system.name, {})[column] = pipeline.measured(
                "spread", [engine.identity, str(test)], partial(_spread, pipeline, engine, test)
            )
    return {"statistics": statistics}


def _spread(pipeline: Pipeline, engine: Engine, test: Slice) -> dict[str, Any]:
    bandwidths, weights = [], []
    for _, _, smoothing in _smooth(pipeline, engine, pipeline.corpora.fitting_pairs(test)):
        bandwidths.append(smoothing.bandwidth.cpu())
        weights.append(smoothing.mixing_weight.cpu())
    return {
        "bandwidth": asdict(Distribution.of(torch.cat(bandwidths))),
        "mixing_weight": asdict(Distribution.of(torch.cat(weights), 0.0, 1.0)),
    }


# Figure: words decided by the memory, by part of speech --------------------------------------------------


def decided_words(pipeline: Pipeline, scale: Scale) -> dict[str, Any]:
    """KSTER's translations as words, each with whether the memory decided it; the report tags them."""
    statistics = {}
    for domain in DOMAINS:
        test = test_slice(domain, scale)
        engine = engine_of(pipeline, kster(scale), domain_setting(domain, scale), scale)
        lines = read_json(pipeline.translate(engine, test))["lines"]
        sources = [source for source, _ in pipeline.corpora.pairs(test)]
        pairs = [
            pair
            for pair in zip(sources, lines, strict=True)
            if all(0 < len(side.encode()) <= LONGEST_TO_FIT for side in pair)
        ]
        statistics[domain] = pipeline.measured(
            "words", [engine.identity, str(test)], partial(_words, pipeline, engine, pairs)
        )
    return {"statistics": statistics}


def _words(pipeline: Pipeline, engine: Engine, pairs: Pairs) -> list[list[list[Any]]]:
    """For each sentence its words and whether one of the word's tokens was decided by the memory."""
    sentences = []
    for forced, neighbours, smoothing in _smooth(pipeline, engine, pairs):
        tokens = [pipeline.base.token_text(token) for token in forced.tokens.tolist()[:-1]]
        decided = decided_tokens(forced, neighbours, smoothing)[:-1]  # without the end of sentence
        sentences.append(join_words(tokens, decided))
    return sentences


def join_words(tokens: list[str], decided: list[bool]) -> list[list[Any]]:
    """Tokens as words, [word, 0 or 1]; punctuation is a word of its own, however it is attached."""
    words: list[list[Any]] = []
    for token, by_memory in zip(tokens, decided, strict=True):
        piece = token.removeprefix("▁")
        inside = piece[:1].isalnum() and bool(words) and words[-1][0][-1:].isalnum()
        if token.startswith("▁") or not inside:
            words.append(["", 0])
        words[-1][0] += piece
        words[-1][1] = max(words[-1][1], int(by_memory))
    return [word for word in words if word[0]]


def decided_tokens(forced: ForcedSentence, neighbours: Neighbours, smoothing: Smoothing) -> list[bool]:
    """Whether each token is the memory's favourite but not the base model's (section 5.2)."""
    gold = forced.tokens.to(neighbours.values)
    example = log_example_prob_of(gold, smoothing.log_weights, neighbours.values)  # (n,) log p_e
    favourite = log_example_probs(smoothing.log_weights, neighbours.values).amax(dim=-1)  # (n,)
    is_favourite = (example >= favourite - 1e-6) & example.isfinite()
    not_base = forced.log_probs < forced.max_log_prob - 1e-6
    return (is_favourite.cpu() & not_base).tolist()


def decided_words_reads(scale: Scale) -> list[Slice]:
    settings = [domain_setting(domain, scale) for domain in DOMAINS]
    return [
        *(slice for setting in settings for slice in setting.memory.slices),
        *(slice.at_most(scale.dev) for setting in settings for slice in setting.dev),
        *(test_slice(domain, scale) for domain in DOMAINS),
    ]
