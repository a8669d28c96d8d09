"""Files made to cost much: refused early, by what they are made of, or read and written in one pass."""

from __future__ import annotations

import io
import zipfile

import pytest

from documents.translated import capitals
from kster.documents import document as limits
from kster.documents.document import MOST_CODES
from kster.documents.kinds import open_document
from kster.errors import KsterError
from kster.formats.xml import escape_text

TYPES = '<Types><Override PartName="/word/document.xml" ContentType="document.main+xml"/></Types>'


def word_file(body: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("[Content_Types].xml", TYPES)
        packed.writestr("word/document.xml", b'<w:document xmlns:w="w">' + body + b"</w:document>")
    return out.getvalue()


def test_a_word_document_of_empty_paragraphs_is_refused_before_they_are_read() -> None:
    data = word_file(b"<w:p/>" * 12_000_000)
    assert len(data) < 200_000
    with pytest.raises(KsterError, match=r"72,000,\d+ characters of text; at most 64,000,000 are accepted"):
        open_document("a.docx", data, "en", "de")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.docx", word_file(b"<w:p/>" * 1_100)),
        ("a.xlf", b"<xliff>" + b"<a/>" * 1_100 + b"</xliff>"),
        ("a.tmx", b"<tmx>" + b"<!-- -->" * 1_100 + b"</tmx>"),
        ("a.html", b"<b>x</b>" * 600),
        ("a.html", b"{{x}}" * 1_100),
    ],
)
def test_what_a_file_is_made_of_is_counted(
    monkeypatch: pytest.MonkeyPatch, name: str, content: bytes
) -> None:
    monkeypatch.setattr(limits, "MOST_ELEMENTS", 1_000)
    with pytest.raises(KsterError, match=r"more than 1,000 (elements|tags); nothing was translated$"):
        open_document(name, content, "en", "de")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.docx", word_file(b"<w:p><w:r><w:t>words</w:t></w:r></w:p>")),
        ("a.xlf", b"<xliff><file><trans-unit><source>words</source></trans-unit></file></xliff>"),
        ("a.html", b"<p>words</p>"),
        ("a.po", b'msgid "words"\nmsgstr ""\n'),
        ("a.md", b"words"),
        ("a.txt", b"words"),
        ("a.json", b'{"a": "words"}'),
        ("a.srt", b"1\n00:00:01,000 --> 00:00:02,000\nwords\n"),
    ],
)
def test_a_document_is_read_and_written_within_its_time(name: str, content: bytes) -> None:
    with limits.at_most(60):
        document = open_document(name, content, "en", "de")
    assert len(document.units) == 1
    with limits.at_most(-1):
        with pytest.raises(KsterError, match=f"{name}: it takes too long to read and write; split it"):
            open_document(name, content, "en", "de")
        with pytest.raises(KsterError, match="it takes too long"):
            document.written([["Wörter"]])


def test_elements_nest_only_so_deep() -> None:
    deep = b"<w:p>" + b"<w:ins>" * 300 + b"<w:r><w:t>a</w:t></w:r>" + b"</w:ins>" * 300 + b"</w:p>"
    with pytest.raises(KsterError, match="more than 256 elements in another"):
        open_document("a.docx", word_file(deep), "en", "de")


def test_a_document_that_unpacks_to_too_much_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kster.documents.word.MOST_UNPACKED", 1_000_000)
    with pytest.raises(KsterError, match=r"unpacks to 1,.* bytes; at most 1,000,000"):
        open_document("a.docx", word_file(b"0" * 1_000_000), "en", "de")


def test_fields_in_fields_and_bookmarks_in_bookmarks_have_an_end() -> None:
    begin = b'<w:r><w:fldChar w:fldCharType="begin"/><w:instrText>QUOTE</w:instrText><w:fldChar '
    begin += b'w:fldCharType="separate"/></w:r>'
    end = b'<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    marks = b"".join(b'<w:bookmarkStart w:id="%d"/>' % i for i in range(3_000))
    ends = b"".join(b'<w:bookmarkEnd w:id="%d"/>' % i for i in range(3_000))
    body = b"<w:p>" + begin * 3_000 + marks + b"<w:r><w:t>words</w:t></w:r>" + ends + end * 3_000 + b"</w:p>"
    open_document("a.docx", word_file(body), "en", "de")


def test_a_text_of_very_many_tags_is_written_in_one_pass() -> None:
    assert capitals("a.html", b"<b>x</b>" * 20_000) == b"<b>X</b>" * 20_000
    unit = f"<source>{'<g>x</g>' * 5_000}</source>"
    done = capitals("a.xlf", f"<xliff><file><trans-unit>{unit}</trans-unit></file></xliff>".encode())
    assert done.count(b"<g>X</g>") == 5_000


@pytest.mark.parametrize("opening", ["<!--", "<a ", "<code>", '<a "', "{{", "<?", "<a '<b \""])
def test_markup_that_is_never_closed_is_looked_for_once(opening: str) -> None:
    open_document("a.html", (opening * 30_000).encode(), "en", "de")


def test_lines_and_runs_without_end_are_read_once() -> None:
    log = b"12:30 something happened\n" * 10_000
    assert len(open_document("a.txt", log, "en", "de").units) == 10_000
    runs = b"<w:r><w:t>a b</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>c</w:t></w:r>" * 2_000
    document = open_document("a.docx", word_file(b"<w:p>" + runs + b"</w:p>"), "en", "de")
    assert len(document.units) == 2_000 * 2 / MOST_CODES


def test_a_long_string_of_many_lines_is_put_together_once() -> None:
    lines = '"x"\n' * 30_000
    done = capitals("a.po", f'msgid ""\n{lines}msgstr ""\n'.encode())
    assert done.endswith(b'msgstr "' + b"X" * 30_000 + b'"\n')
    text = escape_text("<&>" * 30_000)
    unit = f"<trans-unit><source>a{text}</source></trans-unit>"
    capitals("a.xlf", f"<xliff><file>{unit}</file></xliff>".encode())
