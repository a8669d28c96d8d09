"""Several processes for one run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

CODE = """
import os, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from kster.experiments.workers import _begin
if __name__ == "__main__":
    with ProcessPoolExecutor(1, get_context("spawn"), _begin, (None, None)) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        time.sleep(60)
"""


def test_processes_of_a_killed_run_end_with_it(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(CODE)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
        try:
            parent.communicate(timeout=10)  # its output ends when no process has it any more
        except subprocess.TimeoutExpired:
            os.kill(child, signal.SIGKILL)
            raise
