"""The text of a file that is to come back in the encoding it came in."""

from __future__ import annotations

from kster.errors import FormatError
from kster.formats.encoding import BYTE_ORDER_MARKS, detect_encoding

HEAD = 65_536  # bytes, by which an encoding is detected


class EncodedText:
    """`text` is without the byte order mark; declared: the encoding the file claims to be in."""

    def __init__(self, data: bytes, declared: str | None = None) -> None:
        self._mark, self._codec = next(
            ((mark, codec) for mark, codec in BYTE_ORDER_MARKS if data.startswith(mark)),
            (b"", ""),
        )
        self._codec = self._codec or detect_encoding(data[:HEAD], declared)
        try:
            self.text = data[len(self._mark) :].decode(self._codec)
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            raise FormatError(
                f"line {line}: not {self._codec} text ({error.reason}); save it as UTF-8"
            ) from None
        mostly_windows = 2 * self.text.count("\r\n") > self.text.count("\n")
        self.line_end = "\r\n" if mostly_windows else "\n"

    def holds(self, text: str) -> bool:
        """Whether the encoding has all the characters of a text."""
        try:
            text.encode(self._codec)
        except UnicodeEncodeError:
            return False
        return True

    def encode(self, text: str, errors: str = "strict") -> bytes:
        return self._mark + text.encode(self._codec, errors)
