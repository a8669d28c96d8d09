"""Sentences with tags and other codes: the tags are put in afterwards, the others go as marks.

Words between marks are translated worse than without (docs/results/placeholders.md), so that only codes that
stand for something get one: `press <b>%s</b> now` goes as `press {0} now`.
"""

from __future__ import annotations

from collections.abc import Iterable

from kster.text.codes import CodedText, Token
from kster.text.core import Core
from kster.text.made_up import made_up
from kster.text.marks import MARK, braces, groups, is_around_words, same_marks
from kster.text.projection import Link, projected, without_codes
from kster.text.spacing import Spacing


class TaglessText:
    """`text` is what to translate; `project` gives a translation its tags and its other codes."""

    def __init__(self, source: CodedText) -> None:
        self._core = Core(source)
        self._groups = [group for group in groups(self._core.tokens) if not is_around_words(group)]
        numbers = {id(code): i for i, group in enumerate(self._groups) for code in group}
        firsts = {id(group[0]) for group in self._groups}
        tokens: list[Token] = []
        for token in self._core.tokens:
            number = numbers.get(id(token))
            if number is None:
                tokens.append(token)
            elif id(token) in firsts:
                tokens.append(f"{{{number}}}")
        self._tokens = CodedText.of(tokens).tokens
        self.text, _ = without_codes(self._tokens)

    @property
    def shown(self) -> list[str]:
        """What each mark stands for, as a string."""
        return ["".join(map(str, group)) for group in self._groups]

    def project(self, translation: str, links: Iterable[Link]) -> CodedText | None:
        """With all codes; None if marks are missing. links: of `text` and the translation."""
        if not same_marks(self.text, translation):
            return None
        tokens: list[Token] = []
        for token in projected(self._tokens, translation, list(links)):
            if not isinstance(token, str):
                tokens.append(token)
                continue
            parts = MARK.split(token)
            tokens.append(parts[0])
            for number, text in zip(parts[1::2], parts[2::2], strict=True):
                tokens += [*self._groups[int(number)], text]
        texts, own = _texts(tokens), _texts(self._core.tokens)
        if braces(texts) != braces(own):
            return None  # pieces of marks
        read = self._core.complete(Spacing(self._core.tokens).apply([token for token in tokens if token]))
        return None if read is None or made_up(read.tokens) else read


def _texts(tokens: Iterable[Token]) -> list[str]:
    return [token for token in tokens if isinstance(token, str)]
