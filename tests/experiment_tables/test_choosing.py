"""What is left to choose: by BLEU on development text, engine by engine and step by step."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest
from experiments import systems
from experiments.blocks import domain_setting
from experiments.calibration import SHIFT, Move, calibrated, moved
from experiments.data import Slice
from experiments.engine import Engine, MemorySpec
from experiments.pipeline import Pipeline
from experiments.scale import Scale
from experiments.stages import read_json
from experiments.systems import System, choose, engine_of

from kster.smoothing import FitSettings
from kster.smoothing.bandwidth import LearnedBandwidth
from kster.smoothing.fitting.sweep import Trial


def make(model: Path, data: Path, out: Path) -> Pipeline:
    return Pipeline(model, data, out, out / "cache", device="cpu", say=lambda line: None)


def test_the_engine_with_the_best_translations_of_dev_is_chosen(
    taught_marian: Path, data: Path, tmp_path: Path, scale: Scale
) -> None:
    pipeline = make(taught_marian, data, tmp_path)
    memory = MemorySpec("koran", (Slice("koran", "train", 40),))
    helpful = Trial(4, 1.0, 0.9, 0.0).settings("gaussian", None)
    candidates = [Engine(), Engine(memory=memory, smoother=helpful)]
    assert choose(pipeline, candidates, [Slice("koran", "dev")], scale) == candidates[1]
    (choice,) = (tmp_path / "choices" / "en-de").iterdir()
    scores = [candidate["score"] for candidate in read_json(choice)["candidates"]]
    assert scores[1] > scores[0]


def test_general_text_counts_for_less(
    taught_marian: Path, data: Path, tmp_path: Path, scale: Scale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BLEU of the domain and of general text for each engine, and which of them is chosen."""
    pipeline, dev, general = make(taught_marian, data, tmp_path), Slice("koran", "dev"), Slice("it", "dev")
    engines = [Engine(length_penalty=penalty) for penalty in (0.5, 1.0)]

    def chosen(*bleu: tuple[float, float], general: tuple[Slice, ...]) -> int:
        scores = {
            engine: dict(zip(("koran", "it"), pair, strict=True))
            for engine, pair in zip(engines, bleu, strict=True)
        }
        monkeypatch.setattr(systems, "_bleu", lambda _, engine, slice: scores[engine][slice.corpus])
        shutil.rmtree(tmp_path / "choices", ignore_errors=True)
        return engines.index(choose(pipeline, engines, [dev], scale, general))

    assert chosen((20.0, 30.0), (20.6, 29.0), general=(general,)) == 1
    assert chosen((20.0, 30.0), (20.4, 29.0), general=(general,)) == 0
    assert chosen((20.0, 30.0), (20.4, 29.0), general=()) == 1


def test_a_length_penalty_is_translated_with_and_changes_no_earlier_name(
    taught_marian: Path, data: Path, tmp_path: Path, scale: Scale
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
    assert "length_penalty" not in Engine().identity
    system = System("kNN-MT", "knn", length_penalties=(1.5, 0.1))
    engine = engine_of(pipeline, system, domain_setting("koran", scale), scale)
    chosen = [read_json(path) for path in (tmp_path / "choices" / "en-de").iterdir()]
    tried = [{c["engine"]["length_penalty"] for c in choice["candidates"]} for choice in chosen]
    assert {1.5, 0.1} in tried  # the last choice: everything before was chosen with one or the other
    assert all(penalties in ({1.5}, {0.1}, {1.5, 0.1}) for penalties in tried)
    assert engine.length_penalty in (1.5, 0.1)


def test_a_fit_is_moved_to_where_it_translates_best(
    taught_marian: Path, data: Path, tmp_path: Path, scale: Scale
) -> None:
    pipeline = make(taught_marian, data, tmp_path)
    spec = MemorySpec("koran", (Slice("koran", "train", 20),))
    fit = pipeline.fit(spec, FitSettings(**scale.fit), (Slice("koran", "dev", 6),))
    wanted = moved(pipeline, fit, Move(bandwidth=8.0, shift=SHIFT))  # two steps from the nearest start
    nearer = [moved(pipeline, fit, Move(bandwidth=width, shift=SHIFT)) for width in (2.0, 4.0)]
    tried: list[Path] = []

    def bleu(place: Path) -> int:
        return [fit, *nearer, wanted].index(place) if place in [fit, *nearer, wanted] else -1

    def by_bleu(places: list[Path]) -> Path:
        tried.extend(places)
        return max(places, key=bleu)

    best = calibrated(pipeline, fit, by_bleu, steps=4)
    assert best == wanted
    assert best.name == f"{fit.name}-bandwidth-x8-weight+0.75-x1"
    assert tried[0] == fit
    assert calibrated(pipeline, fit, by_bleu, steps=1) == nearer[1]
    before, after = pipeline.smoother(fit), pipeline.smoother(best)
    assert isinstance(before.bandwidth, LearnedBandwidth)
    assert isinstance(after.bandwidth, LearnedBandwidth)
    shift = after.bandwidth.affine.bias - before.bandwidth.affine.bias
    assert shift.item() == pytest.approx(math.log(8.0), abs=1e-5)
    assert calibrated(pipeline, fit, lambda places: places[0], steps=4) == fit  # nothing better around it
