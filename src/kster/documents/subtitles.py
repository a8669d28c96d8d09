"""Subtitles, SRT and WebVTT: the text of cues; numbers, times, notes and styles stay.

The lines of a cue are one text, unless they are two speakers', each behind a dash or a name (`<v Anna>`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kster.documents.document import Counter, Half, Places, Text, TextDocument, coded, has_prose, require_size
from kster.documents.encoded_text import EncodedText
from kster.errors import FormatError

NARROWEST = 42  # characters: what a line of a subtitle may always have
_BLOCK = re.compile(r"[^\r\n]+(?:\r?\n[^\r\n]+)*")
_TIMES = re.compile(r"(?:^|\n)[ \t]*(?:\d+:)?\d+:\d+[.,]\d+[ \t]*-->[^\n]*(?:\n|\Z)")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<\d[\d:.]*>|</?>|\{\\[^{}]*\}")
_VOICE = re.compile(r"<v[ .\t][^<>]*>[ \t]*")
_SPEAKER = re.compile(rf"[-–—][ \t]*|{_VOICE.pattern}")


def open_subtitles(data: bytes, source: str, target: str) -> TextDocument:
    file = EncodedText(data)
    require_size(len(file.text))
    places = Places(file.text)
    counter = Counter("cues")
    found = False
    for block in _BLOCK.finditer(file.text):
        counter.add()
        times = _TIMES.search(block[0])
        found = found or times is not None
        if times is None:
            continue  # WebVTT's header, notes, styles
        for start, end in _texts(file.text, block.start() + times.end(), block.end()):
            _add(places, start, end, block[0][times.start() : times.end()].strip(), file.line_end)
    if not found and file.text.strip():
        raise FormatError("no times of subtitles (00:00:01,000 --> 00:00:02,000) in this file")
    return TextDocument(file, places)


def _texts(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """All of a cue, or each line if several people speak."""
    lines = [(m.start(), m.end()) for m in re.finditer(r"[^\r\n]+", text[start:end])]
    spoken = [_SPEAKER.match(text, start + begin) for begin, _ in lines]
    if len(lines) > 1 and all(spoken):
        for (_, line_end), speaker in zip(lines, spoken, strict=True):
            assert speaker is not None
            yield speaker.end(), start + line_end
    elif lines:
        yield start + lines[0][0], start + lines[-1][1]


def _add(places: Places[str], start: int, end: int, where: str, line_end: str) -> None:
    if voice := _VOICE.match(places.content, start, end):
        start = voice.end()
    content = places.content[start:end].rstrip().removesuffix("</v>")
    end = start + len(content)
    pieces: list[str | Half] = []
    at = 0
    for tag in _TAG.finditer(content):
        pieces += [content[at : tag.start()], _half(tag, start)]
        at = tag.end()
    pieces.append(content[at:])
    if not has_prose(pieces):
        return
    lines = content.splitlines()
    width = max(NARROWEST, *map(len, lines))
    joined = [re.sub(r"[ \t]*\r?\n[ \t]*", " ", p) if isinstance(p, str) else p for p in pieces]

    def write(texts: Sequence[Text]) -> str:
        text = "".join(places.markup(own, lambda s: s.replace("-->", "→")) for own in texts)
        return line_end.join(_lines(" ".join(text.split()), width)) if len(lines) > 1 else text

    places.add(start, end, coded(joined), write, where)


def _half(tag: re.Match[str], offset: int) -> Half:
    span = offset + tag.start(), offset + tag.end()
    name = re.match(r"</?([A-Za-z]+)", tag[0])
    if name is None:
        return Half(span)
    return Half(span, "close" if tag[0].startswith("</") else "open", name[1].lower())


def _lines(text: str, width: int) -> list[str]:
    """As few lines as fit, about equally long; tags count for nothing."""
    words = text.split(" ")
    shown = [len(_TAG.sub("", word)) for word in words]
    number = max(1, -(-(sum(shown) + len(words) - 1) // width))
    target = (sum(shown) + len(words) - 1) / number
    lines: list[list[str]] = [[]]
    length = 0
    for word, size in zip(words, shown, strict=True):
        if lines[-1] and (length + 1 + size > width or length + size / 2 > target):
            lines.append([])
            length = 0
        lines[-1].append(word)
        length += size + 1
    return [" ".join(line) for line in lines]
