"""KSTER: machine translation that adapts to your examples the moment you add them.

    from kster import Memory, Translator

Names are imported on first use, so that `import kster` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kster.errors import (
    DamagedMemory,
    DiskFull,
    FormatError,
    KsterError,
    MemoryBusy,
    MemoryStoreError,
    ModelError,
    SettingsError,
)
from kster.version import __version__

if TYPE_CHECKING:
    from kster.formats import Pair
    from kster.memory import Match, Memory, MemoryGroup, SearchableMemory, Segment
    from kster.model import BaseModel
    from kster.smoothing import FitSettings, Smoother
    from kster.translation import Translation, Translator

_HOMES = {
    "BaseModel": "kster.model",
    "FitSettings": "kster.smoothing",
    "Match": "kster.memory",
    "Memory": "kster.memory",
    "MemoryGroup": "kster.memory",
    "Pair": "kster.formats",
    "SearchableMemory": "kster.memory",
    "Segment": "kster.memory",
    "Smoother": "kster.smoothing",
    "Translation": "kster.translation",
    "Translator": "kster.translation",
}

__all__ = [
    "BaseModel",
    "DamagedMemory",
    "DiskFull",
    "FitSettings",
    "FormatError",
    "KsterError",
    "Match",
    "Memory",
    "MemoryBusy",
    "MemoryGroup",
    "MemoryStoreError",
    "ModelError",
    "Pair",
    "SearchableMemory",
    "Segment",
    "SettingsError",
    "Smoother",
    "Translation",
    "Translator",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'kster' has no attribute {name!r}")
