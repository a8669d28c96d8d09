import codecs
import gzip
import lzma

import pytest

from formats.conftest import read, tmx, tu
from kster.errors import KsterError
from kster.formats import encoding
from kster.formats.encoding import detect_encoding, text_chunks, text_lines

TEXT = tmx(tu("Straße – 日本 😀", "Grüße"))
ENCODINGS = {
    "utf-8": TEXT.encode("utf-8"),
    "utf-8 with BOM": codecs.BOM_UTF8 + TEXT.encode("utf-8"),
    "utf-16 LE with BOM": codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
    "utf-16 BE with BOM": codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
    "utf-16 LE": TEXT.encode("utf-16-le"),
    "utf-16 BE": TEXT.encode("utf-16-be"),
    "utf-16 declared": TEXT.replace("UTF-8", "UTF-16").encode("utf-16"),
    "utf-16 declared but utf-8": TEXT.replace("UTF-8", "UTF-16").encode("utf-8"),
}


@pytest.mark.parametrize("content", ENCODINGS.values(), ids=ENCODINGS.keys())
@pytest.mark.parametrize("chunk", [64, 1 << 16])
def test_every_unicode_encoding_is_read(put, monkeypatch, content: bytes, chunk: int) -> None:
    path = put("a.tmx", content)
    monkeypatch.setattr(encoding, "CHUNK", chunk)
    assert [(p.source, p.target) for p in read(path)[0]] == [("Straße – 日本 😀", "Grüße")]


def test_a_declared_single_byte_encoding_is_obeyed(put) -> None:
    content = tmx(tu("caf\xe9", "Gr\xfc\xdfe")).replace("UTF-8", "ISO-8859-1").encode("latin-1")
    assert read(put("a.tmx", content))[0][0].source == "café"


def test_utf16_text_with_few_latin_characters_is_recognised_without_bom(put) -> None:
    rows = "你好世界\t再见世界\n" * 50
    for codec in ("utf-16-le", "utf-16-be"):
        assert len(read(put("a.tsv", rows.encode(codec)), "zh", "zh")[0]) == 50


def test_one_zero_byte_does_not_turn_utf8_into_utf16(put) -> None:
    pairs, rejections = read(put("a.tsv", "good\tgut\nba\0d\tschlecht\n" + "more\tmehr\n" * 20))
    assert len(pairs) == 21
    assert (rejections[0].line, rejections[0].reason) == (2, "source contains the character U+0000")


def test_one_zero_byte_does_not_turn_what_is_not_utf8_into_utf16(put) -> None:
    with pytest.raises(KsterError, match="line 2: not valid UTF-8"):
        read(put("a.tsv", b"good\tgut\nba\0d caf\xe9\tschlecht\n" + b"more\tmehr\n" * 40))


def test_bytes_that_are_not_text_are_an_error_with_their_line(put) -> None:
    path = put("a.tsv", b"good\tgut\n" * 9_000 + b"caf\xe9\tKaffee\n")
    with pytest.raises(KsterError, match=r"a\.tsv, line 9001: not valid UTF-8"):
        read(path)


def test_truncated_utf16_is_an_error(put) -> None:
    with pytest.raises(KsterError, match="line 2: not valid UTF-16"):
        read(put("a.tsv", "a\tb\nc\td".encode("utf-16")[:-1]))


@pytest.mark.parametrize("name", ["rot13", "ISO-88591"])
def test_an_encoding_that_is_none_is_refused(put, name: str) -> None:
    content = tmx(tu("a", "b")).replace("UTF-8", name)
    with pytest.raises(KsterError, match=f"declares the encoding '{name}', which is not supported"):
        read(put("a.tmx", content))


def test_a_surrogate_half_rejects_its_line_only(put) -> None:
    content = "a\tb\nbroken \ud83d\tkaputt\nemoji 😀\td\n"
    for codec in ("utf-8", "utf-16"):
        pairs, rejections = read(put("a.tsv", content.encode(codec, "surrogatepass")))
        assert [p.source for p in pairs] == ["a", "emoji 😀"]
        assert (rejections[0].line, rejections[0].reason) == (2, "source contains the character U+D83D")


@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "utf-16-le", "utf-32"])
def test_characters_split_between_chunks_are_put_together(put, monkeypatch, codec: str) -> None:
    text = "aé日😀\n" * 100
    path = put("a.txt", text.encode(codec))
    for size in (64, 65, 67):
        monkeypatch.setattr(encoding, "CHUNK", size)
        assert "".join(text_chunks(path)) == text


def test_lines_end_at_line_feeds_only(put) -> None:
    path = put("a.txt", "one\u2028still one\x85\r\ntwo\rstill two\n\nfour")
    assert list(text_lines(path)) == ["one\u2028still one\x85", "two\rstill two", "", "four"]


def test_a_line_beyond_the_limit_comes_as_none_and_the_next_one_whole(put, monkeypatch) -> None:
    monkeypatch.setattr(encoding, "MAX_LINE", 100)
    monkeypatch.setattr(encoding, "CHUNK", 16)
    assert list(text_lines(put("a.txt", "a\n" + "x" * 101 + "\nb\n" + "y" * 100 + "\n" + "z" * 500))) == [
        "a",
        None,
        "b",
        "y" * 100,
        None,
    ]


def test_empty_input_is_utf8() -> None:
    assert detect_encoding(b"") == "utf-8"


def test_compressed_files_are_read_whatever_their_name(put) -> None:
    for name in ("a.tmx.gz", "a.tmx"):
        assert len(read(put(name, gzip.compress(TEXT.encode())))[0]) == 1
    assert len(read(put("a.tmx.xz", lzma.compress(TEXT.encode("utf-16"))))[0]) == 1


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_truncated_compressed_file_is_an_error(put, pack) -> None:
    content = pack("".join(f"line {i}\tZeile {i}\n" for i in range(5_000)).encode())
    with pytest.raises(KsterError, match=r"a\.tsv: the compressed data is damaged or cut short"):
        read(put("a.tsv", content[: len(content) // 2]))
