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
from running import RunningServer

from kster.documents.kinds import open_document
from tiny import ENGLISH, GERMAN

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


def translated(content: str, first: dict[str, str], more: dict[str, str] | None = None) -> str:
    """A paragraph, shown, once each of its pieces has become what is given."""
    document = open_document("a.docx", word_file(content), "en", "de")
    assert document.pieces == list(first)
    assert document.again(list(first.values())) == list(more or {})
    done = document.with_translations(list(first.values()), list((more or {}).values()))
    return shown(paragraphs_of(done)[0])


def test_a_page_number_in_a_sentence_stays_a_field() -> None:
    content = text("See page ") + PAGE_12 + text(" for details.")
    done = translated(content, {"See page {0} for details.": "Einzelheiten auf Seite {0}."})
    assert done == r"Einzelheiten auf Seite {PAGEREF _x \h|12}."


@pytest.mark.parametrize(
    ("before", "behind", "translation", "expected"),
    [
        ("(see ", "), press it", "wie {0} zeigt drücken", "wie {PAGE|3} zeigt drücken"),
        ("Look (", ") at it", "Schau auf {0}.", "Schau auf {PAGE|3}."),
        ("Look (", ") at it", "({0}) ansehen", "({PAGE|3}) ansehen"),
        ("No.", " of it", "Nr. {0} davon", "Nr.{PAGE|3} davon"),
    ],
)
def test_a_field_that_moves_is_apart_from_words(
    before: str, behind: str, translation: str, expected: str
) -> None:
    data = word_file(text(before) + field("PAGE", text("3")) + text(behind))
    document = open_document("a.docx", data, "en", "de")
    assert shown(paragraphs_of(document.with_translations([translation]))[0]) == expected


def test_a_note_that_moves_stays_at_its_word() -> None:
    done = translated(
        text("Lift the lid") + NOTE + text(", now"), {"Lift the lid {0}, now": "Deckel {0} jetzt auf"}
    )
    assert done == "Deckel* jetzt auf"


def test_a_field_that_a_translation_has_lost_comes_back_between_its_parts() -> None:
    content = text("See page ") + PAGE_12 + text(" for details.")
    parts = {"See page": "Siehe Seite", "for details.": "für Einzelheiten."}
    done = translated(content, {"See page {0} for details.": "Siehe Seite."}, parts)
    assert done == r"Siehe Seite {PAGEREF _x \h|12} für Einzelheiten."


@pytest.mark.parametrize(
    "instruction", ["PAGE", "NUMPAGES", "SEQ Figure", r"REF _r \h", "MERGEFIELD Name", "DATE"]
)
def test_results_that_word_works_out_are_not_translated(instruction: str) -> None:
    result = "Figure 1"
    simple = f'<w:fldSimple w:instr=" {instruction} ">{text(result)}</w:fldSimple>'
    for one in (simple, field(instruction, text(result))):
        done = translated(text("Look at ") + one + text(" now"), {"Look at {0} now": "Jetzt {0} ansehen"})
        assert done == f"Jetzt {{{instruction}|{result}}} ansehen"


def test_a_field_of_a_link_keeps_the_link_around_its_text() -> None:
    link = field('HYPERLINK "http://example.org"', text("the manual", '<w:rStyle w:val="Link"/>'))
    content = text("Read ") + link + text(" before use.")
    first = {"Read {0} the manual {1} before use.": "Vor Gebrauch {0} die Anleitung {1} lesen."}
    done = translated(content, first)
    assert done == 'Vor Gebrauch {HYPERLINK "http://example.org"|die Anleitung} lesen.'
    parts = {"Read": "Lies", "the manual": "die Anleitung", "before use.": "vor Gebrauch."}
    done = translated(content, {"Read {0} the manual {1} before use.": "Anleitung lesen."}, parts)
    assert done == 'Lies {HYPERLINK "http://example.org"|die Anleitung} vor Gebrauch.'
    simple = f"""{text("Read ")}<w:fldSimple w:instr='HYPERLINK "x"'>{text("this")}</w:fldSimple>"""
    assert translated(simple, {"Read {0} this {1}": "{0} Dies {1} lesen"}) == '{HYPERLINK "x"|Dies} lesen'


def test_a_link_looks_like_a_link_and_the_text_beside_it_does_not() -> None:
    link = f'<w:hyperlink w:anchor="x">{text("the manual", "<w:u/>")}</w:hyperlink>'
    data = word_file(text("Read ") + link + text(" now."))
    document = open_document("a.docx", data, "en", "de")
    done = paragraphs_of(document.with_translations(["Jetzt {0} die Anleitung {1} lesen."]))[0]
    runs = [(run.findtext(f"{W}t"), run.find(f"{W}rPr/{W}u") is not None) for run in done.iter(f"{W}r")]
    assert runs == [("Jetzt ", False), ("die Anleitung", True), (" lesen.", False)]


def test_lines_of_a_table_of_contents_keep_tab_and_number() -> None:
    page = field(r"PAGEREF _Toc1 \h", text("4"))
    assert translated(text("Cleaning") + TAB + page, {"Cleaning": "Reinigung"}) == (
        r"Reinigung⇥{PAGEREF _Toc1 \h|4}"
    )
    # As Word makes it: the field of the table begins in its first line, and every line is a link.
    begin = field("TOC", "").partition('<w:r><w:fldChar w:fldCharType="end"/>')[0]
    number = text("1") + TAB
    line = f'{begin}<w:hyperlink w:anchor="_Toc1">{number}{text("Cleaning")}{TAB}{page}</w:hyperlink>'
    assert translated(line, {"Cleaning": "Reinigung"}) == (
        r"{TOC|[hyperlink: 1⇥Reinigung⇥{PAGEREF _Toc1 \h|4}]"
    )


def test_a_caption_keeps_its_number_in_its_bookmark() -> None:
    label = bookmarked("_Ref1", text("Table ") + field("SEQ Table", text("1")))
    done = translated(label + text(": Results"), {"{0} Table {1}: Results": "{0} Tabelle {1}: Ergebnisse"})
    assert done == "<_Ref1>Tabelle {SEQ Table|1}</>: Ergebnisse"


def test_a_bookmark_around_a_heading_does_not_touch_its_translation() -> None:
    content = bookmarked("_Toc1", bookmarked("_Ref1", text("Safety first"), 2))
    assert translated(content, {"Safety first": "Sicherheit"}) == "<_Toc1><_Ref1>Sicherheit</></>"


def test_only_inserted_words_are_in_an_insertion() -> None:
    content = inserted(text("Warning: ")) + text("the lid is hot.")
    done = translated(content, {"{0} Warning: {1} the lid is hot.": "{0} Achtung: {1} der Deckel ist heiß."})
    assert done == "[ins: Achtung: ]der Deckel ist heiß."


def test_deleted_words_stay_as_they_are() -> None:
    content = text("Set it to ") + deleted("five") + inserted(text("seven")) + text(" bar.")
    done = translated(content, {"Set it to {0} seven {1} bar.": "Auf {0} sieben {1} bar stellen."})
    assert done == "Auf [del: five][ins: sieben] bar stellen."
    alone = text("Do not ") + deleted("ever ") + text("open it.")
    assert translated(alone, {"Do not open it.": "Nicht jetzt öffnen."}) == "Nicht jetzt[del: ever ] öffnen."
    assert translated(deleted("Gone. ") + text("Here."), {"Here.": "Da."}) == "[del: Gone. ]Da."
    moved = f"<w:moveFrom {AUTHOR}>{text('Go. ')}</w:moveFrom>{text('Stay.')}"
    assert translated(moved, {"Stay.": "Bleib."}) == "[moveFrom: Go. ]Bleib."


def test_a_word_with_a_change_in_it_is_translated_as_a_word() -> None:
    content = text("The colo") + inserted(text("u")) + text("r is re") + deleted("a") + text("d.")
    done = translated(content, {"The colour {0} is red.": "Die Farbe {0} ist rot."})
    assert done == "Die Farbe[ins: ] ist rot.[del: a]"


def test_tabs_breaks_notes_pictures_and_formulas_stay_in_order() -> None:
    content = text("Open it.") + NOTE + TAB + text("Close it.") + LINE
    content += text("Press ") + PICTURE + text(" now.")
    pieces = {"Open it.": "Öffnen.", "Close it.": "Schließen.", "Press {0} now.": "Jetzt {0} drücken."}
    assert translated(content, pieces) == "Öffnen.*⇥Schließen.↵Jetzt # drücken."
    formula = f"{text('Here ')}<m:oMath><m:r><m:t>x</m:t></m:r></m:oMath>{text(' is one.')}"
    assert translated(formula, {"Here {0} is one.": "Hier ist {0} eins."}) == "Hier ist [oMath: x] eins."


def test_one_run_may_hold_everything() -> None:
    content = "<w:t>One</w:t><w:tab/><w:t>two</w:t><w:drawing/><w:br/><w:t>3</w:t>"
    data = word_file(f"<w:r><w:rPr><w:b/></w:rPr>{content}</w:r>")
    document = open_document("a.docx", data, "en", "de")
    assert document.pieces == ["One", "two"]
    done = paragraphs_of(document.with_translations(["Eins", "zwei"]))[0]
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
    pieces = {"Read": "Lies", "the big": "die große", "manual": "Anleitung", "now.": "jetzt."}
    done = translated(text("Read ") + link + text(" now."), pieces)
    assert done == "Lies [hyperlink: die große⇥Anleitung] jetzt."


def test_a_paragraph_of_plain_runs_is_one_text_that_looks_like_its_first_words() -> None:
    data = word_file(text("Press ", "<w:b/>") + text("the ") + text("button", "<w:i/>") + text("."))
    document = open_document("a.docx", data, "en", "de")
    assert document.pieces == ["Press the button."]
    runs = list(paragraphs_of(document.with_translations(["Taste drücken."]))[0].iter(f"{W}r"))
    assert [(run.findtext(f"{W}t"), [node.tag for node in run.find(f"{W}rPr")]) for run in runs] == [
        ("Taste drücken.", [f"{W}b"])
    ]


def test_what_has_no_words_is_left_alone() -> None:
    content = text("12 ", "<w:b/>") + PAGE_12 + text("345") + deleted("words")
    data = word_file(content)
    document = open_document("a.docx", data, "en", "de")
    assert document.pieces == []
    assert shown(paragraphs_of(document.with_translations([]))[0]) == r"12 {PAGEREF _x \h|12}345[del: words]"


def test_a_server_translates_around_fields(server: RunningServer) -> None:
    content = text(ENGLISH[0]) + TAB + field(r"PAGEREF _x \h", text("12")) + LINE + text(ENGLISH[1])
    answer = server.http.post(
        "/translate_file",
        files={"file": ("a.docx", word_file(content))},
        data={"source": "en", "target": "de"},
    )
    done = server.http.get(answer.json()["translatedFileUrl"]).content
    assert shown(paragraphs_of(done)[0]) == rf"{GERMAN[0]}⇥{{PAGEREF _x \h|12}}↵{GERMAN[1]}"
