"""Batches are translated side by side, and it makes no difference to what comes out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from threading import get_ident

import pytest
import torch

from kster import BaseModel, Translator
from kster.translation.side_by_side import LEAST, shared_out, side_by_side
from tiny import ENGLISH


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_results_come_in_the_order_of_the_jobs() -> None:
    assert list(side_by_side(lambda job: job * job, range(20), 3)) == [job * job for job in range(20)]


def test_every_thread_computes_alone_and_others_keep_their_number(two_threads: None) -> None:
    seen = list(side_by_side(lambda _: (get_ident(), torch.get_num_threads()), range(8), 2))
    assert {number for _, number in seen} == {1}
    assert get_ident() not in {thread for thread, _ in seen}
    assert torch.get_num_threads() == 2
    assert next(side_by_side(lambda _: torch.get_num_threads(), [0], 2)) == 2


def test_an_error_in_one_job_reaches_the_caller_and_the_rest_is_left_undone() -> None:
    done: list[int] = []

    def work(job: int) -> None:
        if job == 0:
            raise ValueError("no")
        done.append(job)
        time.sleep(0.001)  # the caller hears of the error long before all others could be done

    with pytest.raises(ValueError, match="no"):
        list(side_by_side(work, range(10_000), 2))
    assert len(done) < 9_999


def test_batches_are_divided_only_where_threads_would_be_idle() -> None:
    long, short = list(range(4 * LEAST)), list(range(LEAST))
    assert shared_out([long], 2) == [long[0::2], long[1::2]]
    assert shared_out([short], 2) == [short]
    assert shared_out([long] * 4, 2) == [long] * 4
    assert shared_out([long], 1) == [long]


def test_translations_are_the_same_as_by_one_thread(tiny_marian: Path, two_threads: None) -> None:
    model = BaseModel.load(tiny_marian, device="cpu", precision="float32")
    texts = [f"{text} {n}" for n in range(6) for text in ENGLISH]
    seen: list[int] = []
    side = Translator(model).translate(texts, progress=seen.append)
    torch.set_num_threads(1)
    assert [one.text for one in side] == [one.text for one in Translator(model).translate(texts)]
    assert seen == sorted(seen)
    assert seen[-1] == len(texts)
    assert len(seen) > 1
