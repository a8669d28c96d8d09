"""Whether texts deny something."""

from __future__ import annotations

import pytest

from kster.text.negation import adds_negation, is_negated, loses_negation


@pytest.mark.parametrize(
    ("text", "language", "answer"),
    [
        ("Do not forget your card.", "en", True),
        ("It wasn't me.", "en-GB", True),
        ("A notable knot.", "en", False),
        ("This version is unsupported.", "en", True),
        ("The unit was uninstalled.", "en", False),
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


@pytest.mark.parametrize(
    ("source", "translation", "other", "adds"),
    [
        ("Rewrite branches", "Branches nicht neu schreiben", "Branches neu schreiben", True),
        ("Open the door.", "Öffnen Sie keine Tür.", "Öffnen Sie Tür.", True),
        ("Do not rewrite branches", "Branches nicht neu schreiben", "Branches neu schreiben", False),
        ("Cannot open it", "Kann es nicht öffnen", "Kann es öffnen", False),
        ("Failed to open", "Konnte nicht öffnen", "Konnte öffnen", False),
        ("An incomplete file", "Eine nicht vollständige Datei", "Eine vollständige Datei", False),
        ("Open the door", "Die Tür nicht öffnen", "Das Tor öffnen", False),
    ],
)
def test_a_negation_is_added_where_nothing_in_the_source_says_it(
    source: str, translation: str, other: str, adds: bool
) -> None:
    assert adds_negation(source, translation, other, "en", "de") is adds
    assert not adds_negation(source, translation, other, "de", "fr")
