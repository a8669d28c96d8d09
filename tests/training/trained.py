"""The weights of a finished run, to compare."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file


def weights(directory: Path | None) -> dict[str, torch.Tensor]:
    assert directory is not None
    return load_file(directory / "model.safetensors")


def assert_same(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert torch.equal(ours[name], theirs[name]), name
