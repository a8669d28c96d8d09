"""What Prometheus may ask for at /metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from kster import __version__

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """A registry of its own, so that several servers may live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "kster_requests_total", "Answered requests.", ("route", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "kster_request_seconds",
            "Time to answer.",
            ("route",),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.characters = Counter("kster_characters_total", "Characters translated.", registry=self.registry)
        self.taught = Counter(
            "kster_taught_segments_total", "Examples added one by one.", registry=self.registry
        )
        self.batches = Histogram(
            "kster_batch_texts", "Sentences translated together.", buckets=SIZES, registry=self.registry
        )
        self._queue = Gauge(
            "kster_waiting_texts", "Sentences that wait for translation.", registry=self.registry
        )

        Gauge("kster_build_info", "Which version serves.", ("version",), registry=self.registry).labels(
            __version__
        ).set(1)
        self.in_progress = Gauge(
            "kster_requests_in_progress", "Requests that are being answered.", registry=self.registry
        )
        self._entries = Gauge(
            "kster_memory_entries", "Entries of memories in use.", ("memory", "pair"), registry=self.registry
        )
        self._segments = Gauge(
            "kster_memory_segments",
            "Segments of memories in use.",
            ("memory", "pair"),
            registry=self.registry,
        )

    @property
    def characters_translated(self) -> int:
        return int(self.registry.get_sample_value("kster_characters_total") or 0)

    def on_batch(self, size: int) -> None:
        self.batches.observe(size)

    def watch_queue(self, length: Callable[[], int]) -> None:
        self._queue.set_function(length)

    def text(self, sizes: Iterable[tuple[int, str, int, int]]) -> bytes:
        """sizes: for each memory in use its id, language pair, entries and segments."""
        self._entries.clear()
        self._segments.clear()
        for memory, pair, entries, segments in sizes:
            self._entries.labels(str(memory), pair).set(entries)
            self._segments.labels(str(memory), pair).set(segments)
        return generate_latest(self.registry)
