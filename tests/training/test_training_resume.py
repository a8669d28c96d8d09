"""An interrupted, killed or repeated run continues where it was, or says why it cannot."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from trained import assert_same, weights

from kster.cli import main as kster
from kster.errors import KsterError
from kster.training import train
from kster.training.__main__ import main as module
from kster.training.state import TrainingState


def test_an_interrupted_run_gives_bit_for_bit_the_same_model(config: Any, tmp_path: Path) -> None:
    straight = train(config())
    output = {"output": str(tmp_path / "interrupted")}
    calls = 0
    while True:
        report = train(config(), overrides=output, max_seconds=0)  # one step, then a checkpoint
        calls += 1
        if report.finished:
            break
        assert report.step == calls
    assert calls == 12
    assert report.target_tokens == straight.target_tokens
    assert_same(weights(straight.model), weights(report.model))


def test_a_run_killed_between_checkpoints_continues_from_the_last_one(config: Any, tmp_path: Path) -> None:
    straight = train(config())
    output = tmp_path / "killed"
    command = [sys.executable, "-c", _KILLED, str(config()), str(output)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    assert subprocess.run(command, env=environment, capture_output=True).returncode == 9
    assert [path.name for path in (output / "checkpoints").iterdir()] == ["step-00000005"]
    report = train(config(), overrides={"output": str(output)})
    assert "continuing from" in (output / "log.txt").read_text()
    assert_same(weights(straight.model), weights(report.model))


_KILLED = """
import os, sys
from kster.training import state, train
update = state.TrainingState.update
def update_until_killed(self, rate):
    if self.step == 8:
        os._exit(9)
    return update(self, rate)
state.TrainingState.update = update_until_killed
train(sys.argv[1], overrides={"output": sys.argv[2]})
"""


def test_a_checkpoint_of_another_run_is_refused_and_kept(config: Any, tmp_path: Path) -> None:
    train(config())
    before = sorted((tmp_path / "run" / "checkpoints").rglob("*"))
    changed = {"training.steps": 20, "seed": 3}
    with pytest.raises(
        KsterError, match=r"belongs to a run with other settings \(seed, training\.steps differ"
    ):
        train(config(), overrides=changed)
    assert sorted((tmp_path / "run" / "checkpoints").rglob("*")) == before
    assert [path.name for path in before if path.is_dir()] == ["step-00000010", "step-00000012"]


def test_bleu_comes_at_the_same_steps_in_a_resumed_run(config: Any, tmp_path: Path) -> None:
    report = {"bleu_every": 2, "dev_every": 3, "checkpoint_every": 1}
    path = config(report=report, training={"steps": 9, "batch_tokens": 600})
    for _ in range(4):
        train(path, max_seconds=0)
    train(path)
    log = (tmp_path / "run" / "log.txt").read_text()
    assert re.findall(r"dev at step (\d+): loss \S+  bleu", log) == ["6", "9"]


@pytest.mark.parametrize("name", ["state.json", "state.safetensors"])
def test_a_damaged_checkpoint_is_named(config: Any, tmp_path: Path, name: str) -> None:
    train(config(), max_seconds=0)
    damaged = tmp_path / "run" / "checkpoints" / "step-00000001" / name
    damaged.write_bytes(damaged.read_bytes()[:40])
    with pytest.raises(KsterError, match="step-00000001 is damaged and cannot be continued"):
        train(config())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_stops_behind_a_finished_step_with_a_checkpoint(
    config: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    update = TrainingState.update

    def update_and_interrupt(state: TrainingState, rate: float) -> torch.Tensor:
        if state.step == 2:
            signal.raise_signal(number)
        return update(state, rate)

    monkeypatch.setattr(TrainingState, "update", update_and_interrupt)
    report = train(config())
    assert not report.finished
    assert report.stopped_by == number
    assert report.step == 3
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["step-00000003"]


def test_an_interrupted_command_does_not_look_finished(config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`kster train … && kster translate …` must not go on with a model that is not there."""
    update = TrainingState.update

    def update_and_interrupt(state: TrainingState, rate: float) -> torch.Tensor:
        if state.step == 2:
            signal.raise_signal(signal.SIGINT)
        return update(state, rate)

    monkeypatch.setattr(TrainingState, "update", update_and_interrupt)
    assert kster(["train", str(config())]) == 130
    assert kster(["train", str(config())]) == 0
    assert module([str(config("other.yaml", seed=2)), "--set", f"output={config().parent / 'other'}"]) == 130


def test_a_finished_run_given_again_keeps_what_was_added_to_its_model(config: Any) -> None:
    model = train(config()).model
    assert model is not None
    (model / "smoother").mkdir()
    (model / "smoother" / "smoother.json").write_text("{}")
    (model / "config.json").write_text("damaged")
    train(config())
    assert (model / "smoother" / "smoother.json").read_text() == "{}"
    assert "marian" in (model / "config.json").read_text()
