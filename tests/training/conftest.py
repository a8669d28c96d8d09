"""A small parallel text with structure to learn: every ordered pair of the tiny sentences, joined."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from trained import write_config


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory: train (132 pairs), dev (12) and small (12) in en and de."""
    from tiny import ENGLISH, GERMAN

    directory = tmp_path_factory.mktemp("corpus")
    for language, lines in (("en", ENGLISH), ("de", GERMAN)):
        joined = [
            f"{first} {'and' if language == 'en' else 'und'} {second}"
            for first in lines
            for second in lines
            if first != second
        ]
        (directory / f"train.{language}").write_text(
            "".join(f"{line}\n" for line in joined), encoding="utf-8"
        )
        for name in ("dev", "small"):
            ends = "." if name == "dev" else "!"
            text = "".join(f"{line}{ends}\n" for line in lines)
            (directory / f"{name}.{language}").write_text(text, encoding="utf-8")
    return directory


@pytest.fixture
def config(corpus: Path, tmp_path: Path) -> Any:
    """Writes a configuration for a network that trains in seconds; its arguments replace top-level keys."""
    return partial(write_config, tmp_path, corpus)
