"""NLLB: M2M100's network with another tokenizer, from loading to a translation that an example changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from by_transformers import TIE, generated, tokenizer_of
from kster import KsterError, Memory, Translator
from kster.model import BaseModel
from tiny import ENGLISH, GERMAN, make_nllb

LANGUAGES = {"source_lang": "eng_Latn", "target_lang": "deu_Latn"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_nllb(tmp_path_factory.mktemp("nllb"))


@pytest.fixture(scope="module")
def model(directory: Path) -> BaseModel:
    return BaseModel.load(directory, device="cpu", **LANGUAGES)


def test_languages_are_asked_for_by_the_models_own_codes(directory: Path) -> None:
    with pytest.raises(KsterError, match=r"target language None is unknown .* 202 languages: ace_Arab"):
        BaseModel.load(directory, device="cpu")
    with pytest.raises(KsterError, match="source language 'en' is unknown"):
        BaseModel.load(directory, device="cpu", source_lang="en", target_lang="de")


def test_base_translations_are_those_of_transformers(model: BaseModel) -> None:
    translator = Translator(model)
    for text in ENGLISH:
        limit = translator.longest_translation(len(model.tokenise_source([text])[0]))
        tokens, score = generated(model, [text], beam=4, length_penalty=0.6, limit=limit)[0]
        (ours,) = translator.translate([text])
        assert ours.text == model.detokenise([tokens])[0]
        assert ours.score == pytest.approx(score, abs=TIE)


@pytest.mark.parametrize("method", ["knn", "kster"])
@pytest.mark.parametrize("legacy", [False, True])
def test_an_added_example_is_the_next_translation(tmp_path: Path, method: str, legacy: bool) -> None:
    made = make_nllb(tmp_path / "model", legacy=legacy)
    with Memory.create(tmp_path / "memory", made, **LANGUAGES) as memory:
        model = memory.model
        (tokens,) = model.tokenise_target([GERMAN[0]])
        assert tokens[-1] == model.eos_id
        assert model.detokenise([tokens]) == [GERMAN[0]]
        assert tokenizer_of(model).convert_tokens_to_ids("deu_Latn") not in tokens
        memory.add(ENGLISH[0], GERMAN[0])
        translator = Translator(memory=memory)
        assert translator.translate([ENGLISH[0]], method=method)[0].text == GERMAN[0]  # type: ignore[arg-type]


def test_a_memory_of_another_language_pair_is_refused_by_its_languages(
    directory: Path, model: BaseModel, tmp_path: Path
) -> None:
    Memory.create(tmp_path / "m", directory, source_lang="deu_Latn", target_lang="eng_Latn").close()
    with pytest.raises(KsterError, match=r"\(deu_Latn → eng_Latn, .* not with .* \(eng_Latn → deu_Latn, "):
        Memory.open(tmp_path / "m", model)
