"""Memory does not grow with the file: measured in a process of its own, as the peak the kernel saw."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kster.formats import Pair, write_pairs

READ = """
import sys
from kster.formats import Pair, read_pairs
count = sum(isinstance(item, Pair) for item in read_pairs(sys.argv[1], "en", "de"))
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(count, int(peak.split()[1]))
"""


def some_pairs(count: int) -> Iterator[Pair]:
    for i in range(count):
        yield Pair(
            f"This is sentence number {i} of a long file. " * 3, f"Das ist Satz Nummer {i}. " * 4, str(i)
        )


def peak_of_reading(path: Path, count: int) -> float:
    """Peak resident memory in MB of a process that reads all pairs of the file."""
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
    pairs, peak = done.stdout.split()
    assert int(pairs) == count
    return int(peak) / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from /proc")
@pytest.mark.parametrize(
    ("few", "many", "size"),
    [(1_000, 30_000, 8e6), pytest.param(1_000, 360_000, 100e6, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("name", ["a.tmx", "a.xlf", "a.po"])
def test_a_hundred_times_the_file_takes_no_more_memory(
    tmp_path, name: str, few: int, many: int, size: float
) -> None:
    """A tree of the larger file would take several times its size; 16 MB is the allocator's play."""
    small, large = tmp_path / f"small-{name}", tmp_path / f"large-{name}"
    write_pairs(small, some_pairs(few), "en", "de")
    write_pairs(large, some_pairs(many), "en", "de")
    assert large.stat().st_size > size
    assert peak_of_reading(large, many) - peak_of_reading(small, few) < 16
