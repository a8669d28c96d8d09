"""Logs on stderr: lines for people on a terminal, JSON otherwise, one object a line."""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime

STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}
SAME_LINES = 10  # warnings of one kind that are written in a period
PERIOD = 10.0  # seconds


def extras_of(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in STANDARD}


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= extras_of(record)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class PlainLines(logging.Formatter):
    """12:34:56 request method=POST path=/translate status=200."""

    def format(self, record: logging.LogRecord) -> str:
        said = " ".join(f"{name}={value}" for name, value in extras_of(record).items())
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        line = f"{clock} {level}{record.getMessage()}{' ' if said else ''}{said}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class RateLimit(logging.Filter):
    """Lets ten warnings or errors of a kind pass in ten seconds: what happens a thousand times a second must
    not fill the disk. The next line says how many were left out."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}  # since when, how many

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        kind = (record.name, str(record.msg))
        since, count = self._seen.get(kind, (record.created, 0))
        if record.created - since >= PERIOD:
            if count > SAME_LINES:
                record.left_out = count - SAME_LINES
            since, count = record.created, 0
        self._seen[kind] = (since, count + 1)
        return count < SAME_LINES


def log_to_stderr(level: str) -> None:
    """Everything that is logged in this process."""
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(PlainLines() if sys.stderr.isatty() else JsonLines())
    lines.addFilter(RateLimit())
    root = logging.getLogger()
    root.handlers[:] = [lines]
    root.setLevel(level.upper())
    for name in ("kster", "uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = name != "uvicorn.access"  # our own line says more
    logging.getLogger("httpx").setLevel(logging.WARNING)
