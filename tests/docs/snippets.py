"""The commands and programs of a page of documentation, taken from its fenced blocks and run in order."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

RUN = {"sh", "python"}
_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+?) -->\n)?"
    r"^(?P<indent> *)```(?P<kind>\w+)[^\n]*\n(?P<text>.*?)^ *```$",
    re.M | re.S,
)
_SERVER = re.compile(r"^kster serve\b.*$", re.M)
_SAID = re.compile(r"# → (.+)$", re.M)  # what a command is to print


@dataclass(frozen=True)
class Snippet:
    """A fenced block of a page."""

    kind: str
    text: str
    line: int
    reason: str | None  # why it is not run


def snippets(page: Path) -> list[Snippet]:
    """The blocks of a page that are commands or programs."""
    text = page.read_text(encoding="utf-8")
    found = []
    for block in _BLOCK.finditer(text):
        if block["kind"] in RUN:
            line = text.count("\n", 0, block.start("text")) + 1
            indent = len(block["indent"])
            content = "".join(row[indent:] for row in block["text"].splitlines(keepends=True))
            found.append(Snippet(block["kind"], content, line, block["reason"]))
    return found


@dataclass
class Scratch:
    """A directory to run a page in, with `kster` and `python` on the path and a port for its servers."""

    place: Path
    port: int = field(default_factory=lambda: _free_port())
    _servers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        commands = self.place / ".bin"
        commands.mkdir(exist_ok=True)
        python = shlex.quote(sys.executable)
        for name, call in (("kster", f"{python} -m kster"), ("python", python)):
            (commands / name).write_text(f'#!/bin/sh\nexec {call} "$@"\n')
            (commands / name).chmod(0o755)
        self.environment = os.environ | {
            "PATH": f"{commands}:{os.environ['PATH']}",
            "KSTER_PORT": str(self.port),
            "HF_HUB_OFFLINE": "1",
        }

    def run(self, snippet: Snippet) -> str:
        """Run a block; returns what it printed, and raises AssertionError if it fails."""
        text = snippet.text.replace("8017", str(self.port)).replace("/var/lib/kster", "server-data")
        if snippet.kind == "python":
            return self._call([sys.executable, "-c", text], snippet)
        said = ""
        for part, server in _parts(text.replace("\\\n", " ")):
            if server:
                self._serve(part, snippet)
            elif part.strip():
                said += self._call(["bash", "-euo", "pipefail", "-c", part], snippet)
        for wanted in _SAID.findall(snippet.text):
            assert wanted.strip() in said, f"line {snippet.line}: {wanted!r} was not printed, but {said!r}"
        return said

    def close(self) -> None:
        """End the servers that were started."""
        for server in self._servers:
            server.send_signal(signal.SIGTERM)
        for server in self._servers:
            try:
                server.wait(60)
            except subprocess.TimeoutExpired:
                server.kill()
        self._servers.clear()

    def _call(self, command: list[str], snippet: Snippet) -> str:
        done = subprocess.run(
            command, cwd=self.place, env=self.environment, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, f"line {snippet.line}:\n{snippet.text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _serve(self, command: str, snippet: Snippet) -> None:
        self.close()  # a page that starts another has ended the first
        log = self.place / "server.log"
        with log.open("wb") as out:
            server = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self.place,
                env=self.environment,
                stdout=out,
                stderr=out,
            )
        self._servers.append(server)
        deadline = time.monotonic() + 180
        while not self._answers():
            assert server.poll() is None, f"line {snippet.line}: {command}\n{log.read_text()}"
            assert time.monotonic() < deadline, f"line {snippet.line}: no answer from {command}"
            time.sleep(0.2)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=10):
                return True
        except (urllib.error.URLError, OSError):
            return False


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """A block cut at the lines that start a server."""
    end = 0
    for server in _SERVER.finditer(text):
        yield text[end : server.start()], False
        yield server[0], True
        end = server.end()
    yield text[end:], False


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
