"""Where a fit begins: at the smoother that the model carries, at tuned kNN-MT, or at the paper's numbers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import torch
from torch.nn import functional as F

from kster.smoothing.defaults import unfitted_smoother
from kster.smoothing.exact_match import exact_match_rule
from kster.smoothing.fitting.cache import FitCache
from kster.smoothing.fitting.optimisation import neighbours_without_own
from kster.smoothing.fitting.settings import FitSettings
from kster.smoothing.fitting.sweep import best_of, default_grid, sweep
from kster.smoothing.smoother import Smoother

if TYPE_CHECKING:
    from kster.model import BaseModel

START_TOKENS = 4096  # training tokens on which the start is tuned
# Settings that may differ from those of a carried smoother.
FREE = ("k", "bandwidth", "mixing_weight", "length_penalty", "confidence_shift")


def start_smoother(model: BaseModel, train: FitCache, settings: FitSettings) -> Smoother:
    """The smoother before its first step, the same for the same seed."""
    carried = carried_smoother(model, settings)
    if carried is not None:
        return carried
    wanted = settings.smoother(model.dimension)
    given = [value is not None for value in (settings.bandwidth, settings.mixing_weight)]
    if settings.start != "paper" and not all(given):
        generator = torch.Generator().manual_seed(settings.seed)
        sample = train.take(
            torch.randperm(len(train), generator=generator)[:START_TOKENS], torch.device("cpu")
        )
        seen = neighbours_without_own(sample)
        grid = default_grid(sample, seen, settings.kernel, ks=(settings.k,))
        rule = exact_match_rule(wanted.exact_match, wanted.exact_tolerance)
        best = best_of(sweep(sample, seen, grid, settings.kernel, rule))
        wanted = settings.smoother(model.dimension, best.bandwidth, best.mixing_weight)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        return Smoother(wanted).to(model.device)


def carried_smoother(model: BaseModel, settings: FitSettings) -> Smoother | None:
    """The model's default smoother, or the universal one, ready to be trained on, if its networks fit.

    They do not depend on the number of neighbours, nor on where they once started.
    """
    given = any(value is not None for value in (settings.bandwidth, settings.mixing_weight))
    if settings.start != "carried" or given:
        return None
    smoother = Smoother.load(unfitted_smoother(model), dimension=model.dimension)
    have, wanted = smoother.settings, settings.smoother(model.dimension)
    if have.scale_free:
        wanted = dataclasses.replace(wanted, features=have.features, dimension=None)
    free = {name: getattr(have, name) for name in FREE}
    if wanted.similarity and not have.similarity:
        smoother, have = with_similarity(smoother), dataclasses.replace(have, similarity=True)
    if have != dataclasses.replace(wanted, **free):
        return None
    started = Smoother(dataclasses.replace(have, k=wanted.k))
    started.load_state_dict(smoother.state_dict())
    return started.to(model.device)


def with_similarity(smoother: Smoother) -> Smoother:
    """The same smoother, to which source similarity is new: the mixing weight begins by ignoring it."""
    wider = Smoother(dataclasses.replace(smoother.settings, similarity=True))
    weights = smoother.state_dict()
    for name, empty in wider.state_dict().items():
        if name not in weights:
            weights[name] = empty
        elif weights[name].shape != empty.shape:  # (d, inputs): what is new comes last
            weights[name] = F.pad(weights[name], (0, empty.shape[1] - weights[name].shape[1]))
    wider.load_state_dict(weights)
    return wider.eval()
