"""Give each of several processes the same share of a core, so that few cores stand for many slow ones.

The kernel's CPU quotas do it: a process that has used up its share of a period waits for the next one. What
they cannot imitate is that real cores also share caches and memory bandwidth: with small shares there is less
contention for these than on a machine whose cores are all busy.

Needs Linux, root and cgroup v1 with its `cpu` controller at /sys/fs/cgroup/cpu.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path

CONTROLLER = Path("/sys/fs/cgroup/cpu")
PERIOD = 20_000  # µs: short, so that one call waits for a few milliseconds rather than a hundred
FIRST = 262_144  # the most `cpu.shares` there are: other work on the machine gets what is left


class NoQuotas(Exception):
    """This machine cannot limit processes."""


class CpuQuotas:
    """Processes that may each use `share` of a core."""

    def __init__(self, group: Path, share: float) -> None:
        self._group, self.share = group, share

    def limit(self, processes: Sequence[int], helpers: Sequence[int] = ()) -> None:
        """Each of them by itself, with all its threads, or together with a helper, if each has one."""
        for process, helper in zip_longest(processes, helpers[: len(processes)]):
            own = self._group / str(process)
            own.mkdir(exist_ok=True)
            (own / "cpu.cfs_period_us").write_text(str(PERIOD))
            (own / "cpu.cfs_quota_us").write_text(str(round(self.share * PERIOD)))
            for one in (process, helper) if helper else (process,):
                (own / "cgroup.procs").write_text(str(one))

    def periods(self, process: int) -> tuple[int, int]:
        """In which a process wanted the processor, and how many of them saw its share used up."""
        lines = (self._group / str(process) / "cpu.stat").read_text().splitlines()
        of = {name: int(value) for name, value in map(str.split, lines)}
        return of["nr_periods"], of["nr_throttled"]


@contextmanager
def cpu_quotas(share: float) -> Iterator[CpuQuotas]:
    """This process and those it starts from now on go before all others; those that are named get a share."""
    group = CONTROLLER / f"kster-benchmark-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cpu.shares").write_text(str(FIRST))
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as error:
        raise NoQuotas(
            f"--share needs root and cgroup v1 with its cpu controller at {CONTROLLER} ({error}); "
            "nothing was measured"
        ) from None
    try:
        yield CpuQuotas(group, share)
    finally:
        (CONTROLLER / "cgroup.procs").write_text(str(os.getpid()))
        _remove(group)


def _remove(group: Path) -> None:
    """When the processes in it have ended."""
    deadline = time.monotonic() + 10
    for own in (*(path for path in group.iterdir() if path.is_dir()), group):
        while own.exists() and time.monotonic() < deadline:
            with suppress(OSError):
                own.rmdir()
                break
            time.sleep(0.1)


def busy_seconds(process: int) -> float:
    """What a process has had of the processor."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
