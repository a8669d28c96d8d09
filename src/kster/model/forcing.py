"""Force-decoding: run the decoder along a given translation and note what it went through.

Every target token, end of sentence included, yields one key (the tap: the input of the last decoder
block's feed-forward network), the token itself, and what the base model thought of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import TypeVar

import torch
from torch import Tensor

from kster.errors import KsterError
from kster.model.focus import NO_WORD, attention, by_word, source_words, telling_layer
from kster.model.frozen import FrozenModel
from kster.model.network import Watch

# Pairs that are tokenised and sorted by length together: bounds memory, whatever the number of pairs.
WINDOW = 2048

LOGITS_AT_ONCE = 1 << 28  # one GiB of float32


@dataclass(slots=True)
class SentenceKeys:
    """What a memory keeps of one target sentence; on the CPU, n tokens."""

    keys: Tensor  # (n, d) float16
    tokens: Tensor  # (n,) int32


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
    focus: Tensor  # (n, WORDS) float16: how much of the attention goes to each word of the source

    @classmethod
    def join(cls, sentences: Sequence[ForcedSentence]) -> ForcedSentence:
        """The tokens of several sentences, one after the other."""
        return cls(*(torch.cat([getattr(one, field.name) for one in sentences]) for field in fields(cls)))


def force_decode(
    model: FrozenModel,
    pairs: Iterable[tuple[str, str]],
    *,
    batch_tokens: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[ForcedSentence]:
    """Yield one `ForcedSentence` per pair, in input order, holding at most a window of them.

    batch_tokens: padded target tokens a batch. progress: called with the number of pairs done.
    Raises KsterError for a side longer than the model can read.
    """
    for window in _windows(model, pairs, progress):
        yield from force_tokens(model, *window, batch_tokens=batch_tokens)


def make_keys(model: FrozenModel, pairs: Iterable[tuple[str, str]]) -> Iterator[SentenceKeys]:
    """The keys that `force_decode` gives, without what the base model thought of each token: a third less
    work.

    Yields one `SentenceKeys` per pair, in input order. Raises KsterError for a side that is too long.
    """
    for sources, targets in _windows(model, pairs):
        yield from _in_batches(_keys_of_batch, model, sources, targets, None)


def _windows(
    model: FrozenModel, pairs: Iterable[tuple[str, str]], progress: Callable[[int], None] | None = None
) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
    """Tokenised sources and targets, WINDOW pairs at a time."""
    stream, done = iter(pairs), 0
    while window := list(islice(stream, WINDOW)):
        sources = model.tokenise_source([source for source, _ in window])
        targets = model.tokenise_target([target for _, target in window])
        _require_readable(model, sources, targets, done)
        yield sources, targets
        done += len(window)
        if progress is not None:
            progress(done)


def force_tokens(
    model: FrozenModel, sources: list[list[int]], targets: list[list[int]], *, batch_tokens: int | None = None
) -> list[ForcedSentence]:
    """Force-decode tokenised sentences, which all fit in memory; targets end with eos."""
    return _in_batches(_force_batch, model, sources, targets, batch_tokens)


Sentence = TypeVar("Sentence", ForcedSentence, SentenceKeys)


def _in_batches(
    work: Callable[[FrozenModel, list[list[int]], list[list[int]]], list[Sentence]],
    model: FrozenModel,
    sources: list[list[int]],
    targets: list[list[int]],
    batch_tokens: int | None,
) -> list[Sentence]:
    """What `work` makes of sentences of about the same length together, in the sentences' order."""
    batch_tokens = batch_tokens or (16384 if model.device.type == "cuda" else 1536)
    results: dict[int, Sentence] = {}
    for batch in _batches(sources, targets, batch_tokens):
        made = work(model, [sources[i] for i in batch], [targets[i] for i in batch])
        results |= dict(zip(batch, made, strict=True))
    return [results[i] for i in range(len(sources))]


def _require_readable(
    model: FrozenModel, sources: list[list[int]], targets: list[list[int]], done: int
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
    model: FrozenModel, sources: list[list[int]], targets: list[list[int]]
) -> list[ForcedSentence]:
    compared: list[tuple[Tensor, Tensor]] = []
    telling = telling_layer(model.network)

    def watch(layer: int, queries: Tensor, keys: Tensor) -> None:
        if layer == telling:
            compared.append((queries, keys))

    taps, states, tokens = _decoded(model, sources, targets, watch)
    columns = (
        *(taps.to(torch.float16), tokens.to(torch.int32), states.to(torch.float16)),
        *_beliefs(model, states, tokens),
        _focus(model, sources, targets, *compared[0]).to(torch.float16),
    )
    return [ForcedSentence(*parts) for parts in _by_sentence(columns, targets)]


def _focus(
    model: FrozenModel, sources: list[list[int]], targets: list[list[int]], queries: Tensor, keys: Tensor
) -> Tensor:
    """(n, WORDS), of what attention compares in the telling layer."""
    start = len(model.layout.prefix) - 1
    mask = model.network.source_mask([len(row) for row in sources])
    numbers = pad([source_words(model, row).numbers for row in sources], NO_WORD, model.device)  # (b, s)
    focus = by_word(attention(queries[:, :, start:], keys, mask).mean(1), numbers)  # (b, t, WORDS)
    return focus[_real(targets, model.device)]


@torch.inference_mode()
def _keys_of_batch(
    model: FrozenModel, sources: list[list[int]], targets: list[list[int]]
) -> list[SentenceKeys]:
    taps, _, tokens = _decoded(model, sources, targets)
    columns = (taps.to(torch.float16), tokens.to(torch.int32))
    return [SentenceKeys(*parts) for parts in _by_sentence(columns, targets)]


def _decoded(
    model: FrozenModel, sources: list[list[int]], targets: list[list[int]], watch: Watch | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Taps (n, d), final states (n, d) and tokens (n,) of all n target tokens, one sentence after the
    other. Without `watch` final states are not computed, and what stands in their place means nothing."""
    network, device = model.network, model.device
    prefix = list(model.layout.prefix)
    mask = network.source_mask([len(row) for row in sources])
    encoded = network.encode(pad(sources, model.pad_id, device), mask)  # (b, s, d)
    given = pad([prefix + row[:-1] for row in targets], model.eos_id, device)  # (b, p + t - 1)
    taps, states = network.decode(given, encoded, mask, watch, taps_only=watch is None)  # (b, p+t-1, d)
    start = len(prefix) - 1  # the prefix's last position predicts the first token of the translation
    real = _real(targets, device)
    return taps[:, start:][real], states[:, start:][real], pad(targets, model.eos_id, device)[real]


def _real(targets: list[list[int]], device: torch.device) -> Tensor:
    """(b, t) bool: where there is a token."""
    return pad([[1] * len(row) for row in targets], 0, device).bool()


def _by_sentence(columns: tuple[Tensor, ...], targets: list[list[int]]) -> Iterator[tuple[Tensor, ...]]:
    """Views on the CPU: a batch lives as long as any of its sentences."""
    lengths = [len(row) for row in targets]
    return zip(*(column.cpu().split(lengths) for column in columns), strict=True)


def _beliefs(model: FrozenModel, hidden: Tensor, tokens: Tensor) -> tuple[Tensor, ...]:
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
