"""A text with tags in it, translated as one text and not in shreds.

The tags of `press the <b>red</b> button` go to the model as `press the {0} red {1} button`: braces are what
it keeps. When a translation has not kept all of them, the texts between the tags are translated one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

from kster.text.characters import UNUSABLE

CLOSING = ".,;:!?…)]}»”’%"  # no space before these …
OPENING = "([{«„“‘@#/-"  # … and none after these
MOST_MARKS = 20  # in one text; no model keeps more
_MARK = re.compile(r"\{\d+\}")
_SPACE = re.compile(r"[ \t\r\n\f]+")  # one space, wherever markup decides about lines


@dataclass(frozen=True, slots=True)
class Tag:
    """The begin or end of an element, or all of one whose content is not to be translated."""

    element: Any
    kind: Literal["begin", "end", "whole"]


Token = str | Tag


class InlineText:
    """tokens: texts and tags in the order they are read; put: writes such tokens back.

    `text` is what to translate; where `accepts` refuses the translation, `parts` are.
    """

    def __init__(
        self, tokens: Sequence[Token], put: Callable[[list[Token]], None], *, keep_lines: bool = False
    ) -> None:
        self._tokens = list(tokens)
        self._put = put
        self._keep_lines = keep_lines
        self._places = [i for i, token in enumerate(tokens) if isinstance(token, str) and is_prose(token)]
        self._tags: dict[str, list[int]] = {}
        groups = self._neighbours()
        self.in_one = len(self._places) > 1 and len(groups) <= MOST_MARKS
        if self.in_one:
            whole = "".join(token for token in tokens if isinstance(token, str))
            names = (f"{{{number}}}" for number in count() if f"{{{number}}}" not in whole)
            self._tags = {next(names): group for group in groups}
            self._foreign = set(_MARK.findall(whole))
            self.in_one = not any(self._is_within_a_word(i) for group in groups for i in group)

    @property
    def text(self) -> str:
        """Empty where there is nothing to translate as one."""
        if not self.in_one:
            return ""
        shown = [token if isinstance(token, str) else "" for token in self._tokens]
        for name, group in self._tags.items():
            shown[group[0]] = f" {name} "
        text = self._spaced("".join(shown)).strip()
        text = re.sub(rf" *({_MARK.pattern}) *", r" \1 ", text).strip()
        return re.sub(rf"({_MARK.pattern}) +(?=[{re.escape(CLOSING)}])", r"\1", text)

    @property
    def parts(self) -> list[str]:
        return [self._spaced(str(self._tokens[i]).strip()) for i in self._places]

    def accepts(self, translation: str) -> bool:
        """Whether every tag is there once, properly nested, and around something if it was before; and no
        mark that never was."""
        found = self._read(translation)
        tags = [token for token in found if isinstance(token, Tag)]
        texts = "".join(token for token in found if isinstance(token, str))
        if not self._foreign.issuperset(_MARK.findall(texts)):
            return False
        if len(tags) != sum(map(len, self._tags.values())) or len(set(map(id, tags))) != len(tags):
            return False
        open_elements: list[Any] = []
        for tag in tags:
            if tag.kind == "begin":
                open_elements.append(tag.element)
            elif tag.kind == "end" and (not open_elements or open_elements.pop() is not tag.element):
                return False
        return not _emptied(found) - _emptied(self._tokens)

    def put(self, translation: str) -> None:
        """Write a translation of `text` that was accepted, with the white space that was around it."""
        first, last = self._tokens[0], self._tokens[-1]
        before = first[: len(first) - len(first.lstrip())] if isinstance(first, str) else ""
        after = last[len(last.rstrip()) :] if isinstance(last, str) else ""
        self._put([before, *self._with_spaces(self._read(translation)), after])

    def put_parts(self, translations: Sequence[str]) -> None:
        tokens = list(self._tokens)
        for i, translation in zip(self._places, translations, strict=True):
            old = str(tokens[i])
            bare = old.strip()
            start = old.index(bare)
            tokens[i] = old[:start] + storable(translation) + old[start + len(bare) :]
        self._put(tokens)

    # -------------------------------------------------------------------------------------------------

    def _spaced(self, text: str) -> str:
        return text if self._keep_lines else _SPACE.sub(" ", text)

    def _neighbours(self) -> list[list[int]]:
        """Where the tags are; those with no text between them together, as few marks are kept better."""
        groups: list[list[int]] = []
        follows = False
        for i, token in enumerate(self._tokens):
            if isinstance(token, str):
                follows = follows and not token.strip()
            elif follows:
                groups[-1].append(i)
            else:
                groups.append([i])
                follows = True
        return groups

    def _is_within_a_word(self, i: int) -> bool:
        """As in H<sub>2</sub>O: such a tag cannot stand between words."""
        before = next((t for t in reversed(self._tokens[:i]) if isinstance(t, str) and t), "")
        after = next((t for t in self._tokens[i:] if isinstance(t, str) and t), "")
        return before[-1:].isalnum() and after[:1].isalnum()

    def _read(self, translation: str) -> list[Token]:
        """Texts, without the space around them, and tags."""
        tokens: list[Token] = []
        for part in re.split(rf"({_MARK.pattern})", storable(translation)):
            if part in self._tags:
                tokens += [self._tokens[i] for i in self._tags[part]]
            elif tokens and isinstance(tokens[-1], str):  # beside a mark that was in the source
                tokens[-1] += part
            else:
                tokens.append(part)
        stripped = (token.strip() if isinstance(token, str) else token for token in tokens)
        return [token for token in stripped if token]

    def _with_spaces(self, tokens: list[Token]) -> list[Token]:
        """Spaces beside tags are as they were in the source, but words never grow together."""
        done: list[Token] = []
        before, tags = "", []
        for token in [*tokens, ""]:
            if isinstance(token, Tag):
                tags.append(token)
                continue
            done += [*self._between(before, tags, token), token]
            before, tags = token, []
        return done

    def _between(self, before: str, tags: list[Tag], after: str) -> list[Token]:
        gap: list[Token] = []
        spaced = not before
        for tag in tags:
            left, right = self._space_beside(tag)
            if left and not spaced:
                gap.append(" ")
                spaced = True
            gap.append(tag)
            spaced = spaced and tag.kind != "whole"
            if right and not spaced and after:
                gap.append(" ")
                spaced = True
        apart = before[-1:] not in tuple(OPENING) and after[:1] not in tuple(CLOSING)
        if " " not in gap and before and after and apart:
            begins = [i for i, token in enumerate(gap) if isinstance(token, Tag) and token.kind == "begin"]
            gap.insert(begins[0] if begins else len(gap), " ")
        if after[:1] in tuple(CLOSING) and all(tag.kind != "whole" for tag in tags):
            gap = [token for token in gap if token != " "]
        return gap

    def _space_beside(self, tag: Tag) -> tuple[bool, bool]:
        i = next(i for i, token in enumerate(self._tokens) if token is tag)
        before = self._tokens[i - 1] if i else ""
        after = self._tokens[i + 1] if i + 1 < len(self._tokens) else ""
        return (
            isinstance(before, str) and before[-1:].isspace(),
            isinstance(after, str) and after[:1].isspace(),
        )


# Many of them ----------------------------------------------------------------------------------------


def first_round(text: InlineText) -> list[str]:
    """What to translate of a text to begin with."""
    return [text.text] if text.in_one else text.parts


def again(texts: Sequence[InlineText], translations: Sequence[str]) -> list[str]:
    """What to translate in addition: the parts of those whose translations were not accepted."""
    done = iter(translations)
    more: list[str] = []
    for text in texts:
        some = [next(done) for _ in first_round(text)]
        if text.in_one and not text.accepts(some[0]):
            more += text.parts
    return more


def put_all(texts: Sequence[InlineText], translations: Sequence[str], more: Sequence[str]) -> None:
    """translations: of the first round; more: of `again`."""
    done, rest = iter(translations), iter(more)
    for text in texts:
        some = [next(done) for _ in first_round(text)]
        if not text.in_one:
            text.put_parts(some)
        elif text.accepts(some[0]):
            text.put(some[0])
        else:
            text.put_parts([next(rest) for _ in text.parts])


def write_back(parent: Any, before: Any, elements: Sequence[Any], tokens: Sequence[Token]) -> None:
    """Replace a part of an lxml element's content: the text behind its child `before` (None: its own text)
    and `elements`, the children that follow. Their tags are among the tokens."""
    for element in elements:
        parent.remove(element)
    place = 0 if before is None else parent.index(before) + 1
    if before is None:
        parent.text = None
    else:
        before.tail = None
    home, last = [parent], [before]  # the elements that are open, and the newest child in each
    for token in tokens:
        if isinstance(token, str):
            if last[-1] is None:
                home[-1].text = (home[-1].text or "") + token
            else:
                last[-1].tail = (last[-1].tail or "") + token
        elif token.kind == "end":
            home.pop()
            last.pop()
        else:
            element = token.element
            element.tail = None
            if len(home) == 1:
                parent.insert(place, element)
                place += 1
            else:
                home[-1].append(element)
            last[-1] = element
            if token.kind == "begin":
                element.text = None
                element[:] = []
                home.append(element)
                last.append(None)


def tokens_of(element: Any, is_whole: Callable[[Any], bool]) -> Iterator[Token]:
    """An element's begin, content and end, or all of it as one tag."""
    if is_whole(element):
        yield Tag(element, "whole")
        return
    yield Tag(element, "begin")
    yield from content_of(element, is_whole)
    yield Tag(element, "end")


def content_of(element: Any, is_whole: Callable[[Any], bool]) -> Iterator[Token]:
    yield element.text or ""
    for child in element:
        yield from tokens_of(child, is_whole)
        yield child.tail or ""


def is_prose(text: str | None) -> bool:
    return text is not None and any(map(str.isalpha, text))


def storable(text: str) -> str:
    """Without what markup cannot hold: a model may write any character."""
    return UNUSABLE.sub("\ufffd", text)


def _emptied(tokens: Sequence[Token]) -> set[int]:
    """The elements without a text of their own or within."""
    empty: set[int] = set()
    around: list[int] = []
    for token in tokens:
        if isinstance(token, str):
            if is_prose(token):
                empty.difference_update(around)
        elif token.kind == "begin":
            around.append(id(token.element))
            empty.add(around[-1])
        elif token.kind == "end":
            around.pop()
    return empty
