"""Cutting texts into pieces and joining them again loses nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kster.translation.splitting import Piece, glue_for, split_text


def fits(text: str) -> bool:
    return len(text) <= 20


def join_pieces(pieces: Sequence[Piece], translations: Sequence[str], tail: str) -> str:
    joined = before = ""
    for piece, translation in zip(pieces, translations, strict=True):
        joined += glue_for(piece, before, joined, translation) + translation
        before = piece.text
    return joined + tail


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=80))
def test_texts_that_fit_come_back_character_for_character(text: str) -> None:
    pieces, tail = split_text(text, lambda _: True)
    assert join_pieces(pieces, [piece.text for piece in pieces], tail) == text


@given(st.text(alphabet="ab .!?\n\t。„“", max_size=200))
def test_every_piece_fits_and_no_character_but_white_space_is_lost(text: str) -> None:
    pieces, tail = split_text(text, fits)
    assert all(fits(piece.text) and piece.text.strip() for piece in pieces)
    joined = join_pieces(pieces, [piece.text for piece in pieces], tail)
    assert "".join(joined.split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("One two. Three four. Five six.", ["One two. Three four.", "Five six."]),
        ("He said „go.“ Then she went.", ["He said „go.“", "Then she went."]),
        ("a sentence without any end at all", ["a sentence", "without", "any end at all"]),
        ("x" * 50, ["x" * 12, "x" * 13, "x" * 12, "x" * 13]),
        (
            "一二三四五六七八九十。一二三四五六七八九十。",
            ["一二三四五六七八九十。", "一二三四五六七八九十。"],
        ),
        (
            "「一二三四五六七八九。」一二三四五！？六七。",
            ["「一二三四五六七八九。」一二三四五！？", "六七。"],
        ),
        (
            "一二三四五。六七八九。一二三四五六七八九十。",
            ["一二三四五。六七八九。", "一二三四五六七八九十。"],
        ),
    ],
)
def test_a_long_line_is_cut_where_a_reader_would(line: str, parts: list[str]) -> None:
    assert [piece.text for piece in split_text(line, fits)[0]] == parts


@pytest.mark.parametrize(
    ("source", "translations", "joined"),
    [
        ("One two three four. Five six seven.", ["一二三四。", "五六七。"], "一二三四。五六七。"),
        (
            "一二三四五六七八九十。一二三四五六七八九十。",
            ["One to ten.", "One to ten."],
            "One to ten. One to ten.",
        ),
        ("一二三四五六七八九十一二三四五六七八九十一", ["one", "two"], "one two"),  # no word was cut
        ("One two three four. Five six seven.", ["하나 둘.", "셋 넷."], "하나 둘. 셋 넷."),
        ("x" * 30, ["a", "b"], "ab"),  # a word was
        ("One two three four. Five six seven.", ["", "Fünf."], " Fünf."),
    ],
)
def test_pieces_of_a_line_are_joined_as_the_script_of_the_translation_asks(
    source: str, translations: list[str], joined: str
) -> None:
    pieces, tail = split_text(source, fits)
    assert join_pieces(pieces, translations, tail) == joined


@pytest.mark.parametrize("split_sentences", [False, True])
@given(text=st.text(alphabet="aB一二。！？」. \t\u3000\n", max_size=120))
def test_a_line_that_was_cut_comes_back_character_for_character(text: str, split_sentences: bool) -> None:
    pieces, tail = split_text(text, fits, split_sentences=split_sentences)
    assert all(fits(piece.text) and piece.text.strip() for piece in pieces)
    assert join_pieces(pieces, [piece.text for piece in pieces], tail) == text


@pytest.mark.parametrize(
    ("source", "translations", "joined"),
    [
        ("One.  Two.\tThree.", ["Eins.", "Zwei.", "Drei."], "Eins.  Zwei.\tDrei."),
        ("One. Two.", ["一。", "二。"], "一。二。"),
        ("一。二。", ["One.", "Two."], "One. Two."),
        ("一。\u3000二。", ["一。", "二。"], "一。\u3000二。"),
        ("一。\u3000二。", ["One.", "Two."], "One. Two."),
    ],
)
def test_sentences_are_joined_as_they_were_apart(source: str, translations: list[str], joined: str) -> None:
    pieces, tail = split_text(source, fits, split_sentences=True)
    assert join_pieces(pieces, translations, tail) == joined


def test_a_line_is_not_cut_where_somebody_knows_it_as_a_whole() -> None:
    def texts(text: str, *whole: str) -> list[str]:
        pieces, _ = split_text(
            text, fits, split_sentences=True, is_whole=lambda begin, end: text[begin:end] in whole
        )
        return [piece.text for piece in pieces]

    text = " One. Two.\nThree. Four. "
    assert texts(text) == ["One.", "Two.", "Three.", "Four."]
    assert texts(text, "Three. Four.") == ["One.", "Two.", "Three. Four."]
    assert texts(text, text) == [text]
    assert texts("x" * 30, "x" * 30) == ["x" * 30]


def test_a_piece_says_whether_it_was_torn_from_another() -> None:
    line = "One two. Three four five six seven. Eight."
    split = split_text(line, fits, split_sentences=True)[0]
    assert [(piece.text, piece.torn) for piece in split] == [
        ("One two.", False),
        ("Three four", True),
        ("five six seven.", True),
        ("Eight.", False),
    ]
    assert all(piece.torn for piece in split_text(line, fits)[0])
    assert not any(piece.torn for piece in split_text(line, lambda _: True)[0])


def test_lines_and_the_white_space_around_them_stay() -> None:
    pieces, tail = split_text("  one\n\n\ttwo \r\nthree\n", lambda _: True)
    assert [piece.text for piece in pieces] == ["one", "two", "three"]
    assert join_pieces(pieces, ["1", "2", "3"], tail) == "  1\n\n\t2 \r\n3\n"
