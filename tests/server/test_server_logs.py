"""Logs: lines for people on a terminal, JSON otherwise, and none a thousand times."""

from __future__ import annotations

import json
import logging
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from running import RunningServer, free_port

from kster.server.logs import PERIOD, RateLimit


def test_logs_of_a_process_are_json_one_object_a_line(server: RunningServer) -> None:
    server.http.get("/health")
    lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
    assert any(line["message"] == "serving" for line in lines)
    asked = [line for line in lines if line["message"] == "request" and line["path"] == "/health"]
    assert asked[-1]["status"] == 200
    assert {"time", "level", "logger", "request_id", "method", "ms"} <= asked[-1].keys()


def test_logs_on_a_terminal_are_lines_for_people(taught_marian: Path, tmp_path: Path) -> None:
    shown, terminal = pty.openpty()
    command = [sys.executable, "-m", "kster", "serve", "--port", str(free_port()), "--data", str(tmp_path)]
    process = subprocess.Popen([*command, "--model", str(taught_marian)], stderr=terminal)
    os.close(terminal)
    try:
        written = ""
        while "startup complete" not in written:
            written += os.read(shown, 1000).decode()
        assert re.search(r"(?m)^\d\d:\d\d:\d\d serving address=http://127\.0\.0\.1:\d+/ ", written), written
        assert "{" not in written
    finally:
        process.terminate()
        assert process.wait(60) == 0
        os.close(shown)


def test_the_same_warning_is_written_ten_times_and_then_counted() -> None:
    limit = RateLimit()

    def passes(created: float, level: int = logging.WARNING) -> logging.LogRecord | None:
        record = logging.makeLogRecord({"msg": "too many", "levelno": level, "created": created})
        return record if limit.filter(record) else None

    assert sum(passes(1.0) is not None for _ in range(100)) == 10
    assert all(passes(1.0, logging.INFO) for _ in range(100))
    later = passes(1.0 + PERIOD)
    assert later is not None
    assert vars(later)["left_out"] == 90


@pytest.mark.parametrize("variable", ["KSTER_LOG_LEVEL"])
def test_an_unknown_level_is_refused_by_name(variable: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kster", "serve", "--data", str(tmp_path)]
    environment = {**os.environ, variable: "loud"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert variable in done.stderr
