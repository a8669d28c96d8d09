"""Explanations: complete as JSON, and as a page that shows them without reading them as markup."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import PAIRS, Call
from kster.translation import TokenExplanation
from kster.translation.words import placed_words, token_spans, words_of


class Parsed(HTMLParser):
    """What a browser would find: elements, the words, the embedded data."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.stack: list[str] = []
        self.sources: list[str] = []
        self.words: list[list[str]] = []
        self.data: list[Any] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "br", "img", "input"):
            self.stack.append(tag)
        if tag == "article":
            self.words.append([])

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self.stack[-1] if self.stack else None
        if inside == "button":
            self.words[-1].append(data)
        elif inside == "script" and self.tags[-1][1].get("type") == "application/json":
            self.data.append(json.loads(data))
        elif inside == "p" and self.tags[-1][1].get("class") == "source":
            self.sources.append(data)


@pytest.fixture
def attacked(kster: Call, memory: Path) -> Path:
    """A memory with an example that would be markup if it were read as such."""
    kster(
        "memory", "add", memory, '<script>alert("1")</script> & old', "</script><img src=x onerror=alert(2)>"
    )
    return memory


def test_json_explains_every_token(kster: Call, filled_memory: Path) -> None:
    source, target = PAIRS[0]
    done = kster("translate", "--memory", filled_memory, "--explain", "json", stdin=f"{source}\n\n")
    first, empty = map(json.loads, done.lines)
    assert first["text"] == target
    assert "".join(token["token"] for token in first["tokens"][:-1]).replace("▁", " ").strip() == target
    examples = first["tokens"][0]["examples"]
    assert (examples[0]["segment"], examples[0]["source"], examples[0]["target"]) == (1, source, target)
    assert first["tokens"][0]["mixing_weight"] > 0.5
    assert empty["tokens"] == []


def test_page_shows_words_with_their_share_and_their_examples(kster: Call, filled_memory: Path) -> None:
    source, target = PAIRS[0]
    done = kster("translate", "--memory", filled_memory, "--explain", "html", stdin=f"{source}\n\n")
    page = Parsed(done.out)
    assert page.stack == []
    assert page.sources == [source, "(empty line)"]
    assert page.words == [[*target.split(), "⏎"], []]
    (data,) = page.data
    word = data["words"][1]
    assert word["text"] == "Deckel"
    assert word["share"] > 0.9
    example = word["tokens"][-1]["examples"][0]
    segment = data["segments"][example["segment"]]
    assert (segment["id"], segment["source"], segment["target"]) == (1, source, target)
    begin, end = example["span"]
    assert segment["target"][begin:end] == word["tokens"][-1]["token"].replace("▁", "")


def test_page_is_whole_in_itself(kster: Call, filled_memory: Path) -> None:
    page = kster("translate", "--memory", filled_memory, "--explain", "html", stdin=PAIRS[0][0]).out
    assert not re.search(r"https?://|//[a-z]|@import|url\(", page)
    tags = Parsed(page).tags
    assert not [tag for tag, attributes in tags if {"src", "href"} & attributes.keys()]
    policy = next(a["content"] for _, a in tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "prefers-color-scheme: dark" in page


def test_text_is_never_markup(kster: Call, attacked: Path) -> None:
    source = '<script>alert("1")</script> & old'
    done = kster("translate", "--memory", attacked, "--explain", "html", stdin=source)
    page = Parsed(done.out)
    assert page.sources == [source]
    assert [tag for tag, _ in page.tags].count("script") == 2  # the data and the page's own
    assert "img" not in [tag for tag, _ in page.tags]
    assert page.data[0]["segments"][0]["target"] == "</script><img src=x onerror=alert(2)>"


def test_base_translation_is_explained_as_the_models_own(kster: Call, taught_marian: Path) -> None:
    done = kster("translate", "--model", taught_marian, "--explain", "html", stdin="the red house")
    assert {word["share"] for word in Parsed(done.out).data[0]["words"]} == {0}


def test_share_of_the_memory_by_hand() -> None:
    def share(weight: float, base: float, example: float) -> float:
        return TokenExplanation("a", 0.0, base, example, weight, None, ()).memory_share

    assert share(0.5, 0.2, 0.6) == pytest.approx(0.3 / (0.1 + 0.3))
    assert share(0.0, 0.2, 0.6) == 0.0
    assert share(0.9, 0.0, 0.0) == 0.0


def test_words_are_put_together_from_tokens() -> None:
    tokens = ["▁die", "▁Ma", "schine", "▁(", "alt", ").", "▁gr", "<0xC3>", "<0xBC>", "n", "</s>"]
    words = words_of(tokens, "</s>")
    assert [word.text for word in words] == ["die", "Maschine", "(", "alt", ").", "grün", "⏎"]
    assert [word.after_space for word in words] == [False, True, True, False, False, True, False]
    assert [(word.first, word.last) for word in words][1:3] == [(1, 3), (3, 4)]
    assert [word.text for word in words_of(["▁我们", "喝", "咖啡", "。", "</s>"], "</s>")] == [
        "我们",
        "喝",
        "咖啡",
        "。",
        "⏎",
    ]
    assert words_of([], "</s>") == []


def test_a_token_is_found_in_its_text() -> None:
    text = "grün  und 🏚"
    tokens = ["▁gr", "<0xC3>", "<0xBC>", "n", "▁", "und", "▁", "<0xF0>", "<0x9F>", "<0x8F>", "<0x9A>", "</s>"]
    spans = token_spans(tokens, text)
    shown = [None if span is None else text[span[0] : span[1]] for span in spans]
    assert shown == ["gr", "ü", "ü", "n", "  ", "und", " ", "🏚", "🏚", "🏚", "🏚", None]


@pytest.mark.parametrize(
    ("tokens", "text", "expected"),
    [
        (["▁ein", "▁...", "▁mehr"], "ein … mehr", ["ein", None, "mehr"]),
        (["▁o", "ffi", "ciel", "▁rot", "es"], "oﬃciel rotes", ["o", None, None, "rot", "es"]),
        (["▁Caf", "é", "▁rot"], "Cafe\u0301 rot", ["Caf", None, "rot"]),
        (["▁Soft", "ware", "▁rot"], "Soft\u00adware rot", ["Soft", None, "rot"]),
        (["▁Füll", "▁den", "▁Tank"], "Füll\u00a0den\u202fTank", ["Füll", "den", "Tank"]),
        (["▁...", "▁rot", "▁und", "▁rot"], "… rot und rot", [None, "rot", "und", "rot"]),
        (["▁weg", "▁rot"], "gelb", [None, None]),
    ],
)
def test_words_behind_what_a_tokenizer_has_normalised_are_found_again(
    tokens: list[str], text: str, expected: list[str | None]
) -> None:
    spans = token_spans(tokens, text)
    assert [None if span is None else text[slice(*span)] for span in spans] == expected


def test_a_word_that_got_a_capital_is_found_where_it_stands() -> None:
    tokens = ["▁konnte", "▁die", "▁Datei", "▁nicht", "▁lesen", "</s>"]
    placed = list(placed_words(tokens, "Konnte die Datei nicht lesen.", "</s>"))
    assert [word.text for word, _, _ in placed] == ["Konnte", "die", "Datei", "nicht", "lesen"]
    assert [(start, end) for _, start, end in placed] == [(0, 6), (7, 10), (11, 16), (17, 22), (23, 28)]
    again = list(placed_words(["▁die", "▁Die", "</s>"], "die Die", "</s>"))
    assert [(word.text, start) for word, start, _ in again] == [("die", 0), ("Die", 4)]
