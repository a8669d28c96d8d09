"""However a document is damaged, it is opened or refused in our own words; what is opened can be written."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from documents.samples import SAMPLES, XCSTRINGS
from documents.test_bombs import word_file
from documents.test_html_documents import PAGE
from documents.test_po_documents import TEMPLATE
from documents.test_xliff_tmx_documents import TMX, XLIFF
from documents.translated import capitals
from kster.documents.kinds import SUFFIXES, open_document
from kster.errors import KsterError

PARAGRAPH = b"<w:p><w:r><w:rPr><w:b/></w:rPr><w:t>Press </w:t></w:r><w:hyperlink><w:r><w:t>this</w:t></w:r>"
PARAGRAPH += (
    b'</w:hyperlink><w:r><w:fldChar w:fldCharType="begin"/><w:instrText>PAGE</w:instrText><w:fldChar '
)
PARAGRAPH += b'w:fldCharType="end"/><w:t> now.</w:t><w:tab/></w:r><w:bookmarkStart w:id="1"/></w:p>'
WHOLE = {
    **{name: content.encode() for name, (content, _) in SAMPLES.items()},
    "a.html": PAGE.encode(),
    "a.po": TEMPLATE.encode(),
    "a.xlf": XLIFF.encode(),
    "a.tmx": TMX.encode(),
    "a.txt": b"Some words that were broken into lines by\nsomebody, perhaps.\n",
    "a.docx": PARAGRAPH,
    "a.xcstrings": XCSTRINGS.encode(),
}
PIECES = [b"<", b">", b'"', b"'", b"{", b"}", b"\\", b"\n", b"&x;", b"[", b"](", b"*", b"`", b"\x00", b"\xff"]
DAMAGE = st.lists(
    st.tuples(st.integers(0, 2_000), st.integers(0, 12), st.sampled_from(PIECES)), min_size=1, max_size=4
)


@pytest.mark.parametrize("name", WHOLE)
@settings(max_examples=40, deadline=None)
@given(damage=DAMAGE)
def test_any_damage_is_told_in_our_own_words(name: str, damage: list[tuple[int, int, bytes]]) -> None:
    content = WHOLE[name]
    for position, length, insert in damage:
        position %= len(content) or 1
        content = content[:position] + insert + content[position + length :]
    with suppress(KsterError):
        capitals(name, word_file(content) if name == "a.docx" else content)


def test_every_kind_of_file_is_damaged_here() -> None:
    same = {".htm", ".xhtml", ".pot", ".xliff", ".markdown"}
    assert {f".{name.rpartition('.')[2]}" for name in WHOLE} | same == set(SUFFIXES)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("a.exe", "is not supported; accepted: .txt"), ("a", "not supported"), (".po", "not")],
)
def test_a_kind_that_is_not_known_is_refused_with_those_that_are(name: str, reason: str) -> None:
    with pytest.raises(KsterError, match=reason):
        open_document(name, b"MZ", "en", "de")


def test_xml_is_what_its_first_element_says() -> None:
    assert open_document("a.xml", XLIFF.encode(), "en", "de").declared_source == "en"
    assert len(open_document("a.xml", b"<resources><string>a b</string></resources>", "en", "de").units) == 1
