"""Directories that belong to somebody who may die: who holds the lock on a file in it is alive.

The operating system releases a lock when its holder dies, however it dies, so that others can tell what was
left behind, and delete it.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from io import BufferedWriter
from pathlib import Path

from kster.files import try_lock

ATTEMPTS = 100  # some file systems, such as /proc, never let anybody make a directory


def claim(parent: Path, prefix: str, lock_name: str) -> tuple[Path, BufferedWriter]:
    """A new directory and its lock, ours until that is closed.

    Tried again when somebody who was sweeping took it for a leftover. Raises OSError.
    """
    for attempt in range(1, ATTEMPTS + 1):
        directory = parent / f"{prefix}{os.getpid()}-{secrets.token_hex(4)}"
        try:
            directory.mkdir()
            lock = open(directory / lock_name, "xb")  # noqa: SIM115  (kept open as long as it is ours)
        except (FileExistsError, FileNotFoundError):
            if attempt == ATTEMPTS or not parent.is_dir():
                raise
            continue
        if try_lock(lock) and (directory / lock_name).exists():
            return directory, lock
        lock.close()
    raise FileNotFoundError(errno.ENOENT, "new directories vanish here", str(parent))


def sweep(parent: Path, prefix: str, lock_name: str) -> None:
    """Delete what dead owners left. Never raises: what cannot be deleted stays for the next one."""
    try:
        left = [path for path in parent.iterdir() if path.name.startswith(prefix)]
    except OSError:
        return
    for directory in left:
        try:
            with open(directory / lock_name, "r+b") as lock:
                if try_lock(lock):  # else its owner lives
                    shutil.rmtree(directory, ignore_errors=True)
        except FileNotFoundError:  # died before it had a lock, or while it was being deleted
            shutil.rmtree(directory, ignore_errors=True)
        except OSError:
            continue
