"""A long text in parts of a few sentences, to be translated one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kster.translation.service import read_text
from kster.translation.splitting import split_text

ONE_PART = 600  # characters: so much stays whole
ENOUGH = 240  # characters of a part: a few sentences


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text; before: white space that is not translated."""

    before: str
    text: str

    def __len__(self) -> int:
        return len(self.text)


def parts_of(text: str, is_known: Callable[[str], bool] = lambda text: False) -> tuple[list[Part], str]:
    """The parts, and the white space behind the last one; joined in order they are the text.

    Cut between lines and sentences, never within a message or another code. is_known: whether a memory holds
    a text as it is; then it stays whole.
    """
    if len(text) <= ONE_PART or is_known(text):
        return [Part("", text)], ""
    coded = read_text(text)

    def is_whole(begin: int, end: int) -> bool:
        return is_known(str(coded.cut(begin, end)[1]))

    pieces, _ = split_text(coded.plain, lambda _: True, split_sentences=True, is_whole=is_whole)
    places: list[int] = []  # where each part begins and ends
    at = 0
    for piece in pieces:
        begin, end = at + len(piece.glue), at + len(piece.glue) + len(piece.text)
        if not places or places[-1] - places[-2] >= ENOUGH:
            places += [begin, end]
        else:
            places[-1] = end
        at = end
    cut = [str(own) for own in coded.cut(*places)]
    return [Part(*own) for own in zip(cut[0::2], cut[1::2], strict=False)], cut[-1]
