"""The texts of units for a translator of plain strings: codes are marks in them, and come back."""

from __future__ import annotations

from collections.abc import Sequence

from kster.documents.document import Text, Unit
from kster.text.codes import Code, Token
from kster.text.inline import InlineText, Tag, again, first_round, put_all
from kster.text.inline import Token as OldToken

_KINDS = {"open": "begin", "close": "end", "alone": "whole"}


class PlainTexts:
    def __init__(self, units: Sequence[Unit]) -> None:
        self._done: list[list[Token]] = []
        self._codes: dict[tuple[int, str], Code] = {}
        self._texts = [InlineText(self._old(unit.text), self._take, keep_lines=True) for unit in units]

    @property
    def pieces(self) -> list[str]:
        return [piece for text in self._texts for piece in first_round(text)]

    def again(self, translations: Sequence[str]) -> list[str]:
        return again(self._texts, translations)

    def results(self, translations: Sequence[str], more: Sequence[str]) -> list[Text]:
        put_all(self._texts, translations, more)
        return list(self._done)

    def _old(self, text: Text) -> list[OldToken]:
        old: list[OldToken] = []
        for token in text:
            if isinstance(token, str):
                old.append(token)
            else:
                own = token.pair if token.pair is not None else token
                kind = _KINDS[token.kind]
                self._codes[id(own), kind] = token
                old.append(Tag(own, kind))  # type: ignore[arg-type]
        return old

    def _take(self, tokens: list[OldToken]) -> None:
        new = [t if isinstance(t, str) else self._codes[id(t.element), t.kind] for t in tokens]
        self._done.append([token for token in new if token != ""])
