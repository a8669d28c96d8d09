"""How does the server fare with many clients, and what does joining their requests bring?

    python benchmarks/load.py [--model models/en-de] [--clients 16] [--seconds 20] [--rounds 2]
                              [--import-pairs 50000] [--import-seconds 480] [--soak 600]

Starts real servers on this machine and loads them over loopback: clients that send one request after the
other, most of which translate a sentence of the held-out examples, and some of which teach one. Three parts,
each left out with 0 for its setting:

    rounds        with requests joined into batches and without, two servers in turns
    import-pairs  alone, then while a large file is imported into the memory in use
    soak          for a long while, watching the server's memory

Ends with an error when an acknowledged example is not there in the end, or a request failed.
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
from typing import Any

import httpx

from large_memory import pairs
from machine import describe

ROOT = Path(__file__).parent.parent
WEIGHINGS = 20  # of the server's memory in a soak


# Servers ---------------------------------------------------------------------------------------------


@dataclass
class Server:
    process: subprocess.Popen[bytes]
    url: str
    memory: int

    def megabytes(self, kind: str) -> float:
        """kind: VmRSS, or RssAnon, which leaves out what is mapped from files."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith(kind)).split()[1]) / 1000

    def get(self, path: str, **parameters: Any) -> Any:
        return httpx.get(f"{self.url}{path}", params=parameters, timeout=600).raise_for_status().json()

    def start_import(self, content: bytes, name: str) -> str:
        path, file = f"/v1/memories/{self.memory}/import", {"file": (name, content)}
        return httpx.post(f"{self.url}{path}", files=file, timeout=600).raise_for_status().json()["id"]

    def job(self, id: str) -> dict[str, Any]:
        job = self.get(f"/v1/jobs/{id}")
        if job["state"] == "failed":
            raise SystemExit(f"the import failed: {job['error']}")
        return job

    def has(self, texts: list[str]) -> int:
        """How many of these sources are in the memory."""
        found: set[str] = set()
        offset = 0
        path = f"/v1/memories/{self.memory}/segments"
        while page := self.get(path, limit=1000, offset=offset)["segments"]:
            found |= {segment["source"] for segment in page}
            offset += len(page)
        return len(set(texts) & found)


@contextmanager
def running(given: argparse.Namespace, data: Path, *, batching: bool = True) -> Iterator[Server]:
    """A server with one memory, into which the example file has been imported."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "kster", "serve", "--model", str(given.model), "--port", str(port)]
    environment = {**os.environ, "KSTER_BATCHING": str(batching).lower(), "KSTER_LOG_LEVEL": "warning"}
    environment["KSTER_TIMEOUT_SECONDS"] = str(given.timeout)
    process = subprocess.Popen([*command, "--data", str(data)], env=environment)
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            if process.poll() is not None:
                raise SystemExit("the server ended")
            try:
                httpx.get(f"{url}/health")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        made = httpx.post(f"{url}/v1/memories", json={"name": "load"}).raise_for_status().json()
        server = Server(process, url, made["id"])
        job = server.start_import(given.tmx.read_bytes(), given.tmx.name)
        while server.job(job)["state"] != "done":
            time.sleep(0.2)
        yield server
    finally:
        process.terminate()
        process.wait()


# Load ------------------------------------------------------------------------------------------------


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
        errors = ", ".join(f"{count} × {kind}" for kind, count in self.errors.items()) or "0"
        return (
            f"{name:<32} {self.translations_per_second:8.1f} {_spread(self.translate_ms)} "
            f"{len(self.teach_ms) / max(self.seconds, 1e-9):8.1f} {_spread(self.teach_ms)}  {errors}"
        )


def _spread(values: list[float]) -> str:
    if len(values) < 2:
        return f"{'–':>7} {'–':>7}"
    marks = statistics.quantiles(values, n=100)
    return f"{marks[49]:7.0f} {marks[98]:7.0f}"


COLUMNS = ("transl/s", "p50 ms", "p99 ms", "taught/s", "p50 ms", "p99 ms")
HEADING = " " * 32 + "".join(f"{name:>{9 if '/' in name else 8}}" for name in COLUMNS) + "  errors"


def load(
    server: Server, given: argparse.Namespace, sentences: list[str], go_on: Callable[[], bool], tag: str
) -> Outcome:
    """Clients that send one request after the other while `go_on`."""
    total, lock = Outcome(), threading.Lock()
    every = round(1 / given.teach_share) if given.teach_share else 0

    def client(number: int) -> None:
        own = Outcome()
        with httpx.Client(base_url=server.url, timeout=600) as http:
            turn = number * 7
            while go_on():
                turn += 1
                sentence = sentences[turn % len(sentences)]
                if every and turn % every == 0:
                    text = f"{sentence} [{tag} {number}-{turn}]"
                    path, example = f"/v1/memories/{server.memory}/segments", {"source": text, "target": text}
                    if timed(own, own.teach_ms, lambda p=path, e=example: http.post(p, json=e)):
                        own.taught.append(text)
                    continue
                request = {"q": sentence, "source": "en", "target": "de"}
                timed(own, own.translate_ms, lambda r=request: http.post("/translate", json=r))
        with lock:
            total.add(own)

    began = time.monotonic()
    threads = [threading.Thread(target=client, args=(n,)) for n in range(given.clients)]
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


# The three parts -------------------------------------------------------------------------------------


def compare(given: argparse.Namespace, sentences: list[str], directory: Path) -> list[str]:
    """Two servers, one that joins requests and one that does not, in turns."""
    outcomes = {"one by one": Outcome(), "joined": Outcome()}
    problems: list[str] = []
    with (
        running(given, directory / "apart", batching=False) as apart,
        running(given, directory / "joined") as joined,
    ):
        servers = dict(zip(outcomes, (apart, joined), strict=True))
        for turn in range(given.rounds):
            for name, server in servers.items():
                outcomes[name].add(
                    load(server, given, sentences, for_seconds(given.seconds), f"{name} {turn}")
                )
        for name, server in servers.items():
            print(outcomes[name].line(name), flush=True)
            problems += problems_of(name, server, outcomes[name])
    ratio = outcomes["joined"].translations_per_second / outcomes["one by one"].translations_per_second
    print(f"joining requests: {ratio:.2f} × the translations a second", flush=True)
    return problems


def during_import(given: argparse.Namespace, sentences: list[str], directory: Path) -> list[str]:
    """The same load on one server: alone, while a file is imported, and with what was imported."""
    both = Outcome()
    with running(given, directory / "import") as server:
        alone = load(server, given, sentences, for_seconds(given.seconds), "alone")
        print(alone.line("alone"), flush=True)
        both.add(alone)
        rows = "\n".join(f"{pair.source}\t{pair.target}" for pair in pairs(given.import_pairs))
        began, job = time.monotonic(), server.start_import(rows.encode(), "many.tsv")
        enough, importing = for_seconds(given.import_seconds), threading.Event()
        importing.set()

        def watch() -> None:
            while enough() and server.job(job)["state"] != "done":
                time.sleep(0.5)
            importing.clear()

        watcher = threading.Thread(target=watch)
        watcher.start()
        meanwhile = load(server, given, sentences, importing.is_set, "import")
        watcher.join()
        at, took = server.job(job), time.monotonic() - began
        print(meanwhile.line(f"during an import ({at['progress']:.0%} of it)"), flush=True)
        both.add(meanwhile)
        print(
            f"import: {at['done']} of {given.import_pairs} pairs in {took:.0f} s under load, "
            f"{at['done'] / took:.0f} a second; memory {server.megabytes('VmRSS'):.0f} MB, "
            f"{server.megabytes('RssAnon'):.0f} MB of it not mapped from files",
            flush=True,
        )
        if at["state"] == "done":
            after = load(server, given, sentences, for_seconds(given.seconds), "after")
            print(after.line("afterwards"), flush=True)
            both.add(after)
        return problems_of("import", server, both)


def soak(given: argparse.Namespace, sentences: list[str], directory: Path) -> list[str]:
    with running(given, directory / "soak") as server:
        go_on = for_seconds(given.soak)
        sizes: list[str] = []

        def weigh() -> None:
            began, number = time.monotonic(), 0
            while number <= WEIGHINGS:
                sizes.append(f"{server.megabytes('VmRSS'):.0f} ({server.megabytes('RssAnon'):.0f})")
                number += 1
                time.sleep(max(0.0, began + number * given.soak / WEIGHINGS - time.monotonic()))

        scale = threading.Thread(target=weigh)
        scale.start()
        outcome = load(server, given, sentences, go_on, "soak")
        scale.join()
        print(outcome.line(f"soak of {given.soak:.0f} s"))
        print(
            f"MB in memory (not mapped), every {given.soak / WEIGHINGS:.0f} s: {', '.join(sizes)}", flush=True
        )
        return problems_of("soak", server, outcome)


def problems_of(name: str, server: Server, outcome: Outcome) -> list[str]:
    """What must not be: examples that were acknowledged and are not there, and requests that failed."""
    kept = server.has(outcome.taught)
    print(f"{name}: {kept} of {len(outcome.taught)} acknowledged examples are there", flush=True)
    problems = [f"{name}: {count} × {kind}" for kind, count in outcome.errors.items()]
    if kept < len(outcome.taught):
        problems.append(f"{name}: {len(outcome.taught) - kept} examples lost")
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, default=ROOT / "models/en-de")
    parser.add_argument("--source", type=Path, default=ROOT / "examples/heldout.en")
    parser.add_argument("--tmx", type=Path, default=ROOT / "examples/ombravella.tmx")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each stretch of load")
    parser.add_argument("--rounds", type=int, default=2, help="turns batching and not batching take; 0: none")
    parser.add_argument("--teach-share", type=float, default=0.1, help="of the requests")
    parser.add_argument("--timeout", type=float, default=60.0, help="the server's, seconds for one request")
    parser.add_argument("--import-pairs", type=int, default=50_000, help="0: no import under load")
    parser.add_argument("--import-seconds", type=float, default=480.0, help="of load during it, at most")
    parser.add_argument("--soak", type=float, default=0.0, help="seconds of load while memory is watched")
    given = parser.parse_args()
    sentences = given.source.read_text(encoding="utf-8").splitlines()
    print(describe(**{name: value for name, value in vars(given).items() if not isinstance(value, Path)}))
    print(HEADING, flush=True)
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        for wanted, part in (
            (given.rounds, compare),
            (given.import_pairs, during_import),
            (given.soak, soak),
        ):
            if wanted:
                problems += part(given, sentences, Path(scratch))
    if problems:
        raise SystemExit("; ".join(problems))


if __name__ == "__main__":
    main()
