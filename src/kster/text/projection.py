"""Codes put into a translation that was made without them, by which words translate which.

The last resort where a model does not keep marks: a pair of tags goes around the words that translate those
it was around, a placeholder goes beside the words that translate those it was beside. No code is ever lost,
and all are nested as they were.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kster.text.codes import Code, CodedText, Token
from kster.text.core import Core
from kster.text.marks import MARK
from kster.text.spacing import CLOSING, Spacing

Span = tuple[int, int]
Aligned = Sequence[Sequence[int]]  # for every word of the source those of the translation that it became
Link = tuple[Span, Span]  # characters of a source, and those of its translation that they became

_WORD = re.compile(rf"{MARK.pattern}|\w+(?:['’]\w+)*|[^\w\s]")
_SPACE = re.compile(r"[ \t\r\n\f]+")
DEEPEST = 50  # tags within tags that are placed one by one; no text means more


@dataclass(slots=True)
class _Node:
    """A standalone code, or a pair with what is in it.

    begin, end: the words of the source that it is around; a standalone code is before the word `begin`.
    first, last: the same of the translation.
    """

    opening: Code | None
    begin: int
    closing: Code | None = None
    end: int = 0
    children: list[_Node] = field(default_factory=list)
    first: int = 0
    last: int = 0

    @property
    def is_pair(self) -> bool:
        return self.opening is None or self.opening.kind != "alone"


class BareText:
    """A text without its codes: `text` is what to translate, `project` puts them into a translation of it."""

    def __init__(self, source: CodedText) -> None:
        self._core = Core(source)
        self.text, _ = without_codes(self._core.tokens)

    def project(self, translation: str, links: Iterable[Link]) -> CodedText:
        """links: of `text` and the translation."""
        links = list(links)
        tokens = self._core.tokens
        done = self._core.complete(projected(tokens, translation, links))
        if done is None:  # a word with codes in it was translated
            tokens = self._core.with_codes_within
            done = self._core.complete(projected(tokens, translation, links))
            assert done is not None
        return done


def without_codes(tokens: Sequence[Token]) -> tuple[str, list[int]]:
    """The texts, with one space where there were several, and how long that is before every token."""
    text, lengths = "", []
    for token in tokens:
        shown = _SPACE.sub(" ", token) if isinstance(token, str) else ""
        if text[-1:] in (" ", "") or shown[1:2] in tuple(CLOSING):
            shown = shown.removeprefix(" ")
        if shown[:1] in tuple(CLOSING):
            text = text.removesuffix(" ")
        lengths.append(len(text))
        text += shown
    for i in reversed(range(1, len(lengths))):  # where a space before punctuation was taken away
        lengths[i - 1] = min(lengths[i - 1], lengths[i])
    return text.rstrip(), lengths


def projected(tokens: Sequence[Token], translation: str, links: Sequence[Link]) -> list[Token]:
    """The translation with the codes among these tokens. links: of the other tokens and the translation."""
    text, lengths = without_codes(tokens)
    source = [match.span() for match in _WORD.finditer(text)]
    target = [match.span() for match in _WORD.finditer(translation)]
    if not target:
        return [*(token for token in tokens if isinstance(token, Code)), translation]
    places = _words_before(tokens, lengths, source)
    top = _tree(tokens, places, len(source))
    if top is None:
        placed = _in_order(tokens, places, len(source), translation, target)
    else:
        aligned = _aligned(links, source, target)
        _join_equal(
            aligned, [text[slice(*word)] for word in source], [translation[slice(*word)] for word in target]
        )
        _place(top, aligned, len(target))
        placed = _written(top, translation, target)
    return Spacing(tokens).apply(placed)


def _words_before(tokens: Sequence[Token], lengths: Sequence[int], words: Sequence[Span]) -> list[int]:
    """For every token how many words are before it; one that it is within counts for closing codes only."""
    places = []
    begun = ended = 0
    for token, length in zip(tokens, lengths, strict=True):
        while begun < len(words) and words[begun][0] < length:
            begun += 1
        while ended < len(words) and words[ended][1] <= length:
            ended += 1
        places.append(begun if isinstance(token, Code) and token.kind == "close" else ended)
    return places


def _tree(tokens: Sequence[Token], places: Sequence[int], words: int) -> _Node | None:
    """The codes as they are nested; None if too deep. A pair that is half elsewhere reaches to that end."""
    top = _Node(None, 0, None, words)
    around = [top]
    for token, place in zip(tokens, places, strict=True):
        if isinstance(token, str):
            continue
        if token.kind == "close" and len(around) > 1:
            around[-1].closing, around[-1].end = token, place
            around.pop()
        elif token.kind == "close":  # opened before this text
            top.children = [_Node(None, 0, token, place, top.children)]
        else:
            node = _Node(token, place, None, words if token.kind == "open" else place)
            around[-1].children.append(node)
            if token.kind == "open":
                around.append(node)
                if len(around) > DEEPEST:
                    return None
    return top


def _aligned(links: Sequence[Link], source: Sequence[Span], target: Sequence[Span]) -> list[list[int]]:
    """For every word of the source those of the translation it became."""
    aligned: list[list[int]] = [[] for _ in source]
    for (begin, end), (first, last) in links:
        for s in _touched(source, begin, end):
            aligned[s] += [t for t in _touched(target, first, last) if t not in aligned[s]]
    return aligned


def _join_equal(aligned: list[list[int]], source: Sequence[str], target: Sequence[str]) -> None:
    """Correct what attention says where the texts say more: a name or number that both have once is the same
    one, and no word becomes a punctuation mark."""
    counts, others = Counter(source), Counter(target)
    same = {
        word: t for t, word in enumerate(target) if counts[word] == others[word] == 1 and not word.islower()
    }
    taken = set(same.values())
    for s, word in enumerate(source):
        known = [t for t in aligned[s] if t not in taken and _is_word(target[t]) == _is_word(word)]
        aligned[s] = [same[word]] if word in same else known


def _is_word(text: str) -> bool:
    return any(map(str.isalnum, text))


def _touched(words: Sequence[Span], begin: int, end: int) -> list[int]:
    return [i for i, (b, e) in enumerate(words) if b < end and begin < e]


def _place(node: _Node, aligned: Aligned, words: int) -> None:
    """Find the words of the translation for all that is in a node."""
    node.first, node.last = 0, words
    waiting = [node]
    while waiting:
        parent = waiting.pop()
        taken: list[_Node] = []
        for child in sorted(parent.children, key=lambda child: not child.is_pair):  # pairs first
            if child.is_pair:
                _place_pair(child, parent, taken, aligned)
                taken.append(child)
            else:
                child.first = child.last = _beside(child, parent, taken, aligned)
        waiting += taken


def _place_pair(child: _Node, parent: _Node, taken: Sequence[_Node], aligned: Aligned) -> None:
    free = set(range(parent.first, parent.last))
    for other in taken:
        free.difference_update(range(other.first, other.last))
    words = {t for s in range(child.begin, child.end) for t in aligned[s]}
    first, last = _densest(sorted(words & free), free)
    if first == last and (ceded := _ceded(words, taken)) is not None:
        first, last = ceded, ceded + 1
        free.add(ceded)
    if first == last:
        first = last = _beside(child, parent, taken, aligned)
        if child.begin < child.end and first in free:
            last += 1
    child.first = parent.first if child.opening is None else first
    child.last = parent.last if child.closing is None else last
    if any(child.first < other.last and other.first < child.last for other in taken):  # a half, reaching far
        child.first, child.last = (first, last) if first in free else (parent.last, parent.last)


def _ceded(words: set[int], taken: Sequence[_Node]) -> int | None:
    """One of the words, from a pair that has it at an end and others beside: two words became a compound."""
    for other in taken:
        if other.last - other.first < 2 or other.opening is None or other.closing is None:
            continue
        if other.last - 1 in words:
            other.last -= 1
            return other.last
        if other.first in words:
            other.first += 1
            return other.first - 1
    return None


def _densest(words: Sequence[int], free: set[int]) -> Span:
    """The longest stretch of free words in which no gap is wider than two words."""
    best = start = 0, 0
    for word in words:
        first, last = start
        if last and word - last <= 2 and all(i in free for i in range(last, word)):
            start = first, word + 1
        else:
            start = word, word + 1
        if start[1] - start[0] > best[1] - best[0]:
            best = start
    return best


def _beside(child: _Node, parent: _Node, taken: Sequence[_Node], aligned: Aligned) -> int:
    """Before which word a code goes: before what the next word became, or behind what the last one became."""
    place = None
    within = range(parent.first, parent.last)
    if child.begin < min(parent.end, len(aligned)):
        place = min((t for t in aligned[child.begin] if t in within), default=None)
    if place is None and child.begin > parent.begin:
        behind = max((t for t in aligned[child.begin - 1] if t in within), default=None)
        place = None if behind is None else behind + 1
    if place is None:
        place = parent.first if child.begin == parent.begin else parent.last
    for other in taken:  # not into what it was not in
        if other.first < place < other.last:
            place = other.first if child.begin <= other.begin else other.last
    return place


def _written(top: _Node, translation: str, words: Sequence[Span]) -> list[Token]:
    tokens: list[Token] = []
    at = 0

    def write_to(place: int) -> None:
        nonlocal at
        if place > at:
            tokens.append(translation[at:place])
            at = place

    def write(node: _Node) -> None:
        if node.opening is not None:
            write_to(words[node.first][0] if node.first < len(words) else words[-1][1])
            tokens.append(node.opening)
        for child in sorted(node.children, key=lambda child: (child.first, child.last)):
            write(child)
        if node.closing is not None:
            if node.last > node.first:
                write_to(words[node.last - 1][1])
            tokens.append(node.closing)

    write(top)
    write_to(len(translation))
    return tokens


def _in_order(
    tokens: Sequence[Token], places: Sequence[int], words: int, translation: str, target: Sequence[Span]
) -> list[Token]:
    """Codes in the order of the source, each as far into the translation as it was into the source."""
    placed: list[Token] = []
    at = 0
    for token, place in zip(tokens, places, strict=True):
        if isinstance(token, Code):
            i = place * len(target) // max(words, 1)
            to = target[i][0] if i < len(target) else target[-1][1]
            if to > at:
                placed.append(translation[at:to])
                at = to
            placed.append(token)
    return [*placed, translation[at:]]
