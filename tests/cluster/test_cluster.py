"""A small real cluster: memories on shards translate as one in a directory does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

pytest.importorskip("ray")

from clusters import memory_on, running

from kster.formats import Pair
from kster.memory import Memory, MemoryGroup, SearchableMemory, SearchSettings
from kster.model import BaseModel
from kster.translation import Translator
from tiny import ENGLISH, GERMAN

PAIRS = [
    Pair(f"{ENGLISH[i]} and {ENGLISH[j]}", f"{GERMAN[i]} und {GERMAN[j]}", f"{i}-{j}")
    for i, j in product(range(6), range(5))
]
SHARDS = ("a", "b")
# ENGLISH[1] is as similar to its sixth segment as to the next; which of them is the newest parts do not know.
TEXTS = [ENGLISH[0], ENGLISH[2], PAIRS[7].source, f"{ENGLISH[5]} and {ENGLISH[2]} and {ENGLISH[8]}"]


@pytest.fixture(scope="module")
def model(taught_marian: Path) -> BaseModel:
    return BaseModel.load(taught_marian, device="cpu")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    data = tmp_path_factory.mktemp("cluster")
    with running(data, SHARDS):
        yield data


def test_translations_are_those_of_one_process(cluster: Path, model: BaseModel, tmp_path: Path) -> None:
    """Whole on one shard, divided among shards, and several as one; with what was added and removed since."""
    there = memory_on(SHARDS, model, 1, tmp_path)
    here = Memory.create(tmp_path / "here", model)
    translator = Translator(model)

    def require_equal(memory: SearchableMemory, local: SearchableMemory) -> None:
        texts = [*TEXTS, PAIRS[-1].source]
        found, expected = (translator.translate(texts, memory=one, explain=True) for one in (memory, local))
        assert [one.text for one in found] == [one.text for one in expected]
        assert [one.score for one in found] == pytest.approx([one.score for one in expected])

    for memory in (there, here):
        memory.add_many(PAIRS[:5])
    require_equal(there, here)
    assert [s.id for s in there.segments()] == [s.id for s in here.segments()]

    there.split_from = 10  # what is larger is divided
    for memory in (there, here):
        report = memory.import_pairs(PAIRS, origin="a file")
        assert (report.added, report.duplicates) == (len(PAIRS) - 5, 5)
        memory.remove_pair(PAIRS[3].source, PAIRS[3].target)
        memory.add("close the lid", "den Deckel schließen")
    assert {part.shard for part in there.parts} == set(SHARDS)
    assert there.entry_count == here.entry_count
    assert [len(own) for own in there.similar_segments(TEXTS, 4)] == [4] * len(TEXTS)  # of all parts
    (everything,) = there.similar_segments([TEXTS[2]], 99)
    assert {match.segment.source for match in everything} == {segment.source for segment in here.segments()}
    require_equal(there, here)
    for memory in (there, here):  # no longer all entries
        memory.search_settings = SearchSettings(shortlist=6, shortlist_entries=200)
    assert there.segment_count() == here.segment_count() == len(list(there.export()))
    require_equal(there, here)

    other = memory_on(SHARDS, model, 2, tmp_path)
    local = Memory.create(tmp_path / "other", model)
    for memory in (other, local):
        memory.add(PAIRS[-1].source, "ganz anders")
    require_equal(MemoryGroup([there, other]), MemoryGroup([here, local]))

    edited = there.edit(there.find_text(PAIRS[20].source)[0].id, "new words", "neue Wörter")
    assert there.segment(edited.id) == edited
    assert there.tokens_of(edited.id) == list(model.tokenise_target(["neue Wörter"])[0])
    assert there.replace("5-4", "other words", "andere Wörter").unit == "5-4"
    assert there.find_text(PAIRS[-1].source) == []  # had that unit id, in another part
    again = there.add("new words", "andere Worte")
    there.set_status(edited.id, "approved", beside=[again.id])
    assert {segment.id for segment in there.find_text("new words")} == {edited.id, again.id}
    assert there.remove([edited.id, again.id]) == 2
    assert there.find_text("new words") == []
    assert translator.translate("new words", memory=there, explain=True).text != "neue Wörter"
