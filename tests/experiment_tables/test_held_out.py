"""What a system is judged by, it has neither in its memory nor been chosen or stopped by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from experiments import building, domains, online
from experiments.budget import FULL, QUICK, Budget
from experiments.catalogue import EXPERIMENTS
from experiments.contrastive import searched_slices
from experiments.data import EXAMPLE, Corpora, Slice, write_lines
from experiments.domains import GENERAL, NEWS_DEV, NEWS_TEST, dev_slice, memory_slice, mixed_setting
from experiments.engine import MemorySpec, Training
from experiments.experiment import Block
from experiments.pipeline import Pipeline
from experiments.stages import Clock, OutOfTime, read_json

LINES = 5_000  # of a corpus, more than any test set has
both_scales = pytest.mark.parametrize("budget", [FULL, QUICK], ids=["full", "quick"])


def lines_of(slices: Iterable[Slice]) -> set[tuple[str, str, int]]:
    return {
        (slice.undisturbed.corpus, slice.split, line)
        for slice in slices
        for line in range(LINES)[slice.shift :: slice.every][slice.first :][: slice.count]
    }


def shared(learned: Iterable[Slice], tests: Iterable[Slice]) -> set[tuple[str, str, int]]:
    judged = lines_of(tests)
    assert judged
    return lines_of(learned) & judged


def judges_of(block: Block) -> list[Slice]:
    return [column.test for column in block.columns]


@both_scales
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_no_table_is_judged_by_what_it_has_or_was_chosen_by(name: str, budget: Budget) -> None:
    budget = replace(budget, unseen=(*budget.unseen, "bible"))
    for block in EXPERIMENTS[name].table(budget).blocks:
        setting = block.setting
        memories = [setting.memory] + ([setting.searched] if setting.searched else [])
        assert not shared((slice for memory in memories for slice in memory.slices), judges_of(block))
        if name != "recipes":  # which is on development text, and says so
            assert not shared(setting.dev, judges_of(block))
        assert not shared(setting.dev, setting.memory.slices)


@both_scales
def test_nor_is_any_other_experiment(budget: Budget) -> None:
    for domain in (*budget.domains, EXAMPLE):
        assert not shared([memory_slice(domain, budget)], [domains.test_slice(domain, budget)])
    for domain in budget.domains:
        assert not shared([dev_slice(domain)], [domains.test_slice(domain, budget)])
    assert not shared([NEWS_DEV], [NEWS_TEST, domains.test_slice(GENERAL, budget)])
    assert domains.test_slice(GENERAL, FULL) == NEWS_TEST == Slice("newstest", "newstest2014")
    setting = mixed_setting(budget)
    assert not shared((*setting.memory.slices, *setting.dev), searched_slices(budget))


def test_test_pairs_in_a_training_text_are_left_out_of_memories_and_training(
    taught_marian: Path, tmp_path: Path
) -> None:
    train = ["a house", "the test", "a dog", "the test", "the  test"]
    for language in ("en", "de"):
        for split, lines in (("train", train), ("dev", ["a cat"]), ("test", ["the test", "another"])):
            write_lines(tmp_path / "it" / f"{split}.{language}.xz", (f"{line} {language}" for line in lines))
    corpora = Corpora(tmp_path, ("en", "de"))
    kept = [(f"{line} en", f"{line} de") for line in ("a house", "a dog", "the  test")]
    assert corpora.learnable_pairs(Slice("it", "train")) == kept
    assert len(corpora.pairs(Slice("it", "train"))) == 5

    pipeline = Pipeline(taught_marian, tmp_path, tmp_path / "out", tmp_path / "cache", device="cpu")
    spec = MemorySpec("it", (Slice("it", "train"),))
    segments = pipeline.memory(spec).segments()
    assert [(segment.source, segment.target) for segment in segments] == kept
    training = Training(spec, (Slice("it", "dev"),), 1, 500, 1, 1)
    assert building.train_baseline(
        training, pipeline.base, corpora, tmp_path / "cache", tmp_path / "model", 60
    )
    (source,) = [p for p in (tmp_path / "cache" / "text").glob("*.source") if "dog" in p.read_text()]
    assert source.read_text().splitlines() == [source for source, _ in kept]


class Twice(Clock):
    """Time to begin twice."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def check(self) -> None:
        self.asked += 1
        if self.asked > 2:
            raise OutOfTime


def test_a_line_is_translated_before_it_is_learned(
    taught_marian: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often the work is stopped: what was known when each line was translated."""
    monkeypatch.setattr(online, "SAVE_EVERY", 2)
    sources = [f"the house number {n}" for n in ("one", "two", "three", "four", "five")]
    for language in ("en", "de"):
        write_lines(tmp_path / "data" / "koran" / f"test.{language}.xz", sources)
    known: list[tuple[str, list[str]]] = []

    class Listening:
        def translate(self, texts: list[str], **options: Any) -> list[str]:
            (text,) = texts
            known.append((text, [segment.source for segment in options["memory"].segments()]))
            return [text.upper()]

    def work(clock: Clock) -> Path:
        pipeline = Pipeline(
            taught_marian,
            tmp_path / "data",
            tmp_path / "out",
            tmp_path / "cache",
            device="cpu",
            clock=clock,
        )
        monkeypatch.setattr(pipeline, "translator", lambda engine: Listening())
        return online._work(pipeline, Slice("koran", "test"))

    stops = 0
    while True:
        try:
            path = work(Twice())
            break
        except OutOfTime:
            stops += 1
            assert stops < 9
    assert stops > 0
    assert known == [(source, sources[:i]) for i, source in enumerate(sources)]
    assert read_json(path)["lines"] == [source.upper() for source in sources]
