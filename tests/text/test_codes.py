"""Codes: what is recognised, what goes to a model, and how translations get their codes back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kster.text.codes import Code, CodedText, Token, is_nested
from kster.text.marks import MarkedText, marked_pair
from kster.text.projection import BareText, Link
from kster.text.recognition import recognise
from kster.text.tagless import TaglessText


def found(text: str) -> list[str]:
    return [str(code) for _, code in recognise(text).codes]


def same_codes(one: CodedText, other: CodedText) -> bool:
    """Whether two texts have the very same codes, in whatever order."""
    return sorted(id(code) for _, code in one.codes) == sorted(id(code) for _, code in other.codes)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ('See <a href="%s">the manual</a>.', ['<a href="%s">', "</a>"]),
        ("%(count)d of %1$s, %-5.2f and %@", ["%(count)d", "%1$s", "%-5.2f", "%@"]),
        ("%(now)li of %(all)hs, %(big)lines", ["%(now)li", "%(all)hs", "%(big)"]),
        (
            "{name}: ${price} for {{ user }}&nbsp;and {0}",
            ["{name}", "${price}", "{{ user }}", "&nbsp;", "{0}"],
        ),
        ("100% sure, 5 % more, a < b > c, & so on, 50%discount", []),
        ("zu 100 %ig, eine 50 %ige Chance", []),
        ("100%% of %1, %L2 or %n files, %dx%d", ["%%", "%1", "%L2", "%n", "%dx", "%d"]),
        ("{n, number} of {total:>5}, {} {user.name!r}", ["{n, number}", "{total:>5}", "{}", "{user.name!r}"]),
        ("{see below for more}", []),
        ("definition of %qD does not match %<#include %>", ["%qD", "%<", "%>"]),
        ("%*sObject, %.1fGB of %-5.2fGB, %3.*sx", ["%*s", "%.1f", "%-5.2f", "%3.*s"]),
        ("%1research in %3. %5.2f, %3d", ["%1", "%3", "%5.2f", "%3d"]),
        ("Mail a.b@c.example. See https://x.example/a?b=c.", ["a.b@c.example", "https://x.example/a?b=c"]),
        ("one\\ntwo\\tthree C:\\new\\file", ["\\n", "\\t", "C:\\new\\file"]),
        ("Delete [X7X] files", ["[X7X]"]),
        (
            "<%= name %> of \\setlist{a}, \\ref{b} or \\ with \\r\\n, and\\or",
            ["<%= name %>", "\\setlist", "{a}", "\\ref", "{b}", "\\", "\\r\\n"],
        ),
        (
            "Open config.json, ~/x/README.md, ../a.tar.gz or docs/index.html. Not Node.js, .json, e.g. it",
            ["config.json", "~/x/README.md", "../a.tar.gz", "docs/index.html"],
        ),
        ("See example.com/a?b=c#d, not example.com. A and/or b", ["example.com/a?b=c#d"]),
        (
            "Key 550e8400-e29b-41d4-a716-446655440000 of d41d8cd98f00b204, misunderstandings, 2024-03-15",
            ["550e8400-e29b-41d4-a716-446655440000", "d41d8cd98f00b204"],
        ),
        ("Copy :count files: to [[place]] (:name), 10:30 and:or :-) :", [":count", "[[place]]", ":name"]),
        ("'{' and '{name}' before '}'", ["'{'", "{name}", "'}'"]),
        ("See <1>the guide</1> <2/>, 1 <2> 3", ["<1>", "</1>", "<2/>", "<2>"]),
        (
            "run [-f|--force] [--] <file>... [<old> [<new>]] with -a or --all-of it; (-n) re-use",
            ["[-f|--force]", "[--]", "<file>", "<old>", "[<new>]", "-a", "--all-of"],
        ),
        ("A word -- two words --- three; 5 -a-b, pre- and post-war, file(-s)", []),
        ("Set `pull.rebase` to `x`, ``quoted'' or `old'", ["`pull.rebase`", "`x`"]),
        ("Done 🎉👍🏽, 1️⃣ ★★ → ⌘C of CO₂ ≤ 5 °C ½ €", ["🎉👍🏽", "1️⃣", "★★", "→", "⌘", "₂", "≤"]),
        ("Press <kbd>Ctrl</kbd> or <b>run</b>", ["<kbd>Ctrl</kbd>", "<b>", "</b>"]),
        (
            "$[office], $NAME$, %PATH%, @user, %#@files@",
            ["$[office]", "$NAME$", "%PATH%", "@user", "%#@files@"],
        ),
    ],
)
def test_what_programs_put_into_texts_is_recognised(text: str, codes: list[str]) -> None:
    assert found(text) == codes
    assert str(recognise(text)) == text


def test_tags_that_belong_together_are_pairs_and_lost_ones_stand_alone() -> None:
    kinds = [code.kind for _, code in recognise("<p>a <b>b</b><br> c</i> <x/></p>").codes]
    assert kinds == ["open", "open", "close", "alone", "alone", "alone", "close"]


@given(st.text(alphabet="ab %sd(){}<>/&;\\n\ufffc\u2028.$@1", max_size=40))
def test_any_string_comes_back_from_its_codes(text: str) -> None:
    assert str(recognise(text)) == text
    assert str(CodedText.of(recognise(text).tokens)) == text


def test_a_text_is_cut_without_losing_a_code() -> None:
    text = recognise("<b>One.</b> <i>Two %s</i>")
    assert [str(part) for part in text.cut(4, 5)] == ["<b>One.</b>", " ", "<i>Two %s</i>"]
    assert [str(part) for part in text.cut(0, 0)] == ["", "", str(text)]


@pytest.mark.parametrize(
    ("source", "sent", "back", "restored"),
    [
        (
            "press the <b>red</b> button",
            "press the {0} red {1} button",
            "drücke den {0} roten {1} Knopf",
            "drücke den <b>roten</b> Knopf",
        ),
        (
            "Do not forget your <code>ID-123</code> card.",
            "Do not forget your {0} card.",
            "Vergessen Sie nicht Ihre {0} -Karte.",
            "Vergessen Sie nicht Ihre <code>ID-123</code>-Karte.",
        ),
        ("the card {id}.", "the card {0}.", "die Karte {0} .", "die Karte {id}."),
        (
            "<p>Warning: <b>hot</b></p>",
            "Warning: {0} hot {1}",
            "Warnung: {0} heiß {1}",
            "<p>Warnung: <b>heiß</b></p>",
        ),
        ("H<sub>2</sub>O is water", "H2O is water", "H2O ist Wasser", "H<sub>2</sub>O ist Wasser"),
        ("A word<sup>1</sup>.", "A word{0}.", "Ein Wort{0}.", "Ein Wort<sup>1</sup>."),
        (
            'He said "<b>Yes</b>", and left.',
            'He said "{0} Yes {1}", and left.',
            'Er sagte "{0} Ja {1}" und ging.',
            'Er sagte "<b>Ja</b>" und ging.',
        ),
        (
            "<a href='x'><b>%s</b> files</a> of %d",
            "{0}{1} files {2} of {3}",
            "{0}{1} Dateien{2} von {3}",
            "<a href='x'><b>%s</b> Dateien</a> von %d",
        ),
        (
            "Delete %(n)d files (%s)?",
            "Delete {0} files ({1})?",
            "{0} Dateien ({1}) löschen?",
            "%(n)d Dateien (%s) löschen?",
        ),
        ("[X0X] has [X10X]", "{0} has {1}", "{1} von {0}", "[X10X] von [X0X]"),
        ("Copy {0} to {0}", "Copy {0} to {1}", "Kopiere {0} nach { 1 }", "Kopiere {0} nach {0}"),
        ("press %d KB", "press {0} KB", "{0}KB drücken", "%d KB drücken"),
        ("<b>red</b> button", "{0} red {1} button", "按 {0} 红色 {1} 按钮", "按<b>红色</b>按钮"),
    ],
)
def test_codes_go_as_marks_and_come_back_spaced_as_they_were(
    source: str, sent: str, back: str, restored: str
) -> None:
    text = recognise(source)
    marked = MarkedText(text)
    assert marked.text == sent
    read = marked.read(back)
    assert read is not None
    assert str(read) == restored
    assert same_codes(read, text)


@pytest.mark.parametrize(
    ("source", "translation", "done"),
    [
        (
            "Read the <a>manual</a> now",
            "Jetzt die {0}-Anleitung {1} lesen",
            "Jetzt die <a>Anleitung</a> lesen",
        ),
        ("the <b>red</b> button", "die {0}rote {1}-Taste", "die <b>rote</b> Taste"),
        ("your <b>ID</b> card", "Ihre {0}ID {1}-Karte", "Ihre <b>ID</b>-Karte"),
        ("Delete %d files", "{0}-Dateien löschen", "%d Dateien löschen"),
        (
            "{{count}} of %(n)d-bit %s files",
            "{0} von {1}-Bit {2}-Dateien",
            "{{count}} von %(n)d-Bit %s-Dateien",
        ),
        ("{name}'s file", "{0}s Datei", "{name}'s Datei"),
        ("%1$s’s file", "{0} s Datei", "%1$s's Datei"),
        ("{count}s ago", "vor {0}s", "vor {count}s"),
        ("Wait {count} days", "{0}-Tage warten", "{count} Tage warten"),
        ("%d times", "{0}-mal", "%d-mal"),
        ("the <b>low</b>-fat milk", "die {0}fett {1}-arme Milch", "die <b>fett</b>-arme Milch"),
    ],
)
def test_a_word_is_hyphenated_neither_with_a_tag_that_nobody_sees_nor_with_a_number(
    source: str, translation: str, done: str
) -> None:
    assert str(MarkedText(recognise(source)).read(translation)) == done


@pytest.mark.parametrize(
    "broken",
    [
        "drücke den roten Knopf",
        "drücke {0} den {0} roten {1} Knopf",
        "drücke {1} den roten {0} Knopf",
        "drücke {0}{1} den roten Knopf",
        "drücke {0} den {1} roten {2} Knopf",
        "drücke den {0} roten {1} {0 Knopf",
    ],
)
def test_a_translation_with_other_marks_is_refused(broken: str) -> None:
    assert MarkedText(recognise("press the <b>red</b> button")).read(broken) is None


def test_texts_between_marks_must_not_form_a_code_together() -> None:
    """A "<" before a mark and a "->" behind it would be a tag around what the mark stands for."""
    assert MarkedText(recognise("Set %s -> on")).read("<setze {0} -> an") is None
    tagless = TaglessText(recognise("Set <b>it</b> to %s -> on"))
    written = "es auf <Wert {0} -> setzen"
    assert tagless.text == "Set it to {0} -> on"
    assert tagless.project(written, links(tagless.text, written, [(1, 0)])) is None
    assert tagless.project(written.replace("<", ""), []) is not None


def links(source: str, target: str, words: list[tuple[int, int]]) -> list[Link]:
    spans = [[m.span() for m in re.finditer(r"\w+|[^\w\s]", text)] for text in (source, target)]
    return [(spans[0][s], spans[1][t]) for s, t in words]


@pytest.mark.parametrize(
    ("source", "bare", "translation", "words", "projected"),
    [
        (
            "press the <b>red</b> button",
            "press the red button",
            "drücke den roten Knopf",
            [(0, 0), (1, 1), (2, 2), (3, 3)],
            "drücke den <b>roten</b> Knopf",
        ),
        (
            "Delete %s files (%d).",
            "Delete files ().",
            "Dateien löschen ().",
            [(0, 1), (1, 0), (2, 2), (3, 3), (4, 4)],
            "%s Dateien löschen (%d).",
        ),
        (
            "Open <a>the <b>red</b> door</a> now",
            "Open the red door now",
            "Jetzt die rote Tür öffnen",
            [(0, 4), (1, 1), (2, 2), (3, 3), (4, 0)],
            "Jetzt <a>die <b>rote</b> Tür</a> öffnen",
        ),
        (
            "Wa<b>ter</b> is %s.",
            "Water is.",
            "Wasser ist.",
            [(0, 0), (1, 1), (2, 2)],
            "<b>Wasser</b> ist %s.",
        ),
        ("H<sub>2</sub>O is", "H2O is", "H2O ist", [], "H<sub>2</sub>O ist"),
        ("A word<sup>1</sup> is", "A word is", "Ein Wort ist", [(1, 1), (2, 2)], "Ein Wort<sup>1</sup> ist"),
        ("%g - group", "- group", "- Gruppe", [(0, 0), (1, 1)], "%g - Gruppe"),
        (  # a name goes by itself, whatever attention says, and no word becomes a comma
            "Open <b>Photos</b> <i>if</i> needed.",
            "Open Photos if needed.",
            "Bei Bedarf Photos öffnen, wenn.",
            [(0, 3), (1, 0), (2, 4), (2, 5)],
            "Bei Bedarf <b>Photos</b> öffnen, <i>wenn</i>.",
        ),
        (
            "Rinse <b>the <i>drip</i> tray</b>.",
            "Rinse the drip tray.",
            "Die Abtropfschale spülen.",
            [(0, 2), (1, 0), (2, 1), (3, 1), (4, 3)],
            "<b>Die <i>Abtropfschale</i></b> spülen.",
        ),
        (  # no pair is left without words where another one has several
            "Press the <b>red button</b> <a>link</a>!",
            "Press the red button link!",
            "Drücken Sie den roten Schaltflächenlink!",
            [(0, 0), (1, 2), (2, 3), (3, 4), (4, 4), (5, 5)],
            "Drücken Sie den <b>roten</b> <a>Schaltflächenlink</a>!",
        ),
        ("a %s b", "a b", "", [], "%s"),
    ],
)
def test_lost_codes_are_placed_by_which_words_translate_which(
    source: str, bare: str, translation: str, words: list[tuple[int, int]], projected: str
) -> None:
    text = BareText(recognise(source))
    assert text.text == bare
    assert str(text.project(translation, links(bare, translation, words))) == projected


@st.composite
def coded(draw: st.DrawFn) -> list[Token]:
    tokens: list[Token] = []
    around: list[object] = []
    for kind in draw(st.lists(st.sampled_from("ocaabbcc"), max_size=14)):
        if kind == "o":
            around.append(object())
            tokens.append(Code("open", "<b>", around[-1]))
        elif kind == "c" and around:
            tokens.append(Code("close", "</b>", around.pop()))
        elif kind == "a":
            tokens.append(Code("alone", "%s"))
        else:
            tokens.append(draw(st.sampled_from(["one", " two ", "three, ", ". ", " "])))
    return tokens


@given(coded(), st.sampled_from(["eins zwei drei.", "", "x, y z w ..", "a"]), st.randoms())
def test_whatever_the_translation_it_has_all_codes_of_its_source_nested(tokens, translation, random) -> None:  # type: ignore[no-untyped-def]
    source = CodedText.of(tokens)
    bare = BareText(source)
    counts = [len(re.findall(r"\w+|[^\w\s]", text)) for text in (bare.text, translation)]
    words = [(s, t) for s in range(counts[0]) for t in range(counts[1]) if random.random() < 0.3]
    projected = bare.project(translation, links(bare.text, translation, words))
    assert same_codes(projected, source)
    assert is_nested(projected.tokens)


@pytest.mark.parametrize(
    ("source", "target", "marked"),
    [
        ("Save %s now", "%s jetzt speichern", ("Save {0} now", "{0} jetzt speichern")),
        ("<b>Save</b>", "<b>Speichern</b>", ("Save", "Speichern")),
        (
            "Press <b>red</b> %d times",
            "%d-mal <b>Rot</b> drücken",
            ("Press {0} red {1} {2} times", "{2}-mal {0} Rot {1} drücken"),
        ),
        (
            "Press <b>red</b> twice",
            "Zweimal <b>Rot</b> drücken",
            ("Press {0} red {1} twice", "Zweimal {0} Rot {1} drücken"),
        ),
        ("From {from} to {to}", "Nach {to} von {from}", ("From {0} to {1}", "Nach {1} von {0}")),
        ("Hello %s", "Hallo", None),
        ("Hello", "Hallo %s", None),
        ("{n, plural, one {# file} other {# files}} of %s", "{n, plural, other {# Dateien}} von %s", None),
        ("No codes", "Keine Codes", None),
    ],
)
def test_an_example_has_marks_for_codes_where_it_is_read_back_to_the_letter(
    source: str, target: str, marked: tuple[str, str] | None
) -> None:
    assert marked_pair(source, target) == (marked or (source, target))
    if marked:
        assert str(MarkedText(recognise(source)).read(marked[1])) == target
