"""How a text speaks to its reader."""

from __future__ import annotations

import pytest

from kster.text.voice import voice_of


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
