"""Scores are sacreBLEU's, comparisons are paired, and a report says how it was made."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from kster.errors import KsterError
from kster.evaluation import evaluate
from kster.evaluation.bootstrap import Sample, resampled_totals

TEXT = "the red house stands by a river and we drink our coffee every morning at seven"
WORDS = TEXT.split()


def noisy(references: list[str], rate: float, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [
        " ".join(draw.choice(WORDS) if draw.random() < rate else w for w in r.split()) for r in references
    ]


@pytest.fixture(scope="module")
def references() -> list[str]:
    draw = random.Random(0)
    return [" ".join(draw.choices(WORDS, k=12)) + "." for _ in range(60)]


@pytest.fixture(scope="module")
def systems(references: list[str]) -> dict[str, list[str]]:
    return {
        "base": noisy(references, 0.3, 1),
        "knn": noisy(references, 0.28, 2),
        "kster": noisy(references, 0.05, 3),
    }


def test_scores_are_those_of_sacrebleu(references: list[str], systems: dict[str, list[str]]) -> None:
    report = evaluate(systems, references, resamples=10)
    for name, lines in systems.items():
        assert report[name].metrics["BLEU"].score == sacrebleu.corpus_bleu(lines, [references]).score
        assert report[name].metrics["chrF2"].score == sacrebleu.corpus_chrf(lines, [references]).score


def test_intervals_and_p_values_are_those_of_sacrebleus_paired_bootstrap(
    references: list[str], systems: dict[str, list[str]]
) -> None:
    report = evaluate(systems, references, resamples=200)
    test = PairedTest(
        list(systems.items()), {"BLEU": BLEU(), "chrF": CHRF()}, [references], test_type="bs", n_samples=200
    )
    signatures, scores = test()
    assert scores["System"] == list(systems)
    for metric in ("BLEU", "chrF2"):
        assert report.signatures[metric] == str(signatures[metric])
        for name, expected in zip(systems, scores[metric], strict=True):
            result = report[name].metrics[metric]
            assert result.p_value == expected.p_value
            assert result.mean == pytest.approx(expected.mean, rel=1e-5)
            assert result.confidence == pytest.approx(expected.ci, rel=1e-4)


def test_a_system_is_never_significantly_different_from_itself(
    references: list[str], systems: dict[str, list[str]]
) -> None:
    report = evaluate({"one": systems["base"], "same": systems["base"]}, references, resamples=50)
    assert report["same"].metrics["BLEU"].p_value == 1.0
    assert not report["same"].metrics["BLEU"].significant


def test_draws_do_not_depend_on_how_many_are_made_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics = np.arange(14.0).reshape(7, 2)
    whole = np.array(list(resampled_totals(statistics, 9, seed=5)))
    monkeypatch.setattr("kster.evaluation.bootstrap.BLOCK", 14)  # two resamples at a time
    assert (np.array(list(resampled_totals(statistics, 9, seed=5))) == whole).all()
    assert whole.shape == (9, 2)


def test_interval_and_p_value_by_hand() -> None:
    sample = Sample(5.0, [float(i) for i in range(80)])  # 2 of 80 are cut off at each end
    assert sample.interval() == (39.5, (77.0 - 2.0) / 2)
    # |1 − 0| for every draw: centred at 0, never as large as 2, so p = 1 / (4 + 1)
    assert Sample(3.0, [1.0] * 4).p_value(Sample(1.0, [0.0] * 4)) == pytest.approx(1 / 5)


def test_the_seed_decides_the_resamples(references: list[str], systems: dict[str, list[str]]) -> None:
    one, again, other = (evaluate(systems, references, resamples=40, seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one["base"].metrics["BLEU"].confidence != other["base"].metrics["BLEU"].confidence
    assert "seed:2" in other.signatures["BLEU"]


def test_one_system_alone_has_scores_and_no_p_value(references: list[str]) -> None:
    report = evaluate({"base": references}, references, resamples=5)
    assert report.notes()[0] == f"{len(references)} sentences"
    assert evaluate({"base": ["x"]}, ["x"], resamples=1).notes()[0] == "1 sentence"
    assert report["base"].metrics["BLEU"].score == pytest.approx(100.0)
    assert report["base"].metrics["BLEU"].p_value is None


def test_bleu_tokenizes_as_the_target_language_needs(references: list[str]) -> None:
    chinese = evaluate({"base": ["我们喝咖啡"]}, ["我们喝咖啡"], target_lang="zh-CN", resamples=1)
    assert "tok:zh" in chinese.signatures["BLEU"]
    assert "tok:char" in evaluate({"a": ["x"]}, ["x"], tokenize="char", resamples=1).signatures["BLEU"]


def test_report_as_json_and_as_markdown(references: list[str], systems: dict[str, list[str]]) -> None:
    report = evaluate(systems, references, resamples=100)
    data = json.loads(json.dumps(report.to_json()))
    assert data["baseline"] == "base"
    assert data["sentences"] == 60
    assert data["systems"][2]["metrics"]["BLEU"]["score"] == report["kster"].metrics["BLEU"].score
    lines = report.to_markdown().splitlines()
    assert lines[0] == "| system | BLEU | ± 95 % | p | chrF2 | ± 95 % | p |"
    assert lines[4].startswith("| kster | ")
    assert "*" in lines[4]
    assert all(line.count("|") == lines[0].count("|") for line in lines[:5])
    assert any(line.startswith("- BLEU: nrefs:1|bs:100|seed:12345|") for line in lines)


@pytest.mark.parametrize(
    ("hypotheses", "references", "options", "said"),
    [
        ({}, ["a"], {}, "no system"),
        ({"base": []}, [], {}, "reference is empty"),
        ({"base": ["a"]}, ["a", "b"], {}, "base has 1 translations but there are 2 references"),
        ({"base": ["a"]}, ["a"], {"resamples": 0}, "at least 1"),
        ({"base": ["a"]}, ["a"], {"tokenize": "nonsense"}, "accepted: "),
    ],
)
def test_mistakes_are_explained(
    hypotheses: dict[str, list[str]], references: list[str], options: dict[str, object], said: str
) -> None:
    with pytest.raises(KsterError, match=said):
        evaluate(hypotheses, references, **options)  # type: ignore[arg-type]
