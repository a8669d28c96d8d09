"""Plain text: paragraphs, however they are broken into lines, and lines."""

from __future__ import annotations

import pytest

from documents.translated import capitals, texts, written
from kster.text.wrapping import paragraphs

WRAPPED = """INSTALLING
This program was written for people who wanted
to read their mail on the train, and who were
often without a network for many hours.

  * Do not press the red button unless you have
    read the manual from its beginning to its end.
  * Short item.

> Somebody wrote this a long time ago, and others
> quoted it in their answers.

Yours,
A. Writer
42 Long Street
"""


def test_lines_that_were_broken_at_a_column_are_one_text() -> None:
    assert texts("a.txt", WRAPPED.encode()) == [
        "INSTALLING",
        "This program was written for people who wanted to read their mail on the train, and who were often "
        "without a network for many hours.",
        "Do not press the red button unless you have read the manual from its beginning to its end.",
        "Short item.",
        "Somebody wrote this a long time ago, and others quoted it in their answers.",
        "Yours,",
        "A. Writer",
        "42 Long Street",
    ]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_paragraph_is_broken_again_at_the_same_column_with_the_same_line_ends(line_end: str) -> None:
    content = WRAPPED.replace("\n", line_end).encode()
    assert capitals("a.txt", content) == WRAPPED.upper().replace("\n", line_end).encode()
    short = [own if len(own) < 60 else "ein " * 20 for own in texts("a.txt", content)]
    done = written("a.txt", content, short).decode()
    assert done.count("\n") == done.count(line_end)
    assert all(len(line) <= 50 for line in done.splitlines())
    assert f"{line_end}> ein ein" in done
    assert f"  * ein ein ein ein ein ein ein ein ein ein ein{line_end}    ein" in done


def test_a_line_that_was_broken_early_amid_a_sentence_belongs_to_its_paragraph() -> None:
    torn = (
        "Please write to the address that stands on the back\n"
        "of your invoice if you have moved,\n"
        "since we can send nothing to a place that nobody\n"
        "lives at any more.\n"
    )
    assert texts("a.txt", torn.encode()) == [" ".join(torn.split())]
    verse = "The rain that falls on every roof in this old town\nmakes no sound\nat all that anybody hears\n"
    assert texts("a.txt", verse.encode()) == verse.splitlines()


def test_a_word_longer_than_a_line_is_not_cut() -> None:
    (paragraph,) = paragraphs("a b c d e f g h i j k l m n o p q r s t u v w\nxyz abc def")
    assert paragraph.wrapped("short " + "w" * 80).splitlines() == ["short", "w" * 80]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_a_text_file_keeps_its_encoding_and_what_has_no_words(encoding: str) -> None:
    text = "12 345\r\n\x0c---\u2028\n\r{}"
    assert capitals("a.txt", text.format("süß").encode(encoding)) == text.format("SÜSS").encode(encoding)
    assert capitals("a.txt", text.format("").encode(encoding)) == text.format("").encode(encoding)


def test_lines_that_are_sentences_stay_lines() -> None:
    """As in messages: a break moved into a sentence would be seen."""
    text = b"This file could not be opened, since somebody else is using it.\nTry again later.\n"
    assert capitals("a.txt", text) == text.upper()
    po = b'msgid "The connection was lost while the file was being sent.\\n"\n"Try again."\nmsgstr ""\n'
    assert b'SENT.\\n"\n"TRY AGAIN."' in capitals("a.po", po)
