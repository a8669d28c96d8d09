"""How a text speaks to its reader."""

from __future__ import annotations

import pytest

from kster.text.voice import voice_of, voices_in


@pytest.mark.parametrize(
    ("text", "voice"),
    [
        ("Öffnen Sie den Deckel.", "more"),
        ("Bitte leeren Sie Ihren Korb.", "more"),
        ("Wir danken Ihnen, dass Ihre Nachricht kam.", "more"),
        ("Öffne deinen Korb, wenn du willst.", "less"),
        ("Habt ihr euch verletzt?", "less"),
        ("Dein Konto ist bereit.", "less"),
        ("Sie ging nach Hause.", None),
        ("Ihr Hund bellt.", None),
        ("Der Deckel ist offen.", None),
        ("Der Dirigent duldet keine Fehler.", None),
    ],
)
def test_german_has_a_voice(text: str, voice: str | None) -> None:
    assert voice_of(text, "de-AT") == voice


def test_other_languages_have_none() -> None:
    assert voice_of("Do you want your key?", "en") is None


@pytest.mark.parametrize(
    ("text", "source", "voices"),
    [
        ("Bitte drucken Sie dein Ticket.", "Please print your ticket.", {"more", "less"}),
        ("Klicke auf Ihr Konto.", "Click your account.", {"more", "less"}),
        ("Öffnen Sie die Tür und nimm Platz.", "Open the door and take a seat.", {"more", "less"}),
        ("Sie können dein Konto löschen.", "You can delete your account.", {"more", "less"}),
        ("Sie können dein Konto sehen.", "They can see your account.", {"less"}),
        ("Ich öffne die Tür und nehme Ihre Tasche.", "I open the door and take your bag.", {"more"}),
        ("Prüfen Sie Ihre Angaben.", "Check your details.", {"more"}),
        ("Die Tür ist offen.", "The door is open.", set()),
    ],
)
def test_two_voices_in_one_sentence_are_heard(text: str, source: str, voices: set[str]) -> None:
    assert voices_in(text, source) == voices
