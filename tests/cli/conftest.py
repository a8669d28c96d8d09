"""A taught model, thirty example pairs it does not know, a memory of them, and `kster` to call."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

_PARTS = {
    "lid": "den Deckel",
    "filter": "den Filter",
    "tank": "den Wassertank",
    "button": "die Taste",
    "light": "das Licht",
}
_ACTIONS = {
    "open the": "öffnen",
    "clean the": "reinigen",
    "start the": "starten",
    "press the": "drücken",
    "rinse the": "spülen",
    "find the": "finden",
}
PAIRS = [
    (f"{verb} {part}", f"{teil} {tun}") for verb, tun in _ACTIONS.items() for part, teil in _PARTS.items()
]


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    def is_mistake(self, said: str) -> bool:
        """Status 2, nothing on stdout, one line on stderr that says so."""
        return (
            self.status == 2
            and self.out == ""
            and self.err.startswith("kster: ")
            and self.err.count("\n") == 1
            and "Traceback" not in self.err
            and said in self.err
        )


Call = Callable[..., Outcome]


@pytest.fixture
def kster(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command in this process; stdin: text or bytes."""
    from kster.cli import main

    def call(*arguments: object, stdin: str | bytes = "") -> Outcome:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Outcome(status, out, err)

    return call


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


@pytest.fixture
def process(environment: dict[str, str]) -> Call:
    """Runs the installed command in a process of its own."""

    def call(*arguments: object, stdin: str = "") -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "kster", *map(str, arguments)],
            input=stdin.encode(),
            capture_output=True,
            env=environment,
            timeout=300,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    return call


@pytest.fixture(scope="session")
def filled_memory(taught_marian: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory of the thirty pairs, not to be changed."""
    from kster.formats import Pair
    from kster.memory import Memory
    from kster.model import BaseModel

    directory = tmp_path_factory.mktemp("filled") / "memory"
    with Memory.create(directory, BaseModel.load(taught_marian, device="cpu")) as memory:
        memory.import_pairs([Pair(*pair) for pair in PAIRS])
    return directory


@pytest.fixture
def memory(filled_memory: Path, tmp_path: Path) -> Path:
    """A copy of the memory of thirty pairs, for one test alone."""
    return Path(shutil.copytree(filled_memory, tmp_path / "memory"))


@pytest.fixture(scope="session")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another model of the same shape, which the memory does not belong to."""
    from tiny import make_marian

    return make_marian(tmp_path_factory.mktemp("other"), seed=7)


def write_lines(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def parallel(tmp_path: Path) -> tuple[Path, Path]:
    """Six of the pairs as two files."""
    return (
        write_lines(tmp_path / "dev.en", [source for source, _ in PAIRS[::5]]),
        write_lines(tmp_path / "dev.de", [target for _, target in PAIRS[::5]]),
    )
