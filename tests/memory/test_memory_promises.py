"""What a memory promises to the people who trust it with their examples.

The first promise, surviving `kill -9`, has a module of its own: test_memory_crash.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from speller import Speller

from kster import KsterError
from kster.formats import Pair
from kster.memory import Memory
from kster.model import BaseModel
from tiny import ENGLISH, GERMAN


@pytest.fixture(scope="module")
def model(tiny_marian: Path) -> BaseModel:
    return BaseModel.load(tiny_marian, device="cpu")


def first_state(model: BaseModel, source: str) -> torch.Tensor:
    """(1, d): the query with which any translation of `source` begins."""
    return next(iter(model.make_keys([(source, "irgendetwas")]))).keys[:1]


def test_added_is_found_by_the_next_search(tmp_path: Path, model: BaseModel) -> None:
    memory = Memory.create(tmp_path / "m", model)
    memory.import_pairs(map(Pair, ENGLISH, GERMAN))
    segment = memory.add("rinse the tank", "Tank ausspülen")
    found = memory.search(first_state(model, "rinse the tank"), 1)
    assert memory.provenance(found.ids[:, 0])[0].segment == segment
    assert found.values[0, 0] == model.tokenise_target(["Tank ausspülen"])[0][0]
    assert found.distances[0, 0] == pytest.approx(0, abs=0.05)  # a batch of another shape rounds differently


def test_added_is_found_by_the_next_search_of_another_process_or_handle(
    memory: Memory, speller: Speller
) -> None:
    other = Memory.open(memory.directory, speller)
    assert other.search(speller.query("tree"), 1).ids.tolist() == [[-1]]
    memory.add("tree", "Baum")
    assert other.search(speller.query("tree"), 1).distances.tolist() == [[0.0]]


def test_removed_segment_is_never_retrieved_again_after_restart(memory: Memory, speller: Speller) -> None:
    keep, remove = memory.add("tree", "Baum"), memory.add("bird", "Vogel")
    query = speller.query("bird")
    assert memory.search(query, 1).distances[0, 0] == 0
    assert memory.remove(remove.id) == 1
    for opened in (memory, Memory.open(memory.directory, speller)):
        found = opened.search(query, 16)
        assert set(opened.segment_ids(found.ids).flatten().tolist()) == {keep.id, -1}
        assert found.distances[0, 0] > 0
        with pytest.raises(KsterError, match=f"no segment {remove.id}"):
            opened.segment(remove.id)
    memory.compact()
    assert (memory.search(query, 16).distances > 0).all()


def test_a_removed_pair_can_be_added_again_under_a_new_id(memory: Memory, speller: Speller) -> None:
    first = memory.add("bird", "Vogel")
    assert memory.remove_pair("bird", "Vogel") == 1
    memory.compact()
    second = memory.add("bird", "Vogel")
    assert second.id > first.id
    assert memory.search(speller.query("bird"), 1).distances[0, 0] == 0


def test_an_import_that_fails_midway_leaves_nothing_behind(memory: Memory, speller: Speller) -> None:
    memory.add("tree", "Baum")
    before = {path: path.stat().st_size for path in (memory.directory / "entries").rglob("*.*")}

    def broken() -> Iterator[Pair]:
        for i in range(3_000):  # more than a chunk: some are written when it breaks
            yield Pair(f"s{i}", f"t{i}")
        raise RuntimeError("the file ends here")

    with pytest.raises(RuntimeError, match="ends here"):
        memory.import_pairs(broken())
    assert [segment.source for segment in memory.segments()] == ["tree"]
    assert memory.search(speller.query("s5"), 1).distances[0, 0] > 0
    assert {path: path.stat().st_size for path in (memory.directory / "entries").rglob("*.*")} == before
    assert memory.verify() == []
    assert memory.import_pairs([Pair("s5", "t5")]).added == 1


def test_export_then_import_round_trips(tmp_path: Path, memory: Memory, speller: Speller) -> None:
    pairs = [Pair("a\tb", "c\nd", "u1"), Pair("tree", "Baum"), Pair("tree", "Gehölz"), Pair("🌳", "ﷺ", "ü")]
    memory.import_pairs([*pairs, Pair("gone", "weg")])
    memory.remove_pair("gone", "weg")
    assert list(memory.export()) == pairs
    copy = Memory.create(tmp_path / "copy", speller)
    assert copy.import_pairs(memory.export()).added == len(pairs)
    assert list(copy.export()) == pairs
    ours, theirs = memory.entries(), copy.entries()
    assert torch.equal(ours.values, theirs.values)
    assert torch.equal(ours.keys_of(ours.ids), theirs.keys_of(theirs.ids))


def test_another_model_is_refused_and_told_why(tmp_path: Path, model: BaseModel, tiny_m2m100: Path) -> None:
    Memory.create(tmp_path / "m", model).add("a tree", "ein Baum")
    other = BaseModel.load(tiny_m2m100, device="cpu")
    with pytest.raises(KsterError) as error:
        Memory.open(tmp_path / "m", other)
    for needed in (model.fingerprint, other.fingerprint, model.name, other.name, "export"):
        assert needed in str(error.value)
    assert Memory.open(tmp_path / "m", model).segment_count() == 1


def test_opening_does_not_load_the_model_and_its_own_model_is_loaded_when_needed(
    tmp_path: Path, tiny_marian: Path
) -> None:
    Memory.create(tmp_path / "m", str(tiny_marian)).close()
    memory = Memory.open(tmp_path / "m")
    assert memory._model is None
    memory.add("a tree", "ein Baum")
    assert memory.model.fingerprint == memory.fingerprint


def test_an_empty_memory_finds_nothing(memory: Memory) -> None:
    found = memory.search(torch.randn(3, 16), 4)
    assert found.distances.isinf().all()
    assert (found.ids == -1).all()
    assert (found.values == 0).all()
    assert (found.keys == 0).all()
    assert found.keys.shape == (3, 4, 16)
    assert memory.entry_count == 0
    assert len(memory.entries()) == 0
    assert memory.provenance([]) == []
