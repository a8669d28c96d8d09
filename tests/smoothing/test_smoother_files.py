"""Smoothers on the disk: complete at any moment, and refused when they do not fit."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
import torch

from kster.errors import KsterError
from kster.smoothing import Smoother, SmootherSettings
from smoothing.cases import ALL_SETTINGS, DIMENSION, neighbours_of, random_smoother, smooth


@pytest.mark.parametrize("chosen", ALL_SETTINGS)
def test_save_and_load_give_the_same_smoother(chosen: dict[str, Any], tmp_path: Path) -> None:
    smoother = random_smoother(**chosen)
    smoother.save(tmp_path / "smoother")
    again = Smoother.load(tmp_path / "smoother", dimension=DIMENSION)
    assert again.settings == smoother.settings
    assert not again.training
    neighbours = neighbours_of([[0.2, 1.0, 2.0]], [[1, 2, 1]])
    base = torch.log_softmax(torch.ones(1, 5), -1)
    first, second = (smooth(s, torch.ones(1, DIMENSION), neighbours, base) for s in (smoother, again))
    assert torch.equal(first.log_weights, second.log_weights)
    assert torch.equal(first.mixing_weight, second.mixing_weight)


def test_files_that_are_missing_or_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(KsterError, match=r"smoother\.json is missing"):
        Smoother.load(tmp_path)
    smoother = random_smoother()
    smoother.save(tmp_path)
    with pytest.raises(KsterError, match="keys of length 4, the model's have 8"):
        Smoother.load(tmp_path, dimension=8)
    path = tmp_path / "smoother.json"
    written = json.loads(path.read_text())
    path.write_text(json.dumps(written | {"dimension": 8}))
    with pytest.raises(KsterError, match="settings are not what was written"):
        Smoother.load(tmp_path)
    del written["checksum"]  # as before smoothers had one
    path.write_text(json.dumps(written | {"dimension": 8}))
    with pytest.raises(KsterError, match="not the weights"):
        Smoother.load(tmp_path)
    path.write_text(json.dumps(smoother.settings.to_json() | {"temperature": 8}))
    with pytest.raises(KsterError, match="unknown key 'temperature'"):
        Smoother.load(tmp_path)
    path.write_text("{")
    with pytest.raises(KsterError, match="not valid JSON"):
        Smoother.load(tmp_path)
    path.write_text(json.dumps(smoother.settings.to_json()))
    with pytest.raises(KsterError, match=r"smoother\.safetensors: the smoother's weights are missing"):
        Smoother.load(tmp_path)
    (tmp_path / "smoother.safetensors").write_bytes(b"\x00" * 7)
    with pytest.raises(KsterError, match="not the weights"):
        Smoother.load(tmp_path)
    path.write_text(json.dumps(smoother.settings.to_json() | {"weights": "../smoother-1.safetensors"}))
    with pytest.raises(KsterError, match="accepted: a name like"):
        Smoother.load(tmp_path)


def test_a_save_that_fails_leaves_the_earlier_smoother(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier, later = random_smoother(seed=1), random_smoother(seed=2, k=5)
    earlier.save(tmp_path)
    replace = os.replace
    for kept in range(2):  # the disk is full at the first file, then at the second
        done = 0

        def fail_after(source: str, target: Path, kept: int = kept) -> None:
            nonlocal done
            if done == kept:
                raise OSError("No space left on device")
            done += 1
            replace(source, target)

        monkeypatch.setattr(os, "replace", fail_after)
        with pytest.raises(OSError, match="No space"):
            later.save(tmp_path)
        again = Smoother.load(tmp_path)
        assert again.settings == earlier.settings
        for name, value in earlier.state_dict().items():
            assert torch.equal(again.state_dict()[name], value)
    monkeypatch.setattr(os, "replace", replace)
    later.save(tmp_path)
    assert Smoother.load(tmp_path).settings.k == 5
    assert len(list(tmp_path.iterdir())) == 2  # nothing of the earlier one, no temporary file


def test_two_that_save_at_once_leave_one_complete(tmp_path: Path) -> None:
    smoothers = [Smoother(SmootherSettings(dimension=4, mixing_weight=weight)) for weight in (0.3, 0.6)]
    with ThreadPoolExecutor(2) as threads:
        for _ in range(30):
            together = Barrier(2)

            def save(smoother: Smoother, together: Barrier = together) -> None:
                together.wait()
                smoother.save(tmp_path)

            for done in [threads.submit(save, smoother) for smoother in smoothers]:
                done.result()
            assert Smoother.load(tmp_path).settings in [smoother.settings for smoother in smoothers]


def test_weights_saved_under_their_old_name_are_still_read_and_then_replaced(tmp_path: Path) -> None:
    smoother = random_smoother(seed=1)
    smoother.save(tmp_path)
    (weights,) = tmp_path.glob("smoother-*.safetensors")
    weights.rename(tmp_path / "smoother.safetensors")
    (tmp_path / "smoother.json").write_text(json.dumps(smoother.settings.to_json()))
    again = Smoother.load(tmp_path)
    assert all(torch.equal(again.state_dict()[name], value) for name, value in smoother.state_dict().items())
    random_smoother(seed=2).save(tmp_path)
    assert not (tmp_path / "smoother.safetensors").exists()


def test_a_flipped_bit_in_the_settings_is_noticed(tmp_path: Path) -> None:
    Smoother(SmootherSettings(dimension=6, k=8)).save(tmp_path)
    file = tmp_path / "smoother.json"
    file.write_text(file.read_text().replace('"k": 8', '"k": 9'))
    with pytest.raises(KsterError, match="not what was written"):
        Smoother.load(tmp_path)
