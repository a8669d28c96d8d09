"""Fixtures shared by all tests."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
# One thread a process: several test processes that each spin on every core are slower than one alone.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

GENERAL_TEXT = "TESTS_GENERAL_TEXT"


@pytest.hookimpl(optionalhook=True)  # so that tests also run with `-p no:xdist`
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than there are cores: many tests wait for a server, a browser or a process."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], Path]], Path]:
    """Directories that are made by the first test process that wants them, and used by all."""
    shared = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent

    def get(name: str, make: Callable[[Path], Path]) -> Path:
        with (shared / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (shared / name).exists():
                make(shared / f"{name}.part").rename(shared / name)
        return shared / name

    return get


@pytest.fixture(scope="session")
def short_general_text(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fits of tiny models, which read every letter as a token, look a few lines of general text up."""
    from kster.smoothing.fitting import general

    shipped, short = general.TEXTS, tmp_path_factory.mktemp("general_text")
    for path in shipped.glob("*.tsv"):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        (short / path.name).write_text("".join(lines[:30]), encoding="utf-8")
    general.TEXTS = short
    os.environ[GENERAL_TEXT] = str(short)  # for servers that tests start
    yield
    general.TEXTS = shipped
    del os.environ[GENERAL_TEXT]


@pytest.fixture(scope="session")
def tiny_marian(made_once: Callable[..., Path], short_general_text: None) -> Path:
    """A random-weight post-norm checkpoint (d = 32)."""
    from tiny import make_marian

    return made_once("marian", make_marian)


@pytest.fixture(scope="session")
def tiny_m2m100(made_once: Callable[..., Path], short_general_text: None) -> Path:
    """A random-weight pre-norm checkpoint with language tokens (d = 32)."""
    from tiny import make_m2m100

    return made_once("m2m100", make_m2m100)


@pytest.fixture(scope="session")
def taught_marian(made_once: Callable[..., Path], short_general_text: None) -> Path:
    """A post-norm checkpoint that translates the sentences of `tiny` (d = 32)."""
    from tiny import make_marian, teach

    return made_once("taught_marian", lambda directory: teach(make_marian(directory, sharpness=1.0)))


@pytest.fixture(scope="session")
def taught_m2m100(made_once: Callable[..., Path], short_general_text: None) -> Path:
    """A pre-norm checkpoint with language tokens that translates the sentences of `tiny` (d = 32)."""
    from tiny import make_m2m100, teach

    return made_once("taught_m2m100", lambda directory: teach(make_m2m100(directory, sharpness=1.0)))
