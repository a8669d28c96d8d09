"""Where spaces go beside codes: as in the source, except that punctuation and hyphens keep to their words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from kster.text.codes import Code, Fixed, Token

CLOSING = ".,;:!?…)]}»”’%"  # no space before these …
OPENING = "([{«„‚¿¡@#/-"  # … and none after these
_QUOTES = "\"'“‘"  # may open or close
# Chinese, Japanese and Thai: words have no spaces between them.
_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0e7f\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\uff60\U00020000-\U0003ffff]"
)
_HYPHENATED = re.compile(r"[-‑–]\w")  # the second half of "ID-Karte"
_NUMBER = re.compile(  # what stands for one: %d, %(n)d, %n, #, {count}, {{ n }}
    r"\#|%n|%(?:\(\w+\)|\d+\$)?[-+\#0']*\d*(?:hh|h|ll|l|z|j|t|q|I64)?[diu]"
    r"|\$?\{{1,2}\s*(?:n|num|number|total|\w*[cC]ount)\s*\}{1,2}"
)
_MOST_HARD_SPACES = 50  # of one text
_HARD_SPACE = re.compile(r"(\S{1,40})([\xa0\u202f])(?=(\S{1,40}))")
_SIGNS = "\"'()[].,;:!?"  # that are no part of a number

Solid = str | Code  # a text, or a standalone code: something that a space can be beside


@dataclass(slots=True)
class Gap:
    """What is between two solid tokens, or before the first, or behind the last.

    before, after: whether there is white space right behind the first and right before the second.
    """

    left: Solid | None
    tags: list[Code] = field(default_factory=list)
    right: Solid | None = None
    before: bool = False
    after: bool = False
    spaced_tags: set[int] = field(default_factory=set)  # i: white space before tags[i]

    @property
    def spaced(self) -> bool:
        return self.before or self.after or bool(self.spaced_tags)


def gaps(tokens: Sequence[Token]) -> list[Gap]:
    """The gaps of a text; between each two is what `right` of the first and `left` of the second say."""
    found = [Gap(None)]
    for token in tokens:
        gap = found[-1]
        if isinstance(token, Code) and token.kind != "alone":
            if gap.after and gap.tags:
                gap.spaced_tags.add(len(gap.tags))
            gap.after = False
            gap.tags.append(token)
            continue
        if isinstance(token, str):
            body = token.strip()
            if token[:1].isspace():
                gap.before = gap.before or not gap.tags
                gap.after = True
            if not body:
                continue
            gap.right = body
            found.append(Gap(body, before=token[-1:].isspace(), after=token[-1:].isspace()))
        else:
            gap.right = token
            found.append(Gap(token))
    return found


class Spacing:
    """Knows how the codes of a source stand, and puts those of a translation in the same way."""

    def __init__(self, source: Sequence[Token]) -> None:
        self._before: dict[int, Gap] = {}  # by id of a code: the gap before it …
        self._after: dict[int, Gap] = {}  # … and behind it; for a tag, both are the one it is in
        self._beside: dict[int, tuple[bool, bool]] = {}  # of a tag: white space at either side of it
        self._hyphenated: set[int] = set()  # by id of a code: a hyphen follows it
        for gap in gaps(source):
            if isinstance(gap.right, str) and _HYPHENATED.match(gap.right):
                self._hyphenated.update(map(id, [gap.left, *gap.tags]))
            if isinstance(gap.left, Code):
                self._after[id(gap.left)] = gap
            if isinstance(gap.right, Code):
                self._before[id(gap.right)] = gap
            last = len(gap.tags) - 1
            for i, tag in enumerate(gap.tags):
                before = gap.before if i == 0 else i in gap.spaced_tags
                after = gap.after if i == last else i + 1 in gap.spaced_tags
                self._beside[id(tag)] = before, after

    def apply(self, tokens: Sequence[Token]) -> list[Token]:
        """A translation with the spaces it should have. Texts are as a model wrote them, spaces included."""
        done: list[Token] = []
        for gap in gaps(self._without_hyphens_of_marks(tokens)):
            tags: list[Token] = list(gap.tags)
            if gap.left is not None and gap.right is not None and self._apart(gap):
                tags.insert(self._place(gap.tags), " ")
            done += tags
            if gap.right is not None:
                done.append(gap.right)
        return done

    def _without_hyphens_of_marks(self, tokens: Sequence[Token]) -> list[Token]:
        """Models hyphenate a word with the mark of a tag before it: `the {0}-manual {1}`, `{0}red {1}-lid`.

        The tag is not seen: the hyphen goes, unless it joins the word to a name: `{0}ID {1}-Karte`. So does
        that between a number and a noun, `{0}-Dateien`: translators write one behind 0.6 % of the numbers.
        The s of a genitive gets an apostrophe, as in `{0}'s file`.
        """
        done = list(tokens)
        for i, (tag, text) in enumerate(pairwise(tokens), 1):
            if not isinstance(tag, Code) or id(tag) in self._hyphenated or not isinstance(text, str):
                continue
            if tag.kind == "alone" and re.match(r" ?s\b", text) and _is_possessive(self._after[id(tag)]):
                done[i] = f"'{text.lstrip()}"  # "{name}s" could be another code
            if not _HYPHENATED.match(text):
                continue
            if tag.kind == "alone":
                if text[1].isupper() and self._after[id(tag)].spaced and _NUMBER.fullmatch(str(tag)):
                    done[i] = f" {text[1:]}"
                continue
            words = next((t.split() for t in reversed(tokens[:i]) if isinstance(t, str) and t.strip()), [])
            if tag.kind == "open" or (words and words[-1].islower()):
                done[i] = f" {text[1:]}"
        return done

    def _place(self, tags: list[Code]) -> int:
        """Before which tag the space of a gap goes: outside of what they enclose, unless it was inside."""
        if not tags:
            return 0
        first_open = next((i for i, tag in enumerate(tags) if tag.kind == "open"), len(tags))
        before = {i for i, tag in enumerate(tags) if self._beside[id(tag)][0]}
        after = {i + 1 for i, tag in enumerate(tags) if self._beside[id(tag)][1]}
        inside = [i for i in before if tags[i].kind == "close"]
        inside += [i for i in after if tags[i - 1].kind == "open"]
        return first_open if first_open in before | after or not inside else min(inside)

    def _apart(self, gap: Gap) -> bool:
        """Whether the two sides of a gap are to have a space between them."""
        left, right = gap.left, gap.right
        if isinstance(left, str) and isinstance(right, str):
            return _texts_apart(left, right, gap)
        if isinstance(left, Code) and isinstance(right, Code):
            was = self._after[id(left)]
            return was.spaced if was.right is right else gap.spaced
        if isinstance(left, Code):
            assert isinstance(right, str)
            was = self._after[id(left)]
            follows = was.right if isinstance(was.right, str) else ""
            if right[0] in CLOSING:
                return was.spaced and follows[:1] == right[0]
            if _HYPHENATED.match(right):
                return False
            return self._as_before(gap, was, right[0], follows[:1])
        assert isinstance(left, str)
        assert isinstance(right, Code)
        was = self._before[id(right)]
        precedes = was.left if isinstance(was.left, str) else ""
        if left[-1] in OPENING:
            return was.spaced and precedes[-1:] == left[-1]
        if not was.spaced and precedes[-1:].isalnum() and left[-1].isalnum():
            return False  # a footnote's number, say
        return self._as_before(gap, was, left[-1], precedes[-1:])

    @staticmethod
    def _as_before(gap: Gap, was: Gap, beside: str, neighbour: str) -> bool:
        """A standalone code is as far from a word as it was from another; it touches none if it did not.

        beside: the character it is beside now; neighbour: the one it was beside in the source.
        """
        if _WITHOUT_SPACES.match(beside):
            return gap.spaced
        if was.spaced:
            return beside.isalnum() or beside == neighbour or beside in ".,;:!?…)]" or gap.spaced
        return gap.spaced or (beside.isalnum() and not neighbour.isalnum())


def _is_possessive(gap: Gap) -> bool:
    """Whether what is to the left of it owns something: {name}'s house."""
    return isinstance(gap.right, str) and not gap.spaced and re.match(r"['’]s\b", gap.right) is not None


def _texts_apart(left: str, right: str, gap: Gap) -> bool:
    a, b = left[-1], right[0]
    if b in CLOSING or a in OPENING or _HYPHENATED.match(right):
        return False
    if _WITHOUT_SPACES.match(a) or _WITHOUT_SPACES.match(b):
        return False
    if b in _QUOTES:
        return gap.after
    return gap.before if a in _QUOTES else True


def with_hard_spaces(source: Sequence[Token], translation: Sequence[Token]) -> list[Token]:
    """Spaces that forbid a line break, as in `5 kg`, between the words that had one between them, or beside
    the number, whatever the word beside it has become."""
    found = [pair for token in source if isinstance(token, str) for pair in _HARD_SPACE.findall(token)]
    tokens = list(translation)
    for before, space, after in found[:_MOST_HARD_SPACES]:
        wanted = re.compile(_where(before, after))
        for i, token in enumerate(tokens):
            if isinstance(token, str) and not isinstance(token, Fixed):
                tokens[i] = wanted.sub(space, token)
    return tokens


def _where(before: str, after: str) -> str:
    """Matches the space between two words, or beside a number among them."""
    first, second = re.escape(before.lstrip(_SIGNS)), re.escape(after.rstrip(_SIGNS))
    if any(map(str.isdigit, first)):
        return rf"(?:(?<=^{first})|(?<=\W{first})) (?=\w)"
    if any(map(str.isdigit, second)):
        return rf"(?<=\S) (?={second}(?!\w))"
    return f"(?<={re.escape(before)}) (?={re.escape(after)})"
