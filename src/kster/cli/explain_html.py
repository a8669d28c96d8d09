"""An explanation as one HTML page: every word coloured by how much the memory decided it.

The page is complete in itself. Text is either escaped into the markup or carried as JSON, which the page's
script inserts as text; it is never read as markup.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from kster.translation.explanation import TokenExplanation
from kster.translation.words import Word, token_spans, words_of

if TYPE_CHECKING:
    from kster.translation import Translation

SHOWN_EXAMPLES = 6  # of each token, the weightiest; the others are only counted …
LEAST_WEIGHT = 0.001  # … and so are those that weigh next to nothing


class Page:
    """begin(), sentence() for each translation, end(): the parts of a page in writing order.

    facts: shown at the top, name → value. end_token: how the end of a sentence looks among the tokens.
    pieces: tokenises a target text as the memory did, so that an example's token can be marked in it.
    """

    def __init__(
        self, facts: Mapping[str, str], end_token: str, pieces: Callable[[str], Sequence[str]]
    ) -> None:
        template = files("kster.cli").joinpath("explain.html").read_text(encoding="utf-8")
        self._begin, self._end = template.split("<!-- sentences -->")
        self.facts = facts
        self.end_token = end_token
        self._spans = lru_cache(maxsize=4096)(lambda text: token_spans(pieces(text), text))

    def begin(self) -> str:
        shown = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in self.facts.items())
        return self._begin.replace("<!-- facts -->", shown)

    def sentence(self, translation: Translation) -> str:
        if not translation.text.strip():
            return '<article class="empty"><p class="source">(empty line)</p></article>'
        tokens = translation.tokens or ()
        words = words_of([token.token for token in tokens], self.end_token)
        segments = _Segments()
        data = {"words": [self._word(word, tokens, segments) for word in words], "segments": segments.rows}
        return (
            f'<article><p class="source" dir="auto">{escape(translation.source)}</p>'
            f'<p class="target" dir="auto">{_markup(words, data["words"])}</p>'
            f'<script type="application/json">{_embedded(data)}</script></article>'
        )

    def end(self) -> str:
        return self._end

    def _word(self, word: Word, tokens: Sequence[TokenExplanation], segments: _Segments) -> dict[str, Any]:
        own = tokens[word.first : word.last]
        shares = [token.memory_share for token in own]
        return {
            "text": word.text,
            "share": round(sum(shares) / len(shares), 4),
            "tokens": [
                {
                    "token": token.token,
                    "share": round(share, 4),
                    "weight": token.mixing_weight,
                    "bandwidth": token.bandwidth,
                    "base": token.base_probability,
                    "example": token.example_probability,
                    "found": len(token.examples),
                    "examples": self._examples(token, segments),
                }
                for token, share in zip(own, shares, strict=True)
            ],
        }

    def _examples(self, token: TokenExplanation, segments: _Segments) -> list[dict[str, Any]]:
        weightiest = sorted(token.examples, key=lambda example: -example.weight)[:SHOWN_EXAMPLES]
        rows = []
        for example in (e for i, e in enumerate(weightiest) if i == 0 or e.weight >= LEAST_WEIGHT):
            spans = self._spans(example.target)
            at_end = example.token == self.end_token
            span = spans[example.position] if example.position < len(spans) and not at_end else None
            rows.append(
                {
                    "segment": segments.number((example.memory, example.segment), example),
                    "span": span,
                    "token": "⏎" if at_end else example.token,
                    "agrees": example.token == token.token,
                    "weight": example.weight,
                    "distance": example.distance,
                }
            )
        return rows


class _Segments:
    """The segments a sentence's examples come from, each once."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._numbers: dict[tuple[str, int], int] = {}

    def number(self, key: tuple[str, int], example: Any) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self.rows)
            self.rows.append(
                {
                    "id": example.segment,
                    "memory": example.memory.replace("\\", "/").rstrip("/").rpartition("/")[2],
                    "source": example.source,
                    "target": example.target,
                }
            )
        return self._numbers[key]


def _markup(words: Sequence[Word], data: Sequence[Mapping[str, Any]]) -> str:
    return "".join(
        f"{' ' if word.after_space else ''}"
        f'<button type="button" class="word{" end" if word.text == "⏎" else ""}" '
        f'style="--share:{entry["share"]}" data-word="{i}" '
        f'aria-label="{escape(word.text)}, {entry["share"]:.0%} from the memory">{escape(word.text)}</button>'
        for i, (word, entry) in enumerate(zip(words, data, strict=True))
    )


def _embedded(data: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
