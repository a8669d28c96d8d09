"""`kster keys`: where there are none, that is said, and nothing is made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.conftest import Call


@pytest.mark.parametrize("command", [("list",), ("list", "--json"), ("revoke", "anna")])
def test_looking_for_keys_makes_no_data_directory(
    kster: Call, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("nowhere", "empty"):
        assert kster("keys", *command, "--data", tmp_path / name).is_mistake("there are no keys in it")
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


def test_a_key_may_be_the_first_thing_in_a_data_directory(kster: Call, tmp_path: Path) -> None:
    data = ("--data", tmp_path / "new")
    assert kster("keys", "add", "anna", *data).out.startswith("kster_")
    assert [key["name"] for key in json.loads(kster("keys", "list", "--json", *data).out)] == ["anna"]
    assert kster("keys", "revoke", "anna", *data).status == 0
