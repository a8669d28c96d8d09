"""Whole files: what is text is translated, what is translated already and what is markup stays."""

from __future__ import annotations

import io

import docx
import polib
import pytest
from running import RunningServer
from translated import translate_file

from kster.server.api.file_translation import portions
from tiny import ENGLISH, GERMAN


def test_a_text_file_keeps_its_lines(server: RunningServer) -> None:
    content = f"{ENGLISH[0]}\r\n\r\n  {ENGLISH[1]}\n".encode()
    assert translate_file(server, "notes.txt", content).decode() == f"{GERMAN[0]}\r\n\r\n  {GERMAN[1]}\n"


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
def test_placeholders_and_tags_in_a_text_are_kept_whatever_the_model_does(
    server: RunningServer, name: str, content: str
) -> None:
    done = translate_file(server, name, content.encode()).decode()
    plain = done.replace("&lt;", "<").replace("&gt;", ">").replace("\\", "")
    translation = plain.rpartition("See ")[2] if name == "a.txt" else plain.rpartition("the manual</a>")[2]
    assert translation.count('<a href="%s">') == translation.count("</a>") == 1


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
    paragraph.add_run(ENGLISH[0][7:])
    document.add_table(1, 1).cell(0, 0).text = ENGLISH[1]
    out = io.BytesIO()
    document.save(out)
    done = docx.Document(io.BytesIO(translate_file(server, "letter.docx", out.getvalue())))
    assert done.paragraphs[0].text == GERMAN[0]
    assert done.tables[0].cell(0, 0).text == GERMAN[1]


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


def test_a_catalogue_gets_what_it_lacks(server: RunningServer) -> None:
    content = f"""msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\nPlural-Forms: nplurals=2; plural=(n != 1);\\n"

msgid "{ENGLISH[0]}"
msgstr ""

msgid "{ENGLISH[2]}"
msgid_plural "{ENGLISH[3]}"
msgstr[0] ""
msgstr[1] ""
"""
    done = polib.pofile(translate_file(server, "app.po", content.encode()).decode())
    assert done[0].msgstr == GERMAN[0]
    assert done[1].msgstr_plural == {0: GERMAN[2], 1: GERMAN[3]}


def test_xliff_and_tmx_units_get_translations_with_their_tags(server: RunningServer) -> None:
    unit = f'<trans-unit id="1"><source>{ENGLISH[0]}<x id="1"/></source></trans-unit>'
    xliff = f'<xliff><file source-language="en">{unit}</file></xliff>'
    done = translate_file(server, "job.xlf", xliff.encode()).decode()
    assert f'state-qualifier="leveraged-mt">{GERMAN[0]}<x id="1"/></target>' in done
    tmx = f'<tmx><header srclang="en"/><tu><tuv xml:lang="en"><seg>{ENGLISH[0]}<ph/></seg></tuv></tu></tmx>'
    done = translate_file(server, "terms.tmx", tmx.encode()).decode()
    assert f'<tuv xml:lang="de"><seg>{GERMAN[0]}<ph/></seg></tuv>' in done


def test_nobody_reaches_other_files_by_a_download(server: RunningServer) -> None:
    for name in ("server.sqlite", "..%2fserver.sqlite", "%2e%2e/server.sqlite", "a" * 32 + ".txt"):
        assert server.http.get(f"/download_file/{name}").status_code == 404
