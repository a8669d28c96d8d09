"""How a result was made, so that it can be made again: the command, the machine, the versions."""

from __future__ import annotations

import platform
import shlex
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from experiments.budget import FULL, Budget
from kster.model import BaseModel
from kster.version import __version__

PACKAGES = ("torch", "transformers")


def origin(name: str, model: BaseModel, budget: Budget, seed: int) -> dict[str, Any]:
    """What a result says of its making; nothing of where files lie on this machine."""
    where = "/".join(Path(model.name).parts[-2:])
    words = ["python", "-m", "experiments", name, "--data", "DIR", "--model", where]
    words += ["--out", "runs/experiments"]
    words += [word for corpus in budget.unseen if corpus not in FULL.unseen for word in ("--unseen", corpus)]
    words += [] if budget.name == FULL.name else ["--quick"]
    return {
        "command": shlex.join(words),
        "model": where,
        "fingerprint": model.fingerprint,
        "device": model.device.type,
        "machine": machine(model.device),
        "precision": model.precision,
        "seed": seed,
        "versions": {"kster": __version__} | {package: _version(package) for package in PACKAGES},
    }


def in_words(facts: dict[str, Any]) -> str:
    """One line for people; the command is shown by itself."""
    versions = ", ".join(f"{package} {number}" for package, number in facts["versions"].items())
    return f"{facts['machine']}, {facts['precision']}, seed {facts['seed']}; {versions}"


def machine(device: torch.device) -> str:
    """The name of the GPU, or of the CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:  # Linux tells it here alone
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
