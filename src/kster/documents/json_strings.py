"""JSON files of messages: i18next and its like, Chrome's `messages.json`, Flutter's ARB.

The values of a file are translated in place; which of them are messages depends on what the file is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kster.documents.document import Counter, Places, Text, TextDocument, is_prose, plain, require_size
from kster.documents.encoded_text import EncodedText
from kster.errors import FormatError
from kster.text.codes import Code, Token
from kster.text.languages import match_rank

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|[{}\[\]:,]|[^\s"{}\[\]:,]+')
_NESTED = re.compile(r"(\$t\((?:[^()]|\([^()]*\))*\))")  # i18next's reference to another message

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _String:
    """A string that is a value; path: the names that lead to it."""

    path: Path
    text: str
    start: int
    end: int


def open_json(data: bytes, source: str, target: str) -> TextDocument:
    file = EncodedText(data)
    require_size(len(file.text))
    strings = list(_strings(file.text))
    is_message = _rule(strings)
    in_ascii = file.text.isascii() and "\\u" in file.text
    places = Places(file.text)

    def write(texts: Sequence[Text]) -> str:
        return json.dumps(plain(texts[0]), ensure_ascii=in_ascii)[1:-1]

    for string in strings:
        if string.path == ("@@locale",) and match_rank(source, string.text):
            places.change(string.start, string.end, target.replace("-", "_"))
        elif is_message(string.path) and is_prose(string.text):
            places.add(string.start, string.end, [_tokens(string.text)], write, ".".join(string.path))
    return TextDocument(file, places)


def parsed_json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError(f"line {error.lineno}: not valid JSON: {error.msg.lower()}") from None
    except RecursionError:
        raise FormatError("not valid JSON: it nests too deeply") from None


def _rule(strings: list[_String]) -> Callable[[Path], bool]:
    """Which values are messages: by what only ARB and Chrome's files have."""
    if any(string.path == ("@@locale",) for string in strings):
        return lambda path: len(path) == 1 and not path[0].startswith("@")
    if strings and all(len(string.path) > 1 for string in strings):
        named = {string.path[0] for string in strings if string.path[1:] == ("message",)}
        if named == {string.path[0] for string in strings}:
            return lambda path: path[1:] == ("message",)
    return lambda path: not any(name.startswith(("@", "$")) for name in path)


def _tokens(text: str) -> list[Token]:
    parts = _NESTED.split(text)
    return [Code("alone", part) if i % 2 else part for i, part in enumerate(parts) if part]


def _strings(text: str) -> Iterator[_String]:
    """The values of a file that are strings, in order."""
    parsed_json(text)
    counter = Counter("values")
    # For all that is open the name or number of the next value; None where a name comes first.
    around: list[str | int | None] = []
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign in ("{", "["):
            counter.add(len(around))
            around.append(None if sign == "{" else 0)
        elif sign in ("}", "]"):
            around.pop()
        elif sign == ",":
            number = around[-1]
            around[-1] = number + 1 if isinstance(number, int) else None
        elif sign != ":" and around and around[-1] is None:
            around[-1] = str(json.loads(sign))
        elif token[1] is not None:
            counter.add()
            yield _String(tuple(map(str, around)), json.loads(sign), token.start(1), token.end(1))
