"""All experiments by name, in the order of a report."""

from __future__ import annotations

from experiments.domain_adaptation import DomainAdaptation, Lengths, Sizes
from experiments.experiment import Experiment
from experiments.learning import Ablation, Dropout, Kernels, Neighbours, Recipes
from experiments.one_memory import OneMemory, Tradeoff, Unseen
from experiments.online import Online
from experiments.robustness import Robustness, Seeds
from experiments.speed import Speed
from experiments.word_classes import WordClasses
from experiments.word_senses import WordSenses

_ALL: tuple[type[Experiment], ...] = (
    *(DomainAdaptation, OneMemory, Tradeoff, Robustness, Unseen, Ablation, Neighbours, Dropout, Kernels),
    *(Recipes, Seeds, Sizes, Lengths, Speed, WordClasses, WordSenses, Online),
)
EXPERIMENTS: dict[str, Experiment] = {kind.name: kind() for kind in _ALL}
