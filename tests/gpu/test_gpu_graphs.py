"""Recorded steps are steps: the same tokens, whatever the batch, and without graphs where they fail."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from by_transformers import shuffled_sentences
from kster import Memory, Pair, Translator
from kster.model import BaseModel
from kster.model.step import StepDecoder
from kster.translation.beam import beam_search
from kster.translation.beams import Hypothesis
from kster.translation.predictor import base_predictor
from tiny import ENGLISH, GERMAN

pytestmark = pytest.mark.gpu

LIMIT = 40


@pytest.fixture(autouse=True)
def record_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches here are few and short."""
    monkeypatch.setattr("kster.model.graph.STEPS_BEFORE_RECORDING", 12)


def translate(decoder: StepDecoder, texts: list[str], beam: int = 4) -> list[tuple[int, ...]]:
    """The tokens of all hypotheses."""
    found: list[list[Hypothesis]] = beam_search(
        decoder,
        decoder.model.tokenise_source(texts),
        base_predictor,
        beam=beam,
        length_penalty=0.6,
        limits=[LIMIT] * len(texts),
        n_best=beam,
    )
    return [hypothesis.tokens for hypotheses in found for hypothesis in hypotheses]


def without_graphs(model: BaseModel) -> StepDecoder:
    """The same static shapes, so that even half precision rounds alike; but no step is ever recorded."""
    decoder = StepDecoder(model, static=True)
    decoder.states.record = False
    return decoder


BATCHES = [(60, 4), (60, 4), (1, 4), (1, 4), (60, 4), (5, 2), (5, 2), (33, 1), (33, 1)]


def test_recorded_steps_give_the_same_tokens(model: BaseModel, device: torch.device) -> None:
    recorded, plain = StepDecoder(model, static=True), without_graphs(model)
    texts = shuffled_sentences(60)
    for size, beam in BATCHES:
        assert translate(recorded, texts[:size], beam) == translate(plain, texts[:size], beam)
    assert plain.states.graphs == 0
    assert recorded.states.graphs >= (3 if device.type == "cuda" else 0)


def test_recorded_steps_serve_sentences_of_other_lengths_and_texts(model: BaseModel) -> None:
    """A shape is rounded: what the last batch left in it must not be seen by the next."""
    recorded, plain = StepDecoder(model, static=True), without_graphs(model)
    texts = shuffled_sentences(90)
    for start in range(0, 90, 30):
        part = texts[start : start + 30]
        assert translate(recorded, part) == translate(plain, part)


def test_threads_that_translate_at_once_get_what_they_would_get_alone(model: BaseModel) -> None:
    recorded, plain = StepDecoder(model, static=True), without_graphs(model)
    texts = shuffled_sentences(48)
    batches = [texts[i : i + 6] for i in range(0, 48, 6)]
    alone = [translate(plain, batch) for batch in batches]
    with ThreadPoolExecutor(4) as threads:
        for _ in range(4):
            assert list(threads.map(lambda batch: translate(recorded, batch), batches)) == alone


def test_where_recording_fails_decoding_goes_on_without(
    model: BaseModel,
    device: torch.device,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(torch.cuda.CUDAGraph, "capture_begin", refused)
    recorded, plain = StepDecoder(model, static=True), without_graphs(model)
    texts = shuffled_sentences(60)
    assert translate(recorded, texts) == translate(plain, texts)
    assert recorded.states.graphs == 0
    if device.type == "cuda":
        assert "without CUDA graphs" in caplog.text


def test_an_operation_that_cannot_be_recorded_does_not_spoil_the_state(
    model: BaseModel, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real failure while the GPU is recording: something waits for it in the middle of a step."""
    recorded, plain = StepDecoder(model, static=True), without_graphs(model)
    decode = recorded._decode

    def waiting(*arguments: object) -> object:
        if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            torch.ones(1, device=device).item()
        return decode(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(recorded, "_decode", waiting)
    texts = shuffled_sentences(20)
    assert translate(recorded, texts) == translate(plain, texts)
    assert recorded.states.graphs == 0


@pytest.mark.parametrize("method", ["knn", "kster"])
def test_searching_and_mixing_are_recorded_with_the_step(
    method: str, model: BaseModel, device: torch.device, tmp_path: Path
) -> None:
    """And a memory that changes is searched as it is, not as it was recorded."""
    recorded, plain = Translator(model), Translator(model)
    recorded.decoder, plain.decoder = StepDecoder(model, static=True), without_graphs(model)
    texts = shuffled_sentences(40)

    def translate(translator: Translator, lines: list[str]) -> list[str]:
        found = translator.translate(lines, memory=memory, method=method)  # type: ignore[arg-type]
        return [str(translation) for translation in found]

    with Memory.create(tmp_path / "memory", model) as memory:
        for i, (source, target) in enumerate(zip(ENGLISH, GERMAN, strict=True)):
            memory.add_many([Pair(source, target), Pair(f"{source} {source}", f"{target} {i}")])
            for lines in (texts, texts[:3], [source], [source]):
                assert translate(recorded, lines) == translate(plain, lines)
        memory.remove([segment.id for segment in memory.segments()][:4])
        assert translate(recorded, texts) == translate(plain, texts)
    assert plain.decoder.states.graphs == 0
    assert recorded.decoder.states.graphs >= (3 if device.type == "cuda" else 0)
