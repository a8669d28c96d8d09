"""The command line. A user's mistake is one line on stderr and status 2; a bug keeps its traceback."""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import os
import sys
import warnings
from collections.abc import Sequence

from kster.cli.output import is_quiet
from kster.errors import KsterError

INTERRUPTED = 130  # as shells report a process ended by Ctrl-C
READER_GONE = 141  # … and one whose output nobody reads any more (`| head`)

# What the operating system says when a person named a wrong file, or the disk is full.
_USER_ERRNO = {
    *(errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.EEXIST),
    *(errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.ENAMETOOLONG),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    # Before torch is loaded: waiting threads should sleep. Spinning, they are hardly faster on an idle
    # machine, and several times slower where another program needs one of the cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import typer

    from kster.cli.app import app
    from kster.cli.output import ReaderGone, flush

    # Newer typers bring their own copy of click, so the class is found by way of one of its children.
    usage_error: type[Exception] = typer.BadParameter.__bases__[0]
    given = list(sys.argv[1:] if arguments is None else arguments)
    _prepare_process()
    if sys.stdout is None:
        return _complain("standard output is closed; there is nowhere to write to")
    try:
        status = app(args=given or ["--help"], prog_name="kster", standalone_mode=False)
        flush()
        return status if isinstance(status, int) else 0
    except KsterError as error:
        return _complain(str(error))
    except usage_error as error:
        return _complain(_usage_message(error))
    except (ReaderGone, BrokenPipeError):
        _abandon_stdout()
        return READER_GONE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except (MemoryError, RuntimeError) as error:
        if not _is_lack_of_memory(error):
            raise
        return _complain("not enough memory; a smaller batch, a narrower beam or a smaller k needs less")
    except OSError as error:
        if error.errno not in _USER_ERRNO:
            raise
        where = f"{error.filename}: " if error.filename is not None else ""
        return _complain(f"{where}{error.strerror}")


def _is_lack_of_memory(error: Exception) -> bool:
    """torch says it in words: "can't allocate memory" on a CPU, "out of memory" on a GPU."""
    words = str(error)
    return isinstance(error, MemoryError) or "allocate memory" in words or "out of memory" in words


def _complain(message: str) -> int:
    """One line, whatever the message looks like."""
    with contextlib.suppress(BrokenPipeError):
        print(f"kster: {' '.join(message.split())}", file=sys.stderr, flush=True)
    return 2


def _usage_message(error: Exception) -> str:
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "kster"
    return f"{message.rstrip('.')}; see `{command} --help`"


def _prepare_process() -> None:
    """UTF-8 out, and no chatter from libraries; whatever the user has set stays set."""
    if sys.stderr is None:  # closed: without this, `print` would write its lines to stdout
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # open as long as the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    logger = logging.getLogger("kster")
    for handler in [handler for handler in logger.handlers if isinstance(handler, _Warnings)]:
        logger.removeHandler(handler)  # of an earlier command, which would hold back what it has shown
    if not logger.handlers:
        logger.addHandler(_Warnings())


class _Warnings(logging.Handler):
    """KSTER's own log messages, as lines on stderr. Each is shown once: many blocks of lines repeat them."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in self._said and (record.levelno >= logging.ERROR or not is_quiet()):
            self._said.add(message)
            warned = "warning: " if record.levelno >= logging.WARNING else ""
            print(f"kster: {warned}{message}", file=sys.stderr, flush=True)


def _abandon_stdout() -> None:
    """Let the interpreter's last flush go nowhere instead of failing."""
    with contextlib.suppress(OSError, ValueError, io.UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
