"""Shortlists from shards, here in this process: what they are, and what travels for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from speller import Speller

pytest.importorskip("ray")

from kster.cluster import kept_entries, retrieval
from kster.cluster.calls import SHARD
from kster.cluster.kept_entries import KeptEntries
from kster.cluster.retrieval import Placed, retriever
from kster.cluster.shard import Sent, Shard
from kster.cluster.term_counts import TermCounts
from kster.cluster.wire import PART_SHIFT, Changed, Found, Limits, Part, SegmentEntries, Sentence
from kster.formats import Pair
from kster.memory import Memory, SearchSettings
from kster.memory.adding import Origin, drafts_of
from kster.memory.search import codes as codes_module
from kster.memory.search.neighbours import Neighbours
from kster.memory.search.retriever import Batch
from kster.memory.store.change import Draft
from kster.memory.store.description import Description

CPU = torch.device("cpu")
WORDS = ["valve", "pump", "lid", "hose", "filter", "switch", "panel", "bolt"]
PAIRS = [
    Pair(f"the {one} and the {other} {i}", f"{one}-{other}") for i, one in enumerate(WORDS) for other in WORDS
]
TEXTS = ["the valve and the pump", "the lid and the hose"]
LIMITS = Limits(12, 100)  # segments and entries


class Served:
    """Shards by their names, asked without Ray; `sent` has the segments whose entries travelled."""

    def __init__(self, root: Path) -> None:
        self.root, self.sent, self.asked = root, list[int](), list[str]()
        self.shards = {name: Shard(name, root / name) for name in "ab"}

    def start_again(self) -> None:
        for shard in self.shards.values():
            shard.close()
        self.shards = {name: Shard(name, self.root / name) for name in "ab"}

    def ask_each(self, questions: dict[str, Any], *, lost: list[str] | None = None) -> dict[str, Any]:
        return {name: self.ask(name, *question) for name, question in questions.items()}

    def ask(self, name: str, operation: str, *arguments: Any) -> Any:
        answer = getattr(self.shards[name.removeprefix(SHARD)], operation)(*arguments)
        self.asked.append(operation)
        entries = answer.entries if isinstance(answer, Found) else answer if operation == "entries" else ()
        self.sent += [id for own in entries for id in own.segment_ids.tolist()]
        return answer


@pytest.fixture
def speller() -> Speller:
    return Speller()


@pytest.fixture
def served(tmp_path: Path, speller: Speller, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    served = Served(tmp_path)
    for shard in served.shards.values():
        shard.create("m", Description.of(speller, tmp_path, 1 << 20))
    monkeypatch.setattr(retrieval, "ask_each", served.ask_each)
    monkeypatch.setattr(retrieval, "ask", served.ask)
    monkeypatch.setattr(kept_entries, "_kept", {})
    monkeypatch.setattr(retrieval, "_last", {})
    monkeypatch.setattr(retrieval, "TERMS", TermCounts())
    yield served
    for shard in served.shards.values():
        shard.close()


def drafts(speller: Speller, pairs: Sequence[Pair]) -> list[Draft]:
    return [draft for draft in drafts_of(speller, pairs, Origin()) if isinstance(draft, Draft)]


def found(shards: str, texts: Sequence[str] = TEXTS, limits: Limits = LIMITS) -> Neighbours:
    retrieval._last.clear()  # every question travels
    parts = [Part(number, shard, "m") for number, shard in enumerate(shards)]
    sentences = [Sentence(text, text.split()) for text in texts]
    return retriever([Placed(parts)], sentences, limits, 16, CPU).search(queries(len(texts)), 5)


def queries(sentences: int) -> torch.Tensor:
    return torch.randn(4 * sentences, 16, generator=torch.Generator().manual_seed(1))


def test_shortlists_and_codes_are_those_of_one_process(
    served: Served, speller: Speller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With codes that keep few coordinates, so that others would find other neighbours."""
    monkeypatch.setattr(codes_module, "ENOUGH", 64)
    monkeypatch.setattr(codes_module, "DIRECTIONS", 4)
    monkeypatch.setattr("kster.memory.search.shortlist_retriever.MARGIN", 0)
    served.shards["a"].add_drafts("1", "m", drafts(speller, PAIRS))
    by_shortlist = SearchSettings(mode="shortlist", shortlist=12, shortlist_entries=100)
    with Memory.create(tmp_path / "here", speller, search=by_shortlist) as memory:
        memory.add_many(PAIRS)
        batch = Batch(TEXTS, CPU, words=[text.split() for text in TEXTS])
        expected = memory.retriever(batch).search(queries(2), 5)
    for _ in range(2):  # sent, and kept
        here = found("a")
        for name in ("distances", "values", "ids", "keys", "similarity", "words", "rare"):
            assert torch.equal(getattr(here, name), getattr(expected, name)), name


def lost_here(served: Served) -> None:
    (kept,) = kept_entries._kept.values()
    kept._segments.clear()


def full(served: Served) -> None:
    (kept,) = kept_entries._kept.values()
    kept._count = kept_entries.ROOM + 1


@pytest.mark.parametrize("happened", [lost_here, full, Served.start_again])
def test_entries_travel_once_and_again_when_one_side_has_lost_them(
    served: Served, speller: Speller, happened: Callable[[Served], None]
) -> None:
    served.shards["a"].add_drafts("1", "m", drafts(speller, PAIRS[::2]))
    served.shards["b"].add_drafts("1", "m", drafts(speller, PAIRS[1::2]))
    first = found("ab")
    travelled = sorted(served.sent)
    assert travelled
    served.sent.clear()
    assert torch.equal(found("ab").ids, first.ids)
    assert served.sent == []
    happened(served)
    again = found("ab")
    assert torch.equal(again.ids, first.ids)
    assert torch.equal(again.keys, first.keys)
    assert set(served.sent) <= set(travelled)
    assert served.sent
    served.sent.clear()
    found("ab")
    assert served.sent == []


def test_many_threads_find_what_one_finds(served: Served, speller: Speller) -> None:
    served.shards["a"].add_drafts("1", "m", drafts(speller, PAIRS[::2]))
    served.shards["b"].add_drafts("1", "m", drafts(speller, PAIRS[1::2]))
    asked = [("ab"[i % 3 : 2] or "ab", [PAIRS[i * 7 % 64].source]) for i in range(200)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda one: found(*one).ids, asked))
    kept_entries._kept.clear()
    assert all(torch.equal(ids, found(*one).ids) for ids, one in zip(answers, asked, strict=True))


def test_shards_are_asked_twice_only_for_words_that_they_have(served: Served, speller: Speller) -> None:
    for name, shard in served.shards.items():
        shard.add_drafts("1", "m", drafts(speller, [Pair(f"the {word} {name}", "ziel") for word in WORDS]))
    everything = Limits(12, 4_096)
    found("ab", ["the valve"], everything)
    for text, calls in (("the valve", 1), ("the unheard valve", 1), ("the pump", 2), ("the pump", 1)):
        served.asked.clear()
        assert len(found("ab", [text], everything).ids.unique()) > 1
        assert served.asked == ["best_with_entries"] * 2 * calls, text


def test_what_was_removed_is_not_found_by_who_has_kept_it(served: Served, speller: Speller) -> None:
    shard = served.shards["a"]
    shard.add_drafts("1", "m", drafts(speller, PAIRS))
    nearest = int(found("a", TEXTS[:1]).ids[0, 0])
    (origin,) = shard.read("m", "provenance", [nearest])
    assert shard.change(Changed("q", "m", "remove", ([origin.segment.id],))) == 1
    assert nearest not in found("a", TEXTS[:1]).ids


def test_ids_say_which_part_they_are_of(served: Served, speller: Speller) -> None:
    for name, shard in served.shards.items():
        shard.add_drafts("1", "m", drafts(speller, [Pair("the valve and the pump", f"ziel {name}")]))
    everything = found("ab", TEXTS[:1], Limits(12, 4_096))
    assert {id >> PART_SHIFT for id in everything.ids.flatten().tolist()} == {0, 1}


def test_rows_stay_when_more_is_kept() -> None:
    kept, random = KeptEntries(4), np.random.default_rng(1)
    sent = [
        SegmentEntries(
            np.array([id]),
            np.array([0, id]),
            random.standard_normal((id, 4)).astype(np.float16),
            np.full(id, id, np.int32),
            np.arange(id),
        )
        for id in range(1, 30)
    ]
    kept.add(("a", "m"), sent[0])
    before = kept.keys()
    for one in sent[1:]:
        kept.add(("a", "m"), one)
    rows, counts = kept.rows_of(("a", "m"), np.array([29, 99, 1]))
    assert counts.tolist() == [29, 0, 1]
    assert torch.equal(
        kept.keys().take(torch.from_numpy(rows)),
        torch.from_numpy(np.concatenate([sent[28].keys, sent[0].keys])),
    )
    assert torch.equal(before.take(torch.tensor([0])), torch.from_numpy(sent[0].keys))
    assert kept.missing(("a", "m"), np.array([29, 99])).tolist() == [99]
    assert kept.missing(("b", "m"), np.array([29])).tolist() == [29]


def test_a_shard_remembers_those_who_asked_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kster.cluster.shard.HOLDERS", 2)
    sent, ids = Sent(), np.array([1, 2])
    for holder in ("first", "second", "first", "third"):
        sent.note(holder, "m", ids)
    known = {holder: not len(sent.new(holder, "m", ids)) for holder in ("first", "second", "third")}
    assert known == {"first": True, "second": False, "third": True}
    sent.forget("m")
    assert sent.new("first", "m", ids).tolist() == [1, 2]
