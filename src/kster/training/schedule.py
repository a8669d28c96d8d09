"""The learning rate at every step."""

from __future__ import annotations

import math

from kster.training.settings import OptimisationSettings


def learning_rate(settings: OptimisationSettings, step: int) -> float:
    """For the update from `step` to `step` + 1: linear warm-up to the peak, then the decay.

    Linear and cosine decay reach zero after the last step; inverse-sqrt never does.
    """
    warmup = min(settings.warmup_steps, settings.steps)
    if step < warmup:
        return settings.learning_rate * (step + 1) / warmup
    if settings.decay == "inverse-sqrt":
        return settings.learning_rate * math.sqrt(max(1, warmup) / (step + 1))
    left = (settings.steps - step) / max(1, settings.steps - warmup)  # 1 at the peak, towards 0 at the end
    if settings.decay == "cosine":
        return settings.learning_rate * 0.5 * (1 - math.cos(math.pi * left))
    return settings.learning_rate * left
