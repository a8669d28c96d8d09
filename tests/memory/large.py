"""What tests of large memories share: settings that make a few thousand entries large, and a look inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kster.memory import Memory, SearchSettings

if TYPE_CHECKING:
    from kster.memory.index.ivf import IvfIndex

SMALL = SearchSettings(exact_limit=1_000, probes=16, delta_limit=200)
EXACT = SearchSettings(exact_limit=1_000_000)


def index_of(memory: Memory) -> IvfIndex:
    from kster.memory.index.ivf import IvfIndex  # with FAISS, which small memories do without

    memory.search(torch.zeros(1, 16), 1)
    memory.build_index()
    assert memory._reader._view is not None
    index = memory._reader._view.indexes[torch.device("cpu")]
    assert isinstance(index, IvfIndex)
    return index


def stored_keys(memory: Memory, every: int = 37) -> tuple[Tensor, Tensor]:
    entries = memory.entries()
    ids = entries.ids[::every]
    return ids, entries.keys_of(ids).float()
