"""The models and the example memory that ship with the repository, used as a newcomer would."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sacrebleu
import transformers

from kster import BaseModel, Memory, Translator
from kster.formats import Pair, read_pairs
from kster.memory.checks.pairs import new_numbers
from kster.terms import Term, term
from kster.text.currencies import currencies
from kster.text.du_forms import repeats_order
from kster.text.negation import loses_negation
from kster.text.voice import is_mixed, lacks_verb, voices_in
from kster.translation.taught_words import TaughtWords

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import facts

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


def test_the_models_know_their_languages() -> None:
    there, back = BaseModel.load(ROOT / "models/en-de"), BaseModel.load(ROOT / "models/de-en")
    assert (there.source_lang, there.target_lang) == ("en", "de")
    assert (back.source_lang, back.target_lang) == ("de", "en")
    assert there.fingerprint != back.fingerprint


def test_a_good_sentence_is_translated_well(english_german: Translator) -> None:
    (translation,) = english_german.translate(["I would like to thank the President for her report."])
    reference = "Ich möchte der Präsidentin für ihren Bericht danken."
    assert sacrebleu.sentence_chrf(translation.text, [reference]).score > 60


def test_euros_stay_euros() -> None:
    made = Translator(ROOT / "models" / "de-en").translate(["Das Ticket kostet 5 €.", "Preis: 9 Euro"])
    assert [currencies(one.text) for one in made] == [{"euro"}, {"euro"}]


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


# On sets that no number was chosen on: `benchmarks/facts.py`, docs/results/facts.md.


@pytest.fixture(scope="module")
def example(english_german: Translator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    pairs = [p for p in read_pairs(EXAMPLES / "ombravella.tmx", "en", "de") if isinstance(p, Pair)]
    with Memory.create(tmp_path_factory.mktemp("example") / "memory", english_german.model) as memory:
        memory.import_pairs(pairs)
        yield memory


def taught_memory(translator: Translator, directory: Path, rows: list[facts.Row]) -> Memory:
    memory = Memory.create(directory, translator.model)
    for row in rows:
        memory.add(row["taught_source"], row.get("first_target") or row["taught_target"])
    for row in rows:
        if "second_target" in row:
            memory.add(row["taught_source"], row["second_target"])
    return memory


def share_right(
    translator: Translator, rows: list[facts.Row], memory: Memory | None
) -> tuple[float, list[str]]:
    made = [t.text for t in translator.translate([row["source"] for row in rows], memory=memory)]
    return sum(map(facts.is_right, rows, made)) / len(rows), made


def test_a_word_that_a_taught_sentence_does_not_have_is_not_taken_from_it(
    english_german: Translator, tmp_path: Path
) -> None:
    rows = facts.read("near_duplicates_fresh.tsv")
    with taught_memory(english_german, tmp_path / "memory", rows) as memory:
        base, _ = share_right(english_german, rows, None)
        right, made = share_right(english_german, rows, memory)
    assert right >= base - 0.02
    assert not [text for row, text in zip(rows, made, strict=True) if new_numbers(row["source"], text)]
    assert sum(facts.has(text, row["shared"]) for row, text in zip(rows, made, strict=True)) >= 0.9 * len(
        rows
    )


def test_a_taught_word_is_used_in_the_next_sentence(english_german: Translator, tmp_path: Path) -> None:
    for name, share in (("taught_words.tsv", 0.9), ("taught_words_fresh.tsv", 0.7)):
        rows = facts.read(name)
        with taught_memory(english_german, tmp_path / name, rows) as memory:
            assert share_right(english_german, rows, memory)[0] >= share


def test_a_taught_word_says_which_example_taught_it(english_german: Translator, tmp_path: Path) -> None:
    with Memory.create(tmp_path / "memory", english_german.model) as memory:
        lesson = memory.add("The farrier comes on Mondays.", "Der Hufschmied kommt montags.")
        other = memory.add("The sprint ends on Friday.", "Die Arbeitsetappe endet am Freitag.")
        made = english_german.translate("Have you paid the farrier?", memory=memory, explain=True)
        assert "Hufschmied" in made.text
        assert made.tokens is not None
        written = "".join(token.token for token in made.tokens if token.taught is not None)
        assert written == "▁Hufschmied"
        taught = {token.taught.segment for token in made.tokens if token.taught is not None}
        assert taught == {lesson.id}
        assert {token.term for token in made.tokens} == {None}  # nobody gave an order
        memory.remove([lesson.id])
        assert "Hufschmied" not in english_german.translate("Have you paid the farrier?", memory=memory).text
        assert memory.segment(other.id)


def test_a_term_is_an_order_and_a_taught_word_is_not(english_german: Translator, tmp_path: Path) -> None:
    ordered = [term("hopper", ["Vorratstrichter"])]
    with Memory.create(tmp_path / "memory", english_german.model) as memory:
        memory.add("Lift the bean hopper off.", "Den Bohnenbehälter abheben.")
        text = "The bean hopper can be removed for cleaning."
        assert "Bohnenbehälter" in english_german.translate(text, memory=memory).text
        assert "Vorratstrichter" in english_german.translate(text, memory=memory, terms=ordered).text


@pytest.mark.parametrize(
    ("text", "own", "wanted"),
    [
        (
            "Open the drill chuck and remove the drill.",
            term("drill chuck", ["Spannfutter"]),
            "das Spannfutter",
        ),
        ("This plug-in is old.", term("plug-in", ["Erweiterungsmodul"]), "Dieses Erweiterungsmodul"),
        ("The length of the attachment is limited.", term("attachment", ["Dateianhang"]), "des Dateianhangs"),
    ],
)
def test_articles_agree_with_terms(english_german: Translator, text: str, own: Term, wanted: str) -> None:
    assert wanted in english_german.translate(text, terms=[own]).text


def test_examples_that_contradict_each_other_teach_no_word(
    english_german: Translator, tmp_path: Path
) -> None:
    taught = TaughtWords(english_german.model)
    with Memory.create(tmp_path / "memory", english_german.model) as memory:
        memory.add("The feed belongs to the marketing team.", "Der Datenstrom gehört dem Marketing-Team.")
        asked = memory, ["The feed was updated at night."], ["Das Futter wurde nachts aktualisiert."]
        assert [[term.targets for term in own] for own in taught.missing(*asked).values()] == [
            [("Datenstrom",)]
        ]
        memory.add("The feed is in the barn.", "Das Futter ist in der Scheune.")
        assert taught.missing(*asked) == {}


def test_the_newer_of_two_translations_is_followed(english_german: Translator, tmp_path: Path) -> None:
    rows = facts.read("corrections_fresh.tsv")
    with taught_memory(english_german, tmp_path / "memory", rows) as memory:
        assert share_right(english_german, rows, memory)[0] >= 0.85


def test_a_memory_of_other_text_takes_no_negation_away(english_german: Translator, example: Memory) -> None:
    with_code = "Do not forget your <code>ID-123</code> card."
    sources = [with_code, *(row["source"] for row in facts.read("negated_fresh.tsv"))]
    made = english_german.translate(sources, memory=example)
    assert re.search(r"\bnicht\b", made[0].text)
    assert not re.search(r"\bwir\b", made[0].text)  # which a search without "Sie" would like
    assert sum(loses_negation(t.source, t.text, "en", "de") for t in made) <= 2


@pytest.mark.parametrize(("name", "voice"), [("base", None), ("du", "less"), ("Sie", "more")])
def test_a_sentence_speaks_in_one_voice_that_of_its_memory(
    english_german: Translator, tmp_path: Path, name: str, voice: str | None
) -> None:
    memory = None
    if voice is not None:
        memory = Memory.create(tmp_path / "memory", english_german.model)
        for row in facts.read("voices_memory.tsv"):
            memory.add(row["source"], row[name])
    sources = [row["source"] for row in facts.read("addressed_fresh.tsv")]
    made = english_german.translate(sources, memory=memory)
    heard = [voices_in(t.text, t.source) for t in made]
    assert sum(is_mixed(t.text, t.source) for t in made) <= 0.03 * len(made)
    if voice is not None:
        assert sum(own == {voice} for own in heard) >= 0.9 * len(heard)
        assert sum(lacks_verb(t.text, t.source) for t in made) <= 0.03 * len(made)


def test_a_memory_without_a_voice_leaves_sentences_their_own(
    english_german: Translator, tmp_path: Path
) -> None:
    with Memory.create(tmp_path / "memory", english_german.model) as memory:
        memory.add("Green leaves fall from the old tree.", "Grüne Blätter fallen vom alten Baum.")
        for row in facts.read("addressed.tsv"):  # one at a time: a batch of its own for the second search
            made = english_german.translate(row["source"], memory=memory)
            assert not is_mixed(made.text, made.source)


def test_an_order_is_not_said_twice_where_examples_say_it_in_two_ways(
    english_german: Translator, example: Memory
) -> None:
    made = english_german.translate(["Close the lid.", "Fill it with water."], memory=example)
    assert not any(repeats_order(one.text) for one in made)


def test_what_was_taught_in_another_voice_comes_back_so(english_german: Translator, tmp_path: Path) -> None:
    with Memory.create(tmp_path / "memory", english_german.model) as memory:
        for row in facts.read("voices_memory.tsv"):
            memory.add(row["source"], row["du"])
        source, taught = "Please sign your contract.", "Bitte unterschreiben Sie dein Arbeitspapier."
        memory.add(source, taught)
        assert english_german.translate(source, memory=memory).text == taught
