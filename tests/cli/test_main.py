"""The frame around the commands: help, version, statuses, progress and bugs."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.conftest import Call
from kster import __version__
from kster.cli.output import size, table
from kster.cli.progress import progress_bar, progress_bars


def test_without_arguments_it_shows_what_it_can_do(kster: Call) -> None:
    done = kster()
    assert done.status == 0
    for command in ("memory", "translate", "fit", "tune", "score", "evaluate", "train"):
        assert f" {command} " in done.out


def test_version(kster: Call) -> None:
    assert kster("--version").out == f"kster {__version__}\n"


def test_unknown_commands_and_missing_arguments_are_mistakes(kster: Call) -> None:
    assert kster("transalte").is_mistake("No such command 'transalte'")
    assert kster("memory").is_mistake("see `kster memory --help`")
    assert kster("memory", "create", "somewhere").is_mistake("--model")
    assert kster("evaluate").is_mistake("--source")


def test_a_bug_keeps_its_traceback(kster: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(directory: Path) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("kster.cli.segment_commands.open_memory", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        kster("memory", "list", tmp_path)


def test_too_little_memory_is_no_bug(kster: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(directory: Path) -> None:
        import torch

        torch.empty(1 << 55)

    monkeypatch.setattr("kster.cli.segment_commands.open_memory", fill)
    assert kster("memory", "list", tmp_path).is_mistake("not enough memory")


def test_what_the_operating_system_refuses_is_a_mistake(
    kster: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr("kster.cli.segment_commands.open_memory", Path.read_bytes)
    assert kster("memory", "list", tmp_path / "folder").is_mistake("folder: Is a directory")


def test_a_directory_is_no_output(kster: Call, filled_memory: Path, tmp_path: Path) -> None:
    done = kster("translate", "--memory", filled_memory, "--output", tmp_path, stdin="x")
    assert done.is_mistake("is a directory")


def test_interrupted(kster: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(directory: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kster.cli.segment_commands.open_memory", interrupt)
    done = kster("memory", "list", tmp_path)
    assert (done.status, done.out, done.err) == (130, "", "")


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, job: Callable[[], None]) -> str:
    """What a job writes to stderr when that is a terminal."""
    reading, writing = os.openpty()
    with open(writing, "w", encoding="utf-8") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        patch.setenv("TERM", "xterm")
        patch.setenv("COLUMNS", "100")
        job()
    written = b""
    with open(reading, "rb", buffering=0) as screen, contextlib.suppress(OSError):  # EIO: all was read
        while chunk := screen.read(1 << 16):
            written += chunk
    return written.decode()


def test_progress_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    def job() -> None:
        with progress_bar("translating", "lines", total=2000) as show:
            show(1500)

    assert "1,500 of 2,000 lines" in on_a_terminal(monkeypatch, job)


def test_progress_of_several_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    def job() -> None:
        with progress_bars({"caching": "words", "fitting": "steps"}) as show:
            show("caching", 7, 9)
            show("fitting", 20, 400)

    written = on_a_terminal(monkeypatch, job)
    assert "7 of 9 words" in written
    assert "20 of 400 steps" in written


def test_progress_can_be_kept_off_a_terminal_that_shows_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def job() -> None:
        with progress_bar("translating", "lines", visible=False) as show:
            show(1)
        print("nothing but this", file=sys.stderr, end="")

    assert on_a_terminal(monkeypatch, job) == "nothing but this"


def test_progress_is_silent_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("translating", "lines") as show:
        show(1)
    assert capsys.readouterr().err == ""


def test_tables_align_numbers_and_show_markup_as_it_is() -> None:
    lines = table([["system", "BLEU"], ["[bold]base", "9.5"], ["kster", "31.0"]]).splitlines()
    base, kster = (next(line for line in lines if name in line) for name in ("[bold]base", "kster"))
    assert base.index("9.5") == kster.index("31.0") + 1


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1_234, "1.2 kB"), (5_600_000, "5.6 MB"), (2 * 10**13, "20,000.0 GB")],
)
def test_sizes_for_people(count: int, text: str) -> None:
    assert size(count) == text
