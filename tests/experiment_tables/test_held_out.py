"""What a system is judged by, it has neither in its memory nor been chosen or stopped by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from experiments import blocks, online
from experiments.blocks import (
    DOMAINS,
    GENERAL,
    NEWS_DEV,
    NEWS_TEST,
    NOISY,
    Block,
    dev_slice,
    memory_slice,
    mixed_setting,
)
from experiments.contrastive import searched_slices
from experiments.data import Slice, write_lines
from experiments.engine import MemorySpec
from experiments.example import EXAMPLE
from experiments.pipeline import Pipeline
from experiments.scale import FULL, QUICK, Scale
from experiments.stages import Clock, OutOfTime, read_json
from experiments.systems import engine_of
from experiments.tables import TABLES

from kster.smoothing import SAFE_KNN

LINES = 5_000  # of a corpus, more than any test set has
both_scales = pytest.mark.parametrize("scale", [FULL, QUICK], ids=["full", "quick"])


def lines_of(slices: Iterable[Slice]) -> set[tuple[str, str, int]]:
    return {
        (slice.corpus.removesuffix(NOISY), slice.split, line)
        for slice in slices
        for line in range(LINES)[slice.shift :: slice.every][slice.first :][: slice.count]
    }


def shared(learned: Iterable[Slice], tests: Iterable[Slice]) -> set[tuple[str, str, int]]:
    judged = lines_of(tests)
    assert judged
    return lines_of(learned) & judged


def judges_of(block: Block) -> list[Slice]:
    return [test for _, test in block.tests]


@both_scales
@pytest.mark.parametrize("name", TABLES)
def test_no_table_is_judged_by_what_it_has_or_was_chosen_by(name: str, scale: Scale) -> None:
    for block in TABLES[name](scale, ("bible",)).blocks:
        setting = block.setting
        memories = [setting.memory] + ([setting.searched] if setting.searched else [])
        assert not shared((slice for memory in memories for slice in memory.slices), judges_of(block))
        if name != "recipes":  # which is on development text, and says so
            assert not shared((*setting.dev, *setting.general), judges_of(block))
        assert not shared((*setting.dev, *setting.general), setting.memory.slices)


@both_scales
def test_nor_is_any_other_experiment(scale: Scale) -> None:
    for domain in (*DOMAINS, EXAMPLE):
        assert not shared([memory_slice(domain, scale)], [blocks.test_slice(domain, scale)])
    for domain in DOMAINS:
        assert not shared([dev_slice(domain)], [blocks.test_slice(domain, scale)])
    assert not shared([NEWS_DEV], [NEWS_TEST, blocks.test_slice(GENERAL, scale)])
    assert blocks.test_slice(GENERAL, FULL) == NEWS_TEST == Slice("newstest", "newstest2014")
    setting = mixed_setting(scale)
    assert not shared((*setting.memory.slices, *setting.dev), searched_slices(scale))


@both_scales
def test_recipes_that_learn_from_development_text_do_not_learn_what_judges_them(scale: Scale) -> None:
    stopped_by: list[Sequence[Slice]] = []

    def fit(memory: MemorySpec, settings: Any, dev: Sequence[Slice]) -> Path:
        stopped_by.append(dev)
        return Path(f"fit-{len(stopped_by)}")

    pipeline: Any = SimpleNamespace(fit=fit)
    learners = 0
    for block in TABLES["recipes"](scale).blocks:
        for system in block.systems:
            if "stopped by other text" in system.name or "development text" in system.name:
                learners += 1
                engine_of(pipeline, system, block.setting, scale)
                assert lines_of(stopped_by[-1])
                assert not shared(stopped_by[-1], judges_of(block))
    assert learners == len(stopped_by) == 6  # three for each domain


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
            say=lambda line: None,
        )
        monkeypatch.setattr(pipeline, "translator", lambda engine: Listening())
        return online._work(pipeline, Slice("koran", "test"), SAFE_KNN)

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
