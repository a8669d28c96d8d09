"""Many threads search while one changes the memory: every answer is of one moment, none is half a change."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from speller import Speller

from kster.formats import Pair
from kster.memory import Memory
from kster.memory.store.database import Database


def in_threads(work: Callable[[], None], number: int, stop: threading.Event) -> list[threading.Thread]:
    """Start threads that work until told to stop; the first error is kept on the thread."""

    def run() -> None:
        thread = threading.current_thread()
        try:
            while not stop.is_set():
                work()
        except BaseException as error:
            thread.error = error  # type: ignore[attr-defined]
            stop.set()

    threads = [threading.Thread(target=run) for _ in range(number)]
    for thread in threads:
        thread.start()
    return threads


def test_searches_see_whole_changes_only(tmp_path: Path, speller: Speller) -> None:
    memory = Memory.create(tmp_path / "m", speller, entries_per_shard=500)
    memory.import_pairs(Pair(f"base {i}", "grundlage") for i in range(150))
    stop = threading.Event()
    # The two pairs of a change have the same source, hence the same first key: found both or neither.
    queries = torch.cat([speller.query(f"pair {i}") for i in range(12)])
    searches = [0]

    def search() -> None:
        found = memory.search(queries, 4)
        exact = found.distances == 0
        assert set(exact.sum(1).tolist()) <= {0, 2}
        assert (found.distances.diff(dim=1) >= 0).all()
        assert (found.ids >= 0).all()
        values = found.values[exact].view(-1, 2)
        assert (values == torch.tensor([ord("B"), ord("A")])).all()
        searches[0] += 1

    threads = in_threads(search, 3, stop)
    try:
        for _ in range(3):
            added = []
            for i in range(12):
                if stop.is_set():
                    break
                added.append(memory.add_many([Pair(f"pair {i}", "Anfang"), Pair(f"pair {i}", "Beginn")]))
            for first, second in added:
                memory.remove([first.id, second.id])
            memory.compact()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    for thread in threads:
        if hasattr(thread, "error"):
            raise thread.error
    assert searches[0] > 0
    assert memory.verify() == []


def test_several_threads_may_write(memory: Memory, speller: Speller) -> None:
    def write(name: int) -> None:
        for i in range(10):
            memory.add(f"{name}-{i}", "Text")

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memory.segment_count() == 40
    assert memory.verify() == []
    queries = torch.cat([speller.query(segment.source) for segment in memory.segments()])
    assert (memory.search(queries, 1).distances == 0).all()


def test_searches_do_not_wait_for_whoever_looks_through_all_segments(
    memory: Memory, speller: Speller, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.add("tree", "Baum")
    waited: list[bool] = []

    def with_a_search_meanwhile(look: Callable[..., object]) -> Callable[..., object]:
        def looking(*arguments: object) -> object:
            search = threading.Thread(target=memory.search, args=(speller.query("tree"), 1), daemon=True)
            search.start()
            search.join(timeout=10)
            waited.append(search.is_alive())
            return look(*arguments)

        return looking

    for name in ("segments", "count", "by_text"):
        monkeypatch.setattr(Database, name, with_a_search_meanwhile(getattr(Database, name)))
    assert len(memory.segments(query="tree")) == len(memory.segments()) == memory.segment_count("tree") == 1
    assert len(memory.find_text("tree")) == 1
    assert waited == [False] * 4
