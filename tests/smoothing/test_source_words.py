"""A neighbour whose source lacks the word being translated gives its say up: by hand."""

from __future__ import annotations

import math

import torch

from kster.smoothing.mixing import mix
from kster.smoothing.mixing_weight import LogShares
from kster.smoothing.smoother import Smoothing
from kster.smoothing.source_words import HALF, OLDER, TAUGHT, WordEvidence, hold_off, kept, raise_taught
from smoothing.cases import neighbours_of, random_smoother


def test_the_attention_to_words_that_a_source_lacks_or_alone_has_by_hand() -> None:
    focus = torch.tensor([[0.5, 0.3, 0.2]])
    words = torch.tensor([[-1, ~0b010, ~0b111]])  # all or unknown, not the second, none
    found = WordEvidence.of(focus, words, rare=torch.tensor([0b011]))
    torch.testing.assert_close(found.missing, torch.tensor([[0.0, 0.3, 1.0]]))
    torch.testing.assert_close(found.taught, torch.tensor([[0.8, 0.5, 0.0]]))
    assert not found.older.any()


def test_a_neighbour_that_lacks_nothing_keeps_its_say_and_one_that_lacks_the_word_has_none() -> None:
    shares = kept(torch.tensor([[0.0, HALF, 0.9]]))
    assert shares[0, 0] == 1.0
    assert abs(float(shares[0, 1]) - 0.5) < 0.01
    assert shares[0, 2] < 0.001


def test_what_neighbours_give_up_goes_to_the_base_model() -> None:
    shares = LogShares(torch.tensor([0.8]).log(), torch.tensor([0.2]).log())
    weights = torch.tensor([[0.75, 0.25]]).log()
    missing = torch.tensor([[1.0, 0.0]])  # the nearest lacks the word
    log_weights, held = hold_off(weights, shares, missing, similarity=torch.ones(1, 2))
    torch.testing.assert_close(log_weights.exp(), torch.tensor([[0.0, 1.0]]), atol=1e-3, rtol=0)
    torch.testing.assert_close(held.examples.exp(), torch.tensor([0.8 * 0.25]), atol=1e-3, rtol=0)
    torch.testing.assert_close(held.examples.exp() + held.base.exp(), torch.ones(1))


def test_neighbours_from_other_sentences_keep_their_say_whatever_words_they_lack() -> None:
    shares = LogShares(torch.tensor([0.8]).log(), torch.tensor([0.2]).log())
    weights = torch.tensor([[0.75, 0.25]]).log()
    _, held = hold_off(weights, shares, torch.ones(1, 2), similarity=torch.zeros(1, 2))
    torch.testing.assert_close(held.examples, shares.examples)


def test_a_rare_word_that_the_neighbours_know_raises_the_mixing_weight_and_a_missing_one_does_not() -> None:
    shares = LogShares(torch.tensor([0.1, 0.1]).log(), torch.tensor([0.9, 0.9]).log())
    weights = torch.zeros(2, 1)
    taught, missing = torch.tensor([[1.0], [0.6]]), torch.tensor([[0.0], [0.4]])
    raised = raise_taught(weights, shares, taught, missing)
    odds = math.log(0.1 / 0.9) + TAUGHT
    torch.testing.assert_close(raised.examples[0], torch.tensor(-math.log1p(math.exp(-odds))))
    torch.testing.assert_close(raised.examples[1], shares.examples[1])
    torch.testing.assert_close(raised.examples.exp() + raised.base.exp(), torch.ones(2))


def test_of_segments_with_the_same_source_the_newest_speaks() -> None:
    smoother = random_smoother(similarity=True, features="confidence")
    found = neighbours_of([[0.1, 0.1]], [[3, 4]])
    found.similarity, found.rare = torch.tensor([[0.9, 0.9]]), torch.tensor([0])
    found.words = torch.tensor([[-1, (1 << 63) - 1]])  # the second is older
    at_values, best = torch.full((1, 2), -2.0), torch.tensor([-1.0])
    made: Smoothing = smoother(torch.ones(1, found.keys.shape[2]), found, at_values, best, torch.zeros(1, 63))
    torch.testing.assert_close(made.log_weights[0, 0] - made.log_weights[0, 1], torch.tensor(OLDER))


def test_without_missing_words_nothing_changes_and_nothing_is_nan_without_neighbours() -> None:
    weights = torch.tensor([[0.7, 0.3], [-torch.inf, -torch.inf]]).clamp_min(0)
    shares = LogShares(torch.tensor([-1.0, -1.0]), torch.tensor([-0.4587, -0.4587]))
    log_weights, held = hold_off(weights.log(), shares, torch.zeros(2, 2), torch.ones(2, 2))
    torch.testing.assert_close(log_weights[0], weights[0].log())
    torch.testing.assert_close(held.base[0], shares.base[0])
    assert not log_weights.isnan().any()
    assert not held.base.isnan().any()


def test_a_smoother_leaves_the_changed_word_to_the_base_model() -> None:
    smoother = random_smoother(similarity=True, features="confidence")
    found = neighbours_of([[0.1, 0.1]], [[3, 3]])
    found.similarity, found.words = torch.tensor([[0.9, 0.9]]), torch.tensor([[~0b10, ~0b10]])
    found.rare = torch.tensor([0])
    base = torch.full((1, 7), 1 / 7).log()
    at_values, best = base.gather(1, found.values), base.amax(1)
    queries = torch.ones(1, found.keys.shape[2])

    def share(focus: torch.Tensor | None) -> float:
        made: Smoothing = smoother(queries, found, at_values, best, focus)
        return float(mix(base, found, made).exp()[0, 3])

    assert share(torch.tensor([[1.0, 0.0]])) == share(None)  # the word that both sources have
    assert share(None) > share(torch.tensor([[0.0, 1.0]]))
    assert abs(share(torch.tensor([[0.0, 1.0]])) - 1 / 7) < 1e-3
