"""How does the server fare with many clients, and what does joining their requests bring?

    python benchmarks/load.py [--model models/en-de] [--clients 16] [--seconds 20] [--import-pairs 50000]
                              [--soak 600]

Starts real servers on this machine, one with batching and one without, and sends both the same mix of
requests in turns: most translate a sentence of the held-out examples, some teach one and then translate it.
Then the same load while a large file is imported, and, if asked for, for a long while, watching memory. At
the end every acknowledged example must be there. What counts are the ratio and the errors, not the
milliseconds.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from machine import describe

ROOT = Path(__file__).parent.parent


@dataclass
class Outcome:
    """What one stretch of load did."""

    seconds: float = 0.0
    translate_ms: list[float] = field(default_factory=list)
    teach_ms: list[float] = field(default_factory=list)
    taught: list[str] = field(default_factory=list)  # acknowledged
    errors: dict[str, int] = field(default_factory=dict)

    def add(self, other: Outcome) -> None:
        self.seconds += other.seconds
        self.translate_ms += other.translate_ms
        self.teach_ms += other.teach_ms
        self.taught += other.taught
        for name, count in other.errors.items():
            self.errors[name] = self.errors.get(name, 0) + count

    @property
    def translations_per_second(self) -> float:
        return len(self.translate_ms) / self.seconds if self.seconds else 0.0

    def line(self, name: str) -> str:
        def spread(values: list[float]) -> str:
            if len(values) < 2:
                return f"{'–':>7} {'–':>7}"
            marks = statistics.quantiles(values, n=100)
            return f"{marks[49]:7.0f} {marks[98]:7.0f}"

        errors = ", ".join(f"{count} × {kind}" for kind, count in self.errors.items()) or "0"
        return (
            f"{name:<28} {self.translations_per_second:8.1f} {spread(self.translate_ms)} "
            f"{len(self.teach_ms) / max(self.seconds, 1e-9):8.1f} {spread(self.teach_ms)}  {errors}"
        )


COLUMNS = ("transl/s", "p50 ms", "p99 ms", "taught/s", "p50 ms", "p99 ms")
HEADING = " " * 28 + "".join(f"{name:>{9 if '/' in name else 8}}" for name in COLUMNS) + "  errors"


@dataclass
class Server:
    process: subprocess.Popen[bytes]
    url: str
    memory: int

    @property
    def megabytes(self) -> float:
        """What the process holds in memory, without what is merely mapped from files."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("RssAnon")).split()[1]) / 1000


@contextmanager
def running(model: Path, data: Path, *, batching: bool) -> Iterator[Server]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "kster", "serve", "--model", str(model), "--port", str(port)]
    environment = {
        **os.environ,
        "KSTER_BATCHING": str(batching).lower(),
        "KSTER_LOG_LEVEL": "warning",
        "KSTER_TIMEOUT_SECONDS": "300",
    }
    process = subprocess.Popen([*command, "--data", str(data)], env=environment)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(1200):
            try:
                httpx.get(f"{url}/health")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        memory = httpx.post(f"{url}/v1/memories", json={"name": "load"}).json()["id"]
        yield Server(process, url, memory)
    finally:
        process.terminate()
        process.wait()


def upload(server: Server, content: bytes, name: str) -> str:
    answer = httpx.post(
        f"{server.url}/v1/memories/{server.memory}/import", files={"file": (name, content)}, timeout=600
    )
    return answer.raise_for_status().json()["id"]


def job_state(server: Server, job: str) -> str:
    answer = httpx.get(f"{server.url}/v1/jobs/{job}", timeout=600).json()
    if answer["state"] == "failed":
        raise SystemExit(f"the import failed: {answer['error']}")
    return answer["state"]


def load(
    server: Server,
    sentences: list[str],
    clients: int,
    teach_share: float,
    go_on: Callable[[], bool],
    tag: str,
) -> Outcome:
    """Clients that send one request after the other while `go_on`."""
    total, lock = Outcome(), threading.Lock()

    def client(number: int) -> None:
        own = Outcome()
        every = round(1 / teach_share) if teach_share else 0
        with httpx.Client(base_url=server.url, timeout=600) as http:
            turn = number * 7
            while go_on():
                turn += 1
                sentence = sentences[turn % len(sentences)]
                if every and turn % every == 0:
                    text = f"{sentence} [{tag}{number}-{turn}]"
                    example = {"source": text, "target": text}
                    path = f"/v1/memories/{server.memory}/segments"
                    if timed(own, own.teach_ms, lambda p=path, e=example: http.post(p, json=e)):
                        own.taught.append(text)
                    continue
                request = {"q": sentence, "source": "en", "target": "de"}
                timed(own, own.translate_ms, lambda r=request: http.post("/translate", json=r))
        with lock:
            total.add(own)

    began = time.monotonic()
    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total.seconds = time.monotonic() - began
    return total


def timed(outcome: Outcome, times: list[float], send: Callable[[], httpx.Response]) -> bool:
    began = time.monotonic()
    try:
        status = send().status_code
    except httpx.TransportError as error:
        kind = type(error).__name__
    else:
        if status < 300:
            times.append(1000 * (time.monotonic() - began))
            return True
        kind = str(status)
    outcome.errors[kind] = outcome.errors.get(kind, 0) + 1
    return False


def for_seconds(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end


def lost(server: Server, taught: list[str]) -> int:
    """How many acknowledged examples are not there."""
    found: set[str] = set()
    offset = 0
    while True:
        page = httpx.get(
            f"{server.url}/v1/memories/{server.memory}/segments",
            params={"limit": 1000, "offset": offset},
            timeout=600,
        ).json()["segments"]
        if not page:
            return len(set(taught) - found)
        found |= {segment["source"] for segment in page}
        offset += len(page)


def made_up(sentences: list[str], pairs: int) -> bytes:
    """A file of so many different pairs; their quality does not matter here."""
    rows = (
        f"{sentences[n % len(sentences)]} ({n})\t{sentences[-n % len(sentences)]} ({n})" for n in range(pairs)
    )
    return ("source\ttarget\n" + "\n".join(rows)).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, default=ROOT / "models/en-de")
    parser.add_argument("--source", type=Path, default=ROOT / "examples/heldout.en")
    parser.add_argument("--tmx", type=Path, default=ROOT / "examples/ombravella.tmx")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each stretch of load")
    parser.add_argument("--rounds", type=int, default=2, help="turns batching and not batching take; 0: none")
    parser.add_argument("--teach-share", type=float, default=0.1, help="of the requests")
    parser.add_argument("--import-pairs", type=int, default=50_000, help="0: no import under load")
    parser.add_argument("--import-seconds", type=float, default=120.0, help="of load during the import")
    parser.add_argument("--soak", type=float, default=0.0, help="seconds of load while memory is watched")
    given = parser.parse_args()
    sentences = given.source.read_text(encoding="utf-8").splitlines()
    print(describe(**{name: value for name, value in vars(given).items() if not isinstance(value, Path)}))
    print(HEADING, flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        if given.rounds:
            compare_servers(given, sentences, directory)
        with running(given.model, directory / "long", batching=True) as server:
            under_stress(given, sentences, server)


def compare_servers(given: argparse.Namespace, sentences: list[str], directory: Path) -> None:
    with (
        running(given.model, directory / "apart", batching=False) as apart,
        running(given.model, directory / "joined", batching=True) as joined,
    ):
        for server in (apart, joined):
            job = upload(server, given.tmx.read_bytes(), given.tmx.name)
            while job_state(server, job) != "done":
                time.sleep(0.2)
        compare(given, sentences, apart, joined)


def compare(given: argparse.Namespace, sentences: list[str], apart: Server, joined: Server) -> None:
    outcomes = {"one by one": Outcome(), "joined": Outcome()}
    for turn in range(given.rounds):
        for (name, outcome), server in zip(outcomes.items(), (apart, joined), strict=True):
            stretch = load(
                server,
                sentences,
                given.clients,
                given.teach_share,
                for_seconds(given.seconds),
                f"{name}{turn}",
            )
            outcome.add(stretch)
    for (name, outcome), server in zip(outcomes.items(), (apart, joined), strict=True):
        print(outcome.line(name), f" lost: {lost(server, outcome.taught)}", flush=True)
    ratio = outcomes["joined"].translations_per_second / outcomes["one by one"].translations_per_second
    print(f"joining requests: {ratio:.2f} × the translations a second")


def under_stress(given: argparse.Namespace, sentences: list[str], server: Server) -> None:
    """Load during a large import, and for a long while."""
    taught: list[str] = []
    if given.import_pairs:
        job = upload(server, made_up(sentences, given.import_pairs), "many.tsv")
        enough = for_seconds(given.import_seconds)
        running_import = threading.Event()
        running_import.set()

        def watch() -> None:
            while enough() and job_state(server, job) != "done":
                time.sleep(1)
            running_import.clear()

        watcher = threading.Thread(target=watch)
        watcher.start()
        outcome = load(server, sentences, given.clients, given.teach_share, running_import.is_set, "import")
        watcher.join()
        done = httpx.get(f"{server.url}/v1/jobs/{job}", timeout=600).json()
        taught += outcome.taught
        print(outcome.line(f"during an import ({done['progress']:.0%} of it)"), flush=True)
    if given.soak:
        go_on = for_seconds(given.soak)
        sizes: list[tuple[float, float]] = []

        def weigh() -> None:
            began = time.monotonic()
            while go_on():
                sizes.append((time.monotonic() - began, server.megabytes))
                time.sleep(max(1.0, given.soak / 20))

        scale = threading.Thread(target=weigh)
        scale.start()
        outcome = load(server, sentences, given.clients, given.teach_share, go_on, "soak")
        scale.join()
        taught += outcome.taught
        print(outcome.line(f"soak of {given.soak:.0f} s"))
        print("memory, MB after s:", ", ".join(f"{size:.0f} after {at:.0f}" for at, size in sizes))
    if taught:
        print(f"acknowledged examples lost: {lost(server, taught)} of {len(taught)}")


if __name__ == "__main__":
    main()
