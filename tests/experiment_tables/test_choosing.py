"""What is left to choose: by BLEU on development text, engine by engine and step by step."""

from __future__ import annotations

from pathlib import Path

from experiments.budget import Budget
from experiments.data import Slice
from experiments.domains import domain_setting
from experiments.engine import Engine, MemorySpec
from experiments.pipeline import Pipeline
from experiments.stages import read_json
from experiments.systems import Knn, choose

from kster.smoothing.fitting.sweep import Trial


def make(model: Path, data: Path, out: Path) -> Pipeline:
    return Pipeline(
        model,
        data,
        out,
        out / "cache",
        device="cpu",
    )


def test_the_engine_with_the_best_translations_of_dev_is_chosen(
    taught_marian: Path, data: Path, tmp_path: Path, budget: Budget
) -> None:
    pipeline = make(taught_marian, data, tmp_path)
    memory = MemorySpec("koran", (Slice("koran", "train", 40),))
    helpful = Trial(4, 1.0, 0.9, 0.0).settings("gaussian", None)
    candidates = [Engine(), Engine(memory=memory, smoother=helpful)]
    assert choose(pipeline, candidates, [Slice("koran", "dev")], budget) == candidates[1]
    (choice,) = (tmp_path / "choices" / "en-de").iterdir()
    scores = [candidate["score"] for candidate in read_json(choice)["candidates"]]
    assert scores[1] > scores[0]


def test_a_length_penalty_is_translated_with_and_chosen_last(
    taught_marian: Path, data: Path, tmp_path: Path, budget: Budget
) -> None:
    pipeline, test = make(taught_marian, data, tmp_path), Slice("koran", "test", 4)
    sources = [source for source, _ in pipeline.corpora.pairs(test)]

    def lengths(penalty: float) -> list[int]:
        path = pipeline.translate(Engine(length_penalty=penalty), test)
        return [len(line) for line in read_json(path)["lines"]]

    translator = pipeline.translator(Engine())
    for penalty in (-5.0, 5.0):
        wanted = translator.translate(sources, method="base", length_penalty=penalty)
        assert lengths(penalty) == [len(str(line)) for line in wanted]
    assert sum(lengths(-5.0)) < sum(lengths(5.0))
    system = Knn(coordinates={"system": "kNN-MT"}, length_penalties=(1.5, 0.1))
    engine = system.engine(pipeline, domain_setting("koran", budget), budget)
    chosen = [read_json(path) for path in (tmp_path / "choices" / "en-de").iterdir()]
    tried = [{c["engine"]["length_penalty"] for c in choice["candidates"]} for choice in chosen]
    assert {1.5, 0.1} in tried  # the last choice: everything before was chosen with one or the other
    assert all(penalties in ({1.5}, {0.1}, {1.5, 0.1}) for penalties in tried)
    assert engine.length_penalty in (1.5, 0.1)
