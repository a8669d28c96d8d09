"""Whether texts deny something."""

from __future__ import annotations

import pytest

from kster.text.negation import is_negated, loses_negation


@pytest.mark.parametrize(
    ("text", "language", "answer"),
    [
        ("Do not forget your card.", "en", True),
        ("It wasn't me.", "en-GB", True),
        ("A notable knot.", "en", False),
        ("Vergessen Sie Ihre Karte nicht.", "de", True),
        ("Kein Anschluss.", "de", True),
        ("Ungültige Angabe.", "de", True),
        ("Und unsere Karte liegt unter uns.", "de", False),
        ("Keine", "fr", None),
    ],
)
def test_negations_are_known_by_their_words(text: str, language: str, answer: bool | None) -> None:
    assert is_negated(text, language) is answer


def test_only_what_is_known_is_lost() -> None:
    assert loses_negation("Do not go.", "Gehen Sie.", "en", "de")
    assert not loses_negation("Do not go.", "Gehen Sie nicht.", "en", "de")
    assert not loses_negation("Go.", "Gehen Sie.", "en", "de")
    assert not loses_negation("Do not go.", "Partez.", "en", "fr")
