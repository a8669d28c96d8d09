"""Whole files: what is text is translated, what is translated already and what is markup stays."""

from __future__ import annotations

import asyncio
import base64
import io
import re
import zipfile
from types import SimpleNamespace

import docx
import pytest
from docx.enum.text import WD_BREAK
from docx.opc.constants import CONTENT_TYPE, RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import OxmlElement
from running import RunningServer
from translated import capitals, translate_file

from kster.documents.kinds import SUFFIXES, open_document
from kster.errors import KsterError
from kster.server.api.file_translation import portions, translate_document
from tiny import ENGLISH, GERMAN

NOTES = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:{kind} xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">
<w:footnote w:id="1"><w:p><w:r><w:footnoteRef/></w:r><w:r><w:t>of the {kind}</w:t></w:r></w:p></w:footnote>
</w:{kind}>"""


def test_a_text_file_keeps_its_lines(server: RunningServer) -> None:
    content = f"{ENGLISH[0]}\r\n\r\n  {ENGLISH[1]}\n".encode()
    assert translate_file(server, "notes.txt", content).decode() == f"{GERMAN[0]}\r\n\r\n  {GERMAN[1]}\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_a_text_file_keeps_its_encoding_and_what_has_no_words(encoding: str) -> None:
    text = "12 345\r\n\x0c---\u2028\n\r{}"
    assert capitals("a.txt", text.format("süß").encode(encoding)) == text.format("SÜSS").encode(encoding)
    assert capitals("a.txt", text.format("").encode(encoding)) == text.format("").encode(encoding)


def test_a_file_is_translated_in_portions_that_are_done_in_time() -> None:
    pieces = ["a" * 1_000] * 10 + ["b" * 9_000] + ["c"] * 100
    cut = list(portions(pieces))
    assert [piece for portion in cut for piece in portion] == pieces
    assert [len(portion) for portion in cut] == [4, 4, 2, 1, 32, 32, 32, 4]
    assert list(portions([])) == []


def test_the_language_of_a_file_is_detected(server: RunningServer) -> None:
    assert translate_file(server, "notes.txt", ENGLISH[4].encode(), "auto").decode() == GERMAN[4]


@pytest.mark.parametrize("content", [GERMAN[5], "", "\ufeff12345\r\n"])
@pytest.mark.parametrize("source", ["auto", "de"])
def test_a_file_with_nothing_to_translate_comes_back_as_it_was(
    server: RunningServer, content: str, source: str
) -> None:
    assert translate_file(server, "notes.txt", content.encode(), source) == content.encode()


@pytest.mark.parametrize("stem", ["a" * 250, "Руководство по эксплуатации " * 4, "x." * 100 + "ü" * 100])
def test_a_long_name_keeps_its_suffix(server: RunningServer, stem: str) -> None:
    answer = server.http.post(
        "/translate_file",
        files={"file": (f"{stem}.txt", ENGLISH[0].encode())},
        data={"source": "en", "target": "de"},
    )
    assert answer.status_code == 200, answer.text
    url = answer.json()["translatedFileUrl"]
    assert url.isascii()
    assert url.endswith("_de.txt")
    assert server.http.get(url).text == GERMAN[0]


def test_what_a_file_says_about_its_languages_is_checked(server: RunningServer) -> None:
    content = (
        '<xliff><file source-language="en" target-language="fr"><trans-unit><source>a</source></trans-unit>'
    )
    answer = server.http.post(
        "/translate_file",
        files={"file": ("a.xlf", f"{content}</file></xliff>")},
        data={"source": "en", "target": "de"},
    )
    assert answer.status_code == 400, answer.text
    assert "en → fr" in answer.json()["error"]


PLACEHOLDERS = 'See <a href="%s">the manual</a>'
QUOTED = 'See &lt;a href="%s"&gt;the manual&lt;/a&gt;'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", PLACEHOLDERS),
        ("a.po", f'msgid "{PLACEHOLDERS}"\nmsgstr ""\n'.replace('="%s"', '=\\"%s\\"')),
        ("a.xlf", f"<xliff><file><trans-unit><source>{QUOTED}</source></trans-unit></file></xliff>"),
        ("a.tmx", f'<tmx><tu><tuv xml:lang="en"><seg>{QUOTED}</seg></tuv></tu></tmx>'),
    ],
)
def test_placeholders_and_tags_in_a_text_that_a_model_loses_are_asked_for_again(
    name: str, content: str
) -> None:
    done = asyncio.run(translate_document(Careless(), None, Careless(), name, content.encode()))  # type: ignore[arg-type]
    plain = done.decode().replace("&lt;", "<").replace("&gt;", ">").replace("\\", "")
    assert 'SEE <a href="%s">THE MANUAL</a>' in plain


class Careless:
    """An engine and its model, which keep nothing but marks."""

    source, target = "en", "de"

    @property
    def catalogue(self) -> Careless:
        return self

    def automatic(self, *_: object) -> list[object]:
        return []

    async def translate(self, served: object, texts: list[str], *_: object, patience: float) -> list[object]:
        return [SimpleNamespace(text=re.sub(r"<.*?>|%s", "", text).upper()) for text in texts]


def test_an_html_file_keeps_its_markup(server: RunningServer) -> None:
    page = f"<!DOCTYPE html>\n<html><head><title>{ENGLISH[0]}</title><script>let the = 1</script></head>"
    page += f'<body><p translate="no">{ENGLISH[1]}</p><img alt="{ENGLISH[2]}"></body></html>'
    done = translate_file(server, "page.html", page.encode()).decode()
    assert done.startswith("<!DOCTYPE html>")
    assert f"<title>{GERMAN[0]}</title><script>let the = 1</script>" in done
    assert f'<p translate="no">{ENGLISH[1]}</p><img alt="{GERMAN[2]}">' in done


def test_a_word_document_is_translated_by_paragraph(server: RunningServer) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph(ENGLISH[0][:7])
    paragraph.add_run(ENGLISH[0][7:]).bold = True
    document.add_table(1, 1).cell(0, 0).text = ENGLISH[1]
    out = io.BytesIO()
    document.save(out)
    done = docx.Document(io.BytesIO(translate_file(server, "letter.docx", out.getvalue())))
    assert done.paragraphs[0].text == GERMAN[0]
    assert done.tables[0].cell(0, 0).text == GERMAN[1]


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ('<meta charset="iso-8859-1">', "cp1252"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=windows-1252">', "cp1252"),
        ("<title>x</title>", "utf-8"),
        ("", "utf-8"),
    ],
)
def test_a_translated_page_says_that_it_is_utf_8(head: str, encoding: str) -> None:
    page = f"<html lang='en-GB'><head>{head}</head><body>“süß”</body></html>".encode(encoding)
    done = capitals("a.html", page).decode("utf-8")
    assert "“SÜSS”" in done
    assert done.startswith('<html lang="de"><head><meta charset="utf-8">')
    assert done.count("charset") == 1


def test_a_page_may_hold_what_xml_may_not() -> None:
    page = b"<html><body>a\x01<b>b</b>&#2; <code>1<!-- c --></code></body></html>"
    assert "A\ufffd <b>B</b>".encode() in capitals("a.html", page)
    assert b"<code>1<!-- c --></code>" in capitals("a.html", page)


def test_a_page_keeps_its_doctype_and_gets_none() -> None:
    short = b"<!DOCTYPE html>\n<title>a</title><p>b"
    assert capitals("a.html", short).startswith(b"<!DOCTYPE html>\n<html>")
    assert b"DOCTYPE" not in capitals("a.html", b"<html><body>a</body></html>")
    assert b"<body><p>A</p></body>" in capitals("a.html", b"<body><p>a</p></body>")


def test_a_word_document_keeps_its_links_pictures_and_page_breaks() -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("See ")
    link = OxmlElement("w:hyperlink")
    link.append(OxmlElement("w:r"))
    link[0].text = "our site"
    paragraph._p.append(link)
    paragraph.add_run(" for more.")
    pictured = document.add_paragraph().add_run("Picture: ")
    pictured.add_picture(io.BytesIO(PIXEL))
    pictured.add_break(WD_BREAK.PAGE)
    document.add_paragraph("one\ttwo\nthree")
    out = io.BytesIO()
    document.save(out)
    done = docx.Document(io.BytesIO(capitals("a.docx", out.getvalue())))
    assert [p.text for p in done.paragraphs] == ["SEE OUR SITE FOR MORE.", "PICTURE: ", "ONE\tTWO\nTHREE"]
    assert done.paragraphs[0].hyperlinks[0].text == "OUR SITE"
    assert done.paragraphs[1]._p.xpath(".//w:drawing")
    assert done.paragraphs[1]._p.xpath(".//w:br[@w:type='page']")


def test_headers_of_a_first_page_and_notes_of_a_word_document_are_translated() -> None:
    document = docx.Document()
    document.add_paragraph("text")
    first = document.sections[0]
    first.different_first_page_header_footer = True
    first.first_page_header.paragraphs[0].text = "title"
    first.footer.paragraphs[0].text = "page"
    for kind in ("footnotes", "endnotes"):
        name, of_kind = PackURI(f"/word/{kind}.xml"), getattr(CONTENT_TYPE, f"WML_{kind.upper()}")
        notes = Part(name, of_kind, NOTES.format(kind=kind).encode(), document.part.package)
        document.part.relate_to(notes, getattr(RELATIONSHIP_TYPE, kind.upper()))
    out = io.BytesIO()
    document.save(out)
    done = capitals("a.docx", out.getvalue())
    again = docx.Document(io.BytesIO(done)).sections[0]
    assert again.first_page_header.paragraphs[0].text == "TITLE"
    assert again.footer.paragraphs[0].text == "PAGE"
    with zipfile.ZipFile(io.BytesIO(done)) as packed:
        for kind in ("footnotes", "endnotes"):
            assert f">OF THE {kind.upper()}<".encode() in packed.read(f"word/{kind}.xml")


PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("word/document.xml", b"0" * 2_000_000)
    return out.getvalue()


ENTITY = b'<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]><tmx><body><tu>&x;</tu></body></tmx>'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.exe", b"MZ"),
        ("a", b"text"),
        ("a.docx", b"not a zip"),
        ("a.xlf", b"<xliff"),
        ("a.xlf", b"<html/>"),
        ("a.tmx", ENTITY),
        ("a.po", b"this is no catalogue"),
        ("a.txt", b"\xff\xfe\x00"),
    ],
)
def test_a_file_that_cannot_be_translated_is_refused_with_a_reason(
    server: RunningServer, name: str, content: bytes
) -> None:
    answer = server.http.post(
        "/translate_file", files={"file": (name, content)}, data={"source": "en", "target": "de"}
    )
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"].startswith(f"{name}: ")
    assert "root:" not in answer.text


def test_a_document_that_unpacks_to_too_much_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kster.documents.word.MAX_UNPACKED", 1_000_000)
    with pytest.raises(KsterError, match="unpacks to more than"):
        open_document("a.docx", bomb(), "en", "de")


def test_nobody_reaches_other_files_by_a_download(server: RunningServer) -> None:
    for name in ("server.sqlite", "..%2fserver.sqlite", "%2e%2e/server.sqlite", "a" * 32 + ".txt"):
        assert server.http.get(f"/download_file/{name}").status_code == 404


def test_every_kind_that_is_offered_opens() -> None:
    offered = {".txt", ".html", ".htm", ".po", ".xlf", ".xliff", ".tmx", ".docx"}
    assert set(SUFFIXES) == offered
