"""Approved segments teach, newer ones take the place of older ones, and nothing is lost by it."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from speller import Speller

from kster import KsterError
from kster.formats import Pair
from kster.memory import Memory


def teaches(memory: Memory, source: str, target: str) -> bool:
    """Whether search, the index of sources and the list of segments all know the pair, or none of them."""
    speller = Speller(memory.dimension)
    found = memory.search(speller.query(source), 20)
    exact = found.ids[0][found.distances[0] == 0]
    ways = {
        target in {origin.segment.target for origin in memory.provenance(exact)},
        target in {match.segment.target for match in memory.matches(source) if match.percentage == 100},
        target in {segment.target for segment in memory.find_text(source=source)},
    }
    assert len(ways) == 1
    return ways.pop()


def test_a_newer_translation_of_the_same_source_decides_and_the_older_can_be_brought_back(
    memory: Memory,
) -> None:
    old = memory.add("open", "offen", author="anna")
    new = memory.add("open", "öffnen", author="ben")
    assert (teaches(memory, "open", "offen"), teaches(memory, "open", "öffnen")) == (False, True)
    assert memory.segment(old.id).superseded_by == new.id
    memory.set_status(old.id, "approved", author="anna")
    assert (teaches(memory, "open", "offen"), teaches(memory, "open", "öffnen")) == (True, False)
    assert [(event.action, event.segment, event.author, event.other) for event in memory.history(new.id)] == [
        ("added", 1, "anna", None),
        ("added", 2, "ben", None),
        ("superseded", 1, "ben", 2),
        ("approved", 1, "anna", None),
        ("superseded", 2, "anna", 1),
    ]
    assert memory.add("open", "öffnen") == memory.segment(new.id)  # said again, it decides again
    assert teaches(memory, "open", "öffnen")


def test_a_rejection_is_undone_beside_the_others_of_its_import(memory: Memory) -> None:
    memory.import_pairs([Pair("open", "auf"), Pair("open", "offen")])
    memory.set_status(1, "rejected")
    memory.set_status(1, "approved", beside=[2])
    assert teaches(memory, "open", "auf")
    assert teaches(memory, "open", "offen")
    edited = memory.edit(1, "open", "zu")
    for id in (1, 2):  # also what stands in its own place may stay
        memory.set_status(id, "approved", beside=[1, 2, edited.id])
    assert [segment.target for segment in memory.segments()] == ["auf", "offen", "zu"]


def test_other_contexts_are_left_alone(memory: Memory) -> None:
    memory.add("open", "offen", context="door")
    memory.add("open", "öffnen", context="menu")
    memory.add("open", "Öffnen", context="menu")
    assert [(s.target, s.context) for s in memory.segments()] == [("offen", "door"), ("Öffnen", "menu")]
    assert memory.info().superseded == 1


def test_a_match_in_the_same_context_comes_first_and_counts_101(memory: Memory) -> None:
    memory.add("open", "offen", context="door")
    memory.add("open", "öffnen", context="menu")
    found = memory.matches("Open", context="door")
    assert [(match.percentage, match.segment.target) for match in found] == [(101, "offen"), (100, "öffnen")]
    assert [match.percentage for match in memory.matches("Open")] == [100, 100]


def test_pairs_of_one_import_are_equally_new(memory: Memory) -> None:
    memory.add("tree", "Strauch")
    memory.import_pairs([Pair("tree", "Baum"), Pair("tree", "Gehölz")], author="import")
    assert [s.target for s in memory.segments()] == ["Baum", "Gehölz"]
    report = memory.import_pairs([Pair("tree", "Strauch")])  # an old file once more changes nothing
    assert (report.added, report.duplicates) == (0, 1)
    assert not teaches(memory, "tree", "Strauch")


def test_drafts_and_rejected_segments_teach_nothing_until_they_are_approved(memory: Memory) -> None:
    draft = memory.add("tree", "Baum", status="draft")
    assert (memory.entry_count, memory.segments(), memory.matches("tree")) == (0, [], [])
    memory.set_status([draft.id], "approved")
    assert teaches(memory, "tree", "Baum")
    memory.set_status(draft.id, "rejected", author="anna")
    assert not teaches(memory, "tree", "Baum")
    assert memory.import_pairs([Pair("tree", "Baum")]).duplicates == 1  # an import does not overrule a person
    assert memory.segment(draft.id).status == "rejected"
    assert [s.id for s in memory.segments(state="rejected")] == [draft.id]
    info = memory.info()
    assert (info.segments, info.drafts, info.rejected) == (0, 0, 1)
    with pytest.raises(KsterError, match="status is 'good'; accepted: draft, approved, rejected"):
        memory.set_status(draft.id, "good")
    with pytest.raises(KsterError, match="no segment 99; nothing was changed"):
        memory.set_status([draft.id, 99], "approved")
    assert memory.segment(draft.id).status == "rejected"


def test_an_import_approves_a_draft_that_is_finished_now(memory: Memory) -> None:
    drafts = [Pair("tree", "Baum", status="draft"), Pair("bird", "Vogel", status="draft")]
    assert memory.import_pairs(drafts).drafts == 2
    report = memory.import_pairs([Pair("tree", "Baum"), Pair("bird", "Vogel", status="draft")])
    assert (report.added, report.duplicates, report.approved) == (0, 1, [1])
    assert [s.source for s in memory.segments()] == ["tree"]
    assert memory.import_pairs([Pair("bird", "Spatz", status="draft")], approve_drafts=True).drafts == 0
    assert teaches(memory, "bird", "Spatz")


def test_an_edited_or_replaced_segment_stays_in_the_history(memory: Memory) -> None:
    first = memory.add("open", "offen", unit="u-1")
    second = memory.edit(first.id, "open it", "öffnen", author="ben")
    third = memory.replace("u-1", "open it!", "aufmachen", author="anna")
    assert [s.id for s in memory.segments()] == [third.id]
    assert [event.segment for event in memory.history(first.id) if event.action == "added"] == [1, 2, 3]
    memory.set_status(first.id, "approved")
    assert [s.id for s in memory.segments()] == [first.id, third.id]  # second had been replaced in turn
    assert memory.segment(second.id).superseded_by == third.id
    memory.remove(third.id)
    assert [s.id for s in memory.segments()] == [first.id]  # what was edited does not come back by itself


def test_what_was_superseded_decides_again_when_the_newer_one_is_rejected_or_removed(memory: Memory) -> None:
    first, second, third = (memory.add("open", target) for target in ("offen", "öffnen", "auf"))
    memory.set_status(third.id, "rejected", author="anna")
    assert [s.id for s in memory.segments()] == [second.id]
    memory.remove(second.id, author="anna")
    assert [s.id for s in memory.segments()] == [first.id]
    assert teaches(memory, "open", "offen")


def test_what_is_not_live_survives_compaction_and_can_be_brought_back(tmp_path: Path) -> None:
    with Memory.create(tmp_path / "m", Speller(), entries_per_shard=20) as memory:
        memory.add_many([Pair(f"word {i}", f"Wort {i}") for i in range(20)])
        memory.add("word 3", "Vokabel")
        memory.set_status(6, "rejected")
        memory.remove([1, 2, 10], author="anna")
        memory.compact()
        assert memory.verify() == []
        memory.set_status([4, 6], "approved")
    with Memory.open(tmp_path / "m", Speller()) as memory:
        assert teaches(memory, "word 3", "Wort 3")
        assert not teaches(memory, "word 3", "Vokabel")
        assert teaches(memory, "word 5", "Wort 5")
        removals = [event for event in memory.history() if event.action == "removed"]
        assert [(event.segment, event.author, event.target) for event in removals] == [
            (10, "anna", None),
            (2, "anna", None),
            (1, "anna", None),
        ]
        assert len(memory.history(limit=3)) == 3
        with pytest.raises(KsterError, match="no segment 1"):
            memory.history(1)


def test_segments_come_back_in_a_memory_that_has_been_searched(tmp_path: Path) -> None:
    with Memory.create(tmp_path / "m", Speller()) as memory:
        memory.import_pairs(Pair(f"source {i}", f"target {i:03d}") for i in range(300))
        assert teaches(memory, "source 7", "target 007")
        memory.set_status(range(1, 151), "rejected")
        assert not teaches(memory, "source 7", "target 007")
        memory.set_status([8], "approved")
        assert teaches(memory, "source 7", "target 007")
        assert not teaches(memory, "source 9", "target 009")


def test_only_what_was_superseded_last_decides_again(memory: Memory) -> None:
    a, c = (memory.add("open", target).id for target in ("auf", "zu"))
    memory.set_status(a, "approved")
    x = memory.add("open", "offen").id
    for one in (c, x):
        memory.set_status(one, "approved")
    for rejected, decides in ((x, "zu"), (c, "auf")):
        memory.set_status(rejected, "rejected")
        assert [segment.target for segment in memory.segments()] == [decides]


@pytest.mark.parametrize("how", ["rejected", "removed"])
def test_what_a_superseded_segment_had_superseded_stays_superseded_when_that_goes(
    memory: Memory, how: str
) -> None:
    _, x, c = (memory.add("open", target).id for target in ("auf", "offen", "zu"))
    if how == "rejected":
        memory.set_status(x, "rejected")
    else:
        memory.remove([x])
    assert [segment.target for segment in memory.segments()] == ["zu"]
    memory.set_status(c, "rejected")
    assert [segment.target for segment in memory.segments()] == ["auf"]


# Under kill -9 ---------------------------------------------------------------------------------------


ALL = 1_000_000  # events
Wanted = tuple[str, tuple[Any, ...], str]  # what a memory is asked: a method, its arguments, and by whom


def some_change(memory: Memory, chance: random.Random, name: str) -> Wanted:
    """Teach one of five sources anew, perhaps by a draft, or change the status of something that is there."""
    kind = chance.choice(["add", "add a draft", "bring back", "approve", "reject", "make a draft"])
    states = {"bring back": "superseded", "approve": "draft", "reject": "live", "make a draft": "live"}
    found = memory.segments(state=states[kind]) if kind in states else []
    author = chance.choice(["anna", "ben"])
    if not found:
        status = "draft" if kind == "add a draft" else "approved"
        pair = Pair(f"source {chance.randrange(5)}", f"target {name}", None, None, None, status)
        return "add_many", ([pair],), author
    status = {"reject": "rejected", "make a draft": "draft"}.get(kind, "approved")
    return "set_status", (chance.choice(found).id, status), author


def do(memory: Memory, wanted: Wanted) -> None:
    method, given, author = wanted
    getattr(memory, method)(*given, author=author)


def change_for_ever(directory: str, seed: int, said: Connection) -> None:
    """Say each change before it begins, and None when it is done."""
    chance = random.Random(seed)
    memory = Memory.open(directory, Speller())
    said.send(None)
    for number in range(1_000_000):
        wanted = some_change(memory, chance, f"{seed}-{number}")
        said.send(wanted)
        do(memory, wanted)
        said.send(None)


def state_of(memory: Memory) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Every segment with its status and what took its place, and all that happened to them, the newest first;
    without times, which have too few digits to say what came between two additions."""
    kept = memory.segments(state="kept")
    return (
        sorted((s.id, s.source, s.target, s.status, s.superseded_by, s.author) for s in kept),
        [(e.action, e.segment, e.author, e.other) for e in memory.history(limit=ALL) if e.action != "added"],
    )


@pytest.mark.parametrize("kills", [8, pytest.param(300, marks=pytest.mark.slow)])
def test_statuses_superseding_and_bringing_back_hold_under_kill(tmp_path: Path, kills: int) -> None:
    """A killed memory is as one that was left in peace: with every acknowledged change, and perhaps the one
    that had begun."""
    Memory.create(tmp_path / "m", Speller()).close()
    peaceful = Memory.create(tmp_path / "peaceful", Speller())
    context = multiprocessing.get_context("forkserver")
    acknowledged: Counter[str] = Counter()
    for seed in range(kills):
        heard, said = context.Pipe(duplex=False)
        child = context.Process(target=change_for_ever, args=(str(tmp_path / "m"), seed, said))
        child.start()
        said.close()
        heard.recv()
        time.sleep(random.Random(seed).uniform(0.02, 0.2))
        child.kill()
        child.join()
        begun: Wanted | None = None
        try:
            while True:
                message = heard.recv()
                if message is None and begun is not None:
                    do(peaceful, begun)
                    acknowledged[begun[0] if begun[0] == "add_many" else begun[1][1]] += 1
                begun = message
        except EOFError:
            pass
        with Memory.open(tmp_path / "m", Speller()) as memory:
            assert memory.verify() == [], f"kill {seed}"
            if begun is not None and state_of(memory) != state_of(peaceful):
                do(peaceful, begun)  # it was done, but not yet said
            assert state_of(memory) == state_of(peaceful), f"kill {seed}, during {begun}"
            kept = memory.segments(state="kept")
            deciding = [segment.source for segment in kept if segment.is_live]
            assert len(set(deciding)) == len(deciding), f"two decide for a source, kill {seed}"
            for segment in random.Random(seed).sample(kept, min(8, len(kept))):
                assert teaches(memory, segment.source, segment.target) == segment.is_live, f"kill {seed}"
    peaceful.close()
    print(f"acknowledged: {dict(acknowledged)}")
    assert set(acknowledged) == {"add_many", "approved", "rejected", "draft"}
