"""Adaptive kNN-MT and Robust kNN-MT, each as its paper has it, in the place of a smoother.

Both look at k neighbours, nearest first, with d_j = ‖q − k_j‖² and r_j, the number of different values among
the first j. Small networks learn from development text, which the memory does not hold.

Adaptive kNN-MT (Zheng et al. 2021) asks how many neighbours to believe, k' ∈ {0, 1, 2, 4, …, k}:

    p(y) = Σ_k' p(k') p_k'(y),   p(k') = softmax(W₂ tanh(W₁ [d; r])),   p_0 = p_m,
    p_k'(y) = Σ_{j ≤ k', v_j = y} softmax_{j ≤ k'}(−d_j / T)

Robust kNN-MT (Jiang et al. 2022) asks how much the model itself believes each neighbour:

    p_e(y) = Σ_{v_j = y} softmax_j(−τ d_j + c_j),   c_j = W₃ tanh(W₄ [log p_m(v_j | k_j), log p_m(v_j)]),
    [s_e, logit τ] = W₂ tanh(W₁ [d; r]),   s_m = w · [log p_m(v | k), log p_m(v), max log p_m],
    λ = e^{s_e} / (e^{s_e} + e^{s_m})

and learns with noise: keys are disturbed, and the right token is put among neighbours that lack it, ever less
often. Its s_m sees the eight largest p_m; here the largest, all that a smoother is told.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from experiments.data import Pairs
from experiments.engine import RivalFit
from kster.errors import KsterError
from kster.memory import Memory, Neighbours
from kster.model import BaseModel
from kster.smoothing import SAFE_KNN, Smoothing
from kster.smoothing.example_distribution import first_of_its_value

HIDDEN, HIDDEN_CALIBRATION = 32, 4
LEARNING_RATE = 3e-4
SEED = 1
BATCH = 1_024  # tokens, about 32 sentences
LOOK_EVERY = 50  # steps
NOISE, RATE, DECAY = (
    0.01,
    1.0,
    1_000,
)  # σ of a disturbed key; how often at first; over how many steps 1/e of it
AT_ONCE = 2_048  # keys whose probabilities are computed at once


@dataclass(slots=True)
class Evidence:
    """What n queries are told; of neighbours that were not found, d is that of the last one found."""

    squared: Tensor  # (n, k) d
    values: Tensor  # (n, k)
    found: Tensor  # (n, k) bool
    at_values: Tensor  # (n, k) log p_m(v_j)
    own: Tensor  # (n, k) log p_m(v_j | k_j)
    largest: Tensor  # (n,) max log p_m

    @property
    def shape_features(self) -> Tensor:
        """(n, 2k) [d; r]"""
        different = first_of_its_value(self.values, self.found).cumsum(-1)
        return torch.cat([self.squared, different.to(self.squared)], dim=-1)


class Rival(nn.Module):
    """What a translator asks of a smoother. model: the base model, where `own` is needed."""

    needs_own = False

    def __init__(self, k: int, model: BaseModel | None = None) -> None:
        super().__init__()
        self.k, self._model = k, model
        self.settings = replace(SAFE_KNN, k=k)  # all a translator asks: are sources compared?

    @abstractmethod
    def weigh(self, evidence: Evidence) -> tuple[Tensor, Tensor]:
        """(n, k) log of what each neighbour weighs, λ included; (n,) log(1 − λ)."""

    def neighbours(self, memory: Any, queries: Tensor) -> Neighbours:
        found: Neighbours = memory.search(queries, self.k)
        return found

    def evidence(self, neighbours: Neighbours, at_values: Tensor, largest: Tensor) -> Evidence:
        found = neighbours.ids >= 0
        distances = neighbours.distances.masked_fill(~found, 0.0)
        squared = torch.where(found, distances, distances.amax(-1, keepdim=True)).square()
        own = torch.zeros_like(at_values)
        if self.needs_own:
            assert self._model is not None
            own = own_log_probs(self._model, neighbours.keys, neighbours.values)
        return Evidence(squared, neighbours.values, found, at_values.float(), own, largest.float())

    def forward(
        self,
        _: Tensor,
        neighbours: Neighbours,
        at_values: Tensor,
        largest: Tensor,
        focus: Tensor | None = None,
    ) -> Smoothing:
        """As `Smoother.forward`; queries and focus are not evidence for these."""
        weights, base = self.weigh(self.evidence(neighbours, at_values, largest))
        examples = weights.logsumexp(-1)  # (n,) log λ
        nothing = ~(neighbours.ids >= 0).any(-1)
        return Smoothing(
            log_weights=(weights - examples[:, None]).masked_fill(neighbours.ids < 0, -torch.inf),
            bandwidth=torch.ones_like(examples),
            log_mixing_weight=examples.masked_fill(nothing, -torch.inf),
            log_base_weight=base.masked_fill(nothing, 0.0),
        )


def _start_small(network: nn.Sequential, k: int) -> None:
    """The first k features are d, which are large."""
    weight = network[0].weight
    assert isinstance(weight, Tensor)
    nn.init.normal_(weight[:, :k], std=0.01)


class AdaptiveKnn(Rival):
    def __init__(self, k: int, temperature: float) -> None:
        super().__init__(k)
        self.temperature = temperature
        self.numbers = [2**i for i in range(int(math.log2(k)) + 1)]
        self.network = nn.Sequential(
            nn.Linear(2 * k, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 1 + len(self.numbers))
        )
        _start_small(self.network, k)

    def weigh(self, evidence: Evidence) -> tuple[Tensor, Tensor]:
        choices = self.network(evidence.shape_features).log_softmax(-1)  # (n, 1 + numbers)
        kernels = (-evidence.squared / self.temperature).masked_fill(~evidence.found, -torch.inf)
        parts = []
        for choice, number in enumerate(self.numbers, 1):
            first = kernels[:, :number].log_softmax(-1)
            padded = nn.functional.pad(first, (0, self.k - number), value=-torch.inf)
            parts.append(padded + choices[:, choice, None])
        return torch.stack(parts).logsumexp(0), choices[:, 0]


class RobustKnn(Rival):
    needs_own = True

    def __init__(self, k: int, model: BaseModel | None = None) -> None:
        super().__init__(k, model)
        self.network = nn.Sequential(nn.Linear(2 * k, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 2))
        self.calibration = nn.Sequential(
            nn.Linear(2, HIDDEN_CALIBRATION), nn.Tanh(), nn.Linear(HIDDEN_CALIBRATION, 1)
        )
        self.belief_in_model = nn.Linear(2 * k + 1, 1)
        _start_small(self.network, k)

    def weigh(self, evidence: Evidence) -> tuple[Tensor, Tensor]:
        belief, sharpness = self.network(evidence.shape_features).unbind(-1)  # (n,), (n,)
        both = torch.stack([evidence.own, evidence.at_values], dim=-1)  # (n, k, 2)
        kernels = -sharpness.sigmoid()[:, None] * evidence.squared + self.calibration(both).squeeze(-1)
        weights = kernels.masked_fill(~evidence.found, -torch.inf).log_softmax(-1)
        known = torch.cat([evidence.own, evidence.at_values, evidence.largest[:, None]], dim=-1)
        shares = torch.cat([belief[:, None], self.belief_in_model(known)], dim=-1).log_softmax(-1)  # (n, 2)
        return weights + shares[:, :1], shares[:, 1]


def rival_of(wanted: RivalFit, model: BaseModel) -> Rival:
    """As it is before it has learned, the same in every process."""
    adaptive = wanted.kind == "adaptive"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        rival = AdaptiveKnn(wanted.k, wanted.temperature) if adaptive else RobustKnn(wanted.k, model)
    return rival.to(model.device)


@torch.inference_mode()
def own_log_probs(model: BaseModel, keys: Tensor, values: Tensor) -> Tensor:
    """(n, k) log p_m(v | k): what the base model said where the neighbour comes from. keys: (n, k, d).

    After the cross-attention's layer norm, where keys are taken, a Marian decoder has nothing to come but its
    last feed-forward block.
    """
    network = model.network
    if network.config.pre_norm:
        raise KsterError(
            f"{model.name}: Robust kNN-MT needs a model that normalises after each block (Marian)"
        )
    found = []
    for some, wanted in zip(keys.flatten(0, 1).split(AT_ONCE), values.flatten().split(AT_ONCE), strict=True):
        logits = network.project(network.final_states(some.to(network.dtype))).float()  # (c, V)
        found.append(logits.log_softmax(-1).gather(1, wanted[:, None]).squeeze(1))
    return torch.cat(found).view(values.shape)


# Learning ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Examples:
    """Tokens of development text: what is known about each, the right token and log p_m of it."""

    evidence: Evidence
    gold: Tensor  # (n,)
    gold_log_probs: Tensor  # (n,)
    dimension: int  # d, of keys

    def __getitem__(self, rows: Tensor) -> Examples:
        parts = {field.name: getattr(self.evidence, field.name)[rows] for field in fields(Evidence)}
        return Examples(Evidence(**parts), self.gold[rows], self.gold_log_probs[rows], self.dimension)


@torch.no_grad()
def look_up(rival: Rival, model: BaseModel, memory: Memory, pairs: Pairs) -> Examples:
    """Force the decoder along the references."""
    parts: list[Examples] = []
    for forced in model.force_decode(pairs):
        queries, hidden = forced.keys.to(model.device), forced.hidden.to(model.device)
        neighbours = rival.neighbours(memory, queries)
        at_values = model.output_log_probs(hidden, neighbours.values, forced.log_normaliser.to(model.device))
        evidence = rival.evidence(neighbours, at_values, forced.max_log_prob.to(model.device))
        gold, log_probs = forced.tokens.to(model.device).long(), forced.log_probs.to(model.device)
        parts.append(Examples(evidence, gold, log_probs, model.dimension))
    joined = {f.name: torch.cat([getattr(p.evidence, f.name) for p in parts]) for f in fields(Evidence)}
    return Examples(
        Evidence(**joined),
        torch.cat([part.gold for part in parts]),
        torch.cat([part.gold_log_probs for part in parts]),
        model.dimension,
    )


def loss(rival: Rival, examples: Examples) -> Tensor:
    """Nats a token."""
    weights, base = rival.weigh(examples.evidence)
    right = examples.evidence.values == examples.gold[:, None]
    example = weights.masked_fill(~(right & examples.evidence.found), -torch.inf).logsumexp(-1)
    return -torch.logaddexp(base + examples.gold_log_probs, example).mean()


def disturbed(examples: Examples, rate: float, dice: torch.Generator) -> Examples:
    """Robust kNN-MT's noise in learning, each with this rate.

    Keys become k + σε, so that d becomes d + σ²‖ε‖² − 2σ√d z with a normal z; and where no neighbour has the
    right token, one that has it, as near as noise leaves it, takes the place of the last.
    """
    evidence, gold = examples.evidence, examples.gold
    n, k = evidence.squared.shape
    device = evidence.squared.device

    def chance(*shape: int) -> Tensor:
        return torch.rand(shape, generator=dice).to(device)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=dice).to(device)

    noise = NOISE**2 * examples.dimension - 2 * NOISE * evidence.squared.sqrt() * normal(n, k)
    squared = torch.where(chance(n, 1) < rate, (evidence.squared + noise).clamp_min(0.0), evidence.squared)
    lacking = ~((evidence.values == gold[:, None]) & evidence.found).any(-1)
    put = (lacking & (chance(n) < rate))[:, None]

    def first(new: Tensor, old: Tensor) -> Tensor:
        return torch.where(put, torch.cat([new[:, None].to(old.dtype), old[:, :-1]], dim=1), old)

    near = torch.full((n,), NOISE**2 * examples.dimension, device=device)
    return Examples(
        Evidence(
            first(near, squared),
            first(gold, evidence.values),
            first(torch.ones_like(lacking), evidence.found),
            first(examples.gold_log_probs, evidence.at_values),
            first(examples.gold_log_probs, evidence.own),
            evidence.largest,
        ),
        gold,
        examples.gold_log_probs,
        examples.dimension,
    )


def learn(rival: Rival, examples: Examples, steps: int) -> None:
    """Adam on nine tenths of the tokens; keeps what makes the last tenth most likely."""
    dice = torch.Generator().manual_seed(SEED)
    total = len(examples.gold)
    rows = torch.arange(total, device=examples.gold.device)
    seen, judging = rows[: total - total // 10], examples[rows[total - total // 10 :]]
    optimiser = torch.optim.Adam(rival.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98))
    best, kept = math.inf, deepcopy(rival.state_dict())
    for step in range(steps + 1):
        if step % LOOK_EVERY == 0 or step == steps:
            with torch.no_grad():
                now = float(loss(rival, judging)) if len(judging.gold) else -float(step)
            if now < best:
                best, kept = now, deepcopy(rival.state_dict())
        chosen = seen[torch.randint(len(seen), (BATCH,), generator=dice).to(seen.device)]
        batch = examples[chosen]
        if rival.needs_own:
            batch = disturbed(batch, RATE * math.exp(-step / DECAY), dice)
        optimiser.zero_grad()
        loss(rival, batch).backward()
        optimiser.step()
    rival.load_state_dict(kept)
