"""The models and the example memory that ship with the repository, used as a newcomer would."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sacrebleu
import transformers

from kster import BaseModel, Memory, Translator
from kster.formats import Pair, read_pairs

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


def lines(name: str) -> list[str]:
    return (EXAMPLES / name).read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def english_german() -> Translator:
    return Translator(ROOT / "models" / "en-de")


@pytest.mark.parametrize(("pair", "side"), [("en-de", "en"), ("de-en", "de")])
def test_kster_and_transformers_translate_alike(pair: str, side: str) -> None:
    directory = ROOT / "models" / pair
    sources = lines(f"heldout.{side}")[::14]
    ours = Translator(directory, precision="float32").translate(sources)
    network = transformers.MarianMTModel.from_pretrained(directory)
    tokenizer = transformers.MarianTokenizer.from_pretrained(directory)
    for source, translation in zip(sources, ours, strict=True):
        inputs = tokenizer([source], return_tensors="pt")
        limit = 2 * inputs["input_ids"].shape[1] + 20
        (ids,) = network.generate(**inputs, num_beams=4, length_penalty=0.6, max_new_tokens=limit)
        assert translation.text == tokenizer.decode(ids, skip_special_tokens=True)


def test_the_models_know_their_languages_and_share_a_vocabulary() -> None:
    there, back = BaseModel.load(ROOT / "models/en-de"), BaseModel.load(ROOT / "models/de-en")
    assert (there.source_lang, there.target_lang) == ("en", "de")
    assert (back.source_lang, back.target_lang) == ("de", "en")
    assert there.tokenise_target(["Grüße, 東京!"]) == back.tokenise_source(["Grüße, 東京!"])
    assert there.fingerprint != back.fingerprint


def test_a_good_sentence_is_translated_well(english_german: Translator) -> None:
    (translation,) = english_german.translate(["I would like to thank the President for her report."])
    reference = "Ich möchte der Präsidentin für ihren Bericht danken."
    assert sacrebleu.sentence_chrf(translation.text, [reference]).score > 60


def test_what_was_imported_or_added_comes_back_word_for_word(
    english_german: Translator, tmp_path: Path
) -> None:
    model = english_german.model
    pairs = [p for p in read_pairs(EXAMPLES / "ombravella.tmx", "en", "de") if isinstance(p, Pair)]
    assert len(pairs) >= 600
    chosen = [pair for pair in pairs if "portafilter" in pair.source][:40]
    with Memory.create(tmp_path / "memory", model) as memory:
        memory.import_pairs(chosen)
        some = chosen[::8]
        found = english_german.translate([p.source for p in some], memory=memory, method="kster")
        assert [str(t) for t in found] == [p.target for p in some]
        # So does a correction, and it says where it was learned.
        source, target = (
            "Wipe the dosing funnel with a dry cloth.",
            "Den Dosiertrichter mit einem trockenen Tuch abwischen.",
        )
        (before,) = english_german.translate([source], memory=memory)
        memory.add(source, target)
        (after,) = english_german.translate([source], memory=memory, explain=True)
        assert "Dosiertrichter" not in before.text
        assert after.text == target
        assert all(max(t.examples, key=lambda e: e.weight).source == source for t in after.tokens or ())


def test_one_correction_serves_the_next_sentence_and_leaves_other_text_alone(
    english_german: Translator, tmp_path: Path
) -> None:
    """With the smoother that the model carries: nothing is fitted."""
    other = ["The parliament met on Tuesday.", "I would like to thank the rapporteur for his work."]
    with Memory.create(tmp_path / "memory", english_german.model) as memory:
        memory.add(
            "Wipe the dosing funnel with a dry cloth.",
            "Den Dosiertrichter mit einem trockenen Tuch abwischen.",
        )
        assert english_german.resolve("kster", memory).origin == "model"  # type: ignore[union-attr]
        sources = ["The dosing funnel is made of steel.", *other]
        base = [str(t) for t in english_german.translate(sources, method="base")]
        adapted = [str(t) for t in english_german.translate(sources, memory=memory)]
    assert "Dosiertrichter" not in base[0]
    assert "Dosiertrichter" in adapted[0]
    assert adapted[1:] == base[1:]


def test_the_readmes_correction_takes_before_any_fit(english_german: Translator, tmp_path: Path) -> None:
    """The lines after "Correct something", in a part of the memory that they follow there."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (source, target), *_ = re.findall(r'kster memory add my\.memory "(.+)" "(.+)"', readme)
    shown = re.compile(r'"(.+ dosing funnel.+)" \| kster translate --memory my\.memory +# (.+)')
    ((question, answer),) = shown.findall(readme)
    pairs = [p for p in read_pairs(EXAMPLES / "ombravella.tmx", "en", "de") if isinstance(p, Pair)]
    with Memory.create(tmp_path / "memory", english_german.model) as memory:
        memory.import_pairs(pairs[::5])
        (before,) = english_german.translate([question], memory=memory)
        memory.add(source, target)
        (after,) = english_german.translate([question], memory=memory)
    assert "Dosiertrichter" not in before.text
    assert after.text == answer


def test_the_held_out_segments_are_not_in_the_memory() -> None:
    pairs = [p for p in read_pairs(EXAMPLES / "ombravella.tmx", "en", "de") if isinstance(p, Pair)]
    english, german = lines("heldout.en"), lines("heldout.de")
    assert len(english) == len(german) >= 120
    assert not {p.source.casefold() for p in pairs} & {x.casefold() for x in english}
    assert not {p.target.casefold() for p in pairs} & {x.casefold() for x in german}


NEAR_DUPLICATES = [
    # taught, its translation; now, the word it needs, the word that only the taught sentence has
    (
        *("The scanner beeps twice when the badge is invalid.", "Das Lesegerät piept zweimal, wenn der "),
        *("Ausweis ungültig ist.", "The scanner beeps twice when the badge is lost.", "verloren", "ungültig"),
    ),
    (
        *("The gates close at 6 pm.", "Die Tore schließen um 18 Uhr.", ""),
        *("The gates close at 9 pm.", "21|9", "18"),
    ),
    (
        *("There are crumbs in the toaster.", "Im Toaster sind Krümel.", ""),
        *("There are no crumbs in the toaster.", "kein", "nirgends"),
    ),
]


def test_a_word_that_a_taught_sentence_does_not_have_is_not_taken_from_it(
    english_german: Translator, tmp_path: Path
) -> None:
    with Memory.create(tmp_path / "memory", english_german.model) as memory:
        for source, first, second, *_ in NEAR_DUPLICATES:
            memory.add(source, first + second)
        made = english_german.translate([case[3] for case in NEAR_DUPLICATES], memory=memory)
        for translation, (*_, wanted, unwanted) in zip(made, NEAR_DUPLICATES, strict=True):
            assert re.search(wanted, translation.text), translation.text
            assert unwanted not in translation.text
        assert "Lesegerät" in made[0].text  # the rest is as taught
