"""What `kster` offers to Python programs: names, types, docstrings."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kster
from kster import BaseModel, FitSettings, KsterError, Memory, Pair, Translator
from tiny import ENGLISH, GERMAN

SCRIPT = """
from kster import FitSettings, Match, Memory, MemoryGroup, SearchableMemory, Segment, Translation, Translator

with Memory.open_or_create("my.memory", "models/en-de") as memory, Translator(memory=memory) as translator:
    segment: Segment = memory.add("Empty the knock box.", "Den Abschlagbehälter leeren.")
    one: Translation = translator.translate("Empty the knock box.")
    several: list[Translation] = translator.translate(["Empty the knock box.", "Open the lid."])
    matches: list[Match] = memory.matches("Empty the box.")
    loss: float = memory.fit(FitSettings(steps=100)).dev.kster
    best: int = memory.tune().best.k
    places: list[SearchableMemory] = [memory, MemoryGroup([memory])]
    for place in places:
        again: list[Translation] = translator.translate(["Open the lid."], memory=place)
        found: list[Segment] = [match.segment for match in place.matches("Open the lid.")]
        names: list[str] = [member.directory.name for member in place.memories]
    reveal_type(translator.translate("x"))
"""


def test_a_users_script_is_type_checked_against_the_package(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + "wrong: int = one.text\n", encoding="utf-8")
    settings = tmp_path / "mypy.ini"
    # Libraries are not read: that would take half a minute, and the script does not name them.
    settings.write_text(
        "[mypy]\nfollow_imports = silent\nignore_missing_imports = true\n"
        "[mypy-torch.*,numpy.*,transformers.*,pydantic.*,fastapi.*,starlette.*,lxml.*,markdown_it.*]\n"
        "follow_imports = skip\nfollow_imports_for_stubs = true\n"
    )
    source = Path(kster.__file__).parents[1]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", settings, "--cache-dir", tmp_path / "cache", script],
        env={"MYPYPATH": str(source), "PATH": ""},
        capture_output=True,
        text=True,
    )
    errors = [line for line in checked.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 1, checked.stdout + checked.stderr
    assert 'has type "str", variable has type "int"' in errors[0]
    assert "kster.translation.result.Translation" in checked.stdout
    assert (source / "kster" / "py.typed").exists()


def test_every_public_name_can_be_imported_and_is_in_the_reference() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    for name in kster.__all__:
        assert getattr(kster, name) is not None
        assert name == "__version__" or f"::: kster.{name}\n" in page


def test_every_public_class_and_method_says_what_it_does() -> None:
    silent = []
    for name in kster.__all__:
        owner = getattr(kster, name)
        if not inspect.isclass(owner):
            continue
        methods = [(f"{name}.{method}", value) for method, value in vars(owner).items() if method[0] != "_"]
        for what, value in [(name, owner), *methods]:
            function = getattr(value, "__func__", value)
            if (callable(function) or isinstance(value, property)) and not inspect.getdoc(function):
                silent.append(what)
    assert not silent


def _public_methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Those of the public classes that people call: what other rooms make is no concern of theirs."""
    for name in kster.__all__:
        for member, value in inspect.getmembers(getattr(kster, name)):
            function = getattr(value, "__func__", value)
            ours = inspect.isfunction(function) and function.__module__.startswith("kster")
            if ours and (not member.startswith("_") or function is Translator.__init__):
                yield f"{name}.{member}", function


@pytest.mark.parametrize(("name", "function"), [pytest.param(*one, id=one[0]) for one in _public_methods()])
def test_a_public_method_explains_its_arguments_results_and_errors(
    name: str, function: Callable[..., Any]
) -> None:
    """Or says that it does as another one, which explains its own."""
    text = inspect.getdoc(function) or ""
    if like := re.match(r"As `(\w+\.)?(\w+)`", text):
        owner = getattr(kster, (like[1] or name).partition(".")[0], None) or kster.Memory
        assert hasattr(owner, like[2]), text
        return
    signature = inspect.signature(function)
    for argument, parameter in signature.parameters.items():
        if argument not in ("self", "cls") and parameter.kind is not parameter.VAR_KEYWORD:
            explained = re.search(rf"^\s+(\w+, )*{argument}(, \w+)*: ", text, re.M)
            assert "Args:" in text, name
            assert explained, f"{name}: {argument} is not explained"
    if signature.return_annotation not in ("None", signature.empty):
        assert re.search(r"^(Returns|Yields):", text, re.M), name
    if re.search(r"^\s+raise ", inspect.getsource(function), re.M):
        assert re.search(r"^Raises:", text, re.M), name


def test_a_memory_is_opened_or_created_and_fits_and_tunes_itself(tiny_marian: Path, tmp_path: Path) -> None:
    model = BaseModel.load(tiny_marian, device="cpu")
    with Memory.open_or_create(tmp_path / "m", model) as memory:
        memory.add_many(map(Pair, ENGLISH, GERMAN))
    with Memory.open_or_create(tmp_path / "m", tiny_marian) as memory:
        assert memory.segment_count() == len(ENGLISH)
        report = memory.fit(FitSettings(steps=2, general_share=0.0))
        assert report.dev.tokens > 0
        assert memory.tune().best.k > 0
        with Translator(memory=memory) as translator:
            resolved = translator.resolve("knn")
            assert resolved is not None
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("not a memory")
    with pytest.raises(KsterError, match="not empty"):
        Memory.open_or_create(tmp_path / "other", model)
