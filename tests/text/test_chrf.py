"""chrF of a sentence is sacreBLEU's."""

from __future__ import annotations

import pytest
import sacrebleu

from kster.text.chrf import sentence_chrf


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("Den Wassertank öffnen.", "Den Wassertank öffnen."),
        ("Den Wassertank öffnen.", "Öffnen Sie den Wassertank!"),
        ("Er geht", "Sie kommen morgen früh um sieben Uhr an"),
        ("ab", "abc"),
        ("a b c d e f", "abc def"),
        ("xyz", "abc"),
        ("", "abc"),
        ("abc", ""),
        ("   ", "abc"),
    ],
)
def test_it_is_what_sacrebleu_says(text: str, reference: str) -> None:
    expected = sacrebleu.sentence_chrf(text, [reference]).score
    assert sentence_chrf(text, reference) == pytest.approx(expected, abs=1e-9)
