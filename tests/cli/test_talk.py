"""How much the command line says: quiet and verbose, totals, interruptions, and words that are explained."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import PAIRS, Call, write_lines
from cli.test_main import on_a_terminal
from kster.cli import main


def test_quiet_says_nothing_but_mistakes_and_verbose_says_what_is_done(
    kster: Call, memory: Path, tmp_path: Path
) -> None:
    half = write_lines(tmp_path / "half.tsv", ["the sea\tdas Meer", "only a source"])
    assert "half.tsv" in kster("memory", "import", memory, half).err
    quiet = kster("-q", "memory", "import", memory, half)
    assert (quiet.status, quiet.err) == (0, "")
    assert kster("-q", "memory", "list", tmp_path / "nowhere").is_mistake("no such memory")
    assert "opening the memory" in kster("-v", "translate", "--memory", memory, stdin="a\n").err
    assert kster("-q", "-v", "memory", "list", memory).is_mistake("--quiet and --verbose")


def test_shells_complete_commands(environment: dict[str, str]) -> None:
    asked = {"_KSTER_COMPLETE": "complete_bash", "COMP_WORDS": "kster tr", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "kster"], capture_output=True, text=True, env={**environment, **asked}
    )
    assert done.stdout.split() == ["translate", "train"]


def test_an_import_of_which_every_pair_was_rejected_is_a_failure(
    kster: Call, memory: Path, tmp_path: Path
) -> None:
    useless = write_lines(tmp_path / "useless.tsv", ["only a source", "and another"])
    done = kster("memory", "import", memory, useless)
    assert done.status == 2
    assert done.lines == [f"{useless}: 0 added, 0 there already, 2 rejected"]
    assert f"kster: {useless}: every pair was rejected; nothing of it was imported" in done.err
    again = kster("memory", "import", memory, write_lines(tmp_path / "known.tsv", ["\t".join(PAIRS[0])]))
    assert again.status == 0  # it is there already


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_whoever_interrupts_is_told_what_was_kept(
    kster: Call, memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write_lines(tmp_path / "first.tsv", ["the sea\tdas Meer"])
    second = write_lines(tmp_path / "second.tsv", ["the shore\tdas Ufer"])
    from kster.memory import Memory

    real = Memory.import_pairs

    def second_time(self: Memory, *given: object, **named: object) -> object:
        if str(second) in (named.get("origin"), *given):
            raise KeyboardInterrupt
        return real(self, *given, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Memory, "import_pairs", second_time)
        done = kster("memory", "import", memory, first, second)
    assert done.status == 130
    assert done.err == f"kster: interrupted; nothing of {second} was imported ({first} went in before it)\n"

    monkeypatch.setattr("kster.smoothing.fit", interrupted)
    fitted = kster("fit", memory)
    assert fitted.status == 130
    assert fitted.err.startswith("kster: interrupted; nothing was saved; the memory is as it was")

    monkeypatch.setattr("kster.translation.files.translate_file", interrupted)
    document = write_lines(tmp_path / "a.txt", ["the sea"])
    translated = kster("translate", "--memory", memory, document, "-o", tmp_path / "b.txt")
    assert translated.err == f"kster: interrupted; {tmp_path / 'b.txt'} was not written\n"


def test_progress_of_files_has_a_total(memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = write_lines(tmp_path / "two.tsv", ["the sea\tdas Meer", "the shore\tdas Ufer"])
    lines = write_lines(tmp_path / "lines.txt", ["open the lid"] * 3)
    commands = [
        (["memory", "import", memory, table], "of 2 pairs"),
        (["translate", "--memory", memory, "--input", lines, "-o", tmp_path / "out.txt"], "of 3 lines"),
        (["translate", "--memory", memory, lines, "-o", tmp_path / "out2.txt"], "of 1 texts"),
        (["fit", memory, "--steps", 2, "--metric", 2], r"caching[^\n]* ([\d,]+) of \1 words"),
        (["tune", memory], r"caching[^\n]* ([\d,]+) of \1 words"),
    ]
    for arguments, total in commands:
        shown = on_a_terminal(monkeypatch, lambda arguments=arguments: main([str(a) for a in arguments]))  # type: ignore[misc]
        assert re.search(total, shown), shown


def test_a_fit_that_keeps_the_models_smoother_does_not_say_that_it_saved_another(
    kster: Call, memory: Path, taught_marian: Path, tmp_path: Path
) -> None:
    from kster.memory import Memory
    from kster.model import BaseModel
    from kster.smoothing import FitSettings, fit

    carrying = Path(shutil.copytree(taught_marian, tmp_path / "model"))
    with Memory.open(memory, BaseModel.load(carrying, device="cpu")) as opened:
        fit(opened.model, opened, FitSettings(steps=1, general_share=0.0), directory=carrying / "smoother")
    done = kster("fit", memory, "--model", carrying, "--steps", 1, "--set", "learning_rate=1e-9")
    assert done.status == 0, done.err
    assert "the model's own smoother stays in use" in done.err
    assert "saved in" not in done.out


@pytest.mark.parametrize(
    ("command", "word", "meaning"),
    [
        ("fit", "smoother", "two small networks"),
        ("fit", "nats", "natural logarithm"),
        ("tune", "kNN-MT", "the older method"),
        ("translate", "kNN-MT", "examples with fixed weights"),
        ("train", "smoother", "how much to believe examples"),
    ],
)
def test_words_of_the_field_are_explained_where_they_appear(
    kster: Call, command: str, word: str, meaning: str
) -> None:
    shown = " ".join(kster(command, "--help").out.split())
    assert word in shown
    assert meaning in shown
