"""What Prometheus may ask for at /metrics."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from kster import __version__
from kster.memory import MemorySize

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
OF_MEMORY = ("memory", "pair")


class Metrics:
    """Registries of its own, so that several servers may live in one process.

    What is told by the name of a key has one of its own: customers need not know of each other.
    """

    def __init__(self) -> None:
        self._registry = shown = CollectorRegistry()
        self._of_keys = CollectorRegistry()
        Gauge("kster_build_info", "Which version serves.", ("version",), registry=shown).labels(
            __version__
        ).set(1)

        self.requests = Counter(
            "kster_requests_total", "Answered requests.", ("route", "status"), registry=shown
        )
        self.seconds = Histogram(
            "kster_request_seconds", "Time to answer.", ("route",), buckets=SECONDS, registry=shown
        )
        self.in_progress = Gauge(
            "kster_requests_in_progress", "Requests that are being answered.", registry=shown
        )
        self.waiting_requests = Gauge(
            "kster_requests_waiting", "Requests with sentences that wait for translation.", registry=shown
        )

        self.waiting_texts = Gauge(
            "kster_waiting_texts", "Sentences that wait for translation.", registry=shown
        )
        self.batches = Histogram(
            "kster_batch_texts", "Sentences translated together.", buckets=SIZES, registry=shown
        )
        self.search_seconds = Histogram(
            "kster_search_seconds",
            "Time of a batch that is spent searching memories, on a CPU.",
            buckets=SECONDS,
            registry=shown,
        )
        self._characters = Counter("kster_characters_total", "Characters translated.", registry=shown)
        self._characters_of_key = Counter(
            "kster_key_characters_total",
            "Characters translated for a key.",
            ("key",),
            registry=self._of_keys,
        )

        self.taught = Counter("kster_taught_segments_total", "Examples added one by one.", registry=shown)
        self._entries = Gauge(
            "kster_memory_entries", "Entries of memories in use.", OF_MEMORY, registry=shown
        )
        self._segments = Gauge(
            "kster_memory_segments", "Segments of memories in use.", OF_MEMORY, registry=shown
        )
        self._without_keys = Gauge(
            "kster_memory_segments_without_keys",
            "Segments whose keys have yet to be made.",
            OF_MEMORY,
            registry=shown,
        )

    @property
    def characters_translated(self) -> int:
        return int(self._registry.get_sample_value("kster_characters_total") or 0)

    def count_characters(self, count: int, key: str | None) -> None:
        """key: the name of the client's. There are as many names as keys that somebody made."""
        self._characters.inc(count)
        if key is not None:
            self._characters_of_key.labels(key).inc(count)

    def text(self, sizes: Iterable[tuple[int, str, MemorySize]], *, with_keys: bool) -> bytes:
        """sizes: id, language pair and size of each memory in use. with_keys: whether to tell of keys."""
        for of_memories in (self._entries, self._segments, self._without_keys):
            of_memories.clear()
        for memory, pair, size in sizes:
            of = (str(memory), pair)
            self._entries.labels(*of).set(size.entries)
            self._segments.labels(*of).set(size.segments)
            self._without_keys.labels(*of).set(size.without_keys)
        return generate_latest(self._registry) + (generate_latest(self._of_keys) if with_keys else b"")
