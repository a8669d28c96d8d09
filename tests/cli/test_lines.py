"""Lines come in blocks, decoded, in order, and no longer than they were."""

from __future__ import annotations

import gzip
import io
import os
import sys
from pathlib import Path

import pytest

from kster.cli.lines import line_blocks, paired_lines
from kster.errors import KsterError


def blocks(monkeypatch: pytest.MonkeyPatch, data: bytes, size: int) -> list[list[str]]:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    return list(line_blocks(None, size))


def test_blocks_hold_at_most_so_many_lines_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    found = blocks(monkeypatch, b"".join(b"%d\n" % i for i in range(10)), 4)
    assert [len(block) for block in found] == [4, 4, 2]
    assert [line for block in found for line in block] == [str(i) for i in range(10)]


def test_line_ends_byte_order_mark_and_unicode_separators(monkeypatch: pytest.MonkeyPatch) -> None:
    data = "\ufeffeins\r\n\nzwei\u2028noch zwei\nohne Ende".encode()
    assert blocks(monkeypatch, data, 10) == [["eins", "", "zwei\u2028noch zwei", "ohne Ende"]]


def test_a_line_longer_than_what_is_read_at_once_stays_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "ä" * 700_000
    assert blocks(monkeypatch, f"{long}\nkurz".encode(), 10) == [[long, "kurz"]]


def test_nothing_gives_no_block(monkeypatch: pytest.MonkeyPatch) -> None:
    assert blocks(monkeypatch, b"", 10) == []


def test_wrong_bytes_are_named_by_their_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KsterError, match="standard input, line 3: not valid UTF-8"):
        blocks(monkeypatch, b"a\nb\n\xff\n", 2)


class Endless(io.RawIOBase):
    """Two lines and then one without an end."""

    def __init__(self) -> None:
        self.given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = b"eins\nzwei\n" if not self.given else b"x" * len(buffer)
        buffer[: len(data)] = data
        self.given += len(data)
        if self.given > 100_000_000:
            raise AssertionError("the endless line was read on and on")
        return len(data)


def test_a_line_without_an_end_is_refused_after_the_lines_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Endless())))
    found = line_blocks(None, 100)
    assert next(found) == ["eins", "zwei"]
    with pytest.raises(KsterError, match="standard input, line 3: longer than 1,000,000 characters"):
        next(found)


@pytest.mark.parametrize("letter", ["x", "ä", "☕"])
def test_a_line_may_have_a_million_characters_and_no_more(
    monkeypatch: pytest.MonkeyPatch, letter: str
) -> None:
    line = letter * 1_000_000
    assert blocks(monkeypatch, f"{line}\nkurz\n".encode(), 10) == [[line, "kurz"]]
    with pytest.raises(KsterError, match="line 1: longer than 1,000,000 characters"):
        blocks(monkeypatch, f"{line}{letter}\nkurz\n".encode(), 10)


def test_lines_before_one_that_cannot_be_read_are_given_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = b"a\nb\nc\n\xff\nd\n"
    (tmp_path / "file").write_bytes(b"a\nb\nc\n" + b"x" * 1_000_001)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    for found in (line_blocks(None, 2), line_blocks(tmp_path / "file", 2)):
        assert [next(found), next(found)] == [["a", "b"], ["c"]]
        with pytest.raises(KsterError, match="line 4"):
            next(found)


def test_a_closed_standard_input_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)  # what `<&-` makes of it
    with pytest.raises(KsterError, match="standard input is closed"):
        list(line_blocks(None, 2))


def test_a_block_is_given_as_soon_as_no_more_lines_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with open(reading) as stdin, open(writing, "wb", buffering=0) as writer:
        monkeypatch.setattr(sys, "stdin", stdin)
        found = line_blocks(None, 100)
        writer.write(b"first\nsecond\nthe beginning of ")
        assert next(found) == ["first", "second"]
        writer.write(b"the third\n")
        assert next(found) == ["the beginning of the third"]
        writer.close()
        assert list(found) == []


def test_files_may_be_compressed_and_in_utf16(tmp_path: Path) -> None:
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress("drei\nvier".encode("utf-16")))
    assert list(line_blocks(packed, 1)) == [["drei"], ["vier"]]


def test_files_that_do_not_pair_up_are_told_apart(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("a\nb\n")
    other.write_text("a\n")
    with pytest.raises(KsterError, match=r"other has 1 line, .*one has more"):
        list(paired_lines(one, other))
