"""Turns: nobody computes beside another, and who asked first is next, however often others come."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest

from kster.server.work.compute_queue import ComputeQueue


def test_two_that_never_pause_alternate() -> None:
    turns, order = ComputeQueue(), []
    both = threading.Barrier(2)

    def work(name: str) -> None:
        both.wait()
        for _ in range(200):
            with turns:
                order.append(name)
                while turns._asked - turns._served < 2 and order.count("b" if name == "a" else "a") < 200:
                    threading.Event().wait(0.0001)  # until the other waits, too

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    changes = sum(one != other for one, other in pairwise(order))
    assert changes == len(order) - 1


def test_the_turn_is_over_when_the_work_fails() -> None:
    turns = ComputeQueue()
    with pytest.raises(ValueError, match="broken"), turns:
        raise ValueError("broken")
    with turns:
        pass
