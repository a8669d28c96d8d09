"""Metrics for Prometheus, at /metrics."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from kster import __version__
from kster.memory import MemorySize

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
OF_MEMORY = ("memory", "pair")


class Metrics:
    """Registries of its own, so that several servers may live in one process.

    Counts by key have one of their own: customers need not know of each other.
    """

    def __init__(self) -> None:
        self._registry, self._of_keys = CollectorRegistry(), CollectorRegistry()
        counter = partial(Counter, registry=self._registry)
        gauge = partial(Gauge, registry=self._registry)
        histogram = partial(Histogram, registry=self._registry)
        gauge("kster_build_info", "Which version serves.", ("version",)).labels(__version__).set(1)

        self.requests = counter("kster_requests_total", "Answered requests.", ("route", "status"))
        self.seconds = histogram("kster_request_seconds", "Time to answer.", ("route",), buckets=SECONDS)
        self.in_progress = gauge("kster_requests_in_progress", "Requests that are being answered.")
        self.waiting_requests = gauge(
            "kster_requests_waiting", "Requests with sentences that wait for translation."
        )

        self.waiting_texts = gauge("kster_waiting_texts", "Sentences that wait for translation.")
        self.batches = histogram("kster_batch_texts", "Sentences translated together.", buckets=SIZES)
        self.search_seconds = histogram(
            "kster_search_seconds",
            "Time of a batch that is spent searching memories, on a CPU.",
            buckets=SECONDS,
        )
        self._characters = counter("kster_characters_total", "Characters translated.")
        self._characters_of_key = Counter(
            "kster_key_characters_total", "Characters translated for a key.", ("key",), registry=self._of_keys
        )

        self.taught = counter("kster_taught_segments_total", "Examples added one by one.")
        self._entries = gauge("kster_memory_entries", "Entries of memories in use.", OF_MEMORY)
        self._segments = gauge("kster_memory_segments", "Segments of memories in use.", OF_MEMORY)
        self._without_keys = gauge(
            "kster_memory_segments_without_keys", "Segments whose keys have yet to be made.", OF_MEMORY
        )

    @property
    def characters_translated(self) -> int:
        return int(self._registry.get_sample_value("kster_characters_total") or 0)

    def count_characters(self, count: int, key: str | None) -> None:
        """key: the name of the client's key; so there are only as many labels as keys."""
        self._characters.inc(count)
        if key is not None:
            self._characters_of_key.labels(key).inc(count)

    def text(self, sizes: Iterable[tuple[int, str, MemorySize]], *, with_keys: bool) -> bytes:
        """sizes: id, language pair and size of each memory in use. with_keys: whether to count by key."""
        for of_memories in (self._entries, self._segments, self._without_keys):
            of_memories.clear()
        for memory, pair, size in sizes:
            of = (str(memory), pair)
            self._entries.labels(*of).set(size.entries)
            self._segments.labels(*of).set(size.segments)
            self._without_keys.labels(*of).set(size.without_keys)
        return generate_latest(self._registry) + (generate_latest(self._of_keys) if with_keys else b"")
