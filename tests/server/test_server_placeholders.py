from __future__ import annotations

import pytest

from kster.text.placeholders import Placeholders, are_kept, can_be_mended, mended, with_marks


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


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ('See <a href="%s">the manual</a>.', "See {0}the manual{1}."),
        ("%(count)d of %1$s, %-5.2f and %@", "{0} of {1}, {2} and {3}"),
        ("{name}: ${price} for {{ user }}&nbsp;and {0}", "{1}: {2} for {3}{4}and {0}"),
        ("100% sure, 5 % more, a < b > c, & so on", "100% sure, 5 % more, a < b > c, & so on"),
    ],
)
def test_what_programs_put_into_texts_is_known(text: str, sent: str) -> None:
    assert with_marks(text).text == sent
    assert with_marks(text).restore(sent) == text


def test_a_translation_that_lost_something_gives_way_to_one_that_did_not() -> None:
    assert are_kept("%d of %s", "%s: %d")
    assert not are_kept("%d of %d", "%d")
    assert mended("Save <b>%s</b>", "> %s", "{0}{1}{2} sichern") == "<b>%s</b> sichern"
    assert mended("Save <b>%s</b>", "> %s", "{0}{1} sichern") == "> %s"


def test_no_other_mark_is_tried_where_a_mark_was_lost() -> None:
    assert can_be_mended("{0} of %s", "von %s")
    assert not can_be_mended("press the {0} red {1} button", "den roten Knopf {0}")
    assert not can_be_mended("%s", "%s")
