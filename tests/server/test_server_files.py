"""Whole files: what is text is translated, what is translated already and what is markup stays."""

from __future__ import annotations

import base64
import io
import zipfile
from pathlib import Path

import docx
import polib
import pytest
from docx.enum.text import WD_BREAK
from docx.opc.constants import CONTENT_TYPE, RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import OxmlElement
from running import RunningServer

from kster.errors import KsterError
from kster.formats import Pair, read_pairs
from kster.server.documents import SUFFIXES, open_document
from kster.server.file_translation import portions
from tiny import ENGLISH, GERMAN

XLIFF = f"""<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en" original="a" datatype="plaintext"><body>
<trans-unit id="1"><source>{ENGLISH[0]}<x id="1"/> {ENGLISH[1]}</source></trans-unit>
<trans-unit id="2"><source>{ENGLISH[2]}</source><target>steht schon da</target></trans-unit>
<trans-unit id="3" translate="no"><source>{ENGLISH[3]}</source></trans-unit>
</body></file></xliff>"""
XLIFF2 = f"""<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de">
<file id="f"><unit id="u"><segment><source>{ENGLISH[4]}</source></segment></unit></file></xliff>"""
TMX = f"""<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en"><seg>{ENGLISH[0]}<bpt i="1">&lt;b&gt;</bpt></seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>x</seg></tuv><tuv xml:lang="de"><seg>schon da</seg></tuv></tu></body></tmx>"""
NOTES = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:{kind} xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">
<w:footnote w:id="1"><w:p><w:r><w:footnoteRef/></w:r><w:r><w:t>of the {kind}</w:t></w:r></w:p></w:footnote>
</w:{kind}>"""
PO = f'''msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

msgid "{ENGLISH[0]}"
msgstr ""

#, fuzzy
msgid "{ENGLISH[1]}"
msgstr "geraten"

msgid "kept"
msgstr "bleibt"

msgid "{ENGLISH[2]}"
msgid_plural "{ENGLISH[3]}"
msgstr[0] ""
msgstr[1] ""
'''


def translate_file(server: RunningServer, name: str, content: bytes, source: str = "en") -> bytes:
    answer = server.http.post(
        "/translate_file", files={"file": (name, content)}, data={"source": source, "target": "de"}
    )
    assert answer.status_code == 200, answer.text
    url = answer.json()["translatedFileUrl"]
    assert url.startswith(f"{server.url}/download_file/")
    return server.http.get(url).content


def test_a_text_file_keeps_its_lines(server: RunningServer) -> None:
    content = f"{ENGLISH[0]}\r\n\r\n  {ENGLISH[1]}\n".encode("utf-16")
    assert translate_file(server, "notes.txt", content).decode() == f"{GERMAN[0]}\r\n\r\n  {GERMAN[1]}\n"


def test_a_file_is_translated_in_portions_that_are_done_in_time() -> None:
    pieces = ["a" * 1_000] * 10 + ["b" * 9_000] + ["c"] * 100
    cut = list(portions(pieces))
    assert [piece for portion in cut for piece in portion] == pieces
    assert [len(portion) for portion in cut] == [4, 4, 2, 1, 32, 32, 32, 4]
    assert list(portions([])) == []


def test_the_language_of_a_file_is_detected(server: RunningServer) -> None:
    assert translate_file(server, "notes.txt", ENGLISH[4].encode(), "auto").decode() == GERMAN[4]


def test_an_html_file_keeps_its_markup(server: RunningServer) -> None:
    page = f"<!DOCTYPE html>\n<html><head><title>{ENGLISH[0]}</title><script>let the = 1</script></head>"
    page += f'<body><p translate="no">{ENGLISH[1]}</p><img alt="{ENGLISH[2]}"></body></html>'
    done = translate_file(server, "page.html", page.encode()).decode()
    assert done.startswith("<!DOCTYPE html>")
    assert f"<title>{GERMAN[0]}</title><script>let the = 1</script>" in done
    assert f'<p translate="no">{ENGLISH[1]}</p><img alt="{GERMAN[2]}">' in done


def test_a_catalogue_gets_what_it_lacks(server: RunningServer) -> None:
    done = polib.pofile(translate_file(server, "app.po", PO.encode()).decode())
    assert [entry.msgstr for entry in done][:3] == [GERMAN[0], GERMAN[1], "bleibt"]
    assert not done[1].fuzzy
    assert done[3].msgstr_plural == {0: GERMAN[2], 1: GERMAN[3]}


def test_xliff_units_get_targets_with_their_tags(server: RunningServer) -> None:
    done = translate_file(server, "job.xlf", XLIFF.encode()).decode()
    assert 'state="needs-review-translation" state-qualifier="leveraged-mt"' in done
    assert done.count('<x id="1"/>') == 2
    assert "steht schon da" in done
    assert 'target-language="de"' in done
    assert done.count("<target") == 2
    assert f"<target>{GERMAN[4]}</target>" in translate_file(server, "job.xliff", XLIFF2.encode()).decode()


def test_a_tmx_gets_the_missing_language(server: RunningServer) -> None:
    done = translate_file(server, "terms.tmx", TMX.encode()).decode()
    assert f'<tuv xml:lang="de"><seg>{GERMAN[0]}<bpt i="1">&lt;b&gt;</bpt></seg></tuv>' in done
    assert done.count("<tuv") == 4


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


# Without a server: every piece in capitals -------------------------------------------------------------


def capitals(name: str, content: bytes) -> bytes:
    document = open_document(name, content, "en", "de")
    return document.with_translations([piece.upper() for piece in document.pieces])


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


def test_a_filled_template_says_its_encoding_and_language_and_forgets_what_it_was() -> None:
    template = PO.replace("UTF-8", "CHARSET").replace("#, fuzzy", '#, fuzzy\n#| msgid "before"')
    done = polib.pofile(capitals("app.po", template.encode()).decode())
    assert done.metadata["Content-Type"] == "text/plain; charset=UTF-8"
    assert done.metadata["Language"] == "de"
    assert done[1].previous_msgid is None


def test_a_unit_with_tags_is_translated_as_one_or_else_in_parts() -> None:
    unit = XLIFF.replace(f'{ENGLISH[0]}<x id="1"/> {ENGLISH[1]}', 'the <g id="1">red</g> <x id="2"/> lid')
    document = open_document("a.xlf", unit.encode(), "en", "de")
    assert document.pieces == ["the {0} red {1} lid"]
    moved = document.with_translations(["{0} rot {1} ist der Deckel"])
    assert b'leveraged-mt"><g id="1">rot</g> <x id="2"/> ist der Deckel</target>' in moved
    document = open_document("a.xlf", unit.encode(), "en", "de")
    assert document.again(["lost"]) == ["the", "red", "lid"]
    parts = document.with_translations(["lost"], ["der", "rote", "Deckel"])
    assert b'leveraged-mt">der <g id="1">rote</g> <x id="2"/> Deckel</target>' in parts


def test_a_catalogue_keeps_placeholders_and_tags() -> None:
    content = PO.replace(ENGLISH[0], "Save <b>%s</b> first")
    document = open_document("app.po", content.encode(), "en", "de")
    first = [piece.replace("<b>%s</b>", "mess") for piece in document.pieces]
    assert document.again(first) == ["Save {0}{1}{2} first"]
    done = polib.pofile(document.with_translations(first, ["Zuerst {0}{1}{2} sichern"]).decode())
    assert done[0].msgstr == "Zuerst <b>%s</b> sichern"


def test_an_xliff_file_says_what_is_not_to_be_translated_at_any_level() -> None:
    one = XLIFF.replace('<trans-unit id="1">', '<group translate="no"><trans-unit id="1">')
    one = one.replace('</trans-unit>\n<trans-unit id="2">', '</trans-unit></group>\n<trans-unit id="2">')
    assert capitals("a.xlf", one.encode()).count(b"<target") == 1
    two = XLIFF2.replace('<unit id="u">', '<unit id="u" translate="no">')
    assert b"<target" not in capitals("a.xlf", two.encode())
    held = XLIFF.replace('<x id="1"/>', '<mrk mtype="protected">Acme</mrk>')
    assert b'<mrk mtype="protected">Acme</mrk>' in capitals("a.xlf", held.encode()).partition(b"<target")[2]


def test_an_xliff_target_that_says_it_is_not_translated_is() -> None:
    copied = XLIFF.replace("<target>steht schon da", '<target state="new">steht schon da')
    assert b"steht schon da" not in capitals("a.xlf", copied.encode())
    initial = XLIFF2.replace("<segment>", '<segment state="initial">')
    assert b'<segment state="translated">' in capitals("a.xlf", initial.encode())


def test_what_was_translated_by_machine_is_no_example_before_somebody_looked_at_it(tmp_path: Path) -> None:
    (tmp_path / "a.xlf").write_bytes(capitals("a.xlf", XLIFF.encode()))
    pairs = [item.target for item in read_pairs(tmp_path / "a.xlf", "en", "de") if isinstance(item, Pair)]
    assert pairs == ["steht schon da"]


def test_an_empty_translation_in_a_tmx_is_filled_in() -> None:
    empty = TMX.replace("<seg>schon da</seg>", "<seg/>")
    assert b'<tuv xml:lang="de"><seg>X</seg></tuv>' in capitals("a.tmx", empty.encode())


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
    monkeypatch.setattr("kster.server.word_documents.MAX_UNPACKED", 1_000_000)
    with pytest.raises(KsterError, match="unpacks to more than"):
        open_document("a.docx", bomb(), "en", "de")


def test_nobody_reaches_other_files_by_a_download(server: RunningServer) -> None:
    for name in ("server.sqlite", "..%2fserver.sqlite", "%2e%2e/server.sqlite", "a" * 32 + ".txt"):
        assert server.http.get(f"/download_file/{name}").status_code == 404


def test_every_kind_that_is_offered_opens() -> None:
    offered = {".txt", ".html", ".htm", ".po", ".xlf", ".xliff", ".tmx", ".docx"}
    assert set(SUFFIXES) == offered
