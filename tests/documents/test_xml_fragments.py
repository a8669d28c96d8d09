"""What is taken for a sentence in a piece of XML, and what stays as it was."""

from __future__ import annotations

import pytest

from kster.documents.html import HtmlText
from kster.documents.xml_fragment import XmlFragment
from kster.text.codes import CodedText, Token


def upper(fragment: HtmlText) -> tuple[list[str], str]:
    """The sentences, and the fragment translated by shouting."""
    done: list[list[Token]] = []
    for unit in fragment.units:
        done.append([token.upper() if isinstance(token, str) else token for token in unit.text])
    return [CodedText.of(unit.text).words for unit in fragment.units], fragment.written(done)


@pytest.mark.parametrize(
    ("xml", "sentences", "written"),
    [
        ("a <b>c</b> d", ["a c d"], "A <b>C</b> D"),
        ("<p>a <b>c</b></p><p>d</p>", ["a c", "d"], "<p>A <b>C</b></p><p>D</p>"),
        (
            "<t><h>a</h>\n<q>d <i><u>e</u></i></q></t>",
            ["a", "d e"],
            "<t><h>A</h>\n<q>D <i><u>E</u></i></q></t>",
        ),
        ("a <x/> c\nd", ["a  c\nd"], "A <x/> C\nD"),
        ("a &lt;b&gt; &amp; c", ["a <b> & c"], "A &lt;B&gt; &amp; C"),
        ('<p title="a">b</p>', ["b"], '<p title="a">B</p>'),
        ("<code>a</code>", ["a"], "<code>A</code>"),
        ("a </b> c", ["a  c"], "A </b> C"),
        ("1 <x/> 2", [], "1 <x/> 2"),
    ],
)
def test_what_stands_beside_words_belongs_to_their_sentence(
    xml: str, sentences: list[str], written: str
) -> None:
    assert upper(XmlFragment(xml)) == (sentences, written)


def test_ignored_elements_stay_as_they_are() -> None:
    assert upper(XmlFragment('press <x id="1">f <b>g</b></x> now', ignored=["x"])) == (
        ["press  now"],
        'PRESS <x id="1">f <b>g</b></x> NOW',
    )
    assert upper(HtmlText("<p>press <x>f</x> now</p>", ignored=["X"]))[1] == "<p>PRESS <x>f</x> NOW</p>"


def test_elements_can_be_named_as_inline_and_as_paragraphs() -> None:
    xml = "<a>b</a> <c>d</c>"
    assert upper(XmlFragment(xml))[0] == ["b", "d"]
    assert upper(XmlFragment(xml, by_neighbours=False))[0] == ["b d"]
    assert upper(XmlFragment(xml, inline=["a", "c"]))[0] == ["b d"]
    assert upper(XmlFragment("a <c>d</c>", paragraphs=["c"]))[0] == ["a", "d"]
