"""Whole translations on a GPU: what was added comes back, and devices agree."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from by_transformers import shuffled_sentences
from kster import BaseModel, Memory, Pair, Translator
from tiny import ENGLISH, GERMAN

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "models" / "en-de"
NEW = ("open the red lid when the child reads a book", "Deckel auf wenn das Kind liest")


@pytest.mark.parametrize("method", ["knn", "kster"])
def test_an_added_segment_is_the_next_translation_of_its_source(
    method: str, model: BaseModel, tmp_path: Path
) -> None:
    translator = Translator(model)
    with Memory.create(tmp_path / "memory", model) as memory:
        memory.add_many([Pair(s, t) for s, t in zip(ENGLISH, GERMAN, strict=True)])

        def translate(lines: list[str]) -> list[str]:
            return [str(t) for t in translator.translate(lines, memory=memory, method=method)]  # type: ignore[arg-type]

        assert translate([NEW[0]]) != [NEW[1]]
        added = memory.add(*NEW)
        assert translate([*ENGLISH, NEW[0]]) == [*GERMAN, NEW[1]]
        memory.remove(added.id)
        assert translate([NEW[0]]) != [NEW[1]]


@pytest.mark.skipif(not (SHIPPED / "config.json").is_file(), reason="no shipped model here")
@pytest.mark.parametrize("method", ["knn", "kster"])
@pytest.mark.parametrize("made_on", ["cpu", "gpu"])
def test_the_shipped_model_gives_back_what_was_added_in_half_precision(
    made_on: str, method: str, device: torch.device, tmp_path: Path
) -> None:
    """Also from a memory whose keys were made on a CPU in single precision."""
    sources, targets = (
        (ROOT / "examples" / f"heldout.{lang}").read_text(encoding="utf-8").splitlines()
        for lang in ("en", "de")
    )
    model = BaseModel.load(SHIPPED, device=device, precision="auto")
    maker = model if made_on == "gpu" else BaseModel.load(SHIPPED, device="cpu")
    with Memory.create(tmp_path / "memory", maker) as memory:
        memory.add_many([Pair(s, t) for s, t in zip(sources, targets, strict=True)])
    with Memory.open(tmp_path / "memory", model) as memory:
        found = Translator(model, memory).translate(sources, method=method)  # type: ignore[arg-type]
    wrong = [(t.text, target) for t, target in zip(found, targets, strict=True) if t.text != target]
    assert not wrong


@pytest.mark.parametrize("method", ["base", "knn", "kster"])
def test_a_gpu_translates_as_a_cpu_does_in_single_precision(
    method: str, checkpoint: str, device: torch.device, tmp_path: Path
) -> None:
    texts = [*ENGLISH, NEW[0], *shuffled_sentences(60)]
    on_cpu = BaseModel.load(checkpoint, device="cpu", source_lang="en", target_lang="de")
    on_gpu = BaseModel.load(
        checkpoint, device=device, precision="float32", source_lang="en", target_lang="de"
    )
    with Memory.create(tmp_path / "memory", on_cpu) as memory:
        memory.add_many([Pair(s, t) for s, t in zip(ENGLISH, GERMAN, strict=True)])
        memory.add(*NEW)
        here, there = (
            Translator(model, memory).translate(texts, method=method, explain=True)  # type: ignore[arg-type]
            for model in (on_cpu, on_gpu)
        )
        scores = [
            Translator(model, memory).score(ENGLISH, GERMAN, method=method)  # type: ignore[arg-type]
            for model in (on_cpu, on_gpu)
        ]
    assert [t.text for t in there] == [t.text for t in here]
    assert [t.score for t in there] == pytest.approx([t.score for t in here], abs=1e-2)
    assert scores[1] == pytest.approx(scores[0], abs=1e-2)
    for ours, theirs in zip(there, here, strict=True):
        assert [token.probability for token in ours.tokens or ()] == pytest.approx(
            [token.probability for token in theirs.tokens or ()], abs=1e-2
        )
