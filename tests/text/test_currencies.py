"""Euros stay euros."""

from __future__ import annotations

import pytest

from kster.text.currencies import with_currency_of


@pytest.mark.parametrize(
    ("source", "translation", "wanted"),
    [
        ("Das Ticket kostet 5 €.", "The ticket costs $5.", "The ticket costs €5."),
        (
            "Das Abonnement kostet 9 Euro.",
            "The subscription costs 9 dollars.",
            "The subscription costs 9 euros.",
        ),
        ("9 EUR im Monat", "USD 9 a month", "EUR 9 a month"),
        ("It costs $5.", "Das kostet 5 €.", "Das kostet 5 $."),
        ("It costs 5 euros.", "Das kostet 5 US-Dollar.", "Das kostet 5 Euro."),
        ("5 € or $6", "$5 oder 6 $", "$5 oder 6 $"),
        ("5 €", "5 EUR", "5 EUR"),
        ("It costs a little.", "Das kostet 5 $.", "Das kostet 5 $."),
        ("The European dollar", "Der europäische Dollar", "Der europäische Dollar"),
    ],
)
def test_a_translation_names_the_currency_of_its_source(source: str, translation: str, wanted: str) -> None:
    assert with_currency_of(source, translation) == wanted
