"""The general text that ships with the package is well-formed and shares nothing with the example memory."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from statistics import mean

import pytest

from kster.formats import Pair, read_pairs
from kster.smoothing.fitting import general
from kster.smoothing.fitting.general import general_text

TEXT = files("kster.smoothing.fitting") / "general_text" / "en-de.tsv"
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    items = list(read_pairs(Path(str(TEXT)), "en", "de"))
    rejections = [item for item in items if not isinstance(item, Pair)]
    assert not rejections
    return [item for item in items if isinstance(item, Pair)]


def test_every_line_is_one_pair_without_header_or_stray_space(pairs: list[Pair]) -> None:
    lines = TEXT.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
    assert [f"{pair.source}\t{pair.target}" for pair in pairs] == lines
    for pair in pairs:
        for side in (pair.source, pair.target):
            assert side
            assert side == " ".join(side.split())


def test_there_are_enough_pairs_of_newspaper_length(pairs: list[Pair]) -> None:
    assert len(pairs) >= 380
    words = [len(pair.source.split()) for pair in pairs]
    assert 18 <= mean(words) <= 22
    assert min(words) >= 3
    assert max(words) <= 45


def test_no_sentence_occurs_twice(pairs: list[Pair]) -> None:
    assert len({_plain(pair.source) for pair in pairs}) == len(pairs)
    assert len({_plain(pair.target) for pair in pairs}) == len(pairs)


def test_both_sides_are_of_similar_length(pairs: list[Pair]) -> None:
    for pair in pairs:
        assert 0.6 <= len(pair.target) / len(pair.source) <= 1.9, pair
    assert 1.0 <= sum(len(p.target) for p in pairs) / sum(len(p.source) for p in pairs) <= 1.25


def test_sentences_end_and_quotations_close(pairs: list[Pair]) -> None:
    for pair in pairs:
        for side in (pair.source, pair.target):
            assert side.rstrip('“”"')[-1] in ".?!", side
            assert side.count('"') % 2 == 0, side
        assert pair.source.count("“") == pair.source.count("”"), pair.source
        assert pair.target.count("„") == pair.target.count("“"), pair.target


def test_nothing_is_in_the_example_memory_or_its_held_out_text(pairs: list[Pair]) -> None:
    example = [p for p in read_pairs(EXAMPLES / "ombravella.tmx", "en", "de") if isinstance(p, Pair)]
    held_out = [p for p in read_pairs(EXAMPLES / "heldout", "en", "de") if isinstance(p, Pair)]
    assert example
    assert held_out
    theirs = {_plain(text) for p in example + held_out for text in (p.source, p.target)}
    ours = {_plain(text) for p in pairs for text in (p.source, p.target)}
    assert not ours & theirs


def _plain(text: str) -> str:
    """Words only: the same sentence with other punctuation is the same sentence."""
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())


def test_languages_are_known_by_every_spelling(pairs: list[Pair], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(general, "TEXTS", Path(str(TEXT)).parent)  # other tests make do with less of it
    shipped = [(pair.source, pair.target) for pair in pairs]
    for source, target in (("en", "de"), ("en-GB", "de_AT"), ("eng", "deu"), ("eng_Latn", "deu_Latn")):
        assert general_text(source, target) == shipped
        assert general_text(target, source) == [(right, left) for left, right in shipped]
    for source, target in (("en", "fr"), ("en", "en"), ("en", None), (None, None)):
        assert general_text(source, target) == []
