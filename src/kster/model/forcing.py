"""Force-decoding: run the decoder along a given translation and note what it went through.

Every target token, end of sentence included, yields one key (the tap: the input of the last decoder
block's feed-forward network), the token itself, and what the base model thought of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kster.errors import KsterError

if TYPE_CHECKING:
    from kster.model.checkpoint import BaseModel

# Pairs that are tokenised and sorted by length together: bounds memory, whatever the number of pairs.
WINDOW = 2048

LOGITS_AT_ONCE = 1 << 28  # one GiB of float32


@dataclass(slots=True)
class ForcedSentence:
    """What one target sentence looked like from inside the decoder; on the CPU, n tokens."""

    keys: Tensor  # (n, d) float16
    tokens: Tensor  # (n,) int32
    hidden: Tensor  # (n, d) float16: final decoder state, before the output projection
    log_probs: Tensor  # (n,) float32: log p_m of the given token
    log_normaliser: Tensor  # (n,) float32: log Σ_v exp(logit_v)
    mean_log_prob: Tensor  # (n,) float32: mean over the vocabulary of log p_m
    max_log_prob: Tensor  # (n,) float32: log p_m of the model's own favourite

    @classmethod
    def join(cls, sentences: Sequence[ForcedSentence]) -> ForcedSentence:
        """The tokens of several sentences, one after the other."""
        return cls(*(torch.cat([getattr(one, field.name) for one in sentences]) for field in fields(cls)))


def force_decode(
    model: BaseModel,
    pairs: Iterable[tuple[str, str]],
    *,
    batch_tokens: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[ForcedSentence]:
    """Yield one `ForcedSentence` per pair, in input order, holding at most a window of them.

    batch_tokens: padded target tokens a batch. progress: called with the number of pairs done.
    Raises KsterError for a side longer than the model can read.
    """
    stream, done = iter(pairs), 0
    while window := list(islice(stream, WINDOW)):
        sources = model.tokenise_source([source for source, _ in window])
        targets = model.tokenise_target([target for _, target in window])
        _require_readable(model, sources, targets, done)
        yield from force_tokens(model, sources, targets, batch_tokens=batch_tokens)
        done += len(window)
        if progress is not None:
            progress(done)


def force_tokens(
    model: BaseModel, sources: list[list[int]], targets: list[list[int]], *, batch_tokens: int | None = None
) -> list[ForcedSentence]:
    """Force-decode tokenised sentences, which all fit in memory; targets end with eos."""
    batch_tokens = batch_tokens or (16384 if model.device.type == "cuda" else 1536)
    results: list[ForcedSentence | None] = [None] * len(sources)
    for batch in _batches(sources, targets, batch_tokens):
        forced = _force_batch(model, [sources[i] for i in batch], [targets[i] for i in batch])
        for i, sentence in zip(batch, forced, strict=True):
            results[i] = sentence
    return [sentence for sentence in results if sentence is not None]


def _require_readable(
    model: BaseModel, sources: list[list[int]], targets: list[list[int]], done: int
) -> None:
    for i, (source, target) in enumerate(zip(sources, targets, strict=True)):
        longest = max(len(source), len(target))
        if longest > model.max_length:
            raise KsterError(
                f"pair {done + i + 1} has {longest} tokens on one side; "
                f"{model.name} reads at most {model.max_length}"
            )


def _batches(sources: list[list[int]], targets: list[list[int]], batch_tokens: int) -> Iterator[list[int]]:
    """Indices grouped so that lengths are alike and a batch pads to at most batch_tokens on either side."""
    lengths = [max(len(s), len(t)) for s, t in zip(sources, targets, strict=True)]
    order = sorted(range(len(lengths)), key=lambda i: (lengths[i], i))
    batch: list[int] = []
    for i in order:  # lengths ascend, so the newest member decides the padding
        if batch and lengths[i] * (len(batch) + 1) > batch_tokens:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def pad(rows: list[list[int]], value: int, device: torch.device) -> Tensor:
    """(rows, longest) int64, filled up with `value`."""
    longest = max(len(row) for row in rows)
    filled = [row + [value] * (longest - len(row)) for row in rows]
    return torch.tensor(filled, dtype=torch.int64, device=device)


@torch.inference_mode()
def _force_batch(
    model: BaseModel, sources: list[list[int]], targets: list[list[int]]
) -> list[ForcedSentence]:
    network, device = model.network, model.device
    prefix = list(model.layout.prefix)
    mask = network.source_mask([len(row) for row in sources])
    states = network.encode(pad(sources, model.pad_id, device), mask)  # (b, s, d)
    given = pad([prefix + row[:-1] for row in targets], model.eos_id, device)  # (b, p + t - 1)
    taps, hidden = network.decode(given, states, mask)  # (b, p + t - 1, d) each
    start = len(prefix) - 1  # the prefix's last position predicts the first token of the translation
    real = pad([[1] * len(row) for row in targets], 0, device).bool()  # (b, t)
    keys = taps[:, start:][real]  # (n, d), n = tokens of the batch without padding
    hidden = hidden[:, start:][real]  # (n, d)
    tokens = pad(targets, model.eos_id, device)[real]  # (n,)
    beliefs = _beliefs(model, hidden, tokens)
    columns = (keys.to(torch.float16), tokens.to(torch.int32), hidden.to(torch.float16), *beliefs)
    lengths = [len(row) for row in targets]
    per_sentence = zip(*(column.cpu().split(lengths) for column in columns), strict=True)
    return [ForcedSentence(*parts) for parts in per_sentence]  # views: a batch lives as long as any of them


def _beliefs(model: BaseModel, hidden: Tensor, tokens: Tensor) -> tuple[Tensor, ...]:
    """What the output layer says: log p_m of the tokens, normaliser, mean and maximum of log p_m, (n,) each.

    hidden: (n, d); tokens: (n,). Rows are taken in parts: all logits of a batch at once would be gigabytes
    with a vocabulary like NLLB's 256,000.
    """
    parts = []
    rows = max(1, LOGITS_AT_ONCE // model.vocabulary_size)
    for states, gold in zip(hidden.split(rows), tokens.split(rows), strict=True):
        logits = model.network.project(states).float()  # (rows, V)
        log_normaliser = logits.logsumexp(-1)  # (rows,)
        parts.append(
            (
                logits.gather(1, gold[:, None])[:, 0] - log_normaliser,
                log_normaliser,
                logits.mean(-1) - log_normaliser,
                logits.amax(-1) - log_normaliser,
            )
        )
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))
