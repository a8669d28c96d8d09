"""Training a smoother on cached tokens: minibatches, Adam, early stopping (section 3.4)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kster.smoothing.fitting.cache import EXTERNAL, Examples, FitCache
from kster.smoothing.fitting.dropout import drop, first_k
from kster.smoothing.fitting.key_table import KeyTable
from kster.smoothing.fitting.loss import gold_log_probs, token_losses
from kster.smoothing.fitting.settings import FitSettings
from kster.smoothing.metric import tokens_at_once
from kster.smoothing.smoother import Smoother, Smoothing

EVALUATION_TOKENS = 8192  # tokens evaluated at once
METRIC_PACE = 100.0  # times the learning rate: a step of W, relative to its numbers


@dataclass(slots=True)
class Source:
    """Tokens to train on or to judge by, and the keys their neighbours have.

    share: of each batch, relative to the other sources'. Several sources may belong to several memories.
    """

    cache: FitCache
    table: KeyTable
    share: float = 1.0


@dataclass(slots=True)
class CurvePoint:
    """One look at the development tokens."""

    step: int
    train_loss: float | None  # mean since the last look
    dev_nll: float


@dataclass(slots=True)
class Evaluation:
    """A smoother on one source, without dropout beyond that of held-out segments."""

    losses: Tensor  # (n,) negative log-likelihood of each token
    bandwidth: Tensor  # (n,) σ
    mixing_weight: Tensor  # (n,) λ

    @property
    def nll(self) -> float:
        """Per token."""
        return float(self.losses.double().mean())


def neighbours_without_own(cache: FitCache) -> Tensor:
    """(n, K) bool: what a token would find were its segment, and its target text, not in the memory."""
    return (cache.ids >= 0) & ~cache.related


def choose_examples(smoother: Smoother, part: FitCache, seen: Tensor, table: KeyTable) -> Examples:
    """What the smoother would be given to decide by. seen: (n, K) bool, the neighbours that may be used."""
    examples = Examples.choose(part, *first_k(seen, smoother.settings.candidates))
    if not smoother.measures:
        return examples
    keys = table.gather(examples.ids) if smoother.metric is not None else None  # (n, c, d)
    distances = smoother.measured(examples.queries, keys, examples.distances, examples.similarity)  # (n, c)
    return examples.nearest(distances, smoother.k)


def smooth_examples(smoother: Smoother, examples: Examples, table: KeyTable) -> Smoothing:
    """The smoother's decision for a batch; its keys are pooled from the table."""
    return smoother.smooth(
        examples.queries,
        examples.distances,
        examples.values,
        torch.where(examples.found, examples.ids, -1),
        lambda weights: table.pool(examples.ids, weights),
        examples.base.log_probs_at_values,
        examples.base.max_log_prob,
        plain=examples.plain,
        similarity=examples.similarity,
        words=examples.words,
        older=examples.words.older,
    )


@torch.no_grad()
def evaluate(smoother: Smoother, source: Source, device: torch.device) -> Evaluation:
    """Negative log-likelihood, with the tokens' own segments left out."""
    losses, bandwidths, weights = [], [], []
    at_once = EVALUATION_TOKENS
    if smoother.metric is not None:
        at_once = min(at_once, tokens_at_once(smoother.k, source.cache.queries.shape[1], device))
    for rows in torch.arange(len(source.cache)).split(at_once):
        part = source.cache.take(rows, device)
        examples = choose_examples(smoother, part, neighbours_without_own(part), source.table)
        smoothing = smooth_examples(smoother, examples, source.table)
        losses.append(-gold_log_probs(examples.base, examples.values, smoothing).cpu())
        bandwidths.append(smoothing.bandwidth.cpu())
        weights.append(smoothing.mixing_weight.cpu())
    return Evaluation(torch.cat(losses), torch.cat(bandwidths), torch.cat(weights))


def surely_better(these: Sequence[Evaluation], those: Sequence[Evaluation], errors: float) -> bool:
    """Whether the gain is more than so many standard errors, on the same tokens, all sources counting
    alike."""
    gains = [b.losses.double() - a.losses.double() for a, b in zip(these, those, strict=True)]
    mean = sum(float(gain.mean()) for gain in gains)
    error = math.sqrt(sum(float(gain.var()) / len(gain) for gain in gains))
    return mean > errors * error


class _Shuffled:
    """The rows of a cache in random order, again and again."""

    def __init__(self, size: int, generator: torch.Generator) -> None:
        self.size, self.generator = size, generator
        self.waiting = torch.empty(0, dtype=torch.int64)

    def next(self, count: int) -> Tensor:
        """(count,) row numbers, or fewer if there are not so many rows."""
        count = min(count, self.size)
        if len(self.waiting) < count:
            self.waiting = torch.randperm(self.size, generator=self.generator)
        rows, self.waiting = self.waiting[:count], self.waiting[count:]
        return rows


class Optimisation:
    """One run: the smoother, what it is trained on and what it is judged by."""

    def __init__(
        self,
        smoother: Smoother,
        sources: Sequence[Source],
        dev: Sequence[Source],
        settings: FitSettings,
        vocabulary_size: int,
        device: torch.device,
    ) -> None:
        self.smoother = smoother
        self.sources = [Source(s.cache.near(device), s.table, s.share) for s in sources]
        self.dev = [Source(s.cache.near(device), s.table, s.share) for s in dev]
        self.settings, self.vocabulary_size, self.device = settings, vocabulary_size, device
        self.generator = torch.Generator().manual_seed(settings.seed)  # on the CPU: the same on every device
        self.streams = [_Shuffled(len(source.cache), self.generator) for source in sources]

    def run(self, progress: Callable[[CurvePoint], None] | None = None) -> list[CurvePoint]:
        """Train; the smoother ends with its best weights. The first point of the curve is before any step."""
        settings = self.settings
        adam = torch.optim.Adam(self._parameters(), lr=settings.learning_rate)
        decay = torch.optim.lr_scheduler.LinearLR(adam, 1.0, 0.0, total_iters=settings.steps)
        curve = [CurvePoint(0, None, self.dev_nll())]
        best, best_weights = curve[0], copy.deepcopy(self.smoother.state_dict())
        losses: list[Tensor] = []
        for step in range(1, settings.steps + 1):
            loss = self._loss()
            adam.zero_grad(set_to_none=True)
            loss.backward()
            adam.step()
            decay.step()
            losses.append(loss.detach())
            if step % settings.evaluate_every and step != settings.steps:
                continue
            curve.append(CurvePoint(step, float(torch.stack(losses).mean()), self.dev_nll()))
            losses.clear()
            if progress is not None:
                progress(curve[-1])
            if curve[-1].dev_nll < best.dev_nll:
                best, best_weights = curve[-1], copy.deepcopy(self.smoother.state_dict())
            elif step - best.step >= settings.patience * settings.evaluate_every:
                break
        self.smoother.load_state_dict(best_weights)
        self.smoother.eval()
        return curve

    def _parameters(self) -> list[dict[str, Any]]:
        """The networks', and W's, whose numbers have another size."""
        metric = self.smoother.metric
        if metric is None:
            return [{"params": list(self.smoother.parameters())}]
        pace = METRIC_PACE * self.settings.learning_rate * float(metric.weight.detach().abs().mean())
        return [
            {"params": [p for p in self.smoother.parameters() if p is not metric.weight]},
            {"params": [metric.weight], "lr": pace},
        ]

    def dev_nll(self) -> float:
        """The mean over the development sources, each counting the same, whatever its size."""
        return sum(evaluate(self.smoother, source, self.device).nll for source in self.dev) / len(self.dev)

    def _loss(self) -> Tensor:
        """The mean loss of one batch, each source contributing its share of tokens."""
        settings = self.settings
        shares = sum(source.share for source in self.sources)
        losses = []
        for source, stream in zip(self.sources, self.streams, strict=True):
            rows = stream.next(max(1, round(settings.batch_tokens * source.share / shares)))
            kept = (torch.rand(len(rows), generator=self.generator) < settings.keep_rate).to(self.device)
            part = source.cache.take(rows, self.device)
            external = (part.segment_ids == EXTERNAL).unsqueeze(-1)  # its nearest neighbour is not itself
            own = drop(part.ids >= 0, part.related, kept, settings.dropout)
            seen = torch.where(external, neighbours_without_own(part), own)
            examples = choose_examples(self.smoother, part, seen, source.table)
            losses.append(
                token_losses(
                    examples.base,
                    examples.values,
                    examples.found,
                    smooth_examples(self.smoother, examples, source.table),
                    label_smoothing=settings.label_smoothing,
                    vocabulary_size=self.vocabulary_size,
                )
            )
        return torch.cat(losses).mean()
