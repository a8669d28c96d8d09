"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
# One thread a process: several test processes that each spin on every core are slower than one alone.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def tiny_marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random-weight post-norm checkpoint (d = 32)."""
    from tiny import make_marian

    return make_marian(tmp_path_factory.mktemp("marian"))


@pytest.fixture(scope="session")
def tiny_m2m100(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random-weight pre-norm checkpoint with language tokens (d = 32)."""
    from tiny import make_m2m100

    return make_m2m100(tmp_path_factory.mktemp("m2m100"))


@pytest.fixture(scope="session")
def taught_marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A post-norm checkpoint that translates the sentences of `tiny` (d = 32)."""
    from tiny import make_marian, teach

    return teach(make_marian(tmp_path_factory.mktemp("taught_marian"), sharpness=1.0))


@pytest.fixture(scope="session")
def taught_m2m100(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pre-norm checkpoint with language tokens that translates the sentences of `tiny` (d = 32)."""
    from tiny import make_m2m100, teach

    return teach(make_m2m100(tmp_path_factory.mktemp("taught_m2m100"), sharpness=1.0))
