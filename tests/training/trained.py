"""Runs that train in seconds: their configuration, and the weights of a finished one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors.torch import load_file


def weights(directory: Path | None) -> dict[str, torch.Tensor]:
    assert directory is not None
    return load_file(directory / "model.safetensors")


def assert_same(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert torch.equal(ours[name], theirs[name]), name


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
