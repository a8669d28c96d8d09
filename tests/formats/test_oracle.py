"""The same files, read and written by translate-toolkit, mean the same pairs."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from translate.storage import pypo, tmx, xliff, xliff2

from formats.conftest import read
from kster.formats import Pair, write_pairs
from kster.text.characters import UNUSABLE

STORES = {
    "tmx": (tmx.tmxfile, "a.tmx"),
    "xliff": (xliff.xlifffile, "a.xlf"),
    "xliff2": (xliff2.Xliff2File, "a.xlf"),
    "po": (pypo.pofile, "a.po"),
}
NASTY = ["\n", "\t", "&", "<", "]]>", "&amp;", "&lt;b&gt;", '"', "\\", "\\n", "%s", "  ", "é", "日本", "😀"]
TEXT = st.lists(st.text(max_size=8) | st.sampled_from(NASTY), min_size=1, max_size=5).map("".join)
# The toolkit trims or normalises around carriage returns and exotic line ends, so they are left to
# test_round_trips; two entries with one text it joins.
SIDE = TEXT.filter(
    lambda t: bool(t.strip()) and not UNUSABLE.search(t) and not set("\r\x85\u2028\u2029") & set(t)
)
PAIRS = st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=4, unique_by=lambda pair: pair[0])


@pytest.mark.parametrize("format", STORES)
@settings(max_examples=60, deadline=None)
@given(pairs=PAIRS)
def test_the_toolkit_reads_what_we_write(format: str, pairs: list[tuple[str, str]]) -> None:
    store_class, name = STORES[format]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / name
        write_pairs(path, [Pair(*pair) for pair in pairs], "en", "de", format=format)
        store = store_class.parsefile(str(path))
    units = [unit for unit in store.units if not unit.isheader()]
    assert [(str(unit.source), str(unit.target)) for unit in units] == pairs
    assert all(unit.istranslated() and not unit.isfuzzy() for unit in units)


@pytest.mark.parametrize("format", STORES)
@settings(max_examples=60, deadline=None)
@given(pairs=PAIRS)
def test_we_read_what_the_toolkit_writes(format: str, pairs: list[tuple[str, str]]) -> None:
    content = toolkit_file(format, pairs)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / STORES[format][1]
        path.write_bytes(content)
        ours, rejections = read(path)
    assert rejections == []
    assert [(pair.source, pair.target) for pair in ours] == pairs


@pytest.mark.parametrize("format", ["xliff", "xliff2", "po"])
def test_fuzzy_and_untranslated_mean_the_same_to_both(put, format: str) -> None:
    content = toolkit_file(
        format, [("good", "gut"), ("a guess", "geraten"), ("nothing", "")], fuzzy="a guess"
    )
    pairs, rejections = read(put(STORES[format][1], content))
    assert [(pair.source, pair.target) for pair in pairs] == [("good", "gut")]
    assert len(rejections) == 2
    assert rejections[0].reason in (
        "fuzzy",
        "not finished (state needs-translation)",
        "not finished (state initial)",
    )
    assert rejections[1].reason == "untranslated"


def toolkit_file(format: str, pairs: list[tuple[str, str]], fuzzy: str | None = None) -> bytes:
    """A file with these pairs as translate-toolkit writes it."""
    store = STORES[format][0]()
    store.setsourcelanguage("en")
    store.settargetlanguage("de")
    for source, target in pairs:
        if format == "tmx":
            store.addtranslation(source, "en", target, "de")
            continue
        unit = store.addsourceunit(source)
        if target:
            unit.target = target
        if source == fuzzy:
            unit.markfuzzy()
    return bytes(store)
