"""Every command and program of README and docs runs as printed, or says beside it why it is not run."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from snippets import Scratch, snippets

from kster import Memory, Pair

ROOT = Path(__file__).parents[2]
PAGES = [  # results are records: their commands need the corpora that they were made with
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md"),
    *(page for page in sorted(ROOT.glob("docs/**/*.md")) if "results" not in page.parts),
]
SLOW = {
    *("docs/tutorial.md", "docs/how-to/fit-and-evaluate.md"),  # fit a memory of 740 segments
    *("docs/server.md", "docs/how-to/deepl.md"),  # servers, which the README starts as well
}


def _pages_to_run() -> list[object]:
    names = [page.relative_to(ROOT).as_posix() for page in PAGES if any(not s.reason for s in snippets(page))]
    return [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in names]


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Scratch]:
    scratch = Scratch(tmp_path / "scratch")
    for name in ("models", "examples", "recipes"):
        (scratch.place / name).symlink_to(ROOT / name)
    yield scratch
    scratch.close()


@pytest.fixture(scope="session")
def manual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the how-tos take as given: the tutorial's memory (a part of it), and files to translate."""
    place = tmp_path_factory.mktemp("manual")
    with Memory.create(place / "manual.memory", ROOT / "models/en-de") as memory:
        memory.add_many(
            [
                Pair("Empty the knock box.", "Den Abschlagbehälter leeren."),
                Pair("Open the lid.", "Den Deckel öffnen."),
            ]
        )
    (place / "lines.en").write_text("Open the lid.\nEmpty the knock box.\n", encoding="utf-8")
    import docx

    document = docx.Document()
    document.add_paragraph("Open the lid.")
    document.save(str(place / "manual.docx"))
    return place


@pytest.mark.parametrize("name", _pages_to_run())
def test_what_a_page_says_can_be_done(name: str, scratch: Scratch, manual: Path) -> None:
    if name.startswith("docs/how-to/") or name == "docs/server.md":
        shutil.copytree(manual, scratch.place, dirs_exist_ok=True)
    if name in SLOW and "how-to" in name:
        with Memory.open(scratch.place / "manual.memory") as memory:
            memory.import_file(ROOT / "examples/ombravella.tmx")
    for snippet in snippets(ROOT / name):
        if snippet.reason is None:
            scratch.run(snippet)


def test_commands_stand_in_blocks_that_are_run_or_say_why_not() -> None:
    """An indented block would escape the tests."""
    for page in PAGES:
        text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        found = re.search(r"^ {4,}(kster|curl|pip|make|python) .*$", text, re.M)
        assert found is None, f"{page}: {found}"


def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") < 100
    for address in re.findall(r"\]\(([^)#]+)", text):
        assert address.startswith("https://") or (ROOT / address).exists(), address
