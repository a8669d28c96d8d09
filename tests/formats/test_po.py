import pytest

from formats.conftest import read
from kster.errors import KsterError
from kster.formats import Pair, write_pairs

HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: de\\n"\n\n'


def test_entries_become_pairs_with_their_context_as_id(put) -> None:
    path = put("a.po", HEADER + 'msgid "a"\nmsgstr "b"\n\nmsgctxt "menu"\nmsgid "c"\nmsgstr "d"\n')
    assert read(path) == ([Pair("a", "b"), Pair("c", "d", "menu", context="menu")], [])


def test_strings_over_several_lines_and_escapes_are_put_together(put) -> None:
    path = put("a.po", 'msgid ""\n"one \\"two\\"\\n"\n"C:\\\\new\\tx"\nmsgstr ""\n"eins\\n"\n"zwei"\n')
    assert read(path)[0] == [Pair('one "two"\nC:\\new\tx', "eins\nzwei")]


def test_untranslated_fuzzy_and_obsolete_entries_are_rejections(put) -> None:
    content = HEADER + (
        'msgid "empty"\nmsgstr ""\n\n'
        '#, python-format, fuzzy\nmsgid "guess"\nmsgstr "b"\n\n'
        '#, python-format\nmsgid "%d"\nmsgstr "%d!"\n\n'
        '#~ msgctxt "old"\n#~ msgid "gone"\n#~ msgstr "weg"\n\n'
        '#, fuzzy\n#~| msgid "previously"\n#~ msgid "gone too"\n#~ msgstr ""\n#~ "auch"\n'
    )
    pairs, rejections = read(put("a.po", content))
    assert pairs == [Pair("%d", "%d!")]
    assert [(r.line, r.unit, r.reason) for r in rejections] == [
        (6, "empty", "untranslated"),
        (9, "guess", "fuzzy"),
        (17, "old", "obsolete"),
        (21, "gone too", "obsolete"),
    ]


def plural(forms: str, *texts: str) -> str:
    header = HEADER.rstrip() + f'\n"Plural-Forms: {forms}\\n"\n\n'
    lines = "".join(f'msgstr[{i}] "{text}"\n' for i, text in enumerate(texts))
    return header + f'msgid "one file"\nmsgid_plural "%d files"\n{lines}'


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            plural("nplurals=2; plural=(n != 1);", "eine Datei", "%d Dateien"),
            [("one file", "eine Datei"), ("%d files", "%d Dateien")],
        ),
        (plural("nplurals=1; plural=0;", "%d 個"), [("%d files", "%d 個")]),
        (
            plural(
                "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 ? 1 : 2);", "plik", "%d pliki", "%d plików"
            ),
            [("one file", "plik"), ("%d files", "%d pliki"), ("%d files", "%d plików")],
        ),
        # Arabic and Latvian keep form 0 for zero: the singular is form 1.
        (
            plural("nplurals=3; plural=(n==0 ? 0 : n==1 ? 1 : 2);", "none", "single", "many"),
            [("%d files", "none"), ("one file", "single"), ("%d files", "many")],
        ),
        (plural("nplurals=2; plural=n%0;", "x", "y"), [("one file", "x"), ("%d files", "y")]),
    ],
)
def test_each_plural_form_is_paired_with_the_number_it_is_for(put, content: str, expected: list) -> None:
    assert [(p.source, p.target) for p in read(put("a.po", content))[0]] == expected


def test_a_broken_entry_is_one_rejection(put) -> None:
    content = HEADER + (
        'msgid "a"\nmsgstr "b"\n\n'
        'msgid "unclosed\nmsgstr "x"\n\n'
        'msgid "quote " inside"\nmsgstr "x"\n\n'
        'msgid "c"\nmsgstr "d"\n\n'
        'msgid "two"\nmsgid "ids"\nmsgstr "x"\n\n'
        'msgid "nul \0"\nmsgstr "x"\n\n'
        'msgid "bell \x07"\nmsgstr "x"\n\n'
        'msgid "no translation follows"\n'
    )
    pairs, rejections = read(put("a.po", content))
    assert pairs == [Pair("a", "b"), Pair("c", "d")]
    assert [(r.line, r.reason) for r in rejections] == [
        (9, "line 9 is neither a comment nor a quoted PO string"),
        (12, "line 12 is neither a comment nor a quoted PO string"),
        (18, "this entry has no msgstr"),
        (22, "line 22 contains the character U+0000"),
        (25, "source contains the character U+0007"),
        (28, "this entry has no msgstr"),
    ]


def test_a_truncated_last_line_is_not_taken_for_a_translation(put) -> None:
    pairs, rejections = read(put("a.po", HEADER + 'msgid "a"\nmsgstr "b"\n\nmsgid "cut"\nmsgstr "abgeschn'))
    assert pairs == [Pair("a", "b")]
    assert [r.line for r in rejections] == [9]


def test_a_file_that_is_no_catalogue_is_an_error(put) -> None:
    for content in ("", "Dear Sir or Madam,\nhello\n"):
        with pytest.raises(KsterError, match="no PO entries"):
            read(put("a.po", content))


def test_a_catalogue_in_another_language_is_an_error(put) -> None:
    path = put("a.po", HEADER + 'msgid "a"\nmsgstr "b"\n')
    with pytest.raises(KsterError, match="wanted fr, but its header says Language: de"):
        read(path, "en", "fr")
    assert len(read(path, "en", "de_AT")[0]) == 1


def test_the_declared_charset_is_obeyed(put) -> None:
    content = HEADER.replace("UTF-8", "ISO-8859-1") + 'msgid "coffee"\nmsgstr "café"\n'
    assert read(put("a.po", content.encode("latin-1")))[0] == [Pair("coffee", "café")]


def test_line_separators_inside_a_translation_do_not_break_it(put) -> None:
    path = put("a.po", HEADER + 'msgid "a\u2028b\x85c"\nmsgstr "d\u2029e"\n')
    assert read(path)[0] == [Pair("a\u2028b\x85c", "d\u2029e")]


def test_comments_of_any_form_are_no_obstacle(put) -> None:
    path = put(
        "a.po", HEADER + '#: a.c:1\n#.\n#odd comment\n#| msgid "z"\n#\nmsgid "a"\n# between\nmsgstr "b"\n'
    )
    assert read(path) == ([Pair("a", "b")], [])


def test_two_translations_of_one_text_get_different_contexts(tmp_path) -> None:
    pairs = [
        Pair("a", "b"),
        Pair("a", "c"),
        Pair("a", "d"),
        Pair("a", "e", "x"),
        Pair("a", "f", "x"),
        Pair("g", "h"),
    ]
    write_pairs(tmp_path / "a.po", pairs, "en", "de")
    assert [p.id for p in read(tmp_path / "a.po")[0]] == [None, "2", "3", "x", "x-2", None]
    assert [p.target for p in read(tmp_path / "a.po")[0]] == ["b", "c", "d", "e", "f", "h"]
