"""A shard by itself: ordinary directories, one owner, changes that are made once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from speller import Speller

from kster.cluster.shard import Shard
from kster.cluster.term_counts import TermCounts, total_of
from kster.cluster.wire import (
    PART_SHIFT,
    Asked,
    Changed,
    Found,
    Limits,
    Outdated,
    Prepared,
    Sentence,
    best_of,
    share_of,
)
from kster.errors import KsterError
from kster.formats import Pair
from kster.memory import Memory
from kster.memory.adding import Origin, drafts_of
from kster.memory.group import SHIFT
from kster.memory.store.change import Draft
from kster.memory.store.description import Description


@pytest.fixture
def shard(tmp_path: Path, speller: Speller) -> Iterator[Shard]:
    shard = Shard("a", tmp_path / "a")
    shard.create("m", Description.of(speller, tmp_path, 1 << 20))
    yield shard
    shard.close()


@pytest.fixture
def speller() -> Speller:
    return Speller()


def adding(speller: Speller, *texts: str, request: str = "r") -> Changed:
    pairs = [Pair(text, "ziel") for text in texts]
    drafts = [draft for draft in drafts_of(speller, pairs, Origin()) if isinstance(draft, Draft)]
    prepared = [Prepared(d.new.source, d.new.target, d.keys, d.values) for d in drafts]
    return Changed(request, "m", "add_many", (pairs,), (("origin", "test"),), prepared)


def test_what_a_shard_holds_is_opened_by_everybody(shard: Shard, speller: Speller, tmp_path: Path) -> None:
    (segment,) = shard.change(adding(speller, "quelle"))
    with Memory.open(tmp_path / "a" / "m", speller) as memory:
        assert memory.segments() == [segment]
        assert memory.search(speller.query("quelle"), 1).distances[0, 0] == 0
        assert memory.verify() == []


def test_a_request_that_comes_twice_is_done_once(shard: Shard, speller: Speller) -> None:
    wanted = adding(speller, "one", "two")
    first = shard.change(wanted)
    assert shard.change(Changed("q", "m", "remove", ([first[0].id],))) == 1
    assert shard.change(wanted) == first  # answered as before, although one of them is gone
    assert [segment.source for segment in shard.read("m", "segments")] == ["two"]
    assert shard.change(Changed("q", "m", "remove", ([first[0].id],))) == 1
    with pytest.raises(KsterError, match="no segment"):
        shard.change(Changed("another", "m", "remove", ([first[0].id],)))


def test_an_edit_that_comes_twice_is_done_once(shard: Shard, speller: Speller) -> None:
    (old,) = shard.change(adding(speller, "old"))
    prepared = adding(speller, "new").prepared
    wanted = Changed("e", "m", "edit", (old.id, "new", "ziel"), (("origin", None),), prepared)
    new = shard.change(wanted)
    assert shard.change(wanted) == new
    assert shard.read("m", "segments") == [new]


def test_requests_are_remembered_by_the_next_owner(shard: Shard, speller: Speller, tmp_path: Path) -> None:
    wanted = adding(speller, "one")
    (segment,) = shard.change(wanted)
    shard.change(Changed("q", "m", "remove", ([segment.id],)))
    shard.close()
    again = Shard("a", tmp_path / "a")
    assert again.change(wanted) == [segment]
    assert again.read("m", "segment_count") == 0
    again.close()


def test_a_second_owner_is_refused(shard: Shard, tmp_path: Path) -> None:
    with pytest.raises(KsterError, match="another process owns"):
        Shard("a", tmp_path / "a")


def test_removed_entries_are_not_given_out_even_to_who_had_found_them(shard: Shard, speller: Speller) -> None:
    one, two = shard.change(adding(speller, "one valve", "two valves"))
    (found,) = shard.best([(["m"], None)], [Sentence("one valve two valves")], 10)
    assert sorted(found.segment_ids.tolist()) == [one.id, two.id]
    shard.change(Changed("q", "m", "remove", ([one.id],)))
    (entries,) = shard.entries([("m", np.array([one.id, two.id, 99]))])
    assert entries.segment_ids.tolist() == [two.id]
    assert len(entries.keys) == entries.firsts[-1] == len("ziel") + 1


def test_who_believes_what_is_no_longer_so_is_told(shard: Shard, speller: Speller) -> None:
    """Segments are compared across shards by how common their terms are in all of them."""
    texts, place, remembered = ["red house"], ("a", ("m",)), TermCounts()
    shard.change(adding(speller, "red house", "red car", "blue sea"))
    assert remembered.of(place, texts) is None
    (counts,) = shard.counts([["m"]], texts)
    remembered.learn(place, texts, counts)
    assert remembered.of(place, ["red boat"]).frequencies[0].having.tolist() == [
        0,
        2,
    ]  # so far it guesses right
    limits = Limits(4, 100)

    def found() -> Found | Outdated:
        here = remembered.of(place, texts)
        asked = Asked(["m"], here, total_of([here, here]))
        sentences = [Sentence(text) for text in texts]
        return shard.best_with_entries([asked], sentences, limits, Limits(1, 100), np.array([0]), 1_000, "r")

    before = found()
    assert isinstance(before, Found)
    assert [entries.segment_ids.tolist() for entries in before.entries] == [[1]]  # no more than its share
    assert sorted(before.best[0].segment_ids.tolist()) == [1, 2]
    shard.change(adding(speller, "red boat", request="another"))
    outdated = found()
    assert isinstance(outdated, Outdated)
    remembered.learn(place, texts, outdated.counts[0])
    assert isinstance(found(), Found)


def test_a_shard_sends_a_little_more_than_its_share() -> None:
    limits = Limits(256, 4_096)
    assert share_of(limits, 1) == limits
    assert share_of(limits, 4) == Limits(78, 1_246)


def test_what_was_staged_is_taken_over_in_one_change(shard: Shard, speller: Speller, tmp_path: Path) -> None:
    shard.change(adding(speller, "known"))
    shard.create("s", Description.of(speller, tmp_path, 1 << 20))
    drafts = list(drafts_of(speller, [Pair("known", "ziel"), Pair("new", "ziel")], Origin("file")))
    assert shard.add_drafts("1", "s", drafts) == 2  # type: ignore[arg-type]
    assert shard.add_drafts("1", "s", drafts) == 2  # type: ignore[arg-type]
    assert shard.take_over("2", "m", "s") == (1, 1)
    assert shard.take_over("2", "m", "s") == (1, 1)
    shard.delete(["s"])
    assert [segment.source for segment in shard.read("m", "segments")] == ["known", "new"]
    assert not (tmp_path / "a" / "s").exists()


def test_of_one_source_in_two_parts_the_newest_is_known(shard: Shard, speller: Speller) -> None:
    shard.change(adding(speller, "red house", "blue sea"))
    (found,) = shard.best([(["m"], None)], [Sentence("red house", ["red"])], 10)
    parts = best_of([found, found], [np.array([0]), np.array([1 << PART_SHIFT])], Limits(9, 100))
    assert [mask < 0 for mask in parts.words.tolist()] == [False, True]
    memories = best_of([found, found], [np.array([0]), np.array([1 << SHIFT])], Limits(9, 100))
    assert [mask < 0 for mask in memories.words.tolist()] == [True, True]


def test_only_what_nobody_knows_and_is_not_new_is_swept(
    shard: Shard, speller: Speller, tmp_path: Path
) -> None:
    import os

    for name in ("old", "new"):
        shard.create(name, Description.of(speller, tmp_path, 1 << 20))
    os.utime(tmp_path / "a" / "old", (0, 0))
    os.utime(tmp_path / "a" / "m", (0, 0))
    assert shard.sweep(["m"]) == ["old"]
    assert shard.has("m")
    assert shard.has("new")


def test_the_best_of_all_shards_are_chosen_the_newest_of_equal_ones_first(
    shard: Shard, speller: Speller
) -> None:
    shard.change(adding(speller, "red house", "red car", "blue sea"))
    (found,) = shard.best([(["m"], None)], [Sentence("red house")], 10)
    chosen = best_of([found, found], [np.array([0]), np.array([1 << 30])], Limits(3, 100))
    # both shards' "red house", and of the equal "red car" the one with the larger number
    assert list(zip(chosen.places.tolist(), chosen.segment_ids.tolist(), strict=True)) == [
        (0, 1),
        (1, 1),
        (1, 2),
    ]
