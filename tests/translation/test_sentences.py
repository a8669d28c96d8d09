"""Where a sentence ends and where a full stop only looks like it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kster.text.sentences import sentences


def parts(line: str) -> list[str]:
    return [line[begin:end] for begin, end in sentences(line)]


@pytest.mark.parametrize(
    "marked",
    [
        "Open it.|Close it.|Now!",
        "Is it on?|Yes!|It is…|Good...|Well?!|Yes.",
        "He said „geh.“|Then she went.|(It was late.)|So what?",
        "“Go.”|They went.|'Now.'|»Jetzt.«|«Ici.»|Dann.",
        "It was in 1999.|Then it ended.|It cost $5.|20 came back.",
        "Apples, pears etc. are fine.|Take apples etc.|Then go.",
        "He said no.|She left.",
        "Die Maschine ist an.|Öffnen Sie den Deckel.",
        "Кто там?|Никого нет.|Хорошо.",
        "यह पहला है।|यह दूसरा है।",
        "هل هذا صحيح؟|نعم.",
        "ეს არის.|ის წავიდა.",  # letters without capitals
        "Done.|{0} comes next.",
        "1. Open it.|2. Close it.",
    ],
)
def test_sentences_end(marked: str) -> None:
    assert parts(marked.replace("|", " ")) == marked.split("|")


@pytest.mark.parametrize(
    "line",
    [
        "Am 3. Mai kam der 2. Zug um 10.30. Uhr",
        "Das am 22 . Juli unterzeichnete Abkommen, ABl . Nr . L 3",
        "1. Open the lid",
        "1.2. Open the lid",
        "Sie kam z. B. Montag, d. h. Dienstag, u. a. Mittwoch, i.d.R. Freitag",
        "Dr. Meier, Prof. Dipl.-Ing. Huber und Fr. Weber, St. Anna",
        "e.g. Apples, i.e. Pears, cf. Smith et al. Nature",
        "Mr. and Mrs. J. R. Smith of the U.S. Army, Ph.D. Student",
        "Friedrich II. König von Preußen und Louis XIV. König",
        "Müller GmbH & Co. KG zahlt 5 Mio. Euro bzw. Franken",
        "See No. 5, Art. 3, Fig. 2, Sept. 11",
        "Why not? because I say so... or not! really",
        "Nr.\xa0Fünf und Blatt.\xa0Sechs",
        "Loading. . . .",
        "He came (Who? Nobody knows. Really.) at last",
        "「行く。帰る。」と言った",
        "“好。”他说",
        "www.example.com/Index.Html und a.B",
        "Saved in %d. Eintrag",
        "Ends with a mark. {0}",
        "...",
        "",
    ],
)
def test_no_sentence_ends(line: str) -> None:
    assert parts(line) == [line] * bool(line)


def test_chinese_and_japanese_sentences_need_no_spaces() -> None:
    assert parts("彼は来た。本当！？はい。「行く。」「帰る。」") == [
        "彼は来た。",
        "本当！？",
        "はい。",
        "「行く。」",
        "「帰る。」",
    ]


@given(st.text(alphabet='aB1 .!?…。「」()"“{}\xa0।', max_size=120))
def test_sentences_are_in_order_stripped_and_leave_only_white_space_between_them(line: str) -> None:
    found = sentences(line)
    at = 0
    for begin, end in found:
        assert begin < end
        assert not line[at:begin].strip()
        assert line[begin:end] == line[begin:end].strip()
        at = end
    assert not line[at:].strip()


@pytest.mark.parametrize(
    "pattern", [".", ". ", "a. ", "A. B ", "(", "(A. ", ")", "{}", "{0}. ", '."', " ", "。", "。」", "Aa. "]
)
def test_the_time_grows_with_the_length_of_a_line_and_not_faster(pattern: str) -> None:
    line = pattern * (200_000 // len(pattern))
    begun = time.monotonic()
    for whole in (line, f"x{line}x"):
        sentences(whole)
    assert time.monotonic() - begun < 20  # a second on an idle machine; minutes if it were quadratic
