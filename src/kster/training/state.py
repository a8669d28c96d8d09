"""Everything a run needs to continue: weights, Adam's moments, the moving average, the step."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from kster.errors import KsterError
from kster.files import new_directory
from kster.training.network import Layout, Weights
from kster.training.settings import OptimisationSettings


class TrainingState:
    """Flat vectors of one layout.

    `master` holds the weights in float32; `weights` are what the forward pass uses, views of a copy in
    the compute precision (or of `master` itself when that is float32). Gradients gather in one vector.
    """

    def __init__(
        self, layout: Layout, settings: OptimisationSettings, *, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.layout, self.settings, self.step = layout, settings, 0
        self.master = torch.zeros(layout.size, device=device)
        self.average = torch.zeros_like(self.master)
        self._compute = self.master if dtype == torch.float32 else self.master.to(dtype)
        self._gradient = torch.zeros_like(self._compute)
        self.weights: Weights = layout.views(self._compute)
        for weight, gradient in zip(
            self.weights.values(), layout.views(self._gradient).values(), strict=True
        ):
            weight.requires_grad_()
            weight.grad = gradient
        self._master_gradient = self._gradient if dtype == torch.float32 else torch.zeros_like(self.master)
        self.optimiser = torch.optim.AdamW(
            [self.master],
            lr=0.0,  # set at every step
            betas=(settings.betas[0], settings.betas[1]),
            eps=1e-9,
            weight_decay=settings.weight_decay,
            fused=True,
        )
        self._start_moments()
        self._backup: Tensor | None = None

    def start_from(self, master: Tensor) -> None:
        """Begin training at these weights."""
        self.master.copy_(master)
        self.average.copy_(master)
        self._refresh()

    def gradient(self) -> Tensor:
        """The gradient vector, (size,), to be summed over processes before `update`."""
        return self._gradient

    def update(self, learning_rate: float) -> Tensor:
        """One step of Adam; returns the gradient's norm before clipping, on the device."""
        gradient = self._master_gradient
        if gradient is not self._gradient:
            gradient.copy_(self._gradient)
        norm = gradient.norm()
        if self.settings.clip_norm:
            gradient.mul_((self.settings.clip_norm / (norm + 1e-6)).clamp(max=1.0))
        self.master.grad = gradient
        self.optimiser.param_groups[0]["lr"] = learning_rate
        self.optimiser.step()
        self.step += 1
        decay = min(self.settings.average_decay, (1 + self.step) / (10 + self.step))
        if self.settings.average_decay:
            self.average.lerp_(self.master, 1 - decay)
        else:
            self.average.copy_(self.master)
        self._gradient.zero_()
        self._refresh()
        return norm

    def use_average(self) -> None:
        """Let `weights` be the averaged ones (for evaluation) until `use_master`."""
        self._backup = self.master.clone() if self._compute is self.master else None
        self._compute.copy_(self.average)

    def use_master(self) -> None:
        if self._backup is not None:
            self.master.copy_(self._backup)
            self._backup = None
        self._refresh()

    def _refresh(self) -> None:
        if self._compute is not self.master:
            self._compute.copy_(self.master)

    def _start_moments(self) -> None:
        self.optimiser.state[self.master] = {
            "step": torch.zeros((), device=self.master.device),
            "exp_avg": torch.zeros_like(self.master),
            "exp_avg_sq": torch.zeros_like(self.master),
        }

    def tensors(self) -> dict[str, Tensor]:
        moments = self.optimiser.state[self.master]
        return {
            "master": self.master,
            "average": self.average,
            "first_moment": moments["exp_avg"],
            "second_moment": moments["exp_avg_sq"],
            "optimiser_step": moments["step"],
        }


def save_checkpoint(state: TrainingState, directory: Path, facts: dict[str, Any], *, keep: int) -> Path:
    """Write `directory`/step-NNNNNNNN completely or not at all; only the newest `keep` stay."""
    final = directory / f"step-{state.step:08d}"
    content = {"step": state.step, "size": state.layout.size, **facts}
    with new_directory(final, replace=True) as partial:
        tensors = {name: tensor.contiguous() for name, tensor in state.tensors().items()}
        save_file(tensors, partial / "state.safetensors")
        (partial / "state.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    for old in checkpoints(directory)[:-keep]:
        shutil.rmtree(old)
    return final


def checkpoints(directory: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    return sorted(path for path in directory.glob("step-*") if (path / "state.json").is_file())


def load_checkpoint(state: TrainingState, path: Path, expected: dict[str, Any]) -> dict[str, Any]:
    """Continue from `path`; returns its facts. A checkpoint of another run is refused."""
    with _damage(path):
        facts: dict[str, Any] = dict(json.loads((path / "state.json").read_text(encoding="utf-8")))
    expected = {"size": state.layout.size, **expected}
    differing = [key.removeprefix("settings.") for key in _differing(expected, facts)]
    if differing:
        raise KsterError(
            f"{path} belongs to a run with other settings ({', '.join(differing)} differ) and cannot be "
            f"continued; it was left untouched: delete it or let `output` name another directory"
        )
    with _damage(path):
        saved = load_file(path / "state.safetensors", device=str(state.master.device))
        for name, tensor in state.tensors().items():
            tensor.copy_(saved[name])
        state.step = int(facts["step"])
    state._refresh()
    return facts


def _differing(expected: dict[str, Any], found: dict[str, Any], at: str = "") -> list[str]:
    """The keys, dotted where they are nested, whose values are not the expected ones."""
    keys: list[str] = []
    for key in sorted(expected):
        ours, theirs = expected[key], found.get(key)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            keys += _differing(ours, theirs, f"{at}{key}.")
        elif ours != theirs:
            keys.append(f"{at}{key}")
    return keys


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, TypeError, KeyError, RuntimeError, SafetensorError) as error:
        raise KsterError(
            f"the checkpoint {path} is damaged and cannot be continued ({error}); delete it, and the same "
            f"command continues from the one before it, or starts again"
        ) from None
