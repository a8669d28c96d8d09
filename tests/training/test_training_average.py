"""A model between two has the mean of their weights, and two that do not belong together are refused."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import load_file, save_file

SCRIPT = Path(__file__).parents[2] / "recipes" / "average.py"


@pytest.fixture(scope="module")
def averaging() -> ModuleType:
    spec = importlib.util.spec_from_file_location("average", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def models(tmp_path: Path) -> tuple[Path, Path]:
    """Two models with a weight of four numbers each."""
    directories = tmp_path / "first", tmp_path / "second"
    for directory, number in zip(directories, (1.0, 2.0), strict=True):
        directory.mkdir()
        for name in ("vocab.json", "source.spm", "target.spm"):
            (directory / name).write_text("the same")
        save_file({"w": torch.full((4,), number, dtype=torch.float16)}, directory / "model.safetensors")
    return directories


def test_the_share_is_that_of_the_second(averaging: ModuleType, models: tuple[Path, Path]) -> None:
    first, second = models
    output = first.with_name("between")
    assert averaging.main([str(first), str(second), "--share", "0.75", "--output", str(output)]) == 0
    (weights,) = load_file(output / "model.safetensors").values()
    assert weights.dtype == torch.float16
    assert weights.tolist() == [1.75] * 4
    assert (output / "vocab.json").read_text() == "the same"


def test_models_that_do_not_belong_together_are_refused(
    averaging: ModuleType, models: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = models
    output = first.with_name("between")
    arguments = [str(first), str(second), "--output", str(output)]
    assert averaging.main([*arguments, "--share", "1.5"]) == 2
    assert "--share is 1.5" in capsys.readouterr().err
    (second / "vocab.json").write_text("another")
    assert averaging.main(arguments) == 2
    assert "different vocabularies" in capsys.readouterr().err
    shutil.copy(first / "vocab.json", second)
    save_file({"w": torch.zeros(5)}, second / "model.safetensors")
    assert averaging.main(arguments) == 2
    assert "different shapes" in capsys.readouterr().err
    (second / "model.safetensors").unlink()
    assert averaging.main(arguments) == 2
    assert "model.safetensors is missing" in capsys.readouterr().err
    assert not output.exists()
