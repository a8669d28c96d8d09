"""When a translation counts as having a word that an example taught."""

from __future__ import annotations

import pytest

from kster.terms import Term
from kster.translation.taught_words import is_used


@pytest.mark.parametrize(
    ("translation", "used"),
    [
        ("Wer hat die Drehbank abgeschaltet?", True),
        ("Zwei Drehbänke stehen still.", True),
        ("Die Holzdrehbank steht still.", True),
        ("Wer hat den Drehbankband abgeschaltet?", False),
        ("Das Drehbankband der Drehbank", True),
        ("Die Bank dreht sich.", False),
    ],
)
def test_a_word_at_the_beginning_of_another_is_not_used(translation: str, used: bool) -> None:
    """The base model goes on with what it meant to write."""
    assert is_used(Term("lathe", ("Drehbank",), "noun"), translation, "de") is used
