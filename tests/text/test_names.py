"""Names and numbers that a translation leaves out."""

from __future__ import annotations

import pytest

from kster.text.names import lost_names, says_more


@pytest.mark.parametrize(
    ("source", "translation", "lost"),
    [
        ("Give the notebook to Oliver.", "Geben Sie das Heft.", {"Oliver"}),
        ("Give the notebook to Oliver.", "Geben Sie Oliver das Heft.", set()),
        ("Wait 30 seconds.", "Warten Sie.", {"30"}),
        ("Wait", "Warten", set()),
        ("", "", set()),
    ],
)
def test_a_name_or_number_is_lost_that_is_not_in_the_translation(
    source: str, translation: str, lost: set[str]
) -> None:
    assert lost_names(source, translation) == lost


def test_another_translation_says_more_only_if_it_says_all_the_rest() -> None:
    best = "Öffnen Sie die Einstellungen."
    assert says_more("Geben Sie das Heft.", "Geben Sie Oliver das Heft.", {"Oliver"})
    assert not says_more(best, "Öffnen Sie die Settings.", {"Settings"})  # it is translated, not left out
    assert not says_more(best, "Öffnen Sie die Einstellungen jetzt.", {"Settings"})
