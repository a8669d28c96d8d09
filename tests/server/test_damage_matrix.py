"""Every file of a memory and of a server's data directory, cut short, flipped and gone.

Whatever happens to a file, it is healed, or somebody is told: an error in our own words, a warning in the
answer, a word from `verify`. Never a bug, and never other text without a word.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from kster import KsterError
from kster.formats import Pair
from kster.memory import Memory
from kster.model import BaseModel
from kster.server.app import create_app
from kster.server.settings import ModelSetting, ServerSettings
from kster.smoothing import FitSettings, smoother_problems
from kster.translation import Translator
from tiny import ENGLISH, GERMAN

SOURCES = [f"{text} {word}" for text in ENGLISH for word in ("again", "once more")]
TARGETS = [f"{text} {word}" for text in GERMAN for word in ("wieder", "noch einmal")]


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    for position in range(len(content) // 3, len(content), max(1, len(content) // 7)):
        content[position] ^= 0x15
    file.write_bytes(content)


def lose(file: Path) -> None:
    file.unlink()


DAMAGES = (cut, flip, lose)


@pytest.fixture(scope="module")
def model(taught_marian: Path) -> BaseModel:
    return BaseModel.load(taught_marian, device="cpu")


@pytest.fixture(scope="module")
def whole_memory(model: BaseModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with everything that one can have: several shards, an index of sources, both smoothers."""
    directory = tmp_path_factory.mktemp("whole") / "memory"
    with Memory.create(directory, model, entries_per_shard=200) as memory:
        memory.import_pairs(Pair(*pair) for pair in zip(SOURCES, TARGETS, strict=True))
        memory.remove(memory.segments()[0].id)
        memory.fit(settings=FitSettings(steps=2, k=2))
        memory.tune()
        memory.similar(SOURCES[1], 1)
    return directory


def damaged_copies(
    whole: Path, scratch: Path, of_memories: tuple[Callable[[Path], None], ...] = DAMAGES
) -> Iterator[tuple[str, Path]]:
    """(what was done to which file, the copy) for each file and damage. of_memories: to files of memories."""
    files = [file.relative_to(whole) for file in sorted(whole.rglob("*")) if file.is_file()]
    for name in files:
        for damage in of_memories if "memories" in name.parts else DAMAGES:
            if (whole / name).stat().st_size == 0 and damage is not lose:
                continue
            shutil.rmtree(scratch, ignore_errors=True)
            shutil.copytree(whole, scratch)
            damage(scratch / name)
            yield f"{damage.__name__} {name}", scratch


def what_it_says(directory: Path, model: BaseModel) -> tuple[list[str], list[str], list[Any]]:
    """Problems that `verify` finds, what the log warns of, and everything that one can read."""
    heard: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("kster")
    log.addHandler(handler)
    try:
        with Memory.open(directory, model) as memory:
            problems = memory.verify() + smoother_problems(directory, memory.dimension)
            translator = Translator(model, memory)
            read = [
                [(pair.source, pair.target) for pair in memory.export()],
                memory.similar(SOURCES[1], 2).segment_ids.tolist(),
                *(
                    [one.text for one in translator.translate(SOURCES[:3], method=method)]
                    for method in ("kster", "knn")
                ),
            ]
    finally:
        log.removeHandler(handler)
    return problems, heard, read


def test_no_damage_to_a_memory_is_a_bug_or_goes_unsaid(
    whole_memory: Path, model: BaseModel, tmp_path: Path
) -> None:
    problems, heard, right = what_it_says(whole_memory, model)
    assert problems == []
    wrong = []
    for damage, directory in damaged_copies(whole_memory, tmp_path / "memory"):
        try:
            problems, heard, read = what_it_says(directory, model)
        except KsterError:
            continue  # it says so
        except Exception as error:
            wrong.append(f"{damage}: {error!r}")
            continue
        if read != right and not problems and not heard:
            wrong.append(f"{damage}: other text, and not a word")
    assert not wrong, "\n".join(wrong)


def served(data: Path, model: Path) -> list[tuple[int, Any]]:
    """Start a server on a data directory and ask it for everything."""
    settings = ServerSettings(data=data, models=[ModelSetting(path=str(model))], log_level="error")
    with TestClient(
        create_app(settings), base_url="http://localhost", raise_server_exceptions=False
    ) as client:
        translate = {"text": SOURCES[:3], "source": "en", "target": "de"}
        answers = [
            client.get("/v1/memories"),
            client.post("/v1/translate", json=translate),
            client.post("/v1/translate", json={**translate, "memories": [1]}),
            client.get("/v1/memories/1/segments"),
            client.get("/v1/memories/1/export"),
            client.get("/v1/memories/1/jobs"),
            client.get("/v1/memories/1/fit"),
            client.get("/metrics"),
            client.post("/v1/memories/1/segments", json={"source": "a", "target": "b"}),
        ]
        return [(answer.status_code, answer.text) for answer in answers]


@pytest.fixture(scope="module")
def whole_data(taught_marian: Path, whole_memory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("whole-data") / "data"
    settings = ServerSettings(data=data, models=[ModelSetting(path=str(taught_marian))], log_level="error")
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        client.post("/v1/memories", json={"name": "whole", "automatic": True})
        rows = "\n".join("\t".join(pair) for pair in zip(SOURCES, TARGETS, strict=True))
        file = {"file": ("a.tsv", f"source\ttarget\n{rows}".encode())}
        assert client.post("/v1/memories/1/import?wait=true", files=file).json()["state"] == "done"
        fit = client.post("/v1/memories/1/fit?wait=true", json={"steps": 2, "k": 2})
        assert fit.json()["state"] == "done", fit.text
    return data


def test_no_damage_to_a_servers_data_is_a_bug_or_goes_unsaid(
    whole_data: Path, taught_marian: Path, tmp_path: Path
) -> None:
    shutil.copytree(whole_data, tmp_path / "right")
    right = served(tmp_path / "right", taught_marian)
    assert [status for status, _ in right] == [200] * 8 + [201]
    wrong = []
    for damage, data in damaged_copies(whole_data, tmp_path / "data", (flip,)):
        try:
            answers = served(data, taught_marian)
        except KsterError:
            continue  # the server does not start, and says why
        except Exception as error:
            wrong.append(f"{damage}: {error!r}")
            continue
        wrong += [f"{damage}: {status} {text[:200]}" for status, text in answers if status >= 500]
    assert not wrong, "\n".join(wrong)
