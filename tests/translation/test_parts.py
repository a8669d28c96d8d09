"""A long text in parts: nothing is lost, and nothing is cut that belongs together."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kster.translation.parts import ENOUGH, ONE_PART, parts_of

SENTENCE = "Open the water tank and rinse it with cold water. "
MESSAGE = "{n, plural,\none {One file.}\nother {Many files were copied. Nothing was lost.}}"
PIECES = [SENTENCE, "\n", "\n\n", "  ", MESSAGE, "<b>Warning:</b> ", "x" * 300]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_parts_joined_are_the_text(text: str) -> None:
    parts, after = parts_of(text)
    assert "".join(part.before + part.text for part in parts) + after == text


def test_a_short_text_is_one_part_and_a_long_one_has_parts_of_a_few_sentences() -> None:
    short = "\n" + SENTENCE
    assert [part.text for part in parts_of(short)[0]] == [short]
    parts, after = parts_of(SENTENCE * 200)
    assert after == " "
    assert all(ENOUGH <= len(part) <= ONE_PART for part in parts[:-1])


def test_neither_a_message_nor_a_text_that_a_memory_knows_is_cut() -> None:
    parts, _ = parts_of(SENTENCE * 20 + "\n" + MESSAGE + "\n" + SENTENCE * 20)
    assert sum(MESSAGE in part.text for part in parts) == 1
    known = SENTENCE * 30
    assert [part.text for part in parts_of(known, {known}.__contains__)[0]] == [known]
    line = known.strip()
    parts, _ = parts_of(f"{line}\n{line}\n", {line}.__contains__)
    assert [part.text for part in parts] == [line, line]
