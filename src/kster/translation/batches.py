"""How many sentences are translated at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from kster.model import BaseModel

ON_CPU = 32
ON_GPU = 1024  # a decoding step of one H200 takes hardly longer for 4,096 rows than for 256
SHARE_OF_FREE_MEMORY = 0.25  # for the caches of one batch; search and softmax need room, too


def batches(model: BaseModel, limits: Sequence[int], beam: int, most: int | None = None) -> Iterator[slice]:
    """Consecutive slices of sentences. limits: tokens a translation may have, descending; most: sentences."""
    start = 0
    while start < len(limits):
        size = most or sentences_at_once(model, limits[start], beam)
        yield slice(start, start + size)
        start += size


def sentences_at_once(model: BaseModel, limit: int, beam: int) -> int:
    """As many as make it faster, if the GPU's memory has room for them."""
    if model.device.type != "cuda":
        return ON_CPU
    layers, item = len(model.network.decoder), model.network.dtype.itemsize
    cached = 3 * layers * limit * model.dimension * item  # keys, values, and a copy while rows change places
    predicted = 4 * model.vocabulary_size * 4  # logits, probabilities and candidates in float32
    free, _ = torch.cuda.mem_get_info(model.device)
    free += torch.cuda.memory_reserved(model.device) - torch.cuda.memory_allocated(model.device)
    return max(1, min(ON_GPU, int(free * SHARE_OF_FREE_MEMORY) // (beam * (cached + predicted))))
