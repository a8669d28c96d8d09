"""How much of everything an experiment takes: all of it (FULL), or enough to see it work (QUICK)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Budget:
    """domains: corpora that have a memory, a development and a test set.
    memory: pairs of a domain's memory at most; general_memory: of Europarl in the mixed memory,
    large_general_memory: and in a large one, scratch_general: in training from scratch (None: all).
    it_every: of how many pairs of the IT corpus its memory takes one; it_parts: likewise, as it grows.
    test, dev: pairs at most; dev is force-decoded, dev_decoded of it translated to choose by BLEU.
    figure_test: pairs of each test set for figures that compare many settings; grid_test: for the grid.
    shortlist: kNN-MT settings translated to choose by BLEU, shortlist_of_k: for a given k;
    climbs: how often neighbouring settings are tried out from the best of them.
    fit: changes to `FitSettings`; published_fit: to `FitSettings.paper()`.
    rival_steps: of Adaptive and Robust kNN-MT; rival_ks, rival_temperatures: numbers of neighbours and shares
    of kNN-MT's bandwidth, that they choose from; sentence_searches, sentence_temperatures: likewise of SK-MT,
    numbers of sentences and neighbours (the first two are its paper's).
    epochs, joint_epochs: lengths of fine-tuning and of Joint-training to choose from by BLEU on dev;
    least_steps: of either; most_steps, most_joint_steps: of each; batch_tokens: their batch;
    scratch_steps, scratch_tokens: steps and batch of training from scratch.
    online: sentences of the simulated working day; sizes: segments of growing memories; draws: how many
    memories of each size up to drawn_up_to, since a few segments may be lucky ones.
    timed: sentences translated to measure speed; repeats: how often.
    contrasts: contrastive examples for each domain.
    length_penalties: of beam search, in ascending order.
    unseen: corpora with a test split, of which no memory has text.
    """

    name: str
    domains: tuple[str, ...] = ("koran", "it", "law", "docs_adobe")
    memory: int | None = None
    general_memory: int = 30_000
    large_general_memory: int = 1_000_000
    scratch_general: int | None = None
    it_every: int = 5
    it_parts: tuple[int, ...] = (45, 15, 5, 1)
    test: int | None = None
    figure_test: int = 1_000
    grid_test: int = 500
    dev: int = 2_000
    dev_decoded: int = 400
    shortlist: int = 6
    shortlist_of_k: int = 2
    climbs: int = 4
    fit: dict[str, Any] = field(default_factory=dict)
    published_fit: dict[str, Any] = field(default_factory=dict)
    rival_steps: int = 5_000
    rival_ks: tuple[int, ...] = (8, 16)
    rival_temperatures: tuple[float, ...] = (0.5, 1.0, 2.0)
    sentence_searches: tuple[tuple[int, int], ...] = ((2, 1), (16, 2), (16, 8))
    sentence_temperatures: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0)
    epochs: tuple[int, ...] = (3, 10, 30)
    joint_epochs: tuple[int, ...] = (6, 15)
    least_steps: int = 40
    most_steps: int = 2_500
    most_joint_steps: int = 7_500
    batch_tokens: int = 16_000
    scratch_steps: int = 18_000
    scratch_tokens: int = 40_000
    online: int = 500
    sizes: tuple[int, ...] = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
    draws: int = 4
    drawn_up_to: int = 300
    timed: int = 512
    repeats: int = 3
    contrasts: int = 300
    tradeoff_bandwidths: tuple[float, ...] = (0.005, 0.02, 0.08, 0.32)
    tradeoff_weights: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)
    ks: tuple[int, ...] = (4, 8, 16, 32)
    length_penalties: tuple[float, ...] = (0.6, 1.0, 1.5, 2.0)
    unseen: tuple[str, ...] = ("ted",)

    @property
    def for_figures(self) -> Budget:
        return replace(self, test=min(self.test or self.figure_test, self.figure_test))

    @property
    def for_grid(self) -> Budget:
        return replace(self, test=min(self.test or self.grid_test, self.grid_test))


FULL = Budget(
    "full",
    fit={"steps": 800, "batch_tokens": 8_192, "evaluate_every": 40, "patience": 6, "max_tokens": 300_000},
)

SHORT = {"steps": 20, "batch_tokens": 512, "evaluate_every": 10, "max_tokens": 1_500, "general_share": 0.0}
QUICK = Budget(
    "quick",
    memory=100,
    general_memory=50,
    large_general_memory=100,
    scratch_general=50,
    it_parts=(5, 1),
    test=6,
    dev=12,
    dev_decoded=4,
    shortlist=2,
    shortlist_of_k=1,
    climbs=1,
    fit=SHORT,
    published_fit=SHORT,
    rival_steps=10,
    rival_ks=(4,),
    rival_temperatures=(1.0,),
    sentence_searches=((2, 1), (4, 2)),
    sentence_temperatures=(1.0,),
    epochs=(1,),
    joint_epochs=(1,),
    least_steps=2,
    most_steps=2,
    most_joint_steps=2,
    batch_tokens=500,
    scratch_steps=2,
    scratch_tokens=500,
    online=12,
    sizes=(10, 100),
    draws=2,
    drawn_up_to=10,
    timed=6,
    repeats=1,
    contrasts=8,
    tradeoff_bandwidths=(0.02,),
    tradeoff_weights=(0.3, 0.7),
    ks=(4, 16),
    length_penalties=(0.6, 1.0),
)
