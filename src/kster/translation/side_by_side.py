"""Batches of sentences, translated one after the other or by several threads at once.

On a CPU torch divides every product among its threads, which then wait for one another thousands of times a
batch, and all but one rest while a shortlist or a text is made. So several batches go side by side instead,
each computed by one thread alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import torch

LEAST = 8  # sentences that a thread translates at once; with fewer, it mostly waits for weights to be read

Job = TypeVar("Job")
Result = TypeVar("Result")


def threads_for(device: torch.device) -> int:
    """How many batches should go side by side. While a GPU computes one, the host prepares another."""
    return torch.get_num_threads() if device.type == "cpu" else 2


def shared_out(batches: Sequence[list[int]], threads: int) -> list[list[int]]:
    """Sentences in batches, longest first: divided again where there are too few to keep all threads busy."""
    if len(batches) >= 2 * threads:
        return list(batches)
    parts = [max(1, min(threads, len(batch) // LEAST)) for batch in batches]
    return [batch[i::count] for batch, count in zip(batches, parts, strict=True) for i in range(count)]


def side_by_side(work: Callable[[Job], Result], jobs: Sequence[Job], threads: int) -> Iterator[Result]:
    """The results of the jobs, in their order. Once one fails or no more are wanted, no other is begun."""
    threads = min(threads, len(jobs))
    if threads < 2:
        yield from map(work, jobs)
        return
    before, ready = torch.get_num_threads(), Barrier(threads + 1)

    def begin() -> None:
        torch.get_num_threads()  # a thread's first question sets its number to that of all
        torch.set_num_threads(1)
        ready.wait()

    with ThreadPoolExecutor(threads, "kster-batch", initializer=begin) as pool:
        futures = [pool.submit(work, job) for job in jobs]
        ready.wait()
        torch.set_num_threads(before)  # threads that begin later take the number that was set last
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()
