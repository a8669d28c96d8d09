"""Apple's `.strings`: the values of `"key" = "value";`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kster.documents.document import Counter, Places, Text, TextDocument, is_prose, plain, require_size
from kster.documents.encoded_text import EncodedText
from kster.errors import FormatError

_STRING = r'"(?:[^"\\]|\\.)*+"'
_ENTRY = re.compile(
    rf"(?P<space>(?:\s|//[^\n]*|/\*(?:[^*]|\*(?!/))*+\*/)*+)"
    rf'(?:(?P<key>{_STRING}|[\w.$-]+)\s*=\s*"(?P<value>(?:[^"\\]|\\.)*+)"\s*;|(?P<end>\Z))',
    re.S,
)


def open_strings(data: bytes, source: str, target: str) -> TextDocument:
    file = EncodedText(data)
    require_size(len(file.text))
    places = Places(file.text)
    counter = Counter("entries")
    at = 0
    while at < len(file.text):
        entry = _ENTRY.match(file.text, at)
        if entry is None:
            line = file.text.count("\n", 0, at) + 1
            raise FormatError(f'line {line} or below it: not an entry such as "key" = "value";')
        if entry["end"] is not None:
            break
        counter.add()
        text = entry["value"].replace(r"\"", '"')  # other escapes are codes in the text
        if is_prose(text):
            places.add(*entry.span("value"), [[text]], _write, entry["key"].strip('"'))
        at = entry.end()
    return TextDocument(file, places)


def _write(texts: Sequence[Text]) -> str:
    return plain(texts[0]).replace('"', r"\"").replace("\n", r"\n")
