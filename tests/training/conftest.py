"""A small parallel text with structure to learn: every ordered pair of the tiny sentences, joined."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml


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


def write_config(tmp_path: Path, corpus: Path, name: str = "config.yaml", **changes: Any) -> Path:
    """See `config`; everything that the run writes goes below `tmp_path`."""
    content: dict[str, Any] = {
        "source_lang": "en",
        "target_lang": "de",
        "data": str(corpus),
        "prepared": str(tmp_path / "prepared"),
        "output": str(tmp_path / "run"),
        "corpora": [{"name": "train", "source": "train.en", "target": "train.de"}],
        "dev": {"source": "dev.en", "target": "dev.de"},
        "device": "cpu",
        "cleaning": {"language_identity": False, "max_tokens": 100},
        "vocabulary": {"size": 400},
        "network": {
            "encoder_layers": 2,
            "decoder_layers": 1,
            "dimension": 32,
            "feed_forward": 64,
            "heads": 4,
            "positions": 128,
        },
        "training": {
            "steps": 12,
            "batch_tokens": 600,
            "warmup_steps": 4,
            "learning_rate": 0.005,
            "average_decay": 0.9,
        },
        "report": {
            "log_every": 4,
            "dev_every": 6,
            "checkpoint_every": 5,
            "bleu_every": -1,
            "tensorboard": False,
        },
        "export": {"dtype": "float32"},
    }
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(content.get(key), dict):
            content[key] = {**content[key], **value}
        else:
            content[key] = value
    path = tmp_path / name
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path
