"""`fit`, `tune`, `score`, `evaluate` and `train` from the command line, with the real thing behind them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from cli.conftest import PAIRS, Call, write_lines
from kster.cli.fit_commands import fit
from kster.smoothing import FitSettings
from kster.smoothing.defaults import UNIVERSAL
from tiny import ENGLISH, GERMAN


def test_fit_shows_the_defaults_it_has() -> None:
    defaults = FitSettings().to_json()
    command = typer.main.get_command(_app_of(fit))
    texts = {param.name: getattr(param, "show_default", None) for param in command.params}
    shown = {name: text for name, text in texts.items() if isinstance(text, str)}
    own = {name: text for name, text in shown.items() if name in defaults}
    assert len(own) == 4
    assert own == {name: str(defaults[name]) for name in own}


def _app_of(command: Any) -> typer.Typer:
    app = typer.Typer()
    app.command()(command)
    return app


def test_fitted_memory_says_so_and_translates_with_its_fit(
    kster: Call, memory: Path, parallel: tuple[Path, Path]
) -> None:
    dev = ("--dev-source", parallel[0], "--dev-target", parallel[1])
    done = kster("fit", memory, "--kernel", "gaussian", *dev, "--steps", 5, "--k", 4, "--json")
    assert done.status == 0
    # These pairs were imported, and the person is told so.
    assert done.err.startswith("kster: warning: 6 of 6 development pairs have a target that is in the memory")
    again = kster("fit", memory, "--kernel", "gaussian", *dev, "--steps", 5, "--k", 4, "--json")
    assert again.err == done.err  # also by a second command of the same process
    assert done.err.count("\n") == 1
    report = json.loads(done.out)
    assert (report["settings"]["kernel"], report["settings"]["steps"], report["settings"]["k"]) == (
        "gaussian",
        5,
        4,
    )
    assert report["dev_origin"] == "given"
    info = kster("memory", "info", memory)
    assert re.search(r"fitted +just now on 30 segments \(gaussian kernel\); unchanged since", info.out)
    assert json.loads(kster("memory", "info", memory, "--json").out)["fit"]["settings"]["k"] == 4
    assert kster("translate", "--memory", memory, stdin=PAIRS[4][0]).out == PAIRS[4][1] + "\n"


def test_fit_for_people_and_by_the_papers_recipe(kster: Call, memory: Path) -> None:
    done = kster("fit", memory, "--paper", "--steps", 2, "--set", "label_smoothing=0.1")
    assert re.search(r"loss a word, dev +base \d.*KSTER \d.*held out", done.out)
    settings = json.loads(kster("memory", "info", memory, "--json").out)["fit"]["settings"]
    assert (settings["dropout"], settings["features"], settings["label_smoothing"]) == (
        "nearest",
        "paper",
        0.1,
    )


def test_a_fit_says_whether_a_learned_distance_was_better(kster: Call, memory: Path) -> None:
    said = {
        True: "distance +learned \\(4 rows\\)",
        False: "distance +plain; a learned one was not clearly better on the development text",
    }
    fitting = ("fit", memory, "--metric", 4, "--steps", 5, "--k", 4)
    report = json.loads(kster(*fitting, "--json").out)
    assert report["settings"]["metric"] == 4
    assert re.search(said[report["metric"] > 0], kster(*fitting).out)
    assert kster("translate", "--memory", memory, stdin=PAIRS[4][0]).out == PAIRS[4][1] + "\n"
    assert "distance" not in kster("fit", memory, "--steps", 5, "--k", 4).out
    assert kster("fit", memory, "--metric", -1).is_mistake("metric: is -1; must be at least 0")


def test_tune_saves_what_knn_uses(kster: Call, memory: Path, parallel: tuple[Path, Path]) -> None:
    done = kster("tune", memory, "--dev-source", parallel[0], "--dev-target", parallel[1], "--json")
    best = json.loads(done.out)["best"]
    saved = json.loads((memory / "smoother" / "knn.json").read_text())
    assert (saved["k"], saved["mixing_weight"]) == (best["k"], best["mixing_weight"])
    assert kster("tune", memory).lines[0].startswith("best of")


def test_development_text_may_have_lines_that_the_model_cannot_read(
    kster: Call, memory: Path, tmp_path: Path
) -> None:
    long = "word " * 600
    source = write_lines(tmp_path / "s", ["", "a red lid", long])
    files = ("--dev-source", source, "--dev-target", write_lines(tmp_path / "t", ["leer", "ein Deckel", "x"]))
    for command in (("fit", memory, "--steps", 2), ("tune", memory)):
        done = kster(*command, *files)
        assert done.status == 0
        assert re.search(r"/s, line 3: left out, the source is too long: \d+ tokens", done.err)
    nothing = write_lines(tmp_path / "l", [long] * 3)
    assert "every line is too long" in kster("tune", memory, *files[:3], nothing).err


def test_score_has_one_line_a_pair_and_one_column_a_method(
    kster: Call, filled_memory: Path, tmp_path: Path
) -> None:
    source = write_lines(tmp_path / "s", [PAIRS[0][0], PAIRS[0][0], ""])
    target = write_lines(tmp_path / "t", [PAIRS[0][1], PAIRS[9][1], ""])
    files = ("--source", source, "--target", target)
    done = kster("score", "--memory", filled_memory, *files, "--methods", "base,kster")
    rows = [[float(cell) for cell in line.split("\t")] for line in done.lines]
    assert [len(row) for row in rows] == [2, 2, 2]
    assert rows[0][1] > rows[0][0]  # the memory makes its own example likelier …
    assert rows[0][1] > rows[1][1]  # … and likelier than another translation
    alone = kster("score", "--memory", filled_memory, *files, "--method", "kster", "--json")
    scores = [json.loads(line)["scores"]["kster"] for line in alone.lines]
    assert scores == pytest.approx([row[1] for row in rows], abs=1e-5)


def test_evaluate_compares_methods_and_keeps_their_translations(
    kster: Call, filled_memory: Path, parallel: tuple[Path, Path], tmp_path: Path
) -> None:
    files = ("--source", parallel[0], "--reference", parallel[1])
    kept = ("--output-dir", tmp_path / "kept", "--resamples", 50)
    done = kster("evaluate", "--memory", filled_memory, *files, *kept, "--json")
    assert (done.status, done.err) == (0, "")
    report = json.loads(done.out)
    scores = {system["name"]: system["metrics"]["chrF2"]["score"] for system in report["systems"]}
    assert list(scores) == ["base", "knn", "kster"]
    assert scores["kster"] == pytest.approx(100.0)
    assert scores["base"] < scores["kster"]
    assert report["signatures"]["BLEU"].startswith("nrefs:1|bs:50|seed:12345|")
    assert report["smoothers"]["kster"] == {"origin": "default", "path": str(UNIVERSAL / "smoother.json")}
    assert (tmp_path / "kept" / "kster.txt").read_text(encoding="utf-8") == parallel[1].read_text(
        encoding="utf-8"
    )
    assert len((tmp_path / "kept" / "base.txt").read_text(encoding="utf-8").splitlines()) == 6


def test_evaluate_writes_markdown_to_a_pipe(
    kster: Call, filled_memory: Path, parallel: tuple[Path, Path]
) -> None:
    files = ("--source", parallel[0], "--reference", parallel[1])
    done = kster("evaluate", "--memory", filled_memory, *files, "--methods", "kster,base", "--resamples", 5)
    assert done.lines[0].startswith("| system | BLEU |")
    assert [line.split("|")[1].strip() for line in done.lines[2:4]] == ["kster", "base"]
    assert "against kster" in done.out


def test_mistakes_are_one_line(
    kster: Call, filled_memory: Path, taught_marian: Path, parallel: tuple[Path, Path], tmp_path: Path
) -> None:
    source, target = parallel
    short = write_lines(tmp_path / "short", ["one line"])
    fitting = ("fit", filled_memory)
    assert kster(*fitting, "--kernel", "box").is_mistake("laplacian")
    for k in (0, 100_000):
        assert kster(*fitting, "--k", k).is_mistake("Invalid value for '--k'")
    assert kster(*fitting, "--set", "dropout=all").is_mistake("one of nearest, provenance, none")
    assert kster(*fitting, "--set", "keep_rate=2").is_mistake("keep_rate")
    assert kster(*fitting, "--set", "steps=many").is_mistake("--set: steps: expected a whole number")
    assert kster(*fitting, "--set", "stps=2").is_mistake("did you mean 'steps'?")
    assert kster(*fitting, "--set", "steps").is_mistake("expected KEY=VALUE")
    assert kster(*fitting, "--dev-source", source).is_mistake("belong together")
    assert kster(*fitting, "--dev-source", source, "--dev-target", short).is_mistake("6 lines")
    assert kster(*fitting, "--dev-source", source, "--dev-target", tmp_path / "no").is_mistake("no such file")
    assert kster("tune", filled_memory, "--kernel", "box").is_mistake("accepted: ")
    evaluating = ("evaluate", "--memory", filled_memory, "--source", source, "--reference")
    assert kster(*evaluating, short).is_mistake("short has 1 line,")
    assert kster(*evaluating, tmp_path / "no").is_mistake("no such file")
    assert kster(*evaluating, target, "--methods", "base,best").is_mistake("best is not a method")
    assert kster(*evaluating, target, "--tokenize", "x", "--methods", "base").is_mistake("accepted: ")
    base_only = ("evaluate", "--model", taught_marian, "--source", source, "--reference", target)
    assert kster(*base_only, "--methods", "base,knn").is_mistake("need a memory")
    scoring = ("score", "--model", taught_marian, "--source", source, "--target")
    assert kster(*scoring, tmp_path / "no").is_mistake("no such file")
    long = write_lines(tmp_path / "long", ["word " * 600] * 6)
    assert kster(*scoring, long).is_mistake("reads at most")


def test_fitting_an_empty_memory_is_refused(kster: Call, taught_marian: Path, tmp_path: Path) -> None:
    kster("memory", "create", tmp_path / "new", "--model", taught_marian)
    assert kster("fit", tmp_path / "new").is_mistake("the memory is empty")
    assert kster("tune", tmp_path / "new").is_mistake("the memory is empty")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A run that trains in a second."""
    for language, lines in (("en", ENGLISH), ("de", GERMAN)):
        write_lines(tmp_path / f"train.{language}", [f"{a} {b}" for a in lines for b in lines if a != b])
        write_lines(tmp_path / f"dev.{language}", lines)
    content = {
        "source_lang": "en",
        "target_lang": "de",
        "data": str(tmp_path),
        "prepared": str(tmp_path / "prepared"),
        "output": str(tmp_path / "run"),
        "corpora": [{"source": "train.en", "target": "train.de"}],
        "dev": {"source": "dev.en", "target": "dev.de"},
        "device": "cpu",
        "cleaning": {"language_identity": False, "max_tokens": 100},
        "vocabulary": {"size": 400},
        "network": {
            **{"encoder_layers": 1, "decoder_layers": 1, "dimension": 16, "feed_forward": 32, "heads": 2},
            "positions": 128,
        },
        "training": {"steps": 50, "batch_tokens": 600, "warmup_steps": 2},
        "report": {"bleu_every": -1, "tensorboard": False},
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def test_train_prepares_trains_and_gives_a_model_that_translates(
    kster: Call, config: Path, tmp_path: Path
) -> None:
    prepared = kster("train", config, "--prepare-only")
    assert prepared.status == 0
    assert not (tmp_path / "run" / "model").exists()
    done = kster("train", config, "--set", "training.steps=3", "--set", "export.dtype=float32")
    assert done.status == 0
    assert done.lines[-1].endswith(str(tmp_path / "run" / "model"))
    again = json.loads(kster("train", config, "--set", "training.steps=3", "--json").out)
    assert (again["finished"], again["step"], again["model"]) == (True, 3, str(tmp_path / "run" / "model"))
    translated = kster("translate", "--model", tmp_path / "run" / "model", "--beam", 1, stdin="\n\n")
    assert (translated.status, translated.out) == (0, "\n\n")


def test_train_explains_mistakes(kster: Call, config: Path, tmp_path: Path) -> None:
    assert kster("train", tmp_path / "no.yaml").is_mistake("no configuration file")
    assert kster("train", config, "--set", "training.steps").is_mistake("expected KEY=VALUE")
    assert kster("train", config, "--set", "training.stepps=3").is_mistake("stepps")
