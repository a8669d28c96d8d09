"""Plain lines on the screen and in log.txt, and TensorBoard event files where it is installed."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

from kster.errors import KsterError
from kster.files import try_lock


class Progress:
    """Says what happens; only the first process of a run speaks."""

    def __init__(self, directory: Path, *, quiet: bool = False, tensorboard: bool = True) -> None:
        self.quiet = quiet
        self._file: Any = None
        self._events: Any = None
        if quiet:
            return
        if directory.is_file():
            raise KsterError(f"output: {directory} is a file, not a directory; it was left untouched")
        directory.mkdir(parents=True, exist_ok=True)
        self._file = (directory / "log.txt").open("a", encoding="utf-8")
        self._lock(directory)
        if tensorboard:
            try:
                from torch.utils.tensorboard import SummaryWriter

                self._events = SummaryWriter(str(directory / "tensorboard"))
            except ImportError:
                self.say("tensorboard is not installed: progress goes to log.txt only")

    def _lock(self, directory: Path) -> None:
        """Lock the log, and with it the directory: two runs would overwrite each other's checkpoints."""
        ours = True
        with contextlib.suppress(OSError):  # not every file system has locks
            ours = try_lock(self._file)
        if not ours:
            self._file.close()
            raise KsterError(
                f"{directory}: another training is writing there; wait for it, or choose another `output`"
            )

    def say(self, line: str) -> None:
        if not self.quiet:
            print(line, flush=True)
            self._file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
            self._file.flush()

    def scalars(self, step: int, values: dict[str, float]) -> None:
        if self._events is not None:
            for name, value in values.items():
                self._events.add_scalar(name, value, step)

    def close(self) -> None:
        if self._events is not None:
            self._events.close()
        if self._file is not None:
            self._file.close()


def clock(seconds: float) -> str:
    """3725 → 1:02:05."""
    whole = max(0, round(seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
