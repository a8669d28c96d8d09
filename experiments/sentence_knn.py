"""SK-MT (Dai et al. 2023), as its paper has it: for each sentence a memory of a few sentences like it.

Of the segments that BM25 ranks highest, those whose sources need the fewest words changed are searched, and
the nearest entry decides how much all of them weigh. With d_j = ‖q − k_j‖², nearest first:

    p_e(y) = Σ_{v_j = y} softmax_j(−d_j / T),   λ = max(0, 1 − d_1 / T)
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from experiments.rivals import Evidence, Rival
from kster.memory import Memory
from kster.memory.search.retriever import Batch, Searcher
from kster.memory.search.shortlists import Lists

LEAST = 1e-6  # of λ and 1 − λ, so that neither logarithm is infinite


class SentenceMemory(Memory):
    """Searches, for each sentence, as many segments as `SearchSettings.shortlist` says."""

    def retriever(self, batch: Batch) -> Searcher:
        view, shortlists = self.view(), []
        lists = Lists([view])
        for text in batch.texts:
            matches = self.matches(text, self.search_settings.shortlist, least=0)
            ids = sorted(match.segment.id for match in matches)
            lines = np.searchsorted(view.snapshot.spans.segment_ids, ids)
            shortlists.append(lists.of([lines], [np.zeros(len(lines), np.float32)]))
        return lists.searched(shortlists, batch.device)


class DistanceAwareKnn(Rival):
    """Nothing is learned."""

    def __init__(self, k: int, temperature: float) -> None:
        super().__init__(k)
        self.temperature = temperature

    def weigh(self, evidence: Evidence) -> tuple[Tensor, Tensor]:
        kernels = (-evidence.squared / self.temperature).masked_fill(~evidence.found, -torch.inf)
        weight = (1 - evidence.squared[:, 0] / self.temperature).clamp(LEAST, 1 - LEAST)  # (n,) λ
        return kernels.log_softmax(-1) + weight.log()[:, None], (-weight).log1p()
