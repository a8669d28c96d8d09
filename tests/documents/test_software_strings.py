"""Markdown, JSON, Android, Apple, Java and subtitles: read and written in place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from documents.samples import (
    ANDROID,
    APPLE,
    ARB,
    CHROME,
    I18NEXT,
    MARKDOWN,
    PROPERTIES,
    SAMPLES,
    SRT,
    XCSTRINGS,
)
from documents.translated import capitals, texts, translated, written
from kster.documents.kinds import open_document
from kster.errors import KsterError


@pytest.mark.parametrize("name", SAMPLES)
def test_what_people_read_is_a_unit_and_nothing_else(name: str) -> None:
    content, units = SAMPLES[name]
    assert texts(name, content.encode()) == units


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_that_says_the_same_stays_byte_for_byte(name: str, encoding: str, line_end: str) -> None:
    content = SAMPLES[name][0].replace("en", "x", name == "app_en.arb").replace("\n", line_end)
    content = content.replace("utf-8", encoding)
    assert translated(name, content.encode(encoding), lambda text: text) == content.encode(encoding)


@pytest.mark.parametrize("name", SAMPLES)
def test_what_was_written_is_read_again_as_what_was_meant(name: str) -> None:
    content = SAMPLES[name][0].encode()
    new = [unit.replace("e", "é'\"") for unit in texts(name, content)]
    done = written(name, content, new)
    assert texts(name, done) == new
    assert texts(name, written(name, done, texts(name, content))) == texts(name, content)


def test_a_markdown_paragraph_is_broken_again_and_begins_no_list() -> None:
    source = texts("a.md", MARKDOWN.encode())
    source[1] = "Wort " * 30 + "- kein Punkt <1>fett</1> <2/> <3>Verweis</3>."
    source[5] = "1. Nummer"
    source[6] = "# Mit *Sternen* und snake_case <b>"
    done = written("a.md", MARKDOWN.encode(), source).decode()
    assert all(len(line) <= 60 for line in done.splitlines() if line.startswith("Wort"))
    assert "\n- kein" not in done
    assert "1. \\1. Nummer" in done
    assert "\n- [ ] Press" in done
    assert "> \\# Mit \\*Sternen\\* und snake_case \\<b>" in done


@pytest.mark.parametrize(
    ("line", "title", "expected"),
    [
        (
            'Look [here](https://a.example "The tank").',
            "The tank",
            'LOOK [HERE](https://a.example "THE TANK").',
        ),
        ("![A tank](x.png 'Tank &amp; \"lid\"')", 'Tank & "lid"', "![A TANK](x.png 'TANK & \"LID\"')"),
        ("See [it](a (Two words)).", "Two words", "SEE [IT](a (TWO WORDS))."),
    ],
)
def test_the_title_of_a_markdown_link_is_a_unit_of_its_own(line: str, title: str, expected: str) -> None:
    assert texts("a.md", line.encode())[1:] == [title]
    assert capitals("a.md", line.encode()).decode() == expected


def test_footnotes_of_markdown_are_markup() -> None:
    content = b"See the second step[^1] and [^note].\n\n[^1]: It is the *last* one.\n"
    assert texts("a.md", content) == ["See the second step<1/> and <2/>.", "<1/> It is the <2>last</2> one."]
    assert capitals("a.md", content) == content.decode().upper().replace("NOTE", "note").encode()


def test_no_translation_ends_the_title_of_a_link() -> None:
    source = b'Look [here](a "The tank").'
    new = ["Hier <1>hin</1>.", 'Der "Tank" &amp; don\'t\\']
    done = written("a.md", source, new)
    assert done.decode().endswith('[hin](a "Der \\"Tank\\" \\&amp; don\'t\\\\").')


def test_a_title_without_words_is_left_alone() -> None:
    assert texts("a.md", b'Look [here](a "{0}") and [there](b "a\nb").') == [
        "Look <1>here</1> and <2>there</2>."
    ]


def test_json_stays_in_ascii_where_it_was() -> None:
    ascii_only = '{"a": "Gr\\u00f6\\u00dfe", "b": "x"}'
    assert written("a.json", ascii_only.encode(), ["Größe", "ü"]).decode() == (
        '{"a": "Gr\\u00f6\\u00dfe", "b": "\\u00fc"}'
    )
    assert written("a.json", b'{"a": "x"}', ["ü"]).decode() == '{"a": "ü"}'


def test_an_arb_file_says_its_new_language() -> None:
    assert json.loads(capitals("a.arb", ARB.encode()))["@@locale"] == "de"


def test_descriptions_and_placeholders_of_chrome_messages_stay() -> None:
    done = json.loads(capitals("messages.json", CHROME.encode()))
    assert done["greeting"]["description"] == "Words for the translator."
    assert done["greeting"]["placeholders"] == json.loads(CHROME)["greeting"]["placeholders"]
    assert done["bye"]["message"] == "GOODBYE"


def test_a_reference_to_another_message_stays_one() -> None:
    done = json.loads(capitals("a.json", I18NEXT.encode()))
    assert done["nested"] == 'SEE $t(menu.open, {"a": 1}) NOW'


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=12,
    )
)
@settings(max_examples=60, deadline=None)
def test_any_json_keeps_its_shape(value: object) -> None:
    content = json.dumps({"all": value}).encode()
    assert translated("a.json", content, lambda text: text) == content
    done = json.loads(translated("a.json", content, lambda text: text + "é"))
    assert json.dumps(done).count("{") == content.decode().count("{") or "{" in str(value)


def test_android_writes_quotes_as_android_reads_them() -> None:
    new = texts("strings.xml", ANDROID.encode())
    new[0], new[2], new[6] = 'Los geht\'s, <1>%1$s</1> & "du"!', "Geht's  so?", "@home"
    done = written("strings.xml", ANDROID.encode(), new).decode()
    assert 'Los geht\\\'s, <b>%1$s</b> &amp; \\"du\\"!</string>' in done
    assert '"Geht\'s  so?"</string>' in done
    assert "<item>\\@home</item>" in done
    assert '<![CDATA[<p>Read <a href="x">this</a> & that</p>]]>' in done


def test_a_quoted_android_string_keeps_the_spaces_at_its_ends() -> None:
    """Quotes stand around a text whose spaces Android shows: parts of sentences that are put together."""
    content = b'<resources><string name="also">"  and also "</string></resources>'
    assert texts("strings.xml", content) == ["  and also "]
    done = written("strings.xml", content, ["  und auch "])
    assert done == b'<resources><string name="also">"  und auch "</string></resources>'


def test_apple_strings_keep_their_escapes() -> None:
    done = written("a.strings", APPLE.encode("utf-16"), ["Willkommen", '"%@"\\nbeenden?', "Acme"])
    assert '= "\\"%@\\"\\nbeenden?";' in done.decode("utf-16")


def test_a_string_catalogue_gets_what_it_lacks_as_xcode_would_write_it() -> None:
    content = XCSTRINGS.encode()
    assert texts("a.xcstrings", content) == ["%lld file", "%lld files", "Open “it”"]
    done = written("a.xcstrings", content, ["%lld Datei", "%lld Dateien", "Öffnen"]).decode()
    unit = '"stringUnit" : {\n            "state" : "needs_review",\n            "value" : "Öffnen"'
    assert f'"Open “it”" : {{\n      "localizations" : {{\n        "de" : {{\n          {unit}' in done
    before, after = json.loads(XCSTRINGS), json.loads(done)
    plural = after["strings"]["%lld files"]["localizations"]["de"]["variations"]["plural"]
    assert [form["stringUnit"]["value"] for form in plural.values()] == ["%lld Datei", "%lld Dateien"]
    assert after["strings"]["Done"] == before["strings"]["Done"]
    assert texts("a.xcstrings", done.encode()) == []
    assert written("a.xcstrings", done.encode(), []) == done.encode()


def test_what_lacks_nothing_in_a_string_catalogue_stays_as_xcode_wrote_it() -> None:
    new = '"New" : {\n\n    },\n    "%lld files" : {\n      "localizations" : {'
    content = XCSTRINGS.replace('"%lld files" : {\n      "localizations" : {', new)
    done = written("a.xcstrings", content.encode(), ["New", "%lld file", "%lld files", "Open “it”"]).decode()
    assert '"Acme" : {\n      "shouldTranslate" : false\n    },' in done
    assert done.startswith('{\n  "sourceLanguage" : "en",\n  "strings" : {\n    "New" : {')


def test_properties_are_written_so_that_any_java_reads_them() -> None:
    done = capitals("a.properties", PROPERTIES.encode()).decode()
    assert "unicode=GR\\u00D6SSE : SIZE\n" in done
    assert "message.long: THIS VALUE GOES ON IN THE NEXT LINE\n" in done
    latin = "a=Größe\nb=x\n".encode("iso-8859-1")
    assert written("a.properties", latin, ["Größe", "ü"]) == "a=Größe\nb=ü\n".encode("iso-8859-1")


def test_a_subtitle_is_broken_into_lines_of_one_length() -> None:
    welcome = "<1>Willkommen zurück</1> zu unserer heutigen Sendung, meine Damen und Herren."
    done = written("a.srt", SRT.encode(), [welcome, "Wer da?", "Keiner."]).decode()
    assert "<i>Willkommen zurück</i> zu unserer heutigen\nSendung, meine Damen und Herren.\n" in done
    assert "\n- Wer da?\n- Keiner.\n" in done


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.json", '{"a": }', "line 1: not valid JSON: expecting value"),
        ("a.json", "[" * 100_000, "not valid JSON"),
        ("a.json", "[" * 300 + "]" * 300, "more than 256 values in another"),
        ("a.xcstrings", '{"strings": {"a": 1}}', "not a string catalogue"),
        ("a.xcstrings", '{"sourceLanguage": "fr", "strings": {}}', "its sourceLanguage is fr"),
        ("a.xml", "<manifest/>", "its root is <manifest>, not <resources>"),
        ("a.strings", '"a" = "b";\n"c"', 'line . or below it: not an entry such as "key" = "value";'),
        ("a.srt", "Dear Sir or Madam", "no times of subtitles"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_the_reason(name: str, content: str, reason: str) -> None:
    with pytest.raises(KsterError, match=f"^{name}: .*{reason}.*; nothing was translated$"):
        open_document(name, content.encode(), "en", "de")
