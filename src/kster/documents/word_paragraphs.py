"""A paragraph of a Word document, translated: its text changes, everything else keeps its place in it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from kster.documents.word_runs import Code, Item, W, clear, items_of, new_run
from kster.text.inline import CLOSING, OPENING, InlineText, Tag, Token, is_prose

_XML_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_NOTES = (f"{W}footnoteReference", f"{W}endnoteReference")
_INSERTED = (f"{W}ins", f"{W}moveTo")


class Paragraph:
    """`<w:p>`. Its `texts` are to be translated; `write` then puts what they became into it."""

    def __init__(self, element: Any) -> None:
        self._element = element
        self._stretches: list[_Stretch] = []
        around: list[Code | None] = [None]  # what a stretch begins in; None: no code
        for _, items in groupby(items_of(element), lambda item: item.kind == "break"):
            self._stretches.append(_Stretch(list(items), around))
            for item in self._stretches[-1].items:
                _step(around, item.kind, item.code)
        self.texts = [stretch.text for stretch in self._stretches if stretch.text is not None]

    def write(self) -> None:
        if not self.texts:
            return
        clear(self._element)
        homes = [self._element]  # the elements that are open
        for stretch in self._stretches:
            for kind, code in stretch.written():
                if kind == "end":
                    homes.pop()
                    homes[-1].extend(code.closing)
                    continue
                homes[-1].extend(code.nodes)
                if kind == "begin" and code.inside is None:
                    homes.append(homes[-1])
                elif kind == "begin":
                    clear(code.inside)
                    homes.append(code.inside)


class _Stretch:
    """What is between two breaks, or some breaks.

    Its text takes on the looks of its first words, and within a code of the first words there.
    """

    def __init__(self, items: list[Item], around: Sequence[Code | None]) -> None:
        self.items = items
        self.text: InlineText | None = None
        if not any(is_prose(item.text) for item in items):
            return
        self._begin, self._end = _ends(items)
        self._around: list[Code | None] = list(around)
        for item in items[: self._begin]:
            _step(self._around, item.kind, item.code)
        inner = items[self._begin : self._end]
        tokens, self._floats = _tokens(inner)
        self._source = self._done = tokens
        self.text = InlineText(tokens, self._take, keep_lines=True)
        begun, ended = ({item.code for item in inner if item.kind == kind} for kind in ("begin", "end"))
        self.text.in_one &= begun == ended  # otherwise codes of two stretches might cross

    def written(self) -> list[tuple[str, Code]]:
        """Begins, ends and other codes in the order they have now."""
        old: list[tuple[str, Code]] = [(item.kind, item.code) for item in self.items]
        if self.text is None:
            return old
        looks = self._looks()
        new: list[tuple[str, Code]] = []
        around = list(self._around)
        for token in _with_floats(self._spaced(_joined(self._done)), self._floats):
            if isinstance(token, str):
                like = looks.get(around[-1], looks[None])
                new.append(("text", Code([_run(like, token)])))
            else:
                new.append((token.kind, token.element))
                _step(around, token.kind, token.element)
        return [*old[: self._begin], *new, *old[self._end :]]

    def _spaced(self, tokens: list[Token]) -> list[Token]:
        """With spaces between words and what is seen, unless they were together; none before a note."""
        seen = {item.code: _is_note(item) for item in self.items if item.kind == "whole"}
        done = list(tokens)
        for i, tag in enumerate(tokens):
            if not isinstance(tag, Tag) or tag.element not in seen:
                continue
            before, behind = _beside(done, i)
            was_before, was_behind = _beside(self._source, self._source.index(tag))
            if before and not seen[tag.element] and _is_apart(was_before, OPENING):
                done[i - 1] = before if _is_apart(before, OPENING) else f"{before} "
            if behind and _is_apart(was_behind[::-1], CLOSING):
                done[i + 1] = behind if _is_apart(behind[::-1], CLOSING) else f" {behind}"
        return done

    def _looks(self) -> dict[Code | None, Any]:
        """The first run with words in a code; None: where there is none, or without one."""
        looks: dict[Code | None, Any] = {}
        around = list(self._around)
        for item in self.items[self._begin : self._end]:
            if item.text.strip():
                looks.setdefault(around[-1], item.code.nodes[0])
            _step(around, item.kind, item.code)
        looks.setdefault(None, next(iter(looks.values())))
        return looks

    def _take(self, tokens: list[Token]) -> None:
        self._done = tokens


def _step(around: list[Code | None], kind: str, code: Code) -> None:
    """Go into a code, out of it, or neither."""
    if kind == "begin":
        around.append(code)
    elif kind == "end":
        around.pop()


def _ends(items: list[Item]) -> tuple[int, int]:
    """Where the inner items begin and end: without floating marks at either end, and without codes around all
    of them or around more than that."""
    begun = {item.code for item in items if item.kind == "begin"}
    ended = {item.code for item in items if item.kind == "end"}
    begin, end = 0, len(items)
    while True:
        first, last = items[begin], items[end - 1]
        if last.kind == "float" or (last.kind == "end" and last.code not in begun):
            end -= 1
        elif first.kind == "float" or (first.kind == "begin" and first.code not in ended):
            begin += 1
        elif first.kind == "begin" and last.kind == "end" and first.code is last.code:
            begin, end = begin + 1, end - 1
        else:
            return begin, end


_Floats = list[tuple[float, list[Tag]]]  # after which part of the text


def _tokens(items: list[Item]) -> tuple[list[Token], _Floats]:
    """What goes through the translation, and what need not: floating marks that no other code is beside."""
    size = sum(len(item.text) for item in items)
    tokens: list[Token] = []
    floats: _Floats = []
    beside: list[Item] = []  # codes since the last text
    read = 0
    spoken = (item for item in items if item.kind != "text" or item.text)
    for is_text, some in groupby(spoken, lambda item: item.kind == "text"):
        group = list(some)
        if not is_text:
            tags = [_tag(item) for item in group]
            if all(item.kind == "float" for item in group):
                floats.append((read / size, tags))
            else:
                tokens += tags
                beside += group
            continue
        text = "".join(item.text for item in group)
        read += len(text)
        last = len(tokens) - len(beside) - 1  # the text before
        if beside and last >= 0 and (rest := _rest_of_word(str(tokens[last]), beside, text)):
            tokens[last] = str(tokens[last]) + rest
            text = text[len(rest) :]
        if not beside and tokens:
            tokens[-1] = str(tokens[-1]) + text
        elif text:
            tokens.append(text)
            beside = []
    return tokens, floats


def _tag(item: Item) -> Tag:
    return Tag(item.code, item.kind if item.kind == "begin" or item.kind == "end" else "whole")


def _is_note(item: Item) -> bool:
    return any(node.find(name) is not None for node in item.code.nodes for name in _NOTES)


def _beside(tokens: list[Token], i: int) -> tuple[str, str]:
    """The texts on both sides, empty where there is none."""
    before, behind = tokens[i - 1] if i else "", tokens[i + 1] if i + 1 < len(tokens) else ""
    return before if isinstance(before, str) else "", behind if isinstance(behind, str) else ""


def _is_apart(text: str, ends: str) -> bool:
    """Whether a text ends where a word could follow."""
    return not text or text[-1].isspace() or text[-1] in ends


def _rest_of_word(before: str, codes: Sequence[Item], after: str) -> str:
    """What to move before codes within a word, as in `colo<ins>u</ins>r`, so that it is translated whole."""

    def is_letter(character: str) -> bool:  # of a script with words: Chinese has no spaces
        return character.isdigit() or character.lower() != character.upper()

    if any(item.kind == "whole" for item in codes) or not before or not is_letter(before[-1]):
        return ""
    end = next((i for i, character in enumerate(after) if not is_letter(character)), len(after))
    inserted = [item.code.nodes[0].tag in _INSERTED for item in codes if item.kind == "begin"]
    return after[:end] if end < len(after) or all(inserted) else ""  # a link never loses its text


def _joined(tokens: list[Token]) -> list[Token]:
    """With neighbouring texts as one, and no space behind what has come before a full stop."""
    done: list[Token] = []
    for token in tokens:
        if isinstance(token, str) and done and isinstance(done[-1], str):
            before = "" if done[-1] == " " and token[:1] in tuple(".,;:!?)") else done[-1]
            done[-1] = before + token
        elif token:
            done.append(token)
    return done


def _with_floats(tokens: list[Token], floats: _Floats) -> list[Token]:
    """With the floating marks after about as much text as they were, between words."""
    size = sum(len(token) for token in tokens if isinstance(token, str))
    waiting = [(round(part * size), tags) for part, tags in reversed(floats)]
    done: list[Token] = []
    read = 0
    for token in tokens:
        if not isinstance(token, str):
            done.append(token)
            continue
        written = 0
        while waiting and waiting[-1][0] <= read + len(token):
            place, tags = waiting.pop()
            place = max(place - read, written)
            before, behind = token.rfind(" ", written, place + 1), token.find(" ", place)
            before, behind = max(before, written), behind if behind >= 0 else len(token)
            gap = before if place - before < behind - place else behind
            done += [token[written:gap], *tags]
            written = gap
        done.append(token[written:])
        read += len(token)
    return [token for token in done if token]


def _run(like: Any, text: str) -> Any:
    run = new_run(like)
    element = run.makeelement(f"{W}t", {_XML_SPACE: "preserve"})
    element.text = text
    run.append(element)
    return run
