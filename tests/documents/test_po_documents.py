"""Catalogues: empty translations are filled in and marked, and every other line stays as it is."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import polib
import pytest

from documents.translated import capitals, texts, written
from kster import Memory, Translator
from kster.documents.kinds import open_document
from kster.errors import KsterError
from kster.formats import Pair, read_pairs, write_pairs

HEADER = """msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Language: de\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"
"""
FINISHED = """# A comment that is longer than the seventy-eight columns where most tools break lines.
msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\nX-Custom:   kept\\n"

#  odd   comment
#: src/a.c:1 src/b.c:2
#, c-format
msgctxt "door"
msgid "a source that is longer than seventy-eight columns and has not been broken into two"
msgstr "so "
"o"
"der so"

#~| msgid "earlier"
#~ msgid "obsolete"
#~ msgstr ""

#, fuzzy
#| msgid "like this"
msgid "similar"
msgstr "ähnlich"

msgid "12:30"
msgstr ""
"""
UNFINISHED = """
#, c-format
msgid "open %d"
msgstr ""

#~ msgid "obsolete"
#~ msgstr "veraltet"

#| msgid "earlier"
msgid ""
"two\\n"
"lines\\n"
msgstr ""

msgid "finished"
msgstr "fertig"
"""


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_finished_catalogue_comes_back_as_it_was(mark: str, line_end: str) -> None:
    content = (mark + FINISHED.replace("\n", line_end)).encode()
    assert capitals("app.po", content) == content
    assert capitals("app.po", content.rstrip()) == content.rstrip()
    assert capitals("app.po", b"") == b""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_only_lines_that_say_something_new_change(line_end: str) -> None:
    before = (HEADER + UNFINISHED).replace("\n", line_end)
    after = before.replace("#, c-format", "#, fuzzy, c-format")
    after = after.replace(f'open %d"{line_end}msgstr ""', f'open %d"{line_end}msgstr "OPEN %D"')
    after = after.replace("#| msgid", f"#, fuzzy{line_end}#| msgid")
    lines = f'lines\\n"{line_end}msgstr ""'
    after = after.replace(lines, f'{lines}{line_end}"TWO\\n"{line_end}"LINES\\n"')
    assert capitals("app.po", before.encode()).decode() == after
    assert after.count("fuzzy") == 2


def test_no_form_that_somebody_wrote_is_overwritten() -> None:
    content = HEADER + '\nmsgid "half"\nmsgid_plural "halves"\nmsgstr[0] "Hälfte"\nmsgstr[1] ""\n'
    done = capitals("app.po", content.encode()).decode()
    assert done.endswith('msgstr[0] "Hälfte"\nmsgstr[1] "HALVES"\n')


def test_a_fuzzy_entry_keeps_what_somebody_wrote_and_its_flag() -> None:
    content = HEADER + '\n#, fuzzy\nmsgid "a"\nmsgstr "geraten"\n\n#, fuzzy\nmsgid "b"\nmsgstr ""\n'
    done = polib.pofile(capitals("app.po", content.encode()).decode())
    assert [(entry.msgstr, entry.flags) for entry in done] == [("geraten", ["fuzzy"]), ("B", ["fuzzy"])]


def test_an_import_learns_nothing_that_the_machine_filled_in(tmp_path: Path) -> None:
    (tmp_path / "a.po").write_bytes(capitals("a.po", (HEADER + UNFINISHED).encode()))
    pairs = [item.target for item in read_pairs(tmp_path / "a.po", "en", "de") if isinstance(item, Pair)]
    assert pairs == ["fertig"]


@pytest.mark.parametrize(
    ("rule", "forms", "filled"),
    [
        ("nplurals=1; plural=0;", 1, ["FILES"]),
        ("nplurals=2; plural=(n != 1);", 2, ["FILE", "FILES"]),
        ("nplurals=2; plural=(n == 1);", 2, ["FILES", "FILE"]),
        ("nplurals=3; plural=(n==1 ? 0 : n%10==2 ? 1 : 2);", 3, ["FILE", "FILES", "FILES"]),
    ],
)
def test_each_form_is_translated_from_what_it_says(rule: str, forms: int, filled: list[str]) -> None:
    content = HEADER.replace("nplurals=2; plural=(n != 1);", rule)
    content += '\nmsgid "file"\nmsgid_plural "files"\n'
    content += "".join(f'msgstr[{form}] ""\n' for form in range(forms))
    done = polib.pofile(capitals("app.po", content.encode()).decode())
    assert list(done[0].msgstr_plural.values()) == filled


def test_an_encoding_that_is_declared_is_kept_while_it_has_the_characters() -> None:
    content = HEADER.replace("UTF-8", "ISO-8859-1") + '\nmsgid "käse"\nmsgstr ""\n\nmsgid "a"\nmsgstr "ü"\n'
    assert '"KÄSE"'.encode("latin-1") in capitals("app.po", content.encode("latin-1"))
    done = written("app.po", content.encode("latin-1"), ["„Käse“"]).decode("utf-8")
    assert "charset=UTF-8" in done
    assert 'msgstr "„Käse“"' in done
    assert 'msgstr "ü"' in done


def test_separators_of_unicode_are_characters_like_others() -> None:
    content = HEADER + '\nmsgid "a"\nmsgstr "eins\u2028zwei\u0085drei"\n\nmsgid "b"\nmsgstr ""\n'
    assert 'msgstr "eins\u2028zwei\u0085drei"' in capitals("app.po", content.encode()).decode()


def test_a_filled_template_says_its_encoding_and_language() -> None:
    template = HEADER.replace("UTF-8", "CHARSET").replace("Language: de", "Language: ")
    done = polib.pofile(capitals("app.po", f'{template}\nmsgid "a"\nmsgstr ""\n'.encode()).decode())
    assert done.metadata["Content-Type"] == "text/plain; charset=UTF-8"
    assert done.metadata["Language"] == "de"
    assert done.metadata["Plural-Forms"] == "nplurals=2; plural=(n != 1);"
    done = polib.pofile(capitals("app.po", b'msgid "a"\nmsgstr ""\n').decode())
    assert done.metadata["Content-Type"] == "text/plain; charset=UTF-8"
    assert done[0].msgstr == "A"


def test_a_translation_begins_and_ends_like_its_source() -> None:
    content = HEADER + '\nmsgid "\\nname: "\nmsgid_plural "names\\n"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    done = polib.pofile(written("app.po", content.encode(), ["Name:", "Namen"]).decode())
    assert done[0].msgstr_plural == {0: "\nName: ", 1: "Namen\n"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (HEADER.replace("Language: de", "Language: fr"), "wanted de, but its header says Language: fr"),
        (HEADER.replace("Language: de", "X-Source-Language: es"), "header says X-Source-Language: es"),
        (HEADER + '\nmsgid "a"\nmsgstr "b\n', "line 8 is neither a comment nor a quoted PO string"),
        (HEADER + '\nmsgid "a"\n', "line 7: this entry has no msgstr"),
        (HEADER + '\nmsgid "a"\nmsgid "b"\nmsgstr ""', "line 7: this entry has no msgstr"),
        (HEADER.replace("UTF-8", "ISO-88591"), "declares the encoding 'ISO-88591'"),
        ('"a"\n', "line 1 belongs to no entry"),
    ],
)
def test_a_catalogue_that_cannot_be_right_is_refused_with_the_reason(content: str, reason: str) -> None:
    with pytest.raises(KsterError, match=f"^app.po: .*{reason}.*; nothing was translated$"):
        open_document("app.po", content.encode(), "en", "de")


def test_a_variant_of_the_language_will_do() -> None:
    content = HEADER.replace("Language: de", "Language: de_AT") + '\nmsgid "a"\nmsgstr ""\n'
    assert b"Language: de_AT" in capitals("app.po", content.encode())


WRAPPED = """
msgid ""
"This text was broken by hand at about fifty columns,\\n"
"as the help of command line programs often is, and\\n"
"goes on here.\\n"
"\\n"
"  -v   say more\\n"
msgstr ""
"""


def test_text_that_was_broken_by_hand_is_translated_as_a_paragraph_and_broken_again() -> None:
    content = (HEADER + WRAPPED).encode()
    assert texts("app.po", content) == [
        "This text was broken by hand at about fifty columns, as the help of command line programs often is, "
        "and goes on here.",
        "-v   say more",
    ]
    done = polib.pofile(written("app.po", content, ["eins zwei " * 7, "-v   mehr sagen"]).decode())
    first, second = "eins zwei " * 5, "eins zwei " * 2
    assert done[0].msgstr == f"{first.strip()}\n{second.strip()}\n\n  -v   mehr sagen\n"


def test_a_tab_stays_between_its_columns() -> None:
    content = b'msgid "Name:\\t%s is here"\nmsgstr ""\n'
    (text,) = texts("a.po", content)
    assert text == "Name:<1/>%s is here"
    assert b'msgstr "NAME:\\t%S IS HERE"' in capitals("a.po", content)


def test_lines_that_were_meant_to_be_lines_stay_one_text() -> None:
    content = HEADER + '\nmsgid "Yes\\nNo\\nPerhaps"\nmsgstr ""\n'
    assert texts("app.po", content.encode()) == ["Yes\nNo\nPerhaps"]


TEMPLATE = """msgid ""
msgstr ""
"Content-Type: text/plain; charset=CHARSET\\n"
"Language: \\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"

msgid "%d file\\n"
msgid_plural "%d files\\n"
msgstr[0] ""
msgstr[1] ""

#, c-format
msgctxt "menu"
msgid "\\"Quit\\" %s\\tnow"
msgstr ""
"""


@pytest.mark.parametrize(("language", "forms"), [("de", 2), ("pl", 3), ("ja", 1), ("ar", 6)])
@pytest.mark.parametrize("content", [TEMPLATE, TEMPLATE.partition("\n\n")[2], HEADER + UNFINISHED + WRAPPED])
def test_gettext_finds_no_mistake_in_a_catalogue_that_was_filled_in(
    content: str, language: str, forms: int, tmp_path: Path
) -> None:
    document = open_document("a.po", content.replace("Language: de", "Language: ").encode(), "en", language)
    done = document.written([unit.text for unit in document.units]).decode()
    require_gettext_to_accept(done, tmp_path)
    require_gettext_to_accept(done.replace("fuzzy", "no-wrap"), tmp_path)
    if content == TEMPLATE:
        assert len(polib.pofile(done)[0].msgstr_plural) == forms


FORMATS = {
    "c-format": [
        "Loaded %d of %ld files",
        "%1$s has %2$d dogs",
        "%s: %5.1f%% of %-10s read",
        "Wait %*d seconds",
    ],
    "python-format": ["Read %(now)li of %(all)d with %(speed)s/s", "%(a)s is the house of %(who)s"],
    "python-brace-format": ["Open {part} of {0.name!r}", "The {{dog}} runs to {house:>10}"],
    "qt-format": ["%1 of %L2 read", "%n dogs"],
    "objc-format": ["Open %@ of %1$@"],
}


def test_gettext_finds_no_mistake_in_what_a_model_made_of_placeholders(
    taught_marian: Path, tmp_path: Path
) -> None:
    """Also once somebody has looked at it and taken the flag away, without which gettext looks closer."""
    entries = [f'#, {kind}\nmsgid "{text}"\nmsgstr ""\n' for kind, texts in FORMATS.items() for text in texts]
    plural = '#, c-format\nmsgid "%d dog"\nmsgid_plural "%d dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    (tmp_path / "a.po").write_text("\n".join([HEADER.rstrip() + "\n", *entries, plural]), encoding="utf-8")
    with Translator(taught_marian, device="cpu") as translator:
        translator.translate_file(tmp_path / "a.po", tmp_path / "b.po")
    done = (tmp_path / "b.po").read_text(encoding="utf-8")
    assert done.count("fuzzy") == len(entries) + 1
    require_gettext_to_accept(done.replace("fuzzy", "no-wrap"), tmp_path)


def test_gettext_finds_no_mistake_in_an_exported_memory(tmp_path: Path) -> None:
    pairs = [Pair("a\n", "b\n"), Pair('"%s"\t\\', "„%s“\v"), Pair("a\n", "c\n"), Pair("x", "y", "menu")]
    write_pairs(tmp_path / "a.po", pairs, "en", "de")
    require_gettext_to_accept((tmp_path / "a.po").read_text(), tmp_path)


def require_gettext_to_accept(content: str, directory: Path) -> None:
    if shutil.which("msgfmt") is None and os.environ.get("CI") != "true":
        pytest.skip("needs gettext's msgfmt")
    (directory / "checked.po").write_text(content)
    command = ["msgfmt", "--check", "--output-file=/dev/null", directory / "checked.po"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + content


TWO_PRINTS = (
    HEADER
    + """
msgctxt "menu"
msgid "open the red lid"
msgstr ""

msgctxt "state"
msgid "open the red lid"
msgstr ""
"""
)


@pytest.mark.parametrize("suffix", ["po", "xlf"])
def test_a_text_is_translated_as_it_was_taught_in_its_context(
    taught_marian: Path, tmp_path: Path, suffix: str
) -> None:
    with Translator(taught_marian) as translator, Memory.create(tmp_path / "m", translator.model) as memory:
        for target, context in (("Deckel auf", "menu"), ("offener Deckel", "state")):
            memory.import_pairs([Pair("open the red lid", target, context=context)])
        source = tmp_path / f"two.{suffix}"
        source.write_text(TWO_PRINTS if suffix == "po" else TWO_UNITS, encoding="utf-8")
        translator.translate_file(source, tmp_path / f"done.{suffix}", memory=memory)
    done = (tmp_path / f"done.{suffix}").read_text(encoding="utf-8")
    assert 0 < done.index("Deckel auf") < done.index("offener Deckel")


TWO_UNITS = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en" target-language="de" datatype="plaintext" original="x"><body>
<trans-unit id="1" resname="menu"><source>open the red lid</source></trans-unit>
<trans-unit id="2"><source>open the red lid</source><note>state</note></trans-unit>
</body></file></xliff>
"""
