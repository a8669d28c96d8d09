"""What training looks at: which neighbours of which tokens, in what shares, and by which loss."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from kster.smoothing import FitSettings, Smoother
from kster.smoothing.fitting import optimisation
from kster.smoothing.fitting.cache import EXTERNAL, FitCache
from kster.smoothing.fitting.key_table import KeyTable
from kster.smoothing.fitting.optimisation import Optimisation, Source

CPU = torch.device("cpu")
NEIGHBOURS, K = 8, 3
KEYS = torch.randn(NEIGHBOURS, 4, generator=torch.Generator().manual_seed(0))


def cache_of(tokens: int, segment: int) -> FitCache:
    """Each token finds the ids 1 … 8, the nearest first; those of its own segment or target are 1 and 3."""
    queries = torch.zeros(tokens, 4)
    own = torch.zeros(tokens, NEIGHBOURS, dtype=torch.bool)
    own[:, [0, 2]] = True
    vague = torch.full((tokens,), math.log(0.25))
    return FitCache(
        queries=queries.half(),
        gold=torch.zeros(tokens, dtype=torch.int64),
        segment_ids=torch.full((tokens,), segment),
        ids=torch.arange(1, NEIGHBOURS + 1).expand(tokens, -1).int(),
        distances=torch.arange(1.0, NEIGHBOURS + 1).expand(tokens, -1),
        values=torch.zeros(tokens, NEIGHBOURS, dtype=torch.int32),
        related=own,
        log_probs=vague,
        log_probs_at_values=vague.unsqueeze(-1).expand(-1, NEIGHBOURS).clone(),
        mean_log_prob=vague,
        max_log_prob=vague,
        similarity=torch.zeros(tokens, NEIGHBOURS),
        missing=torch.zeros(tokens, NEIGHBOURS),
        taught=torch.zeros(tokens, NEIGHBOURS),
        older=torch.zeros(tokens, NEIGHBOURS).bool(),
    )


class Watched:
    """A run of one step that notes the neighbours which each token was shown."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, sources: list[tuple[int, int, float]], **changes: Any
    ):
        """sources: tokens, segment id and share of each."""
        self.seen: list[list[tuple[int, ...]]] = []  # a list for each source
        table = KeyTable.joined(torch.arange(1, NEIGHBOURS + 1), KEYS.half(), CPU)
        settings = FitSettings(
            **({"k": K, "batch_tokens": 100, "keep_rate": 0.0, "exact_match": None} | changes)
        )
        real = optimisation.choose_examples

        def noting(smoother: Smoother, part: FitCache, seen: torch.Tensor, table: KeyTable) -> Any:
            examples = real(smoother, part, seen, table)
            chosen = torch.where(examples.found, examples.ids, -1).tolist()
            self.seen.append([tuple(id for id in row if id >= 0) for row in chosen])
            return examples

        monkeypatch.setattr(optimisation, "choose_examples", noting)
        made = [Source(cache_of(tokens, segment), table, share) for tokens, segment, share in sources]
        run = Optimisation(Smoother(settings.smoother(4)), made, made[:1], settings, 4, CPU)
        self.loss = run._loss().item()


@pytest.mark.parametrize(
    ("dropout", "shown"),
    [("provenance", (2, 4, 5)), ("nearest", (2, 3, 4)), ("none", (1, 2, 3))],
)
def test_each_dropout_hides_what_it_says(
    monkeypatch: pytest.MonkeyPatch, dropout: str, shown: tuple[int, ...]
) -> None:
    watched = Watched(monkeypatch, [(50, 7, 1.0)], dropout=dropout)
    assert watched.seen == [[shown] * 50]


@pytest.mark.parametrize("dropout", ["provenance", "nearest", "none"])
@pytest.mark.parametrize("keep_rate", [0.0, 0.9])
def test_text_from_outside_never_sees_its_own_copies_and_loses_nothing_else(
    monkeypatch: pytest.MonkeyPatch, dropout: str, keep_rate: float
) -> None:
    watched = Watched(monkeypatch, [(50, EXTERNAL, 1.0)], dropout=dropout, keep_rate=keep_rate)
    assert watched.seen == [[(2, 4, 5)] * 50]


def test_a_share_of_the_tokens_keeps_all_of_its_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    (shown,) = Watched(monkeypatch, [(400, 7, 1.0)], keep_rate=0.25, batch_tokens=400).seen
    assert set(shown) == {(1, 2, 3), (2, 4, 5)}
    assert 0.15 < shown.count((1, 2, 3)) / 400 < 0.35


def test_each_source_has_its_share_of_a_batch_as_far_as_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [*map(len, Watched(monkeypatch, [(500, 7, 0.7), (500, EXTERNAL, 0.3)]).seen)] == [70, 30]
    assert [*map(len, Watched(monkeypatch, [(20, 7, 0.7), (500, EXTERNAL, 0.3)]).seen)] == [20, 30]


def test_label_smoothing_is_in_the_loss_that_is_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Watched(monkeypatch, [(50, 7, 1.0)]).loss
    smoothed = Watched(monkeypatch, [(50, 7, 1.0)], label_smoothing=0.1).loss
    assert smoothed > plain + 0.01
