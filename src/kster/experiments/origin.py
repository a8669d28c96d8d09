"""How a result was made, for who wants to make it again: the command, the machine, the versions."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from kster import __version__

if TYPE_CHECKING:
    from kster.model import BaseModel

PACKAGES = ("torch", "transformers")


def origin(name: str, model: BaseModel, scale: str, seed: int, unseen: Sequence[str]) -> dict[str, Any]:
    """What a result says of its making; nothing of where files lie on this machine."""
    where = "/".join(Path(model.name).parts[-2:])
    words = ["kster", "experiment", name, "--data", "DIR", "--model", where, "--out", "runs/experiments"]
    words += [word for corpus in unseen for word in ("--unseen", corpus)]
    words += ["--quick"] if scale == "quick" else []
    on_gpu = model.device.type == "cuda"
    return {
        "command": shlex.join(words),
        "model": where,
        "fingerprint": model.fingerprint,
        "device": model.device.type,
        "machine": torch.cuda.get_device_name(model.device) if on_gpu else platform.machine(),
        "precision": str(model.dtype).removeprefix("torch."),
        "seed": seed,
        "versions": {"kster": __version__} | {package: _version(package) for package in PACKAGES},
    }


def in_words(facts: dict[str, Any]) -> str:
    """One line for people; the command is shown by itself."""
    versions = ", ".join(f"{package} {number}" for package, number in facts["versions"].items())
    return f"{facts['machine']}, {facts['precision']}, seed {facts['seed']}; {versions}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
