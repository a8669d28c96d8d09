"""Whole runs: from scratch, fine-tuning, mixtures, both directions, in two processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file
from trained import assert_same, weights

from kster.errors import KsterError
from kster.training import train
from kster.training.__main__ import main
from kster.training.progress import Progress
from kster.training.schedule import learning_rate
from kster.training.settings import OptimisationSettings


def test_a_model_learns_and_transformers_translates_with_it(
    config: Any, corpus: Path, tmp_path: Path
) -> None:
    long = {"steps": 250, "batch_tokens": 1500, "learning_rate": 0.01, "warmup_steps": 50, "dropout": 0.0}
    report = train(config(training=long, report={"bleu_every": 0, "dev_every": 125, "tensorboard": True}))
    assert report.finished
    assert report.step == 250
    assert report.dev["loss"] < 2.0  # a uniform guess costs ln 400 = 6.0
    assert report.dev["bleu"] > 20
    tokenizer = transformers.MarianTokenizer.from_pretrained(report.model)
    model = transformers.MarianMTModel.from_pretrained(report.model)
    inputs = tokenizer(
        ["she reads an old book about the sea and the red house stands by the river"], return_tensors="pt"
    )
    (translation,) = tokenizer.batch_decode(model.generate(**inputs), skip_special_tokens=True)
    assert translation == "sie liest ein altes Buch über das Meer und das rote Haus steht am Fluss"
    assert model.generation_config.num_beams == 4
    assert model.generation_config.bad_words_ids == [[model.config.pad_token_id]]
    log = (tmp_path / "run" / "log.txt").read_text()
    assert "step 248/250" in log
    assert "target tokens/s" in log
    assert list((tmp_path / "run" / "tensorboard").glob("events*"))


def test_the_result_is_a_base_model_of_ours(config: Any) -> None:
    from kster.model import BaseModel

    report = train(config(export={"dtype": "float16"}))
    model = BaseModel.load(str(report.model), device="cpu")
    assert (model.source_lang, model.target_lang) == ("en", "de")
    (forced,) = model.force_decode([("the red house", "das rote Haus")])
    assert forced.keys.shape == (len(forced.tokens), 32)


def test_transformers_computes_as_we_do_however_the_weights_are_stored(config: Any) -> None:
    report = train(config(export={"dtype": "float16"}))
    assert all(weight.dtype == torch.float16 for weight in weights(report.model).values())
    assert transformers.MarianMTModel.from_pretrained(report.model).dtype == torch.float32


def test_transformers_cuts_a_text_that_is_longer_than_the_network_reads(config: Any) -> None:
    report = train(config(training={"steps": 2}))  # 128 positions
    tokenizer = transformers.MarianTokenizer.from_pretrained(report.model)
    model = transformers.MarianMTModel.from_pretrained(report.model)
    inputs = tokenizer(["the red house " * 100], return_tensors="pt", truncation=True)
    assert inputs["input_ids"].shape[1] == 128
    assert model.generate(**inputs, num_beams=1).shape[1] <= model.generation_config.max_length == 128


def test_another_seed_gives_another_model(config: Any, tmp_path: Path) -> None:
    first = train(config())
    second = train(config(), overrides={"seed": 2, "output": str(tmp_path / "other")})
    assert not torch.equal(
        weights(first.model)["model.shared.weight"], weights(second.model)["model.shared.weight"]
    )


def test_a_dev_set_that_the_network_cannot_read_is_refused_before_training(
    config: Any, corpus: Path, tmp_path: Path
) -> None:
    for language, words in (("en", "the red house "), ("de", "das rote Haus ")):
        (tmp_path / f"long.{language}").write_text(words * 100 + "\n", encoding="utf-8")
    dev = {"source": str(tmp_path / "long.en"), "target": str(tmp_path / "long.de")}
    with pytest.raises(KsterError, match="dev: every pair is longer than the 128 tokens"):
        train(config(dev=dev))
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_swap_trains_the_other_direction_from_the_same_data(config: Any, tmp_path: Path) -> None:
    train(config(), prepare_only=True)
    report = train(config(), overrides={"direction": "swap", "output": str(tmp_path / "back")})
    tokenizer = transformers.MarianTokenizer.from_pretrained(report.model)
    assert (tokenizer.source_lang, tokenizer.target_lang) == ("de", "en")


def test_fine_tuning_starts_from_the_given_model(config: Any, tiny_marian: Path) -> None:
    report = train(
        config(init=str(tiny_marian), training={"steps": 2, "learning_rate": 1e-6, "warmup_steps": 1})
    )
    before, after = weights(tiny_marian), weights(report.model)
    for name, weight in after.items():
        torch.testing.assert_close(weight, before[name], atol=1e-4, rtol=0)
    assert not torch.equal(after["model.shared.weight"], before["model.shared.weight"])
    assert (report.model / "vocab.json").read_text() != ""  # type: ignore[operator]
    tokenizers = [transformers.MarianTokenizer.from_pretrained(path) for path in (tiny_marian, report.model)]
    assert tokenizers[0].get_vocab() == tokenizers[1].get_vocab()


def test_fine_tuning_lowers_the_loss_of_its_domain(config: Any, corpus: Path, tmp_path: Path) -> None:
    base = train(config())
    tuned = train(
        config(
            "finetune.yaml",
            init=str(base.model),
            corpora=[{"source": "small.en", "target": "small.de"}],
            prepared=str(tmp_path / "domain"),
            output=str(tmp_path / "tuned"),
            training={"steps": 20},
        )
    )
    assert tuned.dev["loss"] < base.dev["loss"]


def test_an_unknown_device_is_refused(config: Any, tmp_path: Path) -> None:
    with pytest.raises(KsterError, match="device: 'gpu' is not a device; accepted: auto, cpu, cuda"):
        train(config(device="gpu"))
    assert not (tmp_path / "run").exists()


def test_a_file_in_the_place_of_the_output_is_refused(config: Any, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    with pytest.raises(KsterError, match=r"output: .*run is a file"):
        train(config())
    assert (tmp_path / "run").read_text() == "mine"


def test_two_runs_do_not_share_a_directory(config: Any, tmp_path: Path) -> None:
    output = tmp_path / "output"
    holder = Progress(output, tensorboard=False)
    with pytest.raises(KsterError, match="another training is writing there"):
        train(config(output=str(output)))
    assert [file.name for file in output.iterdir()] == ["log.txt"]
    holder.close()
    assert train(config(output=str(output))).finished


def test_a_mixture_repeats_the_small_corpus(config: Any, tmp_path: Path) -> None:
    corpora = [
        {"name": "train", "source": "train.en", "target": "train.de", "weight": 0.5},
        {"name": "small", "source": "small.en", "target": "small.de", "weight": 3},
    ]
    report = train(config(corpora=corpora))
    assert report.finished
    assert "small: 12 pairs read, 12 kept" in (tmp_path / "run" / "log.txt").read_text()


def test_two_processes_give_the_model_of_one(config: Any, tmp_path: Path) -> None:
    """With the same global batches; dropout is off, because the two draw it separately."""
    path = config(training={"dropout": 0.0})
    alone = train(path)
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--master-port=0"),
        *("--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"),
        *("-m", "kster.training", str(path), "--set", f"output={tmp_path / 'two'}"),
    ]
    done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "2 × cpu" in done.stdout
    assert done.stdout.count("finished in") == 1
    ours, theirs = weights(alone.model), weights(tmp_path / "two" / "model")
    for name in ours:
        # A key bias shifts all scores of a query alike: its gradient is zero but for rounding, which Adam
        # magnifies. Everything else must agree.
        if not name.endswith("k_proj.bias"):
            torch.testing.assert_close(theirs[name], ours[name], atol=2e-4, rtol=1e-3)


def test_bfloat16_trains_with_float32_master_weights(config: Any, tmp_path: Path) -> None:
    exact = train(config())
    rounded = train(config(), overrides={"training.precision": "bfloat16", "output": str(tmp_path / "bf16")})
    assert abs(rounded.dev["loss"] - exact.dev["loss"]) < 0.1
    checkpoint = load_file(tmp_path / "bf16" / "checkpoints" / "step-00000012" / "state.safetensors")
    assert all(tensor.dtype == torch.float32 for tensor in checkpoint.values())


def test_the_module_s_command_line(config: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = [str(config()), "--set", "training.steps=3"]
    assert main([*arguments, "--max-seconds", "0"]) == 0
    assert "stopped at step 1 of 3 with a checkpoint" in capsys.readouterr().out
    assert main(arguments) == 0
    assert "finished in" in (output := capsys.readouterr().out)
    assert str(tmp_path / "run" / "model") in output
    assert main([str(tmp_path / "absent.yaml")]) == 2
    assert "no configuration file" in capsys.readouterr().err


def test_a_run_that_diverges_stops_and_says_so(config: Any) -> None:
    wild = {"learning_rate": 1e30, "clip_norm": 0.0, "warmup_steps": 0, "decay": "inverse-sqrt"}
    with pytest.raises(KsterError, match="no longer a number"):
        train(config(training=wild))


@pytest.mark.parametrize("decay", ["linear", "cosine"])
def test_learning_rate_rises_and_falls_to_zero(decay: str) -> None:
    settings = OptimisationSettings(steps=100, warmup_steps=10, learning_rate=2.0, decay=decay)  # type: ignore[arg-type]
    rates = [learning_rate(settings, step) for step in range(101)]
    assert rates[0] == pytest.approx(0.2)
    assert max(rates) == rates[10] == 2.0
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[55] == pytest.approx(1.0)
    assert rates[100] == pytest.approx(0.0)


def test_inverse_sqrt_halves_when_steps_quadruple() -> None:
    settings = OptimisationSettings(steps=1000, warmup_steps=10, learning_rate=2.0, decay="inverse-sqrt")
    assert learning_rate(settings, 39) == pytest.approx(1.0)


def test_a_bare_machine_trains_without_sacrebleu_and_tensorboard(
    config: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sacrebleu", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, name, None)  # importing it fails
    report = train(config(report={"bleu_every": 1, "dev_every": 4, "tensorboard": True}))
    assert report.finished
    assert set(report.dev) == {"loss"}
    log = (tmp_path / "run" / "log.txt").read_text()
    assert log.count("sacrebleu is not installed") == 1
    assert log.count("tensorboard is not installed") == 1


def test_a_compiler_that_fails_costs_speed_not_the_run(
    config: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    straight = train(config())

    def broken(function: Any) -> Any:
        def fail(*_: Any) -> Any:
            raise RuntimeError("no compiler here")

        return fail

    monkeypatch.setattr(torch, "compile", broken)
    report = train(config(), overrides={"training.compile": True, "output": str(tmp_path / "other")})
    assert "training without it: no compiler here" in (tmp_path / "other" / "log.txt").read_text()
    assert_same(weights(straight.model), weights(report.model))


@pytest.mark.slow
def test_compiled_layers_train_the_same_model(config: Any, tmp_path: Path) -> None:
    calm = {"dropout": 0.0, "steps": 6}
    straight = train(config(training=calm))
    compiled = train(
        config(training=calm), overrides={"training.compile": True, "output": str(tmp_path / "compiled")}
    )
    assert "training without it" not in (tmp_path / "compiled" / "log.txt").read_text()
    assert compiled.dev["loss"] == pytest.approx(straight.dev["loss"], abs=1e-3)
