"""The BLEU that chooses settings is the BLEU that is reported."""

from __future__ import annotations

import random

import pytest
import sacrebleu
from experiments.bleu import corpus_bleu, tokenise_13a

from experiment_tables.worlds import ENGLISH

LINES = [
    *ENGLISH,
    "Prices rose by 3.5% (from 1,000 to 1,035), didn't they?",
    "R&amp;D &quot;costs&quot;: 10-20 EUR/day; see http://a.b/c?d=e&f.",
    "„Anführungszeichen“ – Gedankenstrich … 5–6 und 1990-2000.",
    ".5 a.b ,c d, 1.,2 -3 4- [x]{y}~`^_|\\ @#$*+=<>",
    "",
]


@pytest.mark.parametrize("line", LINES)
def test_words_are_cut_as_sacrebleu_cuts_them(line: str) -> None:
    theirs = sacrebleu.metrics.bleu.BLEU(tokenize="13a").tokenizer(line)
    assert " ".join(tokenise_13a(line)) == " ".join(theirs.split())


def test_the_score_is_sacrebleus() -> None:
    rng = random.Random(1)
    for _ in range(40):
        references = rng.choices(LINES[:-1], k=rng.randint(1, 12))
        hypotheses = [_garble(line, rng) for line in references]
        expected = sacrebleu.corpus_bleu(hypotheses, [references]).score
        assert corpus_bleu(hypotheses, references) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("hypotheses", "references"), [([""], ["a b"]), (["a"], ["a"]), (["x y z w"], ["a b c d"])]
)
def test_degenerate_cases_agree_too(hypotheses: list[str], references: list[str]) -> None:
    expected = sacrebleu.corpus_bleu(hypotheses, [references]).score
    assert corpus_bleu(hypotheses, references) == pytest.approx(expected, abs=1e-9)


def _garble(line: str, rng: random.Random) -> str:
    words = [word for word in line.split() if rng.random() > 0.1]
    if words and rng.random() < 0.5:
        words[rng.randrange(len(words))] = "anders"
    return " ".join(words)
