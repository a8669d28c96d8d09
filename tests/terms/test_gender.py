"""German nouns have a gender by their last part, and the words before a noun must go with its form."""

from __future__ import annotations

import pytest

from kster.terms.gender import forms_with_readings, gender_of, readings_before


@pytest.mark.parametrize(
    ("noun", "gender"),
    [
        ("Dateianhang", "m"),
        ("Tropfblech", "n"),
        ("Schlauchleitung", "f"),
        ("Abschlagbehälter", "m"),  # by its ending
        ("Druckmesser", "n"),
        ("Motor", "m"),
        ("Gartentor", "mn"),
        ("Serverinstanz", "f"),
        ("Rechtsanspruch", "m"),
        ("Urkunde", "f"),  # Kunde
        ("Kunde", "m"),
        ("Kontrollkästchen", "n"),
        ("Versionshinweise", "p"),  # the plural of Hinweis
        ("Einstellungen", "p"),
        ("Anhängsel", None),
        ("Xyz", None),
    ],
)
def test_a_compound_has_the_gender_of_its_last_part(noun: str, gender: str | None) -> None:
    assert gender_of(noun) == (None if gender is None else frozenset(gender))


@pytest.mark.parametrize(
    ("before", "readings"),
    [
        ("Öffnen Sie die ", "nf af np ap"),
        ("Öffnen Sie die neue ", "nf af"),
        ("Öffnen Sie die neuen ", "np ap"),
        ("mit der ", "df"),
        ("in der alten ", "df"),
        ("für den ", "am"),
        ("Der ", "nm"),
        ("Die Temperatur der ", "df gf gp"),
        ("Sobald der ", "nm df gf gp"),
        ("wenn Sie der ", "nm df gf gp"),
        ("ein großer neuer ", "nm"),
        ("das Ende des ", "gm gn"),
        ("ein ", "nm nn an"),
        ("ein neuer ", "nm"),
        ("ein neues ", "nn an"),
        ("Ihre ", "nf af np ap"),
        ("im ", "dm dn"),
        ("Wir sehen ", None),
        ("Neue ", None),
    ],
)
def test_what_the_words_before_a_noun_allow(before: str, readings: str | None) -> None:
    assert readings_before(before) == (None if readings is None else frozenset(readings.split()))


@pytest.mark.parametrize(
    ("noun", "form", "readings"),
    [
        ("Anhang", "Anhang", "nm dm am"),
        ("Anhang", "Anhangs", "gm np gp dp ap"),  # or a plural in -s
        ("Anhang", "Anhänge", "np gp ap"),
        ("Anhang", "Anhängen", "np gp dp ap"),
        ("Behälter", "Behälter", "nm dm am np gp ap"),
        ("Leitung", "Leitung", "nf gf df af"),
        ("Kunde", "Kunden", "gm dm am np gp dp ap"),
        ("Daten", "Daten", "np gp dp ap"),
    ],
)
def test_what_a_form_may_be(noun: str, form: str, readings: str) -> None:
    genders = gender_of(noun)
    assert genders is not None
    assert forms_with_readings(noun, genders)[form] == frozenset(readings.split())
