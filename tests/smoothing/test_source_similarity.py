"""Neighbours from similar sentences are nearer: by hand, learned, and without harm where nothing is known."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from kster.memory.search.neighbours import Neighbours
from kster.smoothing import FitSettings, Smoother, SmootherSettings
from kster.smoothing.fitting.cache import EXTERNAL, FitCache
from kster.smoothing.fitting.key_table import KeyTable
from kster.smoothing.fitting.optimisation import Optimisation, Source
from kster.smoothing.fitting.start import with_similarity
from kster.smoothing.source_similarity import START, SourceSimilarity, similarity_evidence
from smoothing.cases import DIMENSION, neighbours_of, random_smoother


class Found:
    """A memory that always answers the same."""

    def __init__(self, answer: Neighbours) -> None:
        self.answer = answer

    def search(self, queries: torch.Tensor, k: int) -> Neighbours:
        return self.answer


def similar(beta: float) -> SourceSimilarity:
    measure = SourceSimilarity()
    measure.logit.data.fill_(math.log(beta / (1 - beta)))
    return measure


def test_distances_shrink_by_hand() -> None:
    distances = torch.tensor([[2.0, 3.0, torch.inf]])
    nearer = similar(0.5)(distances, torch.tensor([[0.0, 0.8, 0.0]]))
    torch.testing.assert_close(nearer, torch.tensor([[2.0, 3.0 * (1 - 0.4), torch.inf]]))


def test_what_was_not_found_has_no_say_in_learning() -> None:
    measure = similar(0.5)
    nearer = measure(torch.tensor([[2.0, torch.inf]]), torch.tensor([[0.5, 0.0]]))
    nearer.masked_fill(~nearer.isfinite(), 0.0).sum().backward()
    assert measure.logit.grad is not None
    torch.testing.assert_close(measure.logit.grad, torch.tensor(-2.0 * 0.5 * 0.25))  # β′ = β (1 − β)


def test_a_farther_neighbour_of_a_similar_sentence_is_used_before_a_nearer_one() -> None:
    smoother = Smoother(SmootherSettings(dimension=DIMENSION, k=2, similarity=True))
    assert smoother.similarity is not None
    smoother.similarity.logit.data.fill_(0.0)  # β = 0.5
    found = neighbours_of([[1.0, 1.2, 1.6, torch.inf]], [[11, 12, 13, 0]])
    found.similarity = torch.tensor([[0.0, 0.0, 1.0, 0.0]])
    chosen = smoother.neighbours(Found(found), torch.zeros(1, DIMENSION))
    assert chosen.values.tolist() == [[13, 11]]
    torch.testing.assert_close(chosen.distances, torch.tensor([[0.8, 1.0]]))
    assert chosen.similarity is not None
    assert chosen.similarity.tolist() == [[1.0, 0.0]]


def test_without_knowledge_of_sentences_distances_are_plain() -> None:
    smoother = Smoother(SmootherSettings(dimension=DIMENSION, k=2, similarity=True))
    chosen = smoother.neighbours(Found(neighbours_of([[1.0, 2.0]], [[11, 12]])), torch.zeros(1, DIMENSION))
    assert chosen.distances.tolist() == [[1.0, 2.0]]


def test_the_evidence_by_hand() -> None:
    evidence = similarity_evidence(
        torch.tensor([[0.2, 0.6, 0.9]]),
        torch.tensor([[0.25, 0.75, 0.0]]),
        torch.tensor([[True, True, False]]),
    )
    torch.testing.assert_close(evidence, torch.tensor([[0.6, 0.25 * 0.2 + 0.75 * 0.6]]))


def test_a_smoother_to_which_similarity_is_new_decides_as_before_where_there_is_none() -> None:
    before = random_smoother(features="confidence", exact_match=0.98, k=3)
    after = with_similarity(before)
    queries = torch.randn(1, DIMENSION, generator=torch.Generator().manual_seed(5))
    found = neighbours_of([[1.0, 1.5, 2.0]], [[4, 5, 4]])
    found.distances = torch.linalg.vector_norm(queries[:, None] - found.keys.float(), dim=-1)
    base = torch.full((1, 3), -2.0), torch.tensor([-1.0])
    one, other = before(queries, found, *base), after(queries, replace(found, similarity=None), *base)
    torch.testing.assert_close(one.log_weights, other.log_weights)
    torch.testing.assert_close(one.log_mixing_weight, other.log_mixing_weight)


def test_it_is_saved_and_read_again(tmp_path) -> None:  # type: ignore[no-untyped-def]
    smoother = random_smoother(similarity=True, features="confidence")
    smoother.save(tmp_path)
    again = Smoother.load(tmp_path)
    assert again.settings.similarity
    assert again.similarity is not None
    torch.testing.assert_close(again.similarity.beta, smoother.similarity.beta)  # type: ignore[union-attr]


def test_a_fit_learns_to_trust_similar_sentences() -> None:
    """Two neighbours at the same distance: the one from the similar sentence is right nine times in ten."""
    generator = torch.Generator().manual_seed(0)
    n, keys = 512, torch.randn(2, DIMENSION, generator=generator)
    gold = (torch.rand(n, generator=generator) < 0.9).long()  # value 1 is of the similar sentence
    vague = torch.full((n,), math.log(0.1))
    cache = FitCache(
        queries=torch.zeros(n, DIMENSION).half(),
        gold=gold,
        segment_ids=torch.full((n,), EXTERNAL),
        ids=torch.tensor([[0, 1]]).expand(n, -1).int(),
        distances=torch.ones(n, 2),
        values=torch.tensor([[0, 1]]).expand(n, -1).int(),
        related=torch.zeros(n, 2, dtype=torch.bool),
        log_probs=vague,
        log_probs_at_values=vague.unsqueeze(-1).expand(-1, 2).clone(),
        mean_log_prob=vague,
        max_log_prob=vague,
        similarity=torch.tensor([[0.0, 0.9]]).expand(n, -1).half(),
        missing=torch.zeros(n, 2),
        taught=torch.zeros(n, 2),
        older=torch.zeros(n, 2).bool(),
    )
    source = Source(cache, KeyTable.joined(torch.arange(2), keys.half(), torch.device("cpu")))
    settings = FitSettings(
        k=2, steps=60, batch_tokens=256, learning_rate=0.05, start="paper", similarity=True
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        smoother = Smoother(settings.smoother(DIMENSION))
    run = Optimisation(smoother, [source], [source], settings, 10, torch.device("cpu"))
    before = run.dev_nll()
    run.run()
    assert smoother.similarity is not None
    assert smoother.similarity.beta.item() > START
    assert run.dev_nll() < before - 0.1
