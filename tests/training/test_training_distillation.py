"""A teacher's translations take the place of the targets, block by block, whatever interrupts it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from kster import KsterError, Translator
from kster.training import load_settings, train
from kster.training.prepared import PreparedData

SCRIPT = Path(__file__).parents[2] / "recipes" / "distil.py"


@pytest.fixture(scope="module")
def distil() -> ModuleType:
    spec = importlib.util.spec_from_file_location("distil", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    """A recipe whose model has learned enough to stop at the end of a sentence."""
    from trained import write_config

    long = {"steps": 60, "batch_tokens": 1500, "learning_rate": 0.01, "dropout": 0.0}
    recipe = write_config(tmp_path_factory.mktemp("taught"), corpus, training=long)
    train(recipe)
    return recipe


def test_the_targets_are_the_teachers_translations_and_a_student_learns_them(
    taught: Path, distil: ModuleType, tmp_path: Path, config: Any
) -> None:
    settings = load_settings(taught)
    teacher = settings.output_directory / "model"
    output = tmp_path / "distilled"
    arguments = [
        str(taught),
        "--teacher",
        str(teacher),
        "--output",
        str(output),
        "--beam",
        "2",
        "--block",
        "50",
    ]
    assert distil.main([*arguments, "--max-seconds", "0"]) == 0  # stopped before the first block
    assert not output.exists()
    assert distil.main(arguments) == 0
    before, after = PreparedData.open(settings.prepared_directory), PreparedData.open(output)
    sources = [prepared.split("train")[0] for prepared in (before, after)]
    assert np.array_equal(sources[0].tokens, sources[1].tokens)
    vocabulary = after.vocabulary()
    source, target = after.split("train")
    rows = [3, 40, 131]
    texts = [vocabulary.decode(source.tokens[source.offsets[i] : source.offsets[i + 1]], 0) for i in rows]
    wanted = Translator(teacher).translate(texts, beam=2, split_sentences=False)
    for i, made in zip(rows, wanted, strict=True):
        row = target.tokens[target.offsets[i] : target.offsets[i + 1]]
        assert vocabulary.decode(row, 1) == made.text
    assert after.manifest["distilled"]["beam"] == 2
    student = config(prepared=str(output), output=str(tmp_path / "student"), training={"steps": 2})
    assert train(student).finished


def test_blocks_begun_otherwise_are_not_mixed(taught: Path, distil: ModuleType, tmp_path: Path) -> None:
    settings = load_settings(taught)
    blocks = tmp_path / ".d.blocks"
    blocks.mkdir()
    (blocks / "facts.json").write_text(json.dumps({"beam": 9}))
    with pytest.raises(KsterError, match="was begun with other settings; it was left untouched"):
        distil.distil(
            settings,
            settings.output_directory / "model",
            tmp_path / "d",
            beam=2,
            mix=0.5,
            block=50,
            deadline=float("inf"),
        )
