"""One model serves many threads: what they ask never mixes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from kster.model import BaseModel
from tiny import ENGLISH, GERMAN


@pytest.mark.parametrize("family", ["tiny_marian", "tiny_m2m100"])
def test_threads_that_tokenise_and_force_decode_at_once_get_what_they_would_get_alone(
    family: str, request: pytest.FixtureRequest
) -> None:
    checkpoint: Path = request.getfixturevalue(family)
    model = BaseModel.load(checkpoint, device="cpu", source_lang="en", target_lang="de")
    pairs = list(zip(ENGLISH, GERMAN, strict=True))
    alone = [next(iter(model.force_decode([pair]))) for pair in pairs]
    sources, targets = model.tokenise_source(ENGLISH), model.tokenise_target(GERMAN)

    def work(turn: int) -> bool:
        i = turn % len(pairs)
        forced = next(iter(model.force_decode([pairs[i]])))
        return (
            torch.equal(forced.tokens, alone[i].tokens)
            and torch.equal(forced.keys, alone[i].keys)
            and model.tokenise_source([ENGLISH[i]]) == [sources[i]]
            and model.tokenise_target([GERMAN[i]]) == [targets[i]]
        )

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(96)))
