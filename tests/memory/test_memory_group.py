"""Several memories searched as one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from speller import Speller

from kster import KsterError
from kster.formats import Pair
from kster.memory import Memory, MemoryGroup


@pytest.fixture
def group(tmp_path: Path, speller: Speller) -> MemoryGroup:
    memories = [Memory.create(tmp_path / name, speller) for name in ("trees", "birds", "nothing")]
    memories[0].import_pairs([Pair("tree", "Baum"), Pair("oak", "Eiche")])
    memories[1].import_pairs([Pair("bird", "Vogel"), Pair("tree", "baum")])
    return MemoryGroup(memories)


def test_a_group_finds_what_one_memory_with_everything_would(
    tmp_path: Path, group: MemoryGroup, speller: Speller
) -> None:
    whole = Memory.create(tmp_path / "whole", speller)
    whole.import_pairs(pair for memory in group.memories for pair in memory.export())
    queries = torch.cat([speller.query("tree"), speller.query("bird", "Vo"), torch.zeros(1, 16)])
    ours, theirs = group.search(queries, 6), whole.search(queries, 6)
    assert torch.equal(ours.distances, theirs.distances)
    assert torch.equal(ours.values, theirs.values)
    assert torch.equal(ours.keys, theirs.keys)
    assert group.entry_count == whole.entry_count == 5 + 6 + 6 + 5
    texts = [p.segment.target for p in group.provenance(ours.ids.flatten())]
    assert texts == [p.segment.target for p in whole.provenance(theirs.ids.flatten())]


def test_ids_of_a_group_lead_back_to_the_right_memory(group: MemoryGroup, speller: Speller) -> None:
    found = group.search(speller.query("tree"), 40)
    assert (found.ids[0, :22] >= 0).all()
    assert (found.ids[0, 22:] == -1).all()
    segments = group.segment_ids(found.ids)
    assert (segments[0, 22:] == -1).all()
    first, second = found.ids[0, :2].tolist()  # at the same distance: the memory named last comes first
    birds, trees = group.provenance([first, second])
    assert (Path(trees.memory).name, trees.segment.id, trees.segment.target) == ("trees", 1, "Baum")
    assert (Path(birds.memory).name, birds.segment.id, birds.segment.target) == ("birds", 2, "baum")
    assert group.segment(int(segments[0, 0])) == birds.segment
    groups = group.target_groups(segments)
    assert groups[0, 0] == groups[0, 1]  # Baum and baum
    assert (groups[0, 22:] == -1).all()


def test_of_more_exact_matches_than_fit_those_of_the_memory_named_last_are_found(
    group: MemoryGroup, speller: Speller
) -> None:
    for memory in group.memories:
        memory.import_pairs(Pair("tree", f"tree {i}") for i in range(20))
    found = group.search(speller.query("tree"), 16)
    assert [Path(p.memory).name for p in group.provenance(found.ids[0])] == ["nothing"] * 16
    assert [p.segment.target for p in group.provenance(found.ids[0])][:2] == ["tree 19", "tree 18"]


def test_memories_of_different_models_are_not_grouped(tmp_path: Path, memory: Memory) -> None:
    other = Memory.create(tmp_path / "other", Speller(fingerprint="speller-2"))
    with pytest.raises(KsterError, match=r"different models .*speller-1.*speller-2"):
        MemoryGroup([memory, other])
    with pytest.raises(KsterError, match="at least one"):
        MemoryGroup([])


def test_a_memory_is_not_grouped_with_itself(tmp_path: Path, memory: Memory, speller: Speller) -> None:
    (tmp_path / "alias").symlink_to(memory.directory)
    for name in (memory.directory, tmp_path / "alias"):
        with (
            Memory.open(name, speller) as again,
            pytest.raises(KsterError, match=f"{name} are the same memory; name each memory once"),
        ):
            MemoryGroup([memory, again])


def test_foreign_ids_are_refused(group: MemoryGroup) -> None:
    with pytest.raises(KsterError, match="no segment"):
        group.segment(3 << 40 | 1)
    with pytest.raises(KsterError, match="no such entry"):
        group.provenance([-1])
    with pytest.raises(KsterError, match="no entry 999"):
        group.provenance([999])
