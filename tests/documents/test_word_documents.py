"""Word documents: a translation changes the text of a paragraph; its fields, links and changes stay in it.

Paragraphs are written in Word's XML, and shown in short: `{PAGEREF x|12}` is a field with its result, `⇥` a
tab, `↵` a line break, `*` a note's reference, `#` a picture, `<name>` and `</>` the ends of a bookmark,
`[ins: …]` an element around text.
"""

from __future__ import annotations

import io
from typing import Any

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from documents.translated import texts, written

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
AUTHOR = 'w:id="9" w:author="A" w:date="2024-01-01T00:00:00Z"'


def text(words: str, looks: str = "") -> str:
    return f'<w:r><w:rPr>{looks}</w:rPr><w:t xml:space="preserve">{words}</w:t></w:r>'


def field(instruction: str, result: str) -> str:
    """A complex field; result: runs."""
    return (
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
        f'<w:r><w:instrText xml:space="preserve"> {instruction} </w:instrText></w:r>'
        f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{result}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )


def inserted(runs: str) -> str:
    return f"<w:ins {AUTHOR}>{runs}</w:ins>"


def deleted(words: str) -> str:
    return f"<w:del {AUTHOR}><w:r><w:delText>{words}</w:delText></w:r></w:del>"


def bookmarked(name: str, runs: str, number: int = 1) -> str:
    begin = f'<w:bookmarkStart w:id="{number}" w:name="{name}"/>'
    return f'{begin}{runs}<w:bookmarkEnd w:id="{number}"/>'


PAGE_12 = field(r"PAGEREF _x \h", text("12"))
TAB, LINE, NOTE = "<w:r><w:tab/></w:r>", "<w:r><w:br/></w:r>", '<w:r><w:footnoteReference w:id="2"/></w:r>'
PICTURE = "<w:r><w:drawing/></w:r>"


def word_file(*paragraphs: str) -> bytes:
    document = docx.Document()
    for content in paragraphs:
        document.element.body.insert_element_before(
            parse_xml(f"<w:p {nsdecls('w', 'm')}>{content}</w:p>"), "w:sectPr"
        )
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def paragraphs_of(data: bytes) -> list[Any]:
    return list(docx.Document(io.BytesIO(data)).element.body.iter(f"{W}p"))


def shown(node: Any) -> str:
    name = node.tag.rpartition("}")[2]
    inner = "".join(map(shown, node))
    signs = {"tab": "⇥", "br": "↵", "cr": "↵", "footnoteReference": "*", "drawing": "#", "bookmarkEnd": "</>"}
    signs |= {"commentRangeStart": "(", "commentRangeEnd": ")"}
    if name in ("t", "delText", "instrText"):
        return (node.text or "").strip() if name == "instrText" else node.text or ""
    if name == "fldChar":
        return {"begin": "{", "separate": "|", "end": "}"}[node.get(f"{W}fldCharType")]
    if name == "bookmarkStart":
        return f"<{node.get(f'{W}name')}>"
    if name == "fldSimple":
        return f"{{{node.get(f'{W}instr').strip()}|{inner}}}"
    if name in ("hyperlink", "ins", "del", "moveFrom", "moveTo", "sdt", "oMath"):
        return f"[{name}: {inner}]"
    return signs.get(name, inner)


def translated(content: str, pieces: dict[str, str]) -> str:
    """A paragraph, shown, once its text has become what is given."""
    assert texts("a.docx", word_file(content)) == list(pieces)
    return shown(paragraphs_of(written("a.docx", word_file(content), list(pieces.values())))[0])


def test_a_page_number_in_a_sentence_stays_a_field() -> None:
    content = text("See page ") + PAGE_12 + text(" for details.")
    done = translated(content, {"See page <1/> for details.": "Einzelheiten auf Seite <1/>."})
    assert done == r"Einzelheiten auf Seite {PAGEREF _x \h|12}."


def test_a_note_that_moves_stays_at_its_word() -> None:
    done = translated(
        text("Lift the lid") + NOTE + text(", now"), {"Lift the lid<1/>, now": "Deckel<1/> jetzt auf"}
    )
    assert done == "Deckel* jetzt auf"


@pytest.mark.parametrize(
    "instruction", ["PAGE", "NUMPAGES", "SEQ Figure", r"REF _r \h", "MERGEFIELD Name", "DATE"]
)
def test_results_that_word_works_out_are_not_translated(instruction: str) -> None:
    result = "Figure 1"
    simple = f'<w:fldSimple w:instr=" {instruction} ">{text(result)}</w:fldSimple>'
    for one in (simple, field(instruction, text(result))):
        done = translated(text("Look at ") + one + text(" now"), {"Look at <1/> now": "Jetzt <1/> ansehen"})
        assert done == f"Jetzt {{{instruction}|{result}}} ansehen"


def test_a_field_of_a_link_keeps_the_link_around_its_text() -> None:
    link = field('HYPERLINK "http://example.org"', text("the manual", '<w:rStyle w:val="Link"/>'))
    content = text("Read ") + link + text(" before use.")
    first = {"Read <1>the manual</1> before use.": "Vor Gebrauch <1>die Anleitung</1> lesen."}
    done = translated(content, first)
    assert done == 'Vor Gebrauch {HYPERLINK "http://example.org"|die Anleitung} lesen.'
    simple = f"""{text("Read ")}<w:fldSimple w:instr='HYPERLINK "x"'>{text("this")}</w:fldSimple>"""
    assert translated(simple, {"Read <1>this</1>": "<1>Dies</1> lesen"}) == '{HYPERLINK "x"|Dies} lesen'


def test_a_link_looks_like_a_link_and_the_text_beside_it_does_not() -> None:
    link = f'<w:hyperlink w:anchor="x">{text("the manual", "<w:u/>")}</w:hyperlink>'
    data = word_file(text("Read ") + link + text(" now."))
    done = paragraphs_of(written("a.docx", data, ["Jetzt <1>die Anleitung</1> lesen."]))[0]
    runs = [(run.findtext(f"{W}t"), run.find(f"{W}rPr/{W}u") is not None) for run in done.iter(f"{W}r")]
    assert runs == [("Jetzt ", False), ("die Anleitung", True), (" lesen.", False)]


def test_lines_of_a_table_of_contents_keep_tab_and_number() -> None:
    page = field(r"PAGEREF _Toc1 \h", text("4"))
    assert translated(text("Cleaning") + TAB + page, {"Cleaning<1/><2/>": "Reinigung<1/><2/>"}) == (
        r"Reinigung⇥{PAGEREF _Toc1 \h|4}"
    )
    # As Word makes it: the field of the table begins in its first line, and every line is a link.
    begin = field("TOC", "").partition('<w:r><w:fldChar w:fldCharType="end"/>')[0]
    number = text("1") + TAB
    line = f'{begin}<w:hyperlink w:anchor="_Toc1">{number}{text("Cleaning")}{TAB}{page}</w:hyperlink>'
    assert translated(line, {"1<1/>Cleaning<2/><3/>": "1<1/>Reinigung<2/><3/>"}) == (
        r"{TOC|[hyperlink: 1⇥Reinigung⇥{PAGEREF _Toc1 \h|4}]"
    )


def test_a_caption_keeps_its_number_in_its_bookmark() -> None:
    label = bookmarked("_Ref1", text("Table ") + field("SEQ Table", text("1")))
    done = translated(
        label + text(": Results"), {"<1>Table <2/></1>: Results": "<1>Tabelle <2/></1>: Ergebnisse"}
    )
    assert done == "<_Ref1>Tabelle {SEQ Table|1}</>: Ergebnisse"


def test_a_bookmark_around_a_heading_does_not_touch_its_translation() -> None:
    content = bookmarked("_Toc1", bookmarked("_Ref1", text("Safety first"), 2))
    assert translated(content, {"Safety first": "Sicherheit"}) == "<_Toc1><_Ref1>Sicherheit</></>"


def test_only_inserted_words_are_in_an_insertion() -> None:
    content = inserted(text("Warning: ")) + text("the lid is hot.")
    done = translated(content, {"<1>Warning: </1>the lid is hot.": "<1>Achtung: </1>der Deckel ist heiß."})
    assert done == "[ins: Achtung: ]der Deckel ist heiß."


def test_deleted_words_stay_as_they_are() -> None:
    content = text("Set it to ") + deleted("five") + inserted(text("seven")) + text(" bar.")
    done = translated(content, {"Set it to <1>seven</1> bar.": "Auf <1>sieben</1> bar stellen."})
    assert done == "Auf [del: five][ins: sieben] bar stellen."
    alone = text("Do not ") + deleted("ever ") + text("open it.")
    assert translated(alone, {"Do not open it.": "Nicht jetzt öffnen."}) == "Nicht jetzt[del: ever ] öffnen."
    assert translated(deleted("Gone. ") + text("Here."), {"Here.": "Da."}) == "[del: Gone. ]Da."
    moved = f"<w:moveFrom {AUTHOR}>{text('Go. ')}</w:moveFrom>{text('Stay.')}"
    assert translated(moved, {"Stay.": "Bleib."}) == "[moveFrom: Go. ]Bleib."


def test_a_word_with_a_change_in_it_is_translated_as_a_word() -> None:
    content = text("The colo") + inserted(text("u")) + text("r is re") + deleted("a") + text("d.")
    done = translated(content, {"The colo<1>u</1>r is red.": "Die Far<1>b</1>e ist rot."})
    assert done == "Die Far[ins: b]e ist rot.[del: a]"


def test_tabs_breaks_notes_pictures_and_formulas_stay_in_order() -> None:
    content = text("Open it.") + NOTE + TAB + text("Close it.") + LINE
    content += text("Press ") + PICTURE + text(" now.")
    before, after = (
        "Open it.<1/><2/>Close it.<3/>Press <4/> now.",
        "Öffnen.<1/><2/>Schließen.<3/>Jetzt <4/> drücken.",
    )
    assert translated(content, {before: after}) == "Öffnen.*⇥Schließen.↵Jetzt # drücken."
    formula = f"{text('Here ')}<m:oMath><m:r><m:t>x</m:t></m:r></m:oMath>{text(' is one.')}"
    assert translated(formula, {"Here <1/> is one.": "Hier ist <1/> eins."}) == "Hier ist [oMath: x] eins."


def test_one_run_may_hold_everything() -> None:
    content = "<w:t>One</w:t><w:tab/><w:t>two</w:t><w:drawing/><w:br/><w:t>3</w:t>"
    data = word_file(f"<w:r><w:rPr><w:b/></w:rPr>{content}</w:r>")
    assert texts("a.docx", data) == ["One<1/>two<2/><3/>3"]
    done = paragraphs_of(written("a.docx", data, ["Eins<1/>zwei<2/><3/>3"]))[0]
    assert shown(done) == "Eins⇥zwei#↵3"
    assert all(run.find(f"{W}rPr/{W}b") is not None for run in done.iter(f"{W}r"))


def test_comments_and_index_entries_do_not_touch_a_translation() -> None:
    begin, end = '<w:commentRangeStart w:id="1"/>', '<w:commentRangeEnd w:id="1"/>'
    content = text("Press the ") + begin + text("red") + end + text(" button.") + field('XE "button"', "")
    done = translated(content, {"Press the red button.": "Den roten Knopf drücken."})
    assert done == 'Den roten( Knopf) drücken.{XE "button"|}'


def test_content_controls_stay_around_their_text() -> None:
    content = f"<w:sdtPr><w:alias w:val='x'/></w:sdtPr><w:sdtContent>{text('Text.')}</w:sdtContent>"
    assert translated(f"<w:sdt>{content}</w:sdt>", {"Text.": "Schrift."}) == "[sdt: Schrift.]"


def test_codes_that_cross_a_break_keep_their_order() -> None:
    link = f'<w:hyperlink w:anchor="x">{text("the big")}{TAB}{text("manual")}</w:hyperlink>'
    pieces = {"Read <1>the big<2/>manual</1> now.": "Lies <1>die große<2/>Anleitung</1> jetzt."}
    done = translated(text("Read ") + link + text(" now."), pieces)
    assert done == "Lies [hyperlink: die große⇥Anleitung] jetzt."


def looks(data: bytes) -> list[tuple[str | None, list[str]]]:
    """The texts of the first paragraph's runs, and how they look."""
    runs = paragraphs_of(data)[0].iter(f"{W}r")
    return [
        (run.findtext(f"{W}t"), [node.tag.removeprefix(W) for node in run.findall(f"{W}rPr/*")])
        for run in runs
    ]


def test_bold_and_red_words_stay_bold_and_red_and_the_others_do_not_become_so() -> None:
    data = word_file(text("Warning: ", "<w:b/><w:color w:val='FF0000'/>") + text("the lid is hot."))
    assert texts("a.docx", data) == ["<1>Warning:</1> the lid is hot."]
    done = looks(written("a.docx", data, ["<1>Achtung:</1> der Deckel ist heiß."]))
    assert done == [("Achtung:", ["b", "color"]), (" der Deckel ist heiß.", [])]


def test_bold_and_italic_words_in_a_sentence_keep_their_looks_wherever_they_go() -> None:
    data = word_file(
        text("Press the ") + text("red", "<w:b/>") + text(" button ") + text("now", "<w:i/>") + text(".")
    )
    assert texts("a.docx", data) == ["Press the <1>red</1> button <2>now</2>."]
    done = looks(written("a.docx", data, ["<2>Jetzt</2> den <1>roten</1> Knopf drücken."]))
    assert done == [("Jetzt", ["i"]), (" den ", []), ("roten", ["b"]), (" Knopf drücken.", [])]


def test_a_raised_number_of_a_footnote_stays_one_and_its_text_is_not_raised() -> None:
    data = word_file(text("1", '<w:vertAlign w:val="superscript"/>') + text(" See the manual."))
    assert texts("a.docx", data) == [" See the manual."]
    done = looks(written("a.docx", data, [" Siehe Handbuch."]))
    assert done == [("1", ["vertAlign"]), (" Siehe Handbuch.", [])]
    within = word_file(text("12 m") + text("2", '<w:vertAlign w:val="superscript"/>') + text(" of wood"))
    assert texts("a.docx", within) == ["12 m<1/> of wood"]


def test_differences_that_nobody_sees_do_not_cut_a_sentence() -> None:
    data = word_file(text("Press ", '<w:lang w:val="en-GB"/>') + text("it", "<w:noProof/>") + text(" now."))
    assert texts("a.docx", data) == ["Press it now."]


def test_a_links_text_is_translated_whole_in_its_sentence() -> None:
    link = (
        f'<w:hyperlink w:anchor="x">{text("the ", "<w:u/>")}{text("documentation", "<w:u/>")}</w:hyperlink>'
    )
    data = word_file(text("Read ") + link + text(" first."))
    assert texts("a.docx", data) == ["Read <1>the documentation</1> first."]


def test_text_boxes_in_a_paragraph_are_translated_beside_it() -> None:
    box = f"<w:r><w:pict><w:txbxContent><w:p>{text('In the box.')}</w:p></w:txbxContent></w:pict></w:r>"
    data = word_file(text("Before ") + box + text("behind."))
    assert texts("a.docx", data) == ["In the box.", "Before <1/>behind."]
    done = paragraphs_of(written("a.docx", data, ["Im Kasten.", "Hinter <1/>vor."]))
    assert [shown(p) for p in done] == ["Hinter Im Kasten.vor.", "Im Kasten."]


def test_what_has_no_words_is_left_alone() -> None:
    data = word_file(text("12 ", "<w:b/>") + PAGE_12 + text("345") + deleted("words"))
    assert texts("a.docx", data) == []
    assert written("a.docx", data, []) == data


def test_a_document_that_says_the_same_in_the_other_language_stays_byte_for_byte() -> None:
    data = word_file(text("Hotel ", "<w:b/>") + text("Taxi") + TAB + PAGE_12 + bookmarked("a", text("Radio")))
    assert written("a.docx", data, texts("a.docx", data)) == data
