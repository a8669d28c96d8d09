"""What is written is read back, for any text."""

import csv
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.conftest import read
from kster.formats import Pair, read_pairs, write_pairs
from kster.formats.text import one_line
from kster.text.characters import printable

NASTY = [
    "\r",
    "\n",
    "\t",
    "\r\n",
    "&",
    "<",
    "]]>",
    "&amp;",
    "&#1;",
    '"',
    "\\",
    "\\n",
    ",",
    ";",
    "\u2028",
    "\x85",
]
TEXT = st.lists(st.text(max_size=8) | st.sampled_from(NASTY), min_size=1, max_size=6).map("".join)
SIDE = TEXT.filter(lambda text: bool(text.strip()))
PAIR = st.builds(Pair, SIDE, SIDE, st.none() | TEXT.filter(bool))
WHOLE = ["tmx", "xliff", "xliff2", "po", "csv", "csv.gz", "tmx.xz"]  # hold any printable text


def write_and_read(pairs: list[Pair], name: str, source: str | None = "en", target: str | None = "de"):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"pairs.{name}"
        format = name if name in ("moses", "xliff2") else None
        assert write_pairs(path, pairs, source, target, format=format) == len(pairs)
        return read(path, source, target, format=format)


@pytest.mark.parametrize("name", WHOLE)
@settings(max_examples=60, deadline=None)
@given(pairs=st.lists(PAIR, max_size=5))
def test_texts_come_back_exactly(name: str, pairs: list[Pair]) -> None:
    read_back, rejections = write_and_read(pairs, name)
    assert rejections == []
    assert [(p.source, p.target) for p in read_back] == [
        (printable(p.source), printable(p.target)) for p in pairs
    ]


@pytest.mark.parametrize("name", ["tsv", "moses"])
@settings(max_examples=60, deadline=None)
@given(pairs=st.lists(PAIR, max_size=5))
def test_line_formats_turn_line_breaks_and_tabs_into_spaces(name: str, pairs: list[Pair]) -> None:
    read_back, rejections = write_and_read(pairs, name)
    assert rejections == []
    assert [(p.source, p.target) for p in read_back] == [
        (one_line(printable(p.source)), one_line(printable(p.target))) for p in pairs
    ]


@pytest.mark.parametrize("name", ["tmx", "csv"])
@settings(max_examples=40, deadline=None)
@given(pairs=st.lists(PAIR, max_size=5))
def test_ids_come_back_where_the_format_has_room_for_any(name: str, pairs: list[Pair]) -> None:
    assert [p.id for p in write_and_read(pairs, name)[0]] == [
        printable(p.id) if p.id else None for p in pairs
    ]


@pytest.mark.parametrize("delimiter", [",", ";"])
@settings(max_examples=60, deadline=None)
@given(pairs=st.lists(PAIR, min_size=1, max_size=30))
def test_quoted_rows_without_a_header_come_back_exactly(delimiter: str, pairs: list[Pair]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "pairs.csv"
        wanted = [(printable(pair.source), printable(pair.target)) for pair in pairs]
        with path.open("w", encoding="utf-8", newline="") as out:
            csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows(wanted)
        read_back, rejections = read(path)
    assert rejections == []
    assert [(pair.source, pair.target) for pair in read_back] == wanted


@pytest.mark.parametrize("name", ["xliff", "xliff2", "po"])
def test_ids_come_back_from_formats_that_want_them_unique(name: str) -> None:
    pairs = [Pair("a", "b", "menu.open"), Pair("c", "d", "menu.close"), Pair("a", "e", "menu.open")]
    assert [p.id for p in write_and_read(pairs, name)[0]] == ["menu.open", "menu.close", "menu.open-2"]


@pytest.mark.parametrize("name", [*WHOLE, "tsv"])
def test_pairs_of_unnamed_languages_come_back(name: str) -> None:
    pairs = [Pair("a", "b"), Pair("c", "d")]
    assert [(p.source, p.target) for p in write_and_read(pairs, name, None, None)[0]] == [
        ("a", "b"),
        ("c", "d"),
    ]


@pytest.mark.parametrize("name", [*WHOLE, "tsv", "moses"])
def test_no_pairs_make_a_file_that_can_be_read(name: str) -> None:
    assert write_and_read([], name) == ([], [])


@pytest.mark.parametrize("name", ["a.tmx", "a.xlf", "a.po"])
def test_status_and_context_are_read_back(name: str, tmp_path: Path) -> None:
    pairs = [
        Pair("open", "offen", "menu", context="menu"),
        Pair("open", "auf", "door", context="door", status="draft"),
    ]
    write_pairs(tmp_path / name, pairs, "en", "de")
    assert list(read_pairs(tmp_path / name, "en", "de", drafts=True)) == pairs
