"""How a key lies on disk: in float16, or in 8 bits with a scale of its own."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from kster.errors import KsterError

Keys = npt.NDArray[np.float16]
SCALE = np.dtype("<f4")


class KeyFormat(Protocol):
    name: str
    suffix: str  # of the files

    def row(self, dimension: int) -> tuple[np.dtype[Any], int]:
        """What a key is on disk: so many numbers of a type."""

    def encoded(self, keys: Keys) -> npt.NDArray[Any]:
        """(n, d) → (n, numbers of a row)."""

    def decoded(self, rows: npt.NDArray[Any]) -> Keys:
        """The other way round."""


class Float16:
    name, suffix = "float16", "f16"

    def row(self, dimension: int) -> tuple[np.dtype[Any], int]:
        return np.dtype("<f2"), dimension

    def encoded(self, keys: Keys) -> npt.NDArray[Any]:
        return np.ascontiguousarray(keys, "<f2")

    def decoded(self, rows: npt.NDArray[Any]) -> Keys:
        return rows


class Int8:
    """d numbers from -127 to 127, and the scale that makes the largest of them what it was.

    Since that one comes back as it was, so does the scale: a key that was encoded and decoded is encoded in
    the same way again.
    """

    name, suffix = "int8", "i8"

    def row(self, dimension: int) -> tuple[np.dtype[Any], int]:
        return np.dtype(np.uint8), dimension + SCALE.itemsize

    def encoded(self, keys: Keys) -> npt.NDArray[Any]:
        floats = keys.astype(np.float32)
        scale = np.abs(floats).max(axis=1, keepdims=True, initial=0.0) / 127  # (n, 1)
        numbers = np.rint(np.divide(floats, scale, out=np.zeros_like(floats), where=scale > 0))
        return np.hstack([numbers.astype(np.int8).view(np.uint8), scale.astype(SCALE).view(np.uint8)])

    def decoded(self, rows: npt.NDArray[Any]) -> Keys:
        numbers = torch.from_numpy(rows[:, : -SCALE.itemsize].view(np.int8))
        scale = np.ascontiguousarray(rows[:, -SCALE.itemsize :]).view(SCALE)  # (n, 1)
        keys: Keys = numbers.float().mul_(torch.from_numpy(scale)).half().numpy()
        return keys


FORMATS: dict[str, KeyFormat] = {one.name: one for one in (Float16(), Int8())}


def key_format(name: str) -> KeyFormat:
    """Raises KsterError for a name that is none."""
    if name not in FORMATS:
        raise KsterError(f"no key format {name!r}; accepted: {', '.join(FORMATS)}")
    return FORMATS[name]
