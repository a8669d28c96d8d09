"""BLEU on the dev set, where sacrebleu is installed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import transformers

from kster.training.vocabulary import Vocabulary

_BATCH_TOKENS = 6_000  # padded source tokens translated at once, times the beam


def find_sacrebleu() -> bool:
    try:
        import sacrebleu  # noqa: F401
    except ImportError:
        return False
    return True


@torch.no_grad()
def dev_bleu(
    network: transformers.MarianMTModel,
    vocabulary: Vocabulary,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    pairs: int,
    swap: bool,
) -> float:
    """sacreBLEU of the network's translations of the first `pairs` sources."""
    import sacrebleu

    sources, references = sources[:pairs], references[:pairs]
    side_from, side_into = (1, 0) if swap else (0, 1)
    limit = network.config.max_position_embeddings
    tokens, lengths = vocabulary.encode(sources, side_from, threads=1)
    sentences = [row.tolist()[:limit] for row in np.split(tokens, np.cumsum(lengths)[:-1])]
    translations = [""] * len(sentences)
    for chosen in _batches(sentences):
        width = max(len(sentences[i]) for i in chosen)
        ids = torch.full((len(chosen), width), vocabulary.pad_id)
        for row, i in enumerate(chosen):
            ids[row, : len(sentences[i])] = torch.tensor(sentences[i])
        ids = ids.to(network.device)
        output = network.generate(
            input_ids=ids, attention_mask=ids != vocabulary.pad_id, max_length=min(limit, 2 * width + 20)
        )
        for i, row in zip(chosen, output.tolist(), strict=True):
            translations[i] = vocabulary.decode(row, side_into)
    return float(sacrebleu.corpus_bleu(translations, [list(references)]).score)


def _batches(sentences: list[list[int]]) -> list[list[int]]:
    """Sentence numbers by length, so that little is padded."""
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    batches: list[list[int]] = [[]]
    for i in order:
        if batches[-1] and (len(batches[-1]) + 1) * len(sentences[i]) > _BATCH_TOKENS:
            batches.append([])
        batches[-1].append(i)
    return batches
