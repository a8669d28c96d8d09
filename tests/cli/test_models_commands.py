"""`kster models`: models are found by one rule, and verified by their checksums."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from cli.conftest import Call
from kster import BaseModel
from kster.model_places import find_model, verify_model

SHIPPED = Path(__file__).parents[2] / "models"


@pytest.fixture
def homes(tmp_path: Path, tiny_marian: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A place of each kind, and the same model in all of them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KSTER_MODEL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    homes = {
        "home": tmp_path / "home" / "tiny",
        "here": tmp_path / "models" / "tiny",
        "data": tmp_path / "data" / "kster" / "models" / "tiny",
    }
    for home in homes.values():
        shutil.copytree(tiny_marian, home)
    return homes


def test_a_model_is_found_by_name_in_one_place_after_the_other(homes: dict[str, Path], kster: Call) -> None:
    for home in homes.values():
        assert kster("models", "path", "tiny").lines == [str(home)]
        assert list(json.loads(kster("models", "list", "--json").out)) == ["tiny"]
        assert Path(BaseModel.load("tiny", device="cpu").name).resolve() == home
        shutil.rmtree(home)
    assert find_model("tiny") is None
    assert kster("models", "path", "tiny").is_mistake("no model of that name in")
    assert kster("models", "list").out == ""


def test_a_directory_is_taken_as_given_and_not_looked_for(homes: dict[str, Path]) -> None:
    assert find_model(homes["data"]) == homes["data"]
    assert find_model("some/tiny") is None


def test_files_that_changed_or_are_missing_are_named(homes: dict[str, Path], kster: Call) -> None:
    model = homes["home"]
    assert kster("models", "verify", "tiny").is_mistake("has no checksums.txt")
    names = sorted(path.name for path in model.iterdir())
    sums = [f"{hashlib.sha256((model / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (model / "checksums.txt").write_text("".join(sums))
    assert kster("models", "verify", "tiny").status == 0
    (model / "vocab.json").write_text("{}")
    (model / "source.spm").unlink()
    told = kster("models", "verify", "tiny")
    assert told.status == 1
    assert [line.split("tiny/")[1] for line in told.lines] == [
        "source.spm: missing",
        "vocab.json: not as it was published",
    ]


@pytest.mark.parametrize("name", ["en-de", "de-en"])
def test_the_shipped_models_are_as_they_were_published(name: str) -> None:
    assert verify_model(SHIPPED / name) == [], "if they were changed on purpose: models/checksums.sh"
