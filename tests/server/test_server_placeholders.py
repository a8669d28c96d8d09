from __future__ import annotations

import pytest

from kster.server.placeholders import Placeholders


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("Delete [X7X] files from [X24X]?", "Delete {0} files from {1}?"),
        ("Delete {0} files from [X24X]?", "Delete {0} files from {1}?"),
        ("[X0X], [X0X]", "{0}, {0}"),
        ("nothing [X] of the [XX] kind", "nothing [X] of the [XX] kind"),
        ("", ""),
    ],
)
def test_placeholders_are_sent_as_models_know_them_and_restored(text: str, sent: str) -> None:
    placeholders = Placeholders(text)
    assert placeholders.text == sent
    assert placeholders.restore(placeholders.text) == text


def test_an_order_of_its_own_is_the_translations_right() -> None:
    assert Placeholders("[X0X] has [X10X]").restore("{1} von {0}") == "[X10X] von [X0X]"
