"""States of a few rounded shapes serve every batch, and nobody can tell from the translations.

Static states are for GPUs, where their steps are recorded (tests/gpu); all else about them is shown here.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from by_transformers import shuffled_sentences
from kster import Memory, Pair, Translator
from kster.memory.search.settings import SearchSettings
from kster.model import BaseModel
from kster.model import state as states
from kster.model.state import Shape
from kster.model.step import StepDecoder
from kster.smoothing import Smoother, SmootherSettings
from kster.translation.beam import beam_search
from kster.translation.beams import Hypothesis
from kster.translation.predictor import base_predictor
from tiny import ENGLISH, GERMAN

LIMIT = 24


@pytest.fixture(params=["taught_marian", "taught_m2m100"], scope="module")
def model(request: pytest.FixtureRequest) -> BaseModel:
    return BaseModel.load(request.getfixturevalue(request.param), device="cpu")


def translate(decoder: StepDecoder, texts: list[str], beam: int = 4) -> list[Hypothesis]:
    ids = decoder.model.tokenise_source(texts)
    limits = [5 + i % LIMIT for i, _ in enumerate(ids)]  # so that they end one after the other
    found = beam_search(decoder, ids, base_predictor, beam=beam, length_penalty=0.6, limits=limits)
    return [hypotheses[0] for hypotheses in found]


def assert_alike(ours: list[Hypothesis], theirs: list[Hypothesis]) -> None:
    assert [hypothesis.tokens for hypothesis in ours] == [hypothesis.tokens for hypothesis in theirs]
    assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], abs=1e-4)


def test_shapes_are_rounded_up_to_few() -> None:
    assert Shape(5, 4, 7, 33).rounded() == Shape(8, 4, 32, 64)
    assert Shape(8, 4, 32, 64).rounded() == Shape(8, 4, 32, 64)
    assert Shape(1, 1, 1, 1).rounded() == Shape(1, 1, 32, 32)


def test_batch_after_batch_is_translated_as_without_static_states(model: BaseModel) -> None:
    plain, static = StepDecoder(model, static=False), StepDecoder(model, static=True)
    texts = shuffled_sentences(60)
    for size, beam in ((60, 4), (7, 4), (1, 1), (60, 4), (19, 3)):  # sizes come back, beams change
        assert_alike(translate(static, texts[:size], beam), translate(plain, texts[:size], beam))


def test_a_batch_that_shrinks_moves_from_a_large_state_to_static_ones(
    model: BaseModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, static = StepDecoder(model, static=False), StepDecoder(model, static=True)
    room = static.states._bytes(Shape(8, 4, 64, 32))
    monkeypatch.setattr(states, "LARGEST_STATIC", room)
    texts = shuffled_sentences(40)
    assert_alike(translate(static, texts), translate(plain, texts))
    assert_alike(translate(static, texts[:30]), translate(plain, texts[:30]))
    kept = [state.shape for state in static.states._free.values()]
    assert kept
    assert all(shape.sentences <= 8 for shape in kept)


def test_a_recorded_search_that_shrinks_finds_the_same(
    model: BaseModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sentences that go on move to a smaller state, with their beams and what they have read."""
    monkeypatch.setattr("kster.translation.recorded_search.LEAST_SHRUNK", 2)
    plain, static = StepDecoder(model, static=False), StepDecoder(model, static=True)
    texts = shuffled_sentences(40)
    assert_alike(translate(static, texts), translate(plain, texts))
    sizes = {shape.sentences for shape in static.states._free}
    assert 64 in sizes
    assert min(sizes) < 32


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 1.4])
def test_a_recorded_search_divides_scores_alike(model: BaseModel, penalty: float) -> None:
    ids = model.tokenise_source(shuffled_sentences(12))
    ours, theirs = (
        beam_search(
            StepDecoder(model, static=static),
            ids,
            base_predictor,
            beam=3,
            length_penalty=penalty,
            limits=[LIMIT] * len(ids),
            n_best=3,
        )
        for static in (True, False)
    )
    for own, other in zip(ours, theirs, strict=True):
        assert_alike(own, other)


def test_no_more_is_kept_than_was_agreed(model: BaseModel, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = StepDecoder(model, static=True)
    for beam in (1, 2, 3, 4):
        translate(decoder, ["the red house"], beam)
    assert [shape.beam for shape in decoder.states._free] == [1, 2, 3, 4]
    monkeypatch.setattr(states, "MOST_KEPT", 2)
    translate(decoder, ["the red house"], 1)
    assert [shape.beam for shape in decoder.states._free] == [4, 1]  # those used last
    monkeypatch.setattr(states, "KEPT", 0)
    translate(decoder, ["the red house"], 1)
    assert not decoder.states._free


def test_threads_do_not_share_a_state(model: BaseModel) -> None:
    plain, static = StepDecoder(model, static=False), StepDecoder(model, static=True)
    batches = [shuffled_sentences(24)[i : i + 6] for i in range(0, 24, 6)]
    alone = [translate(plain, batch) for batch in batches]
    with ThreadPoolExecutor(4) as threads:
        for _ in range(3):
            for ours, theirs in zip(threads.map(lambda b: translate(static, b), batches), alone, strict=True):
                assert_alike(ours, theirs)


def test_an_interrupted_batch_leaves_nothing_behind(taught_marian: Path) -> None:
    model = BaseModel.load(taught_marian, device="cpu")
    decoder = StepDecoder(model, static=True)
    texts = shuffled_sentences(6)
    expected = translate(decoder, texts)

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        beam_search(
            decoder,
            model.tokenise_source(texts),
            fail,  # type: ignore[arg-type]
            beam=4,
            length_penalty=0.6,
            limits=[LIMIT] * 6,
        )
    assert_alike(translate(decoder, texts), expected)


@pytest.mark.parametrize("method", ["knn", "kster"])
def test_static_states_search_a_memory_as_it_is_now(model: BaseModel, tmp_path: Path, method: str) -> None:
    plain, static = Translator(model), Translator(model)
    plain.decoder, static.decoder = StepDecoder(model, static=False), StepDecoder(model, static=True)
    texts = [*shuffled_sentences(9), *ENGLISH[:3]]
    with Memory.create(tmp_path / "memory", model) as memory:

        def same() -> bool:
            found = [
                [str(t) for t in translator.translate(texts, memory=memory, method=method)]  # type: ignore[arg-type]
                for translator in (plain, static)
            ]
            return found[0] == found[1]

        assert same()  # an empty one
        memory.add_many([Pair(s, t) for s, t in zip(ENGLISH, reversed(GERMAN), strict=True)])
        assert same()
        memory.remove([segment.id for segment in memory.segments()][:2])
        assert same()


def test_shortlists_where_keys_lie_are_searched_as_those_of_the_host(
    model: BaseModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a GPU does, on a CPU: static states, and shortlists that are places in an index."""
    plain, static = Translator(model), Translator(model)
    plain.decoder, static.decoder = StepDecoder(model, static=False), StepDecoder(model, static=True)
    texts = [*shuffled_sentences(9), *ENGLISH[:3]]
    settings = SmootherSettings(dimension=model.dimension, features="confidence", similarity=True)
    smoother = Smoother(settings).eval()
    with Memory.create(tmp_path / "memory", model, search=SearchSettings(shortlist=4)) as memory:
        memory.add_many([Pair(s, t) for s, t in zip(ENGLISH, reversed(GERMAN), strict=True)])
        memory.remove([segment.id for segment in memory.segments()][:2])
        for mode in ("auto", "shortlist"):
            memory.search_settings = SearchSettings(mode, shortlist=4)
            found = []
            for translator, devices in ((plain, set()), (static, {"cpu"})):
                monkeypatch.setattr("kster.memory.searched.ON_DEVICE", devices)
                found.append(translator.translate(texts, memory=memory, smoother=smoother))
            assert [str(one) for one in found[0]] == [str(one) for one in found[1]]
            scores = [one.score for one in found[0]]
            assert [one.score for one in found[1]] == pytest.approx(scores, abs=1e-3)
