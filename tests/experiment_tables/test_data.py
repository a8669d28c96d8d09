"""Slices of line-aligned text."""

from __future__ import annotations

from pathlib import Path

import pytest
from experiments.data import Corpora, Slice, write_lines

from kster.errors import KsterError


@pytest.mark.parametrize("count", [None, 4])
def test_sides_of_unequal_length_are_refused_however_much_is_read(tmp_path: Path, count: int | None) -> None:
    write_lines(tmp_path / "law" / "dev.en.xz", "abcde")
    write_lines(tmp_path / "law" / "dev.de", "abc")
    with pytest.raises(KsterError, match=r"not line-aligned: .*dev\.de ends after 3 lines"):
        Corpora(tmp_path, ("en", "de")).pairs(Slice("law", "dev", count))
