"""Several processes for one run: a GPU waits for one process most of the time, and serves several as well.

Every part of every experiment goes to a process of its own; stages that several need are made by one of them
while the others wait (`Pipeline.once`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kster.errors import KsterError
from kster.experiments.stages import Clock, OutOfTime

NOT_FINISHED = 75  # the shell's "temporary failure, try again": the same command continues


@dataclass(frozen=True, slots=True)
class Share:
    """One process's work."""

    name: str
    part: int
    model: str

    def command(self, common: Sequence[str], seconds: float | None) -> list[str]:
        limit = [] if seconds is None else ["--max-seconds", f"{seconds:.0f}"]
        own = [self.name, "--part", str(self.part), "--model", self.model, "--stage", "run"]
        return [sys.executable, "-m", "kster.experiments", *own, *common, *limit]


def share_out(shares: Sequence[Share], common: Sequence[str], workers: int, clock: Clock) -> bool:
    """Do all of them, `workers` at a time; False when the time was over before everything was done."""
    threads = max(1, (os.cpu_count() or 1) // workers)
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}

    def do(share: Share) -> int:
        try:
            clock.check()
        except OutOfTime:
            return NOT_FINISHED
        began = time.monotonic()
        status = subprocess.run(share.command(common, clock.left), env=environment, check=False).returncode
        took = f"{time.monotonic() - began:.0f} s"
        print(f"-- {share.name} {share.part}: status {status} after {took}", file=sys.stderr, flush=True)
        return status

    with ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(do, shares))
    failed = [share for share, status in zip(shares, found, strict=True) if status not in (0, NOT_FINISHED)]
    if failed:
        names = ", ".join(f"{share.name} (part {share.part})" for share in failed)
        raise KsterError(f"failed: {names}; what went wrong is above. What is finished is kept")
    return NOT_FINISHED not in found
