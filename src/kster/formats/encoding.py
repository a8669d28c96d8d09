"""From the bytes of a file to its text: compression, encodings, lines, all in bounded memory."""

from __future__ import annotations

import codecs
import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from kster.errors import FormatError, KsterError

CHUNK = 1 << 16  # bytes read at a time
MAX_LINE = 1_000_000  # characters; the rest of a longer line is dropped, and its reader told so
LEAST_ZEROS = 0.005
"""Of the bytes of UTF-16: a line end in a hundred characters of Chinese. Fewer are stray zeros in something
else, which had better be refused than read as UTF-16, where any bytes are characters."""

BYTE_ORDER_MARKS = (  # UTF-32 first: its little-endian mark begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""A mark and the codec of what follows it."""
_WITH_MARK = {"utf-8": "utf-8-sig"} | {
    f"utf-{n}-{order}": f"utf-{n}" for n in (16, 32) for order in ("le", "be")
}
# Encodings a file may declare. Python knows more codecs, some of which are not encodings of text at all.
_DECLARABLE = re.compile(
    r"utf-?8|us-?ascii|ascii|iso-?8859-?\d{1,2}|latin-?\d|windows-?125\d|cp125\d|koi8-?[ru]"
    r"|gb2312|gbk|gb18030|big5|shift-?jis|euc-?(?:jp|kr)|tis-?620"
)


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading; gzip and xz are recognised by their first bytes and decompressed.

    Errors of the operating system and of decompression are raised as `KsterError`.
    """
    try:
        with path.open("rb") as raw:
            magic = raw.read(6)
            raw.seek(0)
            if magic.startswith(b"\x1f\x8b"):
                with gzip.GzipFile(fileobj=raw) as unpacked:
                    yield cast(IO[bytes], unpacked)
            elif magic == b"\xfd7zXZ\x00":
                with lzma.LZMAFile(raw) as unpacked:
                    yield cast(IO[bytes], unpacked)
            else:
                yield raw
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise FormatError(f"{path}: the compressed data is damaged or cut short ({error})") from error
    except OSError as error:
        raise FormatError(f"{path}: cannot be read ({error.strerror or error})") from error


def detect_encoding(head: bytes, declared: str | None = None) -> str:
    """The codec for a file that begins with `head`, which takes a byte order mark away.

    A byte order mark decides; then the pattern of zero bytes that UTF-16 leaves in any text with spaces,
    digits or markup; then what the file declares about itself; then UTF-8. A declaration of UTF-16 in a
    file whose bytes are not UTF-16 is what remains after careless conversion, and is ignored.
    """
    for mark, codec in BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return _WITH_MARK[codec]
    even, odd = head[0::2].count(0), head[1::2].count(0)
    expected = 0.1 if _is_utf8(head) else LEAST_ZEROS
    if even + odd and even + odd >= expected * len(head):
        if odd > 2 * even:  # some on the other side are characters such as U+4E00
            return "utf-16-le"
        if even > 2 * odd:
            return "utf-16-be"
    if declared is None or re.fullmatch(r"(?i)utf-?(16|32)([lb]e)?|ucs-?[24]", declared):
        return "utf-8"
    try:
        if _DECLARABLE.fullmatch(declared.lower().replace("_", "-")):
            return codecs.lookup(declared).name
    except LookupError:  # "ISO-88591"
        pass
    raise FormatError(f"declares the encoding {declared!r}, which is not supported; save it as UTF-8")


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def text_chunks(path: Path, declared: Callable[[bytes], str | None] | None = None) -> Iterator[str]:
    """The text of a file, piece by piece, without its byte order mark.

    `declared` finds the encoding that the first bytes declare (an XML declaration, a PO header). Bytes
    that are not text in the detected encoding raise `KsterError` with the line they are on, except for
    lone surrogates, which are passed on so that only the unit that contains them is rejected.
    """
    with open_bytes(path) as stream:
        head = stream.read(CHUNK)
        try:
            codec = detect_encoding(head[:4096], declared(head) if declared else None)
        except KsterError as error:
            raise FormatError(f"{path}: {error}") from error
        errors = "surrogatepass" if codec.startswith("utf") else "strict"
        decoder = codecs.getincrementaldecoder(codec)(errors)
        line = 1
        chunk = head
        while True:
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                line += bytes(error.object)[: error.start].decode(codec, "ignore").count("\n")
                raise FormatError(
                    f"{path}, line {line}: not valid {codec.upper()} ({error.reason}); save the file as UTF-8"
                ) from error
            line += text.count("\n")
            if text:
                yield text
            if not chunk:
                return
            chunk = stream.read(CHUNK)


def text_lines(
    path: Path, declared: Callable[[bytes], str | None] | None = None, *, keep_ends: bool = False
) -> Iterator[str | None]:
    """The lines of a file, split at line feeds only (a translation may well contain U+2028 or U+0085).

    The line end (and a carriage return before it) is removed unless `keep_ends`. A line of more than
    `MAX_LINE` characters comes out as None, so that no line costs more memory than that.
    """
    pending = ""
    too_long = False
    for chunk in text_chunks(path, declared):
        *complete, rest = chunk.split("\n")
        for part in complete:
            yield (
                None if too_long or len(pending) + len(part) > MAX_LINE else _line(pending + part, keep_ends)
            )
            pending, too_long = "", False
        too_long = too_long or len(pending) + len(rest) > MAX_LINE
        pending = "" if too_long else pending + rest
    if too_long:
        yield None
    elif pending:
        yield pending if keep_ends else pending.removesuffix("\r")


def _line(text: str, keep_end: bool) -> str:
    return text + "\n" if keep_end else text.removesuffix("\r")
