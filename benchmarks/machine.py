"""What a measurement was made on; every benchmark prints it first."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

PACKAGES = ("kster", "torch", "transformers", "numpy")


def describe(**settings: Any) -> str:
    """The machine, the versions and the settings of this run, a line each."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    load = os.getloadavg()[0]
    return "\n".join(
        [
            f"machine: {_processor()}, {os.cpu_count()} cores, load {load:.1f}; {device}",
            f"versions: Python {platform.python_version()}, " + ", ".join(map(_version, PACKAGES)),
            f"settings: {torch.get_num_threads()} torch threads, "
            + ", ".join(f"{name} {value}" for name, value in settings.items()),
        ]
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} –"
