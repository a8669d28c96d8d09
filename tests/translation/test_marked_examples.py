"""Examples with placeholders: taught with one, they help a text with another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kster import Memory, Translator

TAUGHT = (
    "press the button %(name)s to start the machine",
    "die Taste %(name)s drücken um die Maschine zu starten",
)
OTHER = ("press the button {key} to start the machine", "die Taste {key} drücken um die Maschine zu starten")
FEWER = ("the child gives %s some bread", "das Kind gibt etwas Brot")  # whose target lacks the code


@pytest.fixture(scope="module")
def translator(taught_marian: Path) -> Translator:
    return Translator(taught_marian)


@pytest.fixture
def memory(translator: Translator, tmp_path: Path) -> Iterator[Memory]:
    with Memory.create(tmp_path / "memory", translator.model) as memory:
        yield memory


def test_an_example_with_one_placeholder_helps_a_text_with_another(
    translator: Translator, memory: Memory
) -> None:
    memory.add(*TAUGHT)
    done = translator.translate(OTHER[0], memory=memory)
    assert done.text == OTHER[1]
    assert not done.repaired


def test_examples_with_placeholders_come_back_as_they_were_taught(
    translator: Translator, memory: Memory
) -> None:
    for pair in (TAUGHT, OTHER, FEWER):
        memory.add(*pair)
    for source, target in (TAUGHT, OTHER, FEWER):
        assert translator.translate(source, memory=memory).text == target


def test_examples_of_older_versions_come_back_as_they_were_taught(
    translator: Translator, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr("kster.memory.adding.marked_pair", lambda *pair: pair)
        memory.add(*TAUGHT)
    assert translator.translate(TAUGHT[0], memory=memory).text == TAUGHT[1]
