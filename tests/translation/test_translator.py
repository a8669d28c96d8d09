"""What a translator promises, with real (tiny) models of both families and real memories."""

from __future__ import annotations

import math
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from kster import BaseModel, KsterError, Memory, MemoryGroup, Pair, Translator
from kster.memory import SearchSettings
from kster.smoothing import Smoother, SmootherSettings
from kster.translation.splitting import split_text
from tiny import ENGLISH, GERMAN

NEW = ("open the red lid when the child reads a book", "Deckel auf wenn das Kind liest")


@pytest.fixture(params=["taught_marian", "taught_m2m100"], scope="module")
def translator(request: pytest.FixtureRequest) -> Translator:
    return Translator(request.getfixturevalue(request.param))


@pytest.fixture
def memory(translator: Translator, tmp_path: Path) -> Iterator[Memory]:
    with Memory.create(tmp_path / "memory", translator.model) as memory:
        yield memory


def texts(translations: list) -> list[str]:
    return [str(translation) for translation in translations]


@pytest.mark.parametrize("method", ["knn", "kster"])
def test_an_empty_memory_gives_bit_identical_base_output(
    translator: Translator, memory: Memory, method: str
) -> None:
    base = translator.translate(ENGLISH, method="base", n_best=4)
    adapted = translator.translate(ENGLISH, memory=memory, method=method, n_best=4)  # type: ignore[arg-type]
    assert adapted == base  # texts, scores and alternatives, to the last bit
    memory.add(*NEW)
    memory.remove_pair(*NEW)
    assert translator.translate(ENGLISH, memory=memory, method=method, n_best=4) == base  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["knn", "kster"])
def test_an_added_segment_is_the_next_translation_of_its_source(
    translator: Translator, memory: Memory, method: str
) -> None:
    source, target = NEW
    assert texts(translator.translate([source], memory=memory, method=method)) != [target]  # type: ignore[arg-type]
    added = memory.add(source, target)
    assert texts(translator.translate([source], memory=memory, method=method)) == [target]  # type: ignore[arg-type]
    memory.remove([added.id])
    assert texts(translator.translate([source], memory=memory, method=method)) != [target]  # type: ignore[arg-type]


def test_an_added_segment_wins_among_many_others(translator: Translator, memory: Memory) -> None:
    memory.add_many([Pair(s, t) for s, t in zip(ENGLISH, GERMAN, strict=True)])
    memory.add(*NEW)
    assert texts(translator.translate([*ENGLISH, NEW[0]], memory=memory)) == [*GERMAN, NEW[1]]


def test_of_several_taught_translations_the_one_from_the_same_context_is_taken(
    translator: Translator, memory: Memory
) -> None:
    for target, context in (("Deckel auf", "menu"), ("offener Deckel", "state"), ("Deckel öffnen", "help")):
        memory.import_pairs([Pair(NEW[0], target, None, None, context)])
    assert translator.translate(NEW[0], memory=memory).text == "Deckel öffnen"  # the newest
    for context, target in (("menu", "Deckel auf"), ("state", "offener Deckel"), ("other", "Deckel öffnen")):
        one = translator.translate(
            f"{NEW[0]}\n{NEW[0]}", memory=memory, context=context, confidence=True, explain=True
        )
        assert one.text == f"{target}\n{target}"
        assert one.confidence is not None
    memory.set_status([memory.find_sources([NEW[0]])[NEW[0]][0].id], "rejected")
    assert translator.translate(NEW[0], memory=memory, context="menu").text == "Deckel öffnen"


def test_unrelated_text_is_left_to_the_base_model(translator: Translator, memory: Memory) -> None:
    memory.add(*NEW)
    assert texts(translator.translate(ENGLISH, memory=memory, method="kster")) == GERMAN


def test_order_empty_lines_white_space_and_line_breaks_stay(translator: Translator) -> None:
    lines = [ENGLISH[3], "", "  ", f"  {ENGLISH[0]}\n\n{ENGLISH[1]} \n", ENGLISH[2]]
    found = texts(translator.translate(lines))
    assert found == [GERMAN[3], "", "  ", f"  {GERMAN[0]}\n\n{GERMAN[1]} \n", GERMAN[2]]


def test_batches_do_not_change_a_translation(translator: Translator) -> None:
    lines = ENGLISH * 3
    random.Random(3).shuffle(lines)
    assert texts(translator.translate(lines, batch_sentences=5)) == [GERMAN[ENGLISH.index(x)] for x in lines]


def test_very_long_inputs_are_cut_with_a_warning_and_never_crash(
    translator: Translator, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    memory.add(*NEW)
    sentences = " ".join(f"{line}." for line in ENGLISH * 6)
    (translation, blob) = translator.translate([sentences, "x" * 3000], memory=memory)
    assert "longer than 256 tokens" in caplog.text
    parts = len(split_text(sentences, lambda text: len(text.encode()) < 256)[0])
    assert parts > 3
    assert len(translation.text.split()) > 3 * parts  # every part was translated
    assert isinstance(blob.text, str)


def test_a_segment_of_several_lines_or_of_great_length_comes_back_as_it_was_added(
    translator: Translator, memory: Memory
) -> None:
    lines = ("the red house\nby the river", "das Haus\nam Fluss")
    long = (" ".join(["open the lid and clean the filter"] * 40), "den Deckel öffnen und den Filter reinigen")
    for source, target in (lines, long):
        assert len(split_text(source, translator._fits)[0]) > 1
        memory.add(source, target)
    found = texts(translator.translate([lines[0], long[0]], memory=memory))
    assert [text.split() for text in found] == [lines[1].split(), long[1].split()]


def test_characters_that_become_many_tokens_do_not_crash(translator: Translator) -> None:
    text = "\ufdfa" * 84  # one character, eighteen after compatibility normalisation
    assert len(translator.model.tokenise_source([text])[0]) > translator.model.max_length
    assert len(translator.translate([text])) == 1


def test_the_name_of_a_special_token_is_text(translator: Translator, memory: Memory) -> None:
    pair = ("say </s> now", "sag </s> jetzt") if translator.model.family == "marian" else ("a </s> b", "b")
    memory.add(*pair)
    assert texts(translator.translate([pair[0]], memory=memory)) == [pair[1]]


def test_half_characters_become_replacement_characters(translator: Translator) -> None:
    (translation,) = translator.translate(["the \ud800 house"])
    assert translation.source == "the \ufffd house"
    halves, replaced = ["the \ud800 house"], ["the \ufffd house"]
    assert translator.score(halves, halves) == translator.score(replaced, replaced)


def test_any_unicode_is_translated(translator: Translator, memory: Memory) -> None:
    memory.add("東京 🙂", "Ünïcödé „東京“ 🙂" if translator.model.family == "marian" else "das 東京")
    lines = ["東京 🙂", "عربى", "\u200b", "a\u0301 𝄞", "\ud7ff", "NUL \x00 byte"]
    assert len(translator.translate(lines, memory=memory)) == len(lines)
    if translator.model.family == "marian":  # this vocabulary can spell every character
        assert texts(translator.translate(lines[:1], memory=memory)) == ["Ünïcödé „東京“ 🙂"]


def test_several_memories_are_searched_as_one(translator: Translator, tmp_path: Path) -> None:
    first = Memory.create(tmp_path / "a", translator.model)
    second = Memory.create(tmp_path / "b", translator.model)
    first.add(*NEW)
    second.add("the sea is old", "alt ist das Meer")
    group = MemoryGroup([first, second])
    found = translator.translate([NEW[0], "the sea is old"], memory=group, explain=True)
    assert texts(found) == [NEW[1], "alt ist das Meer"]
    nearest = [translation.tokens[0].examples[0] for translation in found if translation.tokens]
    assert [Path(example.memory).name for example in nearest] == ["a", "b"]
    # A list of them is a group, open or not, in a call and for good; as `--memory A --memory B` is.
    sources, targets = [NEW[0], "the sea is old"], [NEW[1], "alt ist das Meer"]
    assert texts(translator.translate(sources, memory=[first, tmp_path / "b"])) == targets
    assert texts(Translator(memory=[tmp_path / "a", str(tmp_path / "b")]).translate(sources)) == targets
    assert texts(translator.translate(sources, memory=[tmp_path / "a"])) == [
        targets[0],
        *texts(translator.translate([sources[1]], memory=first)),
    ]
    with pytest.raises(KsterError, match="at least one memory"):
        translator.translate(sources, memory=[])


def test_by_shortlist_an_added_segment_is_the_next_translation_and_explained(
    translator: Translator, tmp_path: Path
) -> None:
    settings = SearchSettings(mode="shortlist", shortlist=4)
    with Memory.create(tmp_path / "memory", translator.model, search=settings) as memory:
        memory.import_pairs(Pair(*pair) for pair in zip(ENGLISH, GERMAN, strict=True))
        memory.add(*NEW)
        sources = [NEW[0], *ENGLISH[:5], "unrelated"]
        found = translator.translate(sources, memory=memory, explain=True)
        assert str(found[0]) == NEW[1]
        assert texts(found) == [str(translator.translate([s], memory=memory)[0]) for s in sources]
        tokens = found[0].tokens
        assert tokens is not None
        assert tokens[0].examples[0].target == NEW[1]
        (score,) = translator.score([NEW[0]], [NEW[1]], memory=memory)
        assert score == pytest.approx(sum(math.log(token.probability) for token in tokens), abs=1e-2)


def test_an_explanation_names_the_segment_and_its_numbers_add_up(
    translator: Translator, memory: Memory
) -> None:
    added = memory.add(*NEW)
    (translation,) = translator.translate([NEW[0]], memory=memory, explain=True)
    assert translation.tokens is not None
    end = translator.model.token_text(translator.model.eos_id)
    pieces = [translator.model.token_text(t) for t in translator.model.tokenise_target([NEW[1]])[0]]
    assert [token.token for token in translation.tokens] == pieces
    assert pieces[-1] == end
    for position, token in enumerate(translation.tokens):
        nearest = token.examples[0]
        assert (nearest.segment, nearest.position) == (added.id, position)
        assert (nearest.source, nearest.target) == NEW
        assert sum(example.weight for example in token.examples) == pytest.approx(1, abs=1e-4)
        λ = token.mixing_weight
        mixed = λ * token.example_probability + (1 - λ) * token.base_probability
        assert token.probability == pytest.approx(mixed, rel=1e-3)


def test_a_base_explanation_has_no_examples(translator: Translator) -> None:
    (translation,) = translator.translate(ENGLISH[:1], explain=True)
    assert translation.tokens is not None
    assert all(not t.examples and t.probability == t.base_probability for t in translation.tokens)


def test_scores_are_log_probabilities_of_the_method(translator: Translator, memory: Memory) -> None:
    model = translator.model
    memory.add(*NEW)
    (base,) = translator.score([NEW[0]], [NEW[1]], method="base")
    forced = next(model.force_decode([NEW]))
    assert base == pytest.approx(forced.log_probs.sum().item(), abs=1e-4)
    (adapted,) = translator.score([NEW[0]], [NEW[1]], memory=memory, method="kster")
    (translation,) = translator.translate([NEW[0]], memory=memory, explain=True)
    product = sum(torch.tensor(t.probability).log().item() for t in translation.tokens or ())
    assert adapted == pytest.approx(product, abs=1e-3)
    assert adapted > base


def test_a_smoother_can_be_given_by_hand(translator: Translator, memory: Memory) -> None:
    memory.add(*NEW)
    silent = Smoother(SmootherSettings(learn_bandwidth=False, learn_weight=False, mixing_weight=0.0))
    assert texts(translator.translate(ENGLISH, memory=memory, smoother=silent)) == GERMAN
    assert translator.score(ENGLISH, GERMAN, memory=memory, smoother=silent) == pytest.approx(
        translator.score(ENGLISH, GERMAN, method="base"), abs=1e-3
    )


@pytest.mark.parametrize("penalty", [-10.0, 10.0])
def test_any_accepted_length_penalty_gives_a_translation(translator: Translator, penalty: float) -> None:
    text = "a sentence that goes on and on " * 8
    (found,) = translator.translate([text], length_penalty=penalty)
    assert str(found)


def test_mistakes_are_named(
    translator: Translator, memory: Memory, taught_marian: Path, tmp_path: Path
) -> None:
    with pytest.raises(KsterError, match="needs a model or a memory"):
        Translator()
    with pytest.raises(KsterError, match="method 'magic' is unknown; accepted: base, knn, kster"):
        translator.translate(["a"], method="magic")  # type: ignore[arg-type]
    with pytest.raises(KsterError, match="'kster' needs a memory"):
        translator.translate(["a"], method="kster")
    with pytest.raises(KsterError, match="1 ≤ n_best ≤ beam"):
        translator.translate(["a"], n_best=5, beam=4)
    for penalty in (float("nan"), float("inf"), 1e300):
        with pytest.raises(KsterError, match=r"length_penalty is .*; accepted: from −10 to 10"):
            translator.translate(["a"], length_penalty=penalty)
    with pytest.raises(KsterError, match="2 sources but 1 targets"):
        translator.score(["a", "b"], ["c"])
    with pytest.raises(KsterError, match="batch_sentences is -1; accepted: at least 1"):
        translator.translate(["a"], batch_sentences=-1)
    with pytest.raises(TypeError, match="list of strings"):
        translator.score("one text", "ein Text")
    with pytest.raises(TypeError, match=r"list of strings; texts\[1\] is NoneType"):
        translator.translate(["one text", None])  # type: ignore[list-item]
    shutil.copytree(taught_marian, tmp_path / "other")
    weights = load_file(tmp_path / "other" / "model.safetensors")
    weights["model.decoder.layers.1.fc2.bias"] += 1
    save_file(weights, tmp_path / "other" / "model.safetensors", metadata={"format": "pt"})
    other = BaseModel.load(tmp_path / "other")
    with pytest.raises(KsterError, match="made with another model"):
        Translator(other, memory)


def test_a_beam_has_a_sensible_width(translator: Translator) -> None:
    for beam in (0, 257):
        with pytest.raises(KsterError, match=r"accepted: 1 ≤ n_best ≤ beam ≤ 256"):
            translator.translate(["the sea"], beam=beam)


def test_a_memory_alone_is_enough(taught_marian: Path, tmp_path: Path) -> None:
    with Memory.create(tmp_path / "memory", str(taught_marian)) as memory:
        memory.add(*NEW)
    assert texts(Translator(memory=tmp_path / "memory").translate([NEW[0]])) == [NEW[1]]


def test_a_memory_alone_is_enough_by_its_directory_and_languages_must_not_contradict_it(
    taught_m2m100: Path, tmp_path: Path
) -> None:
    model = BaseModel.load(taught_m2m100, source_lang="en", target_lang="de")
    with Memory.create(tmp_path / "memory", model) as memory:
        memory.add(*NEW)
    same = Translator(memory=tmp_path / "memory", source_lang="en-GB", target_lang="DE")
    assert texts(same.translate([NEW[0]])) == [NEW[1]]
    with pytest.raises(KsterError, match=r"target language 'fr': the examples of .* are en → de"):
        Translator(memory=tmp_path / "memory", target_lang="fr")
    with pytest.raises(KsterError, match=r"source language 'de': the examples of .* are en → de"):
        Translator(taught_m2m100, tmp_path / "memory", source_lang="de")


def test_a_call_takes_the_directory_of_a_memory(
    translator: Translator, memory: Memory, tmp_path: Path
) -> None:
    memory.add(*NEW)
    for path in (memory.directory, str(memory.directory)):
        assert texts(translator.translate([NEW[0]], memory=path)) == [NEW[1]]
        assert translator.score([NEW[0]], [NEW[1]], memory=path) == translator.score(
            [NEW[0]], [NEW[1]], memory=memory
        )
        resolved = translator.resolve("knn", path)
        assert resolved is not None
        assert resolved.origin == "default"
    with pytest.raises(KsterError, match="no such memory"):
        translator.translate([NEW[0]], memory=tmp_path / "nowhere")


def test_explanations_and_scores_are_the_same_for_one_sentence_and_for_many(
    translator: Translator, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.add_many([Pair(s, t) for s, t in zip(ENGLISH[:4], GERMAN[:4], strict=True)])
    lines = ["", *ENGLISH, NEW[0]]
    together = translator.translate(lines, memory=memory, explain=True)
    scores = translator.score(ENGLISH, GERMAN, memory=memory)
    monkeypatch.setattr("kster.translation.explanation.TOKENS_AT_ONCE", 1)  # a search for each sentence
    for one, other in zip(together, translator.translate(lines, memory=memory, explain=True), strict=True):
        assert [token.token for token in one.tokens or ()] == [token.token for token in other.tokens or ()]
        for ours, theirs in zip(one.tokens or (), other.tokens or (), strict=True):
            assert ours.probability == pytest.approx(theirs.probability, abs=1e-5)
            assert [example.position for example in ours.examples] == [e.position for e in theirs.examples]
    assert scores == pytest.approx(translator.score(ENGLISH, GERMAN, memory=memory), abs=1e-4)
