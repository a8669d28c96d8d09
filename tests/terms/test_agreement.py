"""What stands before a German noun says which gender it has, or may have."""

from __future__ import annotations

import pytest

from kster.terms.gender import agrees, genders_shown


@pytest.mark.parametrize(
    ("noun", "text", "genders"),
    [
        ("Spannzange", "Ziehen Sie die Spannzange fest.", "fp"),
        ("Spannzange", "Unser Spannzange ist beschädigt.", "mn"),
        ("Spannzange", "Nehmen Sie unsere neue Spannzange.", "fp"),
        ("Umhängeband", "Besucher erhalten ein blaues Umhängeband.", "mn"),
        ("Umhängeband", "Ein blaues Umhängeband und das Umhängeband.", "n"),
        ("Datenstrom", "Der Datenstrom gehört uns.", "m"),
        ("Datenstrom", "Im alten Datenstrom, in der Datenstrom.", "m"),
        ("Kettenrad", "Fetten Sie das neue große Kettenrad.", "n"),
        ("Kettenrad", "Kettenrad ersetzen", None),
        ("Rad", "Fetten Sie das Kettenrad.", None),
        ("Wasser", "Sie trinken Wasser.", None),
    ],
)
def test_an_article_tells_a_gender(noun: str, text: str, genders: str | None) -> None:
    assert genders_shown([noun], text) == (None if genders is None else frozenset(genders))


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("Die Datenstrom wurde aktualisiert.", False),
        ("Der Datenstrom wurde aktualisiert.", True),
        ("Wir sehen den Datenstrom.", True),
        ("die Größe des Datenstroms", True),
        ("Datenstrom aktualisieren", True),
    ],
)
def test_an_article_of_another_gender_is_noticed(text: str, fits: bool) -> None:
    forms = ["Datenstrom", "Datenstroms"]
    assert agrees(genders_shown(forms, "Der Datenstrom gehört uns."), forms, text) is fits
