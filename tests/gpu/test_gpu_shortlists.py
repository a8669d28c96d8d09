"""Shortlists among the keys that lie on a GPU: the neighbours of exact search, and recorded with the step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from test_gpu_beam import waiting_is_an_error

from by_transformers import shuffled_sentences
from kster import Memory, MemoryGroup, Pair, Translator
from kster.memory import searched
from kster.memory.search.device_shortlists import MOST_SETTLED, DeviceShortlists, kernels, ordered_distances
from kster.memory.search.retriever import Batch
from kster.memory.search.settings import SearchSettings
from kster.model import BaseModel
from kster.model.focus import source_words
from kster.model.step import StepDecoder
from kster.smoothing import Smoother, SmootherSettings
from kster.translation.recorded_search import RecordedSearch
from tiny import ENGLISH, GERMAN

pytestmark = pytest.mark.gpu

TEXTS = [*ENGLISH[:5], *shuffled_sentences(12)]


@pytest.fixture(autouse=True)
def _on_any_device(monkeypatch: pytest.MonkeyPatch, device: torch.device) -> None:
    monkeypatch.setattr(searched, "ON_DEVICE", {device.type})


@pytest.fixture
def memory(model: BaseModel, tmp_path: Path) -> Iterator[Memory]:
    with Memory.create(tmp_path / "memory", model) as memory:
        memory.add_many([Pair(s, t) for s, t in zip(ENGLISH, GERMAN, strict=True)])
        memory.add_many([Pair(f"{s} {s}", f"{t} {t}") for s, t in zip(ENGLISH, GERMAN, strict=True)])
        memory.remove([segment.id for segment in memory.segments()][3:6])
        memory.add(ENGLISH[0], GERMAN[1])
        yield memory


def learned(model: BaseModel) -> Smoother:
    torch.manual_seed(3)
    settings = SmootherSettings(
        dimension=model.dimension, features="confidence", exact_match=0.98, similarity=True
    )
    smoother = Smoother(settings)
    with torch.no_grad():
        for weight in smoother.parameters():
            weight += 0.02 * torch.randn_like(weight)
    return smoother.eval().to(model.device)


def batch_of(model: BaseModel, texts: list[str]) -> Batch:
    words = [source_words(model, ids).words for ids in model.tokenise_source(texts)]
    return Batch(texts, model.device, True, words)


def test_the_neighbours_are_those_that_a_shortlist_on_the_host_finds(
    model: BaseModel, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = batch_of(model, TEXTS)
    queries = torch.cat([memory.keys_of(memory.entries().ids[:: 1 + i])[:4] for i, _ in enumerate(TEXTS)])
    queries = queries.to(model.device, torch.float32)
    queries[::3] += 0.1 * torch.randn_like(queries[::3])
    for settings in (SearchSettings(), SearchSettings("shortlist", 5, 40)):
        monkeypatch.setattr(memory, "search_settings", settings)
        here = memory.retriever(batch)
        assert isinstance(here, DeviceShortlists)
        monkeypatch.setattr(searched, "ON_DEVICE", set())
        there = memory.retriever(batch)
        assert not isinstance(there, DeviceShortlists)
        monkeypatch.setattr(searched, "ON_DEVICE", {model.device.type})
        for ours, theirs in (
            (here.search(queries, 8), there.search(queries, 8)),
            (
                here.keep(torch.tensor([1, 4], device=model.device)).search(queries[:6], 3),
                there.keep(torch.tensor([1, 4], device=model.device)).search(queries[:6], 3),
            ),
        ):
            assert torch.equal(ours.ids, theirs.ids)
            assert torch.equal(ours.values, theirs.values)
            assert torch.equal(
                ours.words.masked_fill(ours.ids < 0, -1), theirs.words.masked_fill(theirs.ids < 0, -1)
            )
            assert torch.equal(ours.rare, theirs.rare)
            torch.testing.assert_close(ours.keys, theirs.keys)
            torch.testing.assert_close(ours.distances, theirs.distances, atol=1e-3, rtol=1e-3)
            torch.testing.assert_close(ours.similarity, theirs.similarity, atol=1e-3, rtol=1e-3)


def test_of_equal_entries_the_newest_comes_first(device: torch.device) -> None:
    keys = torch.randn(7, 64, device=device).half()
    keys[5] = keys[2]
    places = torch.tensor([[2, 3, 5, -1]], device=device)
    places = torch.nn.functional.pad(places, (0, 60), value=-1)
    ordered = ordered_distances(keys[2:4].float(), keys, places, 2)
    assert ordered.shape == (2, 64)
    assert ordered[0].argsort()[:3].tolist() == [2, 0, 1]
    assert ordered[1].argmin() == 1


@pytest.mark.skipif(kernels() is None, reason="no Triton here")
@pytest.mark.parametrize("beam", [1, 4])
def test_the_kernel_measures_as_plain_operations_do(
    beam: int, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    fused = kernels()
    assert fused is not None
    queries = torch.randn(3 * beam, 128, device=device)
    keys = torch.randn(500, 128, device=device).half()
    places = torch.randint(-1, 500, (3, 192), device=device)
    places[0, 64:] = -1
    ours = fused.ordered_distances(queries, keys, places, beam)
    monkeypatch.setattr("kster.memory.search.device_shortlists.kernels", lambda: None)
    theirs = ordered_distances(queries, keys, places, beam)
    assert torch.equal(ours & 0xFFFFFFFF, theirs & 0xFFFFFFFF)
    ours, theirs = ((of >> 32).int().view(torch.float32) for of in (ours, theirs))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-3)


def without_graphs(model: BaseModel) -> StepDecoder:
    decoder = StepDecoder(model, static=True)
    decoder.states.record = False
    return decoder


def test_recorded_with_the_step_they_give_the_same_translations(
    model: BaseModel, memory: Memory, device: torch.device
) -> None:
    """Batch after batch, whatever has become of the memory meanwhile."""
    recorded, plain = Translator(model), Translator(model)
    recorded.decoder, plain.decoder = StepDecoder(model, static=True), without_graphs(model)
    smoother = learned(model)

    def same(lines: list[str]) -> None:
        ours, theirs = (
            [str(one) for one in translator.translate(lines, memory=memory, smoother=smoother)]
            for translator in (recorded, plain)
        )
        assert ours == theirs

    texts = shuffled_sentences(70)
    for lines in (texts, texts[:3], [ENGLISH[0]], texts[20:], [ENGLISH[7]]):
        same(lines)
    memory.add_many([Pair(f"{s} now", f"{t} jetzt") for s, t in zip(ENGLISH, GERMAN, strict=True)])
    same(texts)
    memory.remove([segment.id for segment in memory.segments()][:4])
    same(texts[:9])
    assert plain.decoder.states.graphs == 0
    assert recorded.decoder.states.graphs >= (3 if device.type == "cuda" else 0)


def test_memories_that_take_turns_find_their_places_again(
    model: BaseModel, memory: Memory, tmp_path: Path
) -> None:
    """So that steps recorded with each of them serve it again, and those of memories long gone are let go."""
    room: dict[str, object] = {}

    def settled(memory: Memory) -> DeviceShortlists:
        found = memory.retriever(batch_of(model, TEXTS))
        assert isinstance(found, DeviceShortlists)
        return found.settled_in(room, 32, 4)

    with Memory.create(tmp_path / "second", model) as second:
        second.add_many([Pair(s, t) for s, t in zip(ENGLISH, GERMAN, strict=True)])
        first, other = settled(memory), settled(second)
        assert first is not other
        second.add("the sea is old", "alt ist das Meer")
        assert settled(memory) is first
        assert settled(second) is other
        assert first.is_settled_in(room)
    for i in range(MOST_SETTLED):
        with Memory.create(tmp_path / str(i), model) as more:
            more.add("the sea is old", "alt ist das Meer")
            settled(more)
    assert not first.is_settled_in(room)


@pytest.mark.parametrize("kind", ["base", "kster"])
def test_no_recorded_step_waits_for_the_gpu(
    kind: str, model: BaseModel, memory: Memory, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, guarded, step = Translator(model), Translator(model), RecordedSearch._step
    options: dict[str, Any] = {} if kind == "base" else {"memory": memory, "smoother": learned(model)}
    steps = 0

    def watched(search: RecordedSearch) -> None:
        nonlocal steps
        steps += 1
        with waiting_is_an_error(device):
            step(search)

    texts = shuffled_sentences(20)
    guarded.decoder, plain.decoder = StepDecoder(model, static=True), without_graphs(model)
    for _ in range(3):  # on first use kernels are compiled, and steps are recorded
        guarded.translate(texts, **options)
    monkeypatch.setattr(RecordedSearch, "_step", watched)
    found = [str(one) for one in guarded.translate(texts, **options)]
    monkeypatch.setattr(RecordedSearch, "_step", step)
    assert found == [str(one) for one in plain.translate(texts, **options)]
    assert steps > 4


def test_a_batch_that_shrinks_takes_its_shortlists_with_it(
    model: BaseModel, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kster.translation.recorded_search.LEAST_SHRUNK", 2)
    smoother = learned(model)
    shrinking, plain = Translator(model), Translator(model)
    shrinking.decoder, plain.decoder = StepDecoder(model, static=True), StepDecoder(model, static=False)
    texts = [*ENGLISH, *shuffled_sentences(20)]
    ours, theirs = (
        [(str(one), one.score) for one in translator.translate(texts, memory=memory, smoother=smoother)]
        for translator in (shrinking, plain)
    )
    assert [text for text, _ in ours] == [text for text, _ in theirs]
    assert [score for _, score in ours] == pytest.approx([score for _, score in theirs], abs=1e-2)


def test_several_memories_are_searched_as_one(model: BaseModel, memory: Memory, tmp_path: Path) -> None:
    with Memory.create(tmp_path / "second", model) as second:
        second.add("the sea is old", "alt ist das Meer")
        group = MemoryGroup([memory, second])
        found = group.retriever(batch_of(model, ["the sea is old", ENGLISH[0]]))
        assert isinstance(found, DeviceShortlists)
        assert not found.lasting
        assert len(found.stored.keys) < 1_000  # those of the segments alone, not all of both memories
        keys = second.keys_of(second.entries().ids)[:2].to(model.device)
        near = found.search(torch.cat([keys, keys]).float(), 1)
        assert (near.ids >> 40 == 1)[:2].all()
        assert torch.allclose(near.distances, torch.zeros_like(near.distances), atol=0.1)
        said = Translator(model).translate("the sea is old", memory=group, smoother=learned(model))
        assert str(said) == "alt ist das Meer"
