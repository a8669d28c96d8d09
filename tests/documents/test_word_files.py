"""Whole Word files, as python-docx makes and reads them: what has text in them, and what stays."""

from __future__ import annotations

import base64
import io
import zipfile

import docx
from docx.enum.text import WD_BREAK
from docx.opc.constants import CONTENT_TYPE, RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import OxmlElement

from documents.translated import capitals
from kster.documents.kinds import open_document

NOTES = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:{kind} xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">
<w:footnote w:id="1"><w:p><w:r><w:footnoteRef/></w:r><w:r><w:t>of the {kind}</w:t></w:r></w:p></w:footnote>
</w:{kind}>"""


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


def test_places_are_named_so_that_people_find_them() -> None:
    document = docx.Document()
    document.add_paragraph("Press the red button and wait until the light has gone out.")
    out = io.BytesIO()
    document.save(out)
    places = [unit.where for unit in open_document("a.docx", out.getvalue(), "en", "de").units]
    assert places == ["the paragraph “Press the red button and wait until the”"]
    page = open_document("a.html", b"<p>one\n<p>\n two <b>three</b><p title='four'>", "en", "de")
    assert [unit.where for unit in page.units] == ["line 1", "line 3", "p title"]
