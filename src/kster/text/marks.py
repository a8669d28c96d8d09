"""Codes on their way through a model: `press the <b>red</b> button` goes as `press the {0} red {1} button`.

`{0}` is what software has been translated with for decades, and what models keep best. A translation is
accepted only if it has every mark once, properly nested; then it gets the codes back, spaced as they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from kster.text.codes import Code, CodedText, Token, is_nested
from kster.text.core import Core
from kster.text.made_up import made_up
from kster.text.messages import with_messages
from kster.text.recognition import recognise
from kster.text.spacing import Spacing

MOST_MARKS = 20  # in one text; no model keeps more
MARK = re.compile(r"\{\s?(\d{1,3})\s?\}")
_SPACE = re.compile(r"[ \t\r\n\f]+")


def same_marks(source: str, translation: str) -> bool:
    """Whether a translation has the marks of its source, in whatever order."""
    return sorted(MARK.findall(source)) == sorted(MARK.findall(translation))


def marked_pair(source: str, target: str) -> tuple[str, str]:
    """The texts of an example as a model sees them: with marks for codes, as in texts to translate.

    Unchanged where the target has other codes than the source, or could not be read back to the letter.
    """
    texts = list(with_messages(source))
    if any(isinstance(token, Code) for token in texts) or not (read := recognise(source)).codes:
        return source, target
    marked = MarkedText(read)
    written = marked.mark(recognise(target)) if marked.text and marked.marks <= MOST_MARKS else None
    if written is None or str(marked.read(written) or "") != target:
        return source, target
    return marked.text, written


class MarkedText:
    """A text whose codes are marks. `text` is to be translated; `read` gives a translation its codes back."""

    def __init__(self, source: CodedText) -> None:
        self._core = Core(source)
        tokens = self._core.tokens
        self._spacing = Spacing(tokens)
        self._groups = groups(tokens)
        self._filled = _filled(tokens)
        self._open_before = _open_before(tokens)
        self._braces = braces(token for token in tokens if isinstance(token, str))
        self.text = self._marked(tokens, {id(group[0]): i for i, group in enumerate(self._groups)})

    @property
    def marks(self) -> int:
        """How many there are in `text`."""
        return len(self._groups)

    @property
    def has_tags(self) -> bool:
        """Whether some marks stand for tags around words."""
        return any(is_around_words(group) for group in self._groups)

    @property
    def shown(self) -> list[str]:
        """What each mark stands for, as a string."""
        return ["".join(map(str, group)) for group in self._groups]

    def read(self, translation: str) -> CodedText | None:
        """The translation with its codes; None if it does not have all of them, or not as they must be."""
        parts = MARK.split(translation)
        numbers = [int(number) for number in parts[1::2]]
        if sorted(numbers) != list(range(len(self._groups))):
            return None
        tokens: list[Token] = [parts[0]]
        for number, text in zip(numbers, parts[2::2], strict=True):
            tokens += [*self._groups[number], text]
        if not is_nested(tokens, self._open_before) or not _filled(tokens) >= self._filled:
            return None
        if numbers and braces(parts[0::2]) != self._braces:
            return None  # pieces of marks
        read = self._core.complete(self._spacing.apply(tokens))
        return None if read is None or made_up(read.tokens) else read

    def mark(self, translation: CodedText) -> str | None:
        """A translation with the marks of this text for its codes; None if it has other codes."""
        tokens = Core(translation).tokens
        waiting = {number: list(map(str, group)) for number, group in enumerate(self._groups)}
        firsts: dict[int, int] = {}
        codes = [token for token in tokens if isinstance(token, Code)]
        shown, at = list(map(str, codes)), 0
        while at < len(codes):
            same = (n for n, group in waiting.items() if shown[at : at + len(group)] == group)
            if (number := next(same, None)) is None:
                return None
            firsts[id(codes[at])] = number
            at += len(waiting.pop(number))
        return None if waiting else self._marked(tokens, firsts)

    def _marked(self, tokens: Sequence[Token], firsts: Mapping[int, int]) -> str:
        """With spaces around the marks of tags that words touch: a mark glued to a word spoils it.

        firsts: the ids of the first codes of groups → the number of the group.
        """
        parts: list[str] = []
        is_word = is_tag = False  # whether a word, or the mark of a tag, is right before
        for token in tokens:
            if isinstance(token, str):
                parts.append(" " * (is_tag and token[:1].isalnum()) + token)
                is_word, is_tag = token[-1:].isalnum(), False
            elif (number := firsts.get(id(token))) is not None:
                is_tag = all(code.kind != "alone" for code in self._groups[number])
                parts.append(" " * (is_word and is_tag) + f"{{{number}}}")
                is_word = False
        return _SPACE.sub(" ", "".join(parts)).strip()


def is_around_words(group: Sequence[Code]) -> bool:
    """Whether codes that share a mark are tags whose other halves are elsewhere."""
    return (
        len(
            {code.pair for code in group if code.kind == "open"}
            ^ {code.pair for code in group if code.kind == "close"}
        )
        > 0
    )


def groups(tokens: Sequence[Token]) -> list[list[Code]]:
    """Codes that share a mark, since few marks are kept better than many.

    They are neighbours, and all of them open something that is closed elsewhere, or close something that was
    opened elsewhere, or neither.
    """
    groups: list[list[Code]] = []
    for is_text, run in groupby(tokens, lambda token: isinstance(token, str)):
        if is_text:
            continue
        codes = [code for code in run if isinstance(code, Code)]
        opened = {code.pair for code in codes if code.kind == "open"}
        both = opened & {code.pair for code in codes if code.kind == "close"}
        kinds = ["alone" if code.pair in both else code.kind for code in codes]
        groups += [
            [code for code, _ in same]
            for _, same in groupby(zip(codes, kinds, strict=True), lambda item: item[1])
        ]
    return groups


def braces(texts: Iterable[str]) -> tuple[int, int]:
    """How many opening and closing ones there are."""
    text = "".join(texts)
    return text.count("{"), text.count("}")


def _open_before(tokens: Sequence[Token]) -> list[Any]:
    """The pairs that are closed here and were opened elsewhere, the innermost last."""
    opened = {token.pair for token in tokens if isinstance(token, Code) and token.kind == "open"}
    closed = [token.pair for token in tokens if isinstance(token, Code) and token.kind == "close"]
    return [pair for pair in reversed(closed) if pair not in opened]


def _filled(tokens: Sequence[Token]) -> set[int]:
    """The ids of the opening codes with something between them and their closing ones."""
    filled: set[int] = set()
    around: list[Code] = []
    for token in tokens:
        if isinstance(token, Code) and token.kind == "open":
            around.append(token)
        elif isinstance(token, Code) and token.kind == "close":
            if around and around[-1].pair == token.pair:
                around.pop()
        elif isinstance(token, Code) or token.strip():
            filled.update(map(id, around))
    return filled
