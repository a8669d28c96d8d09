"""Segments are usable as soon as their text is committed; their keys are made when somebody needs them."""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import torch
from speller import Spelled, Speller

from kster import KsterError
from kster.formats import Pair
from kster.memory import Memory, MemoryGroup, SearchableMemory, SearchSettings
from kster.memory.memory import Keys
from kster.memory.search.codes import CodeTable, Projection
from kster.memory.search.retriever import Batch

CPU = torch.device("cpu")


class CountingSpeller(Speller):
    """Knows whose keys it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def make_keys(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Spelled]:
        listed = list(pairs)
        self.asked += [source for source, _ in listed]
        return super().make_keys(listed)


def words(i: int) -> str:
    """A source that shares a few words with its neighbours in number and none with most others."""
    return f"w{i} w{i + 1} w{i + 2}"


def texts(count: int) -> list[Pair]:
    return [Pair(words(10 * (i // 4) + i % 4), f"t{i}") for i in range(count)]


def nearest(memory: SearchableMemory, text: str, prefix: str = "") -> tuple[float, str]:
    """What a translation of this text finds first: the distance, and the source it comes from."""
    retriever = memory.retriever(Batch([text], CPU))
    found = retriever.search(Speller().query(text, prefix), 1)
    if found.ids[0, 0] < 0:
        return float("inf"), ""
    return float(found.distances[0, 0]), memory.provenance(found.ids[0])[0].segment.source


def test_codes_take_the_room_of_keys_that_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capacities = []

    class Counted(CodeTable):
        def __init__(self, projection: Projection, capacity: int) -> None:
            capacities.append(capacity)
            super().__init__(projection, capacity)

    monkeypatch.setattr("kster.memory.search.codes.CodeTable", Counted)
    memory = Memory.create(tmp_path / "m", Speller())
    memory.import_pairs(texts(400), keys="later")
    nearest(memory, words(30))
    assert 0 < capacities[0] <= 4_000  # ids of 400 segments are spread over 1.6 million


def test_an_import_without_keys_is_used_by_the_very_next_translation(tmp_path: Path) -> None:
    speller = CountingSpeller()
    memory = Memory.create(tmp_path / "m", speller, entries_per_shard=20)
    report = memory.import_pairs(texts(400), keys="later")
    assert (report.added, speller.asked, memory.entry_count) == (400, [], 0)
    assert not memory.is_empty
    assert nearest(memory, words(51)) == (0.0, words(51))
    assert 0 < len(speller.asked) <= memory.search_settings.keys_on_demand
    assert words(51) in speller.asked
    made = memory.entry_count
    assert nearest(memory, words(51)) == (0.0, words(51))  # and nothing is made twice
    assert memory.entry_count == made
    with Memory.open(memory.directory, speller) as again:
        assert again.entry_count == made
        assert nearest(again, words(51))[0] == 0.0


@pytest.mark.parametrize("mode", ["exact", "shortlist", "auto"])
def test_what_was_added_last_is_used_however_the_memory_is_searched(tmp_path: Path, mode: str) -> None:
    settings = SearchSettings(mode=mode)  # type: ignore[arg-type]
    memory = Memory.create(tmp_path / "m", Speller(), search=settings, entries_per_shard=20)
    memory.import_pairs(texts(100), keys="later")
    memory.add("a new one", "ein neues")
    memory.import_pairs([Pair("another one", "ein anderes")], keys="later")
    for source in ("a new one", "another one", words(30)):
        assert nearest(memory, source) == (0.0, source)


def test_small_imports_make_their_keys_at_once_and_large_ones_do_not(
    memory: Memory, speller: Speller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kster.memory.importing.SMALL", 50)
    memory.import_pairs(texts(50))
    assert memory.info().without_keys == 0
    memory.import_pairs((Pair(f"more {i}", "mehr") for i in range(51)), keys="auto")
    info = memory.info()
    assert (info.segments, info.without_keys, info.unusable) == (101, 51, 0)
    memory.import_pairs((Pair(f"most {i}", "meist") for i in range(51)), keys="now")
    assert memory.info().without_keys == 0
    assert memory.entry_count == sum(len(p.target.encode()) + 1 for p in memory.export())
    with pytest.raises(KsterError, match="keys 'soon' is unknown; accepted: auto, now, later"):
        memory.import_pairs([Pair("a", "b")], keys="soon")  # type: ignore[arg-type]


def test_keys_are_made_in_the_order_of_demand_then_the_newest_first(tmp_path: Path) -> None:
    speller = CountingSpeller()
    memory = Memory.create(
        tmp_path / "m", speller, search=SearchSettings(keys_on_demand=1), entries_per_shard=20
    )
    memory.import_pairs(texts(400), keys="later")
    nearest(memory, words(51))
    assert speller.asked == [words(51)]
    speller.asked.clear()
    assert memory.make_keys(3) == 3
    assert set(speller.asked) == {words(50), words(52), words(53)}  # the rest of its shortlist
    speller.asked.clear()
    told: list[int] = []
    assert memory.make_keys(4, told.append, at_once=2) == 4
    assert set(speller.asked) == {p.source for p in texts(400)[-4:]}
    assert told == [2, 4]
    assert memory.make_keys() == 400 - 8
    assert memory.make_keys() == 0
    assert memory.verify() == []


@pytest.mark.parametrize("order", [1, -1])
def test_of_equal_entries_the_newest_segment_comes_first_whenever_its_keys_were_made(
    memory: Memory, speller: Speller, order: int
) -> None:
    """One source with many targets: the keys of their first tokens are equal."""
    memory.import_pairs((Pair("same", f"{i:03d}") for i in range(60)), keys="later")
    ids = [segment.id for segment in memory.segments()][::order]
    for first in range(0, 60, 7):
        memory.make_keys(ids=ids[first : first + 7])
    newest = memory.segments()[::-1]
    for searcher in (memory, memory.retriever(Batch(["same"], CPU, similarity=False))):
        found = searcher.search(speller.query("same"), 16)
        assert found.distances[0].tolist() == [0.0] * 16
        assert memory.segment_ids(found.ids[0]).tolist() == [segment.id for segment in newest[:16]]
    entries = memory.entries()
    assert entries.ids.tolist() == sorted(entries.ids.tolist())
    assert entries.segment_ids.tolist() == sorted(entries.segment_ids.tolist())
    before = found.ids.clone()
    memory.remove(newest[0].id)
    memory.compact()
    assert memory.verify() == []
    found = memory.search(speller.query("same"), 15)
    assert torch.equal(found.ids[0], before[0, 1:])  # ids do not change


def test_a_segment_removed_before_its_keys_were_made_is_never_retrieved(
    memory: Memory, speller: Speller
) -> None:
    memory.import_pairs(texts(40), keys="later")
    gone = memory.find_text(source=words(10))[0]
    memory.remove(gone.id)
    for _ in range(2):
        assert nearest(memory, words(10))[1] != words(10)
        memory.make_keys()
        assert memory.search(speller.query(words(10)), 1).distances[0, 0] > 0
        memory.compact()
        with Memory.open(memory.directory, speller) as again:
            assert nearest(again, words(10))[1] != words(10)
            assert again.verify() == []


def test_a_segment_removed_while_its_keys_are_made_gets_none(tmp_path: Path) -> None:
    class Slow(Speller):
        """Lets somebody in while it computes."""

        def make_keys(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Spelled]:
            made = list(super().make_keys(pairs))
            meanwhile.remove([1, 3])
            meanwhile.make_keys(ids=[2])
            return iter(made)

    Memory.create(tmp_path / "m", Speller(), entries_per_shard=20).close()
    meanwhile = Memory.open(tmp_path / "m", Speller())
    meanwhile.import_pairs(texts(6), keys="later")
    with Memory.open(tmp_path / "m", Slow()) as memory:
        assert memory.make_keys(ids=[1, 2, 3, 4]) == 1  # one is made by another, two are removed
        assert memory.entry_count == len("t1") + 1 + len("t3") + 1
        assert memory.verify() == []


def test_two_processes_make_each_key_once(tmp_path: Path) -> None:
    Memory.create(tmp_path / "m", Speller(), entries_per_shard=20).close()
    memories = [Memory.open(tmp_path / "m", Speller()) for _ in range(4)]
    memories[0].import_pairs(texts(300), keys="later")
    done: list[int] = []
    threads = [threading.Thread(target=lambda m=m: done.append(m.make_keys(at_once=16))) for m in memories]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(done) == 300
    assert memories[0].entry_count == sum(len(pair.target) + 1 for pair in texts(300))
    assert memories[0].verify() == []


def test_segments_that_the_model_can_make_no_keys_of_are_counted_and_not_tried_again(tmp_path: Path) -> None:
    class Odd(CountingSpeller):
        def tokenise_source(self, texts: Sequence[str]) -> list[list[int]]:
            return [[0] * 1_000 if "㎐" in text else [*text.encode(), 0] for text in texts]

        tokenise_target = tokenise_source

        def make_keys(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Spelled]:
            for (source, _), made in zip(pairs := list(pairs), super().make_keys(pairs), strict=True):
                yield Spelled(made.keys * torch.inf, made.tokens) if source == "hot" else made

    speller = Odd()
    memory = Memory.create(tmp_path / "m", speller)
    given = [Pair("hot", "heiß"), Pair("50 ㎐", "x"), Pair("tree", "Baum")]
    memory.import_pairs(given, keys="later")
    assert memory.make_keys() == 3
    info = memory.info()
    assert (info.segments, info.without_keys, info.unusable) == (3, 0, 2)
    assert memory.entry_count == 5
    assert nearest(memory, "tree") == (0.0, "tree")
    nearest(memory, "hot")
    assert speller.asked == ["hot", "tree"]
    assert [pair.source for pair in memory.export()] == ["hot", "50 ㎐", "tree"]
    assert memory.verify() == []
    assert (
        len(memory.import_pairs([Pair("hot", "warm")], keys="auto").rejected) == 1
    )  # said at once where it can be


def test_several_memories_make_the_keys_they_need(tmp_path: Path) -> None:
    memories = [Memory.create(tmp_path / name, Speller()) for name in ("a", "b")]
    memories[0].import_pairs(texts(40), keys="later")
    memories[1].import_pairs([Pair("other words", "andere")], keys="later")
    group = MemoryGroup(memories)
    assert not group.is_empty
    assert nearest(group, "other words") == (0.0, "other words")
    assert nearest(group, words(10)) == (0.0, words(10))
    assert memories[0].info().without_keys > 0


def test_a_memory_that_may_not_be_written_is_searched_without_the_missing_keys(
    memory: Memory, speller: Speller, caplog: pytest.LogCaptureFixture
) -> None:
    memory.import_pairs(texts(8), keys="later")
    memory.make_keys(ids=[1])
    with Memory.open(memory.directory, speller, lock_timeout=0) as reader, memory._store.writing():
        assert nearest(reader, words(0)) == (0.0, words(0))
        assert nearest(reader, words(1))[0] > 0
    assert "translating without the keys of 3 segments" in caplog.text
    assert nearest(memory, words(1)) == (0.0, words(1))


def test_a_backup_and_an_export_have_the_segments_without_keys(
    memory: Memory, speller: Speller, tmp_path: Path
) -> None:
    memory.import_pairs(texts(40), keys="later")
    nearest(memory, words(10))
    memory.back_up(tmp_path / "b")
    Memory.restore(tmp_path / "b", tmp_path / "restored")
    with Memory.open(tmp_path / "restored", speller) as restored:
        assert list(restored.export()) == list(memory.export()) == texts(40)
        assert restored.entry_count == memory.entry_count
        assert nearest(restored, words(21)) == (0.0, words(21))


# kill -9 ---------------------------------------------------------------------------------------------

KILLS = 12


def work(directory: str, seed: int, said: Connection) -> None:
    """Import, translate, make keys, remove and compact for ever; say what is acknowledged."""
    rng = random.Random(seed)
    memory = Memory.open(directory, Speller())
    for number in range(1_000_000):
        keys: Keys = rng.choice(["later", "later", "auto"])
        pairs = [Pair(f"i{seed}-{number} n{i}", "eingelesen") for i in range(rng.randint(1, 40))]
        said.send(("import", [pair.source for pair in pairs]))
        memory.import_pairs(pairs, keys=keys)
        said.send(("done",))
        nearest(memory, rng.choice(pairs).source)
        memory.make_keys(rng.randint(0, 20), at_once=5)
        gone = rng.sample(memory.segments(), 3) if memory.segment_count() > 40 else []
        said.send(("remove", [segment.source for segment in gone]))
        memory.remove([segment.id for segment in gone])
        said.send(("done",))
        if rng.random() < 0.2:
            memory.compact()


def test_kill_9_while_keys_are_made_loses_no_segment_and_brings_none_back(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["kster.memory", "kster.memory.memory"])
    directory, rng, speller = tmp_path / "m", random.Random(1), Speller()
    Memory.create(directory, speller, entries_per_shard=500).close()
    known: set[str] = set()
    lacking = 0
    for seed in range(KILLS):
        heard, said = context.Pipe(duplex=False)
        child = context.Process(target=work, args=(str(directory), seed, said))
        child.start()
        said.close()
        messages = [heard.recv()]
        time.sleep(rng.uniform(0.05, 0.4))
        child.kill()
        child.join()
        while True:
            try:
                messages.append(heard.recv())
            except EOFError:
                break
        unfinished = known
        for kind, *sources in messages:
            if kind == "done":
                known = unfinished
            else:
                unfinished = known | set(sources[0]) if kind == "import" else known - set(sources[0])
        with Memory.open(directory, speller) as memory:
            assert memory.verify() == []
            there = {pair.source for pair in memory.export()}
            assert there in (known, unfinished)
            lacking += len(memory.ids_without_keys())
            for source in rng.sample(sorted(there), min(5, len(there))):
                assert nearest(memory, source) == (0.0, source)
            for source in sorted(known - there)[:5]:
                assert nearest(memory, source)[0] > 0
            known = there
    assert lacking, "no kill left a segment without keys: the test did not test"
    with Memory.open(directory, speller) as memory:
        memory.make_keys()
        assert memory.entry_count == len(known) * (len("eingelesen") + 1)
        assert memory.verify() == []


def test_the_size_counts_live_segments_those_without_keys_and_entries(tmp_path: Path) -> None:
    with Memory.create(tmp_path / "m", Speller()) as memory:
        assert memory.size().segments == 0
        memory.import_pairs([*texts(10), Pair("a draft", "ein Entwurf", status="draft")], keys="later")
        memory.add("the dog", "der Hund")
        memory.add("the dog", "ein Hund")  # supersedes the one before
        size, info = memory.size(), memory.info()
        assert (size.segments, size.without_keys) == (11, 10)
        assert (size.entries, size.segments, size.without_keys) == (
            *(info.entries, info.segments, info.without_keys),
        )
        memory.make_keys()
        assert memory.size().without_keys == 0
        assert memory.size().entries == memory.entry_count > size.entries
