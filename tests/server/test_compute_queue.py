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


def test_work_in_pieces_lets_others_in_between_and_not_during_one() -> None:
    turns, order = ComputeQueue(), []
    inside = threading.Event()

    def other() -> None:
        inside.wait()
        with turns:
            order.append("other")

    thread = threading.Thread(target=other)
    thread.start()
    with turns.by_pieces() as let_others:
        inside.set()
        while turns._asked < 2:
            threading.Event().wait(0.0001)
        order.append("piece 1")
        let_others(True)
        order.append("piece 2")
        let_others(False)
        with turns:  # whoever comes after the last piece does not wait for the rest
            order.append("after")
    thread.join()
    assert order == ["piece 1", "other", "piece 2", "after"]


@pytest.mark.parametrize("done", [None, True, False])
def test_the_turn_is_over_when_the_work_fails(done: bool | None) -> None:
    turns = ComputeQueue()

    def fail() -> None:
        with turns.by_pieces() as let_others:
            if done is not None:
                let_others(done)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    with turns:
        pass
