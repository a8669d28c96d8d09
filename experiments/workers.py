"""Several processes for one run: a GPU waits for one process most of the time, and serves several as well.

The parts of all experiments are handed out to them, one after the other; stages that several need are made by
one of them while the others wait (`Pipeline.once`).
"""

from __future__ import annotations

import gc
import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context, parent_process

import torch

from experiments.budget import Budget
from experiments.catalogue import EXPERIMENTS
from experiments.pipeline import Pipeline
from experiments.stages import Clock, OutOfTime, say
from kster.errors import KsterError


@dataclass(frozen=True, slots=True)
class Share:
    """What a process is given to do: one part of an experiment, for one base model."""

    name: str
    part: int
    model: str

    def __str__(self) -> str:
        return f"{self.name} (part {self.part})"


OpenPipeline = Callable[[str, Clock], Pipeline]
"""For a base model."""


def share_out(
    shares: Sequence[Share], workers: int, open_pipeline: OpenPipeline, budget: Budget, clock: Clock
) -> bool:
    """Do all of them, in this order; False when the time was over before everything was done."""
    done, failed = [], []
    context = get_context("forkserver")  # which imports torch once for all of them
    context.set_forkserver_preload([__name__])
    threads = max(1, (os.cpu_count() or 1) // workers)  # none may take all cores for itself
    begin = (open_pipeline, budget, clock.left, threads)
    with ProcessPoolExecutor(min(workers, len(shares)), context, _begin, begin) as pool:
        for share, future in [(share, pool.submit(_do, share)) for share in shares]:
            try:
                done.append(future.result())
            except Exception as error:
                failed.append(f"{share}: {error}")
    if failed:
        raise KsterError("failed: " + "; ".join(failed) + ". What is finished is kept")
    return all(done)


class _Worker:
    """What a process keeps from one share to the next: the base models."""

    def __init__(self, open_pipeline: OpenPipeline, budget: Budget, clock: Clock) -> None:
        self.open_pipeline, self.budget, self.clock = open_pipeline, budget, clock
        self.pipelines: dict[str, Pipeline] = {}

    def do(self, share: Share) -> bool:
        """False when the time is over. What finds no room on the GPU beside the other processes is left to
        the run itself, which makes whatever is missing when they have ended."""
        began = time.monotonic()
        try:
            self.clock.check()
            pipeline = self.pipeline(share.model)
            EXPERIMENTS[share.name].parts(self.budget)[share.part].do(pipeline)
        except OutOfTime:
            return False
        except torch.OutOfMemoryError:
            say(f"-- {share} with {share.model}: no room on the GPU, left to the end")
            return True
        except Exception as error:
            if not isinstance(error, KsterError):
                traceback.print_exc()
            raise KsterError(str(error) or type(error).__name__) from None  # any other might not travel
        finally:
            self.tidy_up()
        say(f"-- {share} of {pipeline.direction}: {time.monotonic() - began:.0f} s")
        return True

    def pipeline(self, model: str) -> Pipeline:
        if model not in self.pipelines:
            self.pipelines[model] = self.open_pipeline(model, self.clock)
        return self.pipelines[model]

    def tidy_up(self) -> None:
        """What this share has left on the GPU is the next one's room, or another process's."""
        for pipeline in self.pipelines.values():
            pipeline.close()
        gc.collect()
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()


_worker: _Worker | None = None  # of this process


def _begin(open_pipeline: OpenPipeline, budget: Budget, seconds: float | None, threads: int) -> None:
    global _worker
    torch.set_num_threads(threads)
    os.environ["OMP_NUM_THREADS"] = str(threads)  # of libraries that are not yet loaded
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    _worker = _Worker(open_pipeline, budget, Clock(seconds))


def _end_with_the_parent() -> None:
    """One that is killed cannot tell: its processes would wait for work for ever, and keep their memory."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)  # as if killed, too: a stage is whole or absent


def _do(share: Share) -> bool:
    assert _worker is not None
    return _worker.do(share)
