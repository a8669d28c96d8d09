"""Explanations of a translation with marks, as explanations of the same with its codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod

from kster.text.marks import MARK
from kster.translation.explanation import TokenExplanation


def without_marks(tokens: Sequence[TokenExplanation], codes: Sequence[str]) -> list[TokenExplanation]:
    """codes: what each mark stands for. The tokens of a mark become one, with the code as its text."""
    shown = [_shown(token.token) for token in tokens]
    ends = list(accumulate(map(len, shown)))
    done: list[TokenExplanation] = []
    at = 0
    for mark in MARK.finditer("".join(shown)):
        first = next(i for i, end in enumerate(ends) if end > mark.start())
        last = next(i for i, end in enumerate(ends) if end >= mark.end()) + 1
        number = int(mark[1])
        if first < at or number >= len(codes):
            continue
        group = tokens[first:last]
        before = shown[first][: mark.start() - ends[first]]
        after = shown[last - 1][len(shown[last - 1]) - (ends[last - 1] - mark.end()) :]
        done += tokens[at:first]
        done.append(_joined(group, before + codes[number] + after))
        at = last
    return [*done, *tokens[at:]]


def _shown(token: str) -> str:
    """A vocabulary without braces spells them as bytes."""
    return token.replace("<0x7B>", "{").replace("<0x7D>", "}")


def _joined(group: Sequence[TokenExplanation], text: str) -> TokenExplanation:
    return replace(
        group[0],
        token=text,
        probability=prod(token.probability for token in group),
        base_probability=prod(token.base_probability for token in group),
        example_probability=prod(token.example_probability for token in group),
    )
