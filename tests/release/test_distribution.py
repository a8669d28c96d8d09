"""What is installed: every command works with its own extra alone, and versions are pinned for all of it."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
BLOCKED = (  # all but pydantic, which typer brings
    *("fastapi", "starlette", "uvicorn", "python_multipart", "multipart", "prometheus_client"),
    *("yaml", "tensorboard", "matplotlib", "HanTa", "polib", "docx", "sacremoses"),
)


def without_extras(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a program for which the packages of the extras are not installed."""
    block = f"import sys; sys.modules.update(dict.fromkeys({BLOCKED!r}))\n"
    return subprocess.run(
        [sys.executable, "-c", block + program, *map(str, arguments)], capture_output=True, text=True
    )


def test_translating_needs_no_extra(tiny_marian: Path, tmp_path: Path) -> None:
    program = """
from kster import Memory, Translator
from kster.cli import main
with Memory.open_or_create(sys.argv[2], sys.argv[1]) as memory, Translator(memory=memory) as translator:
    memory.add("open the lid", "den Deckel öffnen")
    assert str(translator.translate("open the lid")) == "den Deckel öffnen"
(page := __import__("pathlib").Path(sys.argv[3])).write_text("# open the lid\\n")
sys.exit(main(["translate", str(page), "-o", sys.argv[4], "--memory", sys.argv[2]]))
"""
    page, output = tmp_path / "page.md", tmp_path / "seite.md"
    done = without_extras(program, tiny_marian, tmp_path / "m", page, output)
    assert done.returncode == 0, done.stderr
    assert output.read_text(encoding="utf-8") == "# den Deckel öffnen\n"


@pytest.mark.parametrize(
    ("command", "extra"),
    [("serve --model models/en-de", "server"), ("keys list", "server"), ("train recipe.yaml", "train")],
)
def test_a_command_names_the_extra_that_it_needs(command: str, extra: str) -> None:
    done = without_extras("from kster.cli import main; sys.exit(main(sys.argv[1:]))", *command.split())
    name = command.split()[0]
    assert done.returncode == 2
    assert done.stderr == f"kster: `kster {name}` needs the {extra} extra: pip install 'kster[{extra}]'\n"


def _needed(requirements: list[str], found: set[str]) -> set[str]:
    """The packages that these need, and those that they need in turn, as far as they are installed."""
    for text in requirements:
        requirement = Requirement(text)
        extras = requirement.extras or {""}
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        name = canonicalize_name(requirement.name)
        if name in found:
            continue
        try:
            further = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found.add(name)
        _needed([entry for entry in further if "extra ==" not in entry], found)
    return found


def test_versions_are_pinned_for_everything_that_runs() -> None:
    pinned = {
        canonicalize_name(line.split("==")[0])
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if re.match(r"\w", line)
    }
    wanted = [
        *PROJECT["dependencies"],
        *EXTRAS["server"],
        *EXTRAS["ray"],
        *EXTRAS["train"],
        *EXTRAS["experiments"],
    ]
    assert _needed(wanted, set()) - pinned == {"kster"}  # extras that name others


def test_the_version_has_an_entry_in_the_changelog() -> None:
    import kster

    changes = (ROOT / "docs" / "changelog.md").read_text(encoding="utf-8")
    assert f"## {kster.__version__}" in changes
