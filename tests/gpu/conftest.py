"""Real parts on a real GPU; needs torch, transformers and sentencepiece, nothing else of KSTER's own wants.

KSTER_TEST_DEVICE=cpu runs what can run without a GPU, to work on the tests themselves.
"""

from __future__ import annotations

import os

import pytest
import torch

from kster.model import BaseModel

DEVICE = os.environ.get("KSTER_TEST_DEVICE", "cuda")


@pytest.fixture(autouse=True)
def _gpu() -> None:
    if DEVICE == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device here")


@pytest.fixture
def device() -> torch.device:
    """With its index, as tensors name it."""
    return torch.device("cuda", torch.cuda.current_device()) if DEVICE == "cuda" else torch.device(DEVICE)


@pytest.fixture(params=["taught_marian", "taught_m2m100"])
def checkpoint(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.fixture(params=["float32", "float16"])
def model(request: pytest.FixtureRequest, checkpoint: str, device: torch.device) -> BaseModel:
    """Both families in both precisions."""
    precision = "auto" if device.type == "cpu" else request.param
    return BaseModel.load(checkpoint, device=device, precision=precision, source_lang="en", target_lang="de")
