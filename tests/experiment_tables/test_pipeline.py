"""The pipeline: resumable at every stage, and without the packages that a bare GPU machine lacks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from experiments import building
from experiments import pipeline as pipeline_module
from experiments.__main__ import NOT_FINISHED, main
from experiments.budget import Budget
from experiments.catalogue import EXPERIMENTS
from experiments.command import Request, carry_out
from experiments.data import DISTURBED, Corpora, Slice
from experiments.engine import Engine, MemorySpec, Training
from experiments.experiment import result_file
from experiments.pipeline import Pipeline
from experiments.stages import Clock, OutOfTime, locked, read_json

from kster import BaseModel, Memory
from kster.errors import KsterError
from kster.training.recipe import read_yaml


class Allowance(Clock):
    """Time for a given number of stages."""

    def __init__(self, stages: int) -> None:
        super().__init__()
        self.stages = stages

    def check(self) -> None:
        if self.stages == 0:
            raise OutOfTime
        self.stages -= 1


def make(model: Path, data: Path, out: Path, clock: Clock | None = None) -> Pipeline:
    return Pipeline(
        model,
        data,
        out,
        out / "cache",
        device="cpu",
        clock=clock,
    )


def translations(path: Path, out: Path) -> list[Any]:
    return [
        [cell["row"], cell["column"], read_json(out / cell["translation"])["lines"]]
        for cell in read_json(path)["cells"]
    ]


def test_a_memory_made_chunk_by_chunk_keeps_all_targets_of_a_source(
    tiny_marian: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "IMPORT_AT_ONCE", 2)
    base = BaseModel.load(tiny_marian)
    pairs = [("the dog", german) for german in ("der Hund", "ein Hund", "Hund", "den Hund", "dem Hund")]
    building.build_memory(MemorySpec("dogs", ()), pairs, tmp_path / "memory", base, Clock())
    with Memory.open(tmp_path / "memory", base) as memory:
        assert {(segment.source, segment.target) for segment in memory.segments()} == set(pairs)


def test_a_run_stopped_again_and_again_comes_to_the_same_result(
    taught_marian: Path, data: Path, tmp_path: Path, budget: Budget
) -> None:
    whole = EXPERIMENTS["dropout"].run(make(taught_marian, data, tmp_path / "whole"), budget)
    out, attempts = tmp_path / "parts", 0
    while True:
        attempts += 1
        pipeline = make(taught_marian, data, out, Allowance(6))
        try:
            parts = EXPERIMENTS["dropout"].run(pipeline, budget)
            break
        except OutOfTime:
            assert attempts < 20
        finally:
            pipeline.close()
    assert attempts > 2
    assert translations(parts, out) == translations(whole, tmp_path / "whole")


def test_small_results_are_enough_to_go_on_elsewhere(
    taught_marian: Path, data: Path, tmp_path: Path, budget: Budget
) -> None:
    first = EXPERIMENTS["unseen"].run(make(taught_marian, data, tmp_path), budget)
    expected = translations(first, tmp_path)
    shutil.rmtree(tmp_path / "cache")
    again = EXPERIMENTS["unseen"].run(
        make(taught_marian, data, tmp_path, Allowance(0)), budget
    )  # no time for any stage
    assert translations(again, tmp_path) == expected
    assert not (tmp_path / "cache").exists()


def test_a_memory_whose_build_was_killed_is_finished_without_double_entries(
    taught_marian: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "IMPORT_AT_ONCE", 5)
    spec = MemorySpec("koran", (Slice("koran", "train", 30),))
    expected = [
        (s.source, s.target) for s in make(taught_marian, data, tmp_path / "whole").memory(spec).segments()
    ]

    def killed(path: Path, content: Any) -> None:
        if content == 10:  # the second chunk is in the memory, but not yet noted
            raise KeyboardInterrupt
        write_json(path, content)

    write_json = building.write_json
    with monkeypatch.context() as broken:
        broken.setattr(building, "write_json", killed)
        with pytest.raises(KeyboardInterrupt):
            make(taught_marian, data, tmp_path / "killed").memory(spec)
    memory = make(taught_marian, data, tmp_path / "killed").memory(spec)
    assert [(s.source, s.target) for s in memory.segments()] == expected
    assert memory.verify() == []


def test_a_bare_machine_can_run_it(taught_marian: Path, data: Path, tmp_path: Path) -> None:
    missing = ("pydantic", "polib", "sacremoses", "ray", "typer", "rich", "matplotlib")
    code = f"""
import sys
for name in {missing}: sys.modules[name] = None
from experiments import budget, command
from dataclasses import replace
fit = budget.QUICK.fit | {{"steps": 2, "batch_tokens": 256, "evaluate_every": 1, "max_tokens": 200, "k": 4}}
command.QUICK = replace(budget.QUICK, memory=20, test=2, dev=4, dev_decoded=2, fit=fit,
                        domains=("koran",), ks=(4,), climbs=0)
from experiments.__main__ import main
sys.exit(main(["unseen", "--data", {str(data)!r}, "--model", {str(taught_marian)!r},
               "--out", {str(tmp_path)!r}, "--stage", "run", "--quick", "--device", "cpu"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "unseen" / "en-de.run.json").is_file()


def test_what_another_process_is_at_can_be_left_to_it(
    taught_marian: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, test = make(taught_marian, data, tmp_path), Slice("koran", "test", 3)
    held = []

    @contextmanager
    def busy(path: Path, *, wait: bool = True) -> Iterator[bool]:
        """The lock, while another process has it."""
        with locked(path), locked(path, wait=wait) as ours:
            held.append(path)
            yield ours

    monkeypatch.setattr(pipeline_module, "locked", busy)
    assert not pipeline.translate(Engine(), test, wait=False).exists()
    assert len(held) == 1
    monkeypatch.undo()
    assert pipeline.translate(Engine(), test, wait=False).is_file()


def test_a_packed_directory_has_all_that_is_read_and_no_more(
    data: Path, tmp_path: Path, budget: Budget
) -> None:
    options = [
        "--data",
        str(data),
        "--out",
        str(tmp_path / "out"),
        "--quick",
        "--pack",
        str(tmp_path / "packed"),
    ]
    assert main(["robustness", *options]) == 0
    packed, whole = Corpora(tmp_path / "packed", ("en", "de")), Corpora(data, ("en", "de"))
    assert len(packed.pairs(Slice("koran", "train"))) == budget.memory
    assert packed.pairs(Slice("law", "dev", 40, 1_500)) == whole.pairs(Slice("law", "dev", 6, 1_500))
    noisy = packed.pairs(Slice(f"koran{DISTURBED}", "train"))
    clean = packed.learnable_pairs(Slice("koran", "train"))
    assert [german for _, german in noisy] == [german for _, german in clean]
    assert [english for english, _ in noisy] != [english for english, _ in clean]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nothing"], "experiment 'nothing' is unknown; accepted: damt"),
        (["damt"], "--model is missing"),
        (["damt", "--stage", "report"], "no results of 'damt' here"),
        (["damt", "--data", "no/such/place", "--pack", "packed"], "no such data directory"),
    ],
)
def test_mistakes_are_named(
    options: list[str], message: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *rest = options
    assert main([name, "--data", str(data), "--out", str(tmp_path), *rest]) == 2
    assert message in capsys.readouterr().err


def test_a_machine_without_sacrebleu_is_told_how_to_bring_it(
    taught_marian: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(KsterError, match=r"sacreBLEU cannot be imported .*pip install --target"):
        carry_out(Request("unseen", data, [str(taught_marian)], tmp_path / "out", quick=True, device="cpu"))
    assert not (tmp_path / "out").exists()


def test_no_time_at_all_says_that_the_same_command_continues(
    taught_marian: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [
        "--data",
        str(data),
        "--out",
        str(tmp_path),
        "--model",
        str(taught_marian),
        "--max-seconds",
        "0",
    ]
    assert main(["damt", *options, "--device", "cpu"]) == NOT_FINISHED
    assert "the same command continues" in capsys.readouterr().err


def test_missing_text_is_named(taught_marian: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(KsterError, match=r"bible/test\.en\.xz: no such file"):
        make(taught_marian, data, tmp_path).translate(Engine(), Slice("bible", "test"))


def test_processes_that_share_the_work_come_to_the_same_result(
    taught_marian: Path, data: Path, tmp_path: Path, budget: Budget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Robustness: parts that share memories, tunings and fits."""
    monkeypatch.setattr("experiments.command.QUICK", replace(budget, domains=("koran",)))
    for workers in (1, 2):
        request = Request(
            "robustness",
            data,
            [str(taught_marian)],
            tmp_path / str(workers),
            stage="run",
            quick=True,
            device="cpu",
            workers=workers,
        )
        assert carry_out(request)
    alone, together = (result_file(tmp_path / workers, "robustness", "en-de") for workers in ("1", "2"))
    assert translations(together, tmp_path / "2") == translations(alone, tmp_path / "1")
    assert not list(tmp_path.rglob("*.part"))

    engines = {(cell["row"], cell["column"]): cell["engine"] for cell in read_json(alone)["cells"]}
    for method in ("kNN-MT", "KSTER"):
        rows = (method, f"{method} + 10% noise", f"{method} + 10% noise after learning")
        clean, noisy, surprised = (engines[row, "koran"] for row in rows)
        assert surprised == {**clean, "memory": noisy["memory"]}


def test_a_part_that_fails_is_named(taught_marian: Path, data: Path, tmp_path: Path) -> None:
    model = [str(taught_marian)]
    (tmp_path / "translations").write_text("a file where a directory will be needed")
    request = Request("unseen", data, model, tmp_path, stage="run", quick=True, device="cpu", workers=2)
    with pytest.raises(KsterError, match=r"failed: unseen \(part \d\): .*/translations"):
        carry_out(request)


def test_samples_are_spread_over_a_slice_and_differ(data: Path) -> None:
    corpora = Corpora(data, ("en", "de"))
    whole = Slice("koran", "train")
    lines = corpora.pairs(whole)
    draws = [corpora.pairs(whole.sample(10, len(lines), draw, 4)) for draw in range(4)]
    assert all(len(draw) == 10 for draw in draws)
    assert draws[0] == lines[:: len(lines) // 10][:10]
    assert draws[1] != draws[0]
    assert whole.sample(len(lines), len(lines)) == whole


def test_a_large_memory_makes_the_keys_that_translations_need_and_no_others(
    taught_marian: Path, data: Path, tmp_path: Path
) -> None:
    pipeline = make(taught_marian, data, tmp_path)
    spec = MemorySpec("koran", (Slice("koran", "train", 30),), keys_on_demand=True)
    lacking = len(pipeline.memory(spec).ids_without_keys())
    assert lacking == pipeline.memory(spec).segment_count()
    pipeline.translate(Engine(memory=spec, smoother="carried"), Slice("koran", "test", 1))
    assert len(pipeline.memory(spec).ids_without_keys()) < lacking


def test_training_from_scratch_takes_the_base_model_s_shape_and_vocabulary_but_not_its_weights(
    taught_marian: Path, data: Path, tmp_path: Path
) -> None:
    pipeline = make(taught_marian, data, tmp_path)
    text = MemorySpec("mixed", (Slice("koran", "train", 30), Slice("europarl", "train", 30)))
    wanted = Training(text, (Slice("koran", "dev", 4),), 1, 500, 1, 1, from_scratch=True)
    trained = pipeline.translator(Engine(model=wanted)).model
    assert trained.network.config == pipeline.base.network.config
    assert trained.fingerprint != pipeline.base.fingerprint
    recipe = read_yaml(pipeline.cache / "models" / wanted.name / "config.yaml")
    assert "init" not in recipe
    assert recipe["vocabulary"]["reuse"] == str(pipeline.base.directory)
