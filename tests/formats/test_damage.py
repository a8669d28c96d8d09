"""However a file is damaged, reading it ends in pairs, rejections or a `KsterError`; nothing else escapes."""

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.conftest import read, tmx, tu
from kster.errors import KsterError
from kster.formats import Pair, Rejection, read_pairs, write_pairs

WHOLE = [
    Pair("Hello <b>world</b> & more", "Hallo Welt", "1"),
    Pair("two\nlines", 'mit "Zeichen"'),
    Pair("x", "y"),
]
DAMAGE = st.lists(
    st.tuples(
        st.integers(0, 2_000),
        st.integers(0, 12),
        st.binary(max_size=6) | st.sampled_from([b"&x;", b"<", b'"']),
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize(
    "name", ["a.tmx", "a.xlf", "b.xlf", "a.po", "a.tsv", "a.csv", "a.tmx.gz", "a.csv.xz"]
)
@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
@settings(max_examples=60, deadline=None)
@given(damage=DAMAGE)
def test_any_damage_is_told_in_our_own_words(
    name: str, codec: str, damage: list[tuple[int, int, bytes]]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / name
        write_pairs(path, WHOLE, "en", "de", format="xliff2" if name == "b.xlf" else None)
        content = path.read_bytes()
        if codec != "utf-8" and path.suffix not in (".gz", ".xz"):
            content = content.decode("utf-8").encode(codec)
        for position, length, insert in damage:
            position %= len(content) or 1
            content = content[:position] + insert + content[position + length :]
        path.write_bytes(content)
        with suppress(KsterError):
            for item in read_pairs(path, "en", "de"):
                assert isinstance(item, Pair | Rejection)


def test_pairs_before_the_damage_are_given_and_then_the_error(put) -> None:
    """The importer's part of the bargain is to keep none of them."""
    items = read_pairs(put("a.tmx", tmx(*[tu("a", "b")] * 5_000)[:-100]), "en", "de")
    assert next(items) == Pair("a", "b")
    with pytest.raises(KsterError, match="not well-formed"):
        list(items)


def test_a_rejection_reads_as_one_line(put) -> None:
    path = put("a.tmx", tmx(tu("a", "b"), tu("c", "", id="17")))
    assert str(read(path)[1][0]) == f"{path}, line 5, unit 17: untranslated"
