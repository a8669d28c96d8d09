import pytest

from kster.terms import Term, TermFinder, count_kept, is_kept, term
from terms.conftest import Sentence


def found(text: str, *terms: Term, language: str = "en") -> list[str]:
    return [" … ".join(text[b:e] for b, e in m.spans) for m in TermFinder(terms, language).find(text)]


def test_the_set_is_large_enough(terms: list[Term], sentences: list[Sentence]) -> None:
    assert len(terms) >= 60
    assert len(sentences) >= 300
    assert {name for sentence in sentences for name in sentence.terms} == {one.source for one in terms}


def test_every_term_of_the_set_is_found_and_no_other(terms: list[Term], sentences: list[Sentence]) -> None:
    finder = TermFinder(terms, "en")
    for sentence in sentences:
        names = [match.term.source for match in finder.find(sentence.source)]
        assert sorted(names) == sorted(sentence.terms), sentence.source


def test_every_term_of_a_reference_counts_as_kept_and_no_other(
    terms: list[Term], sentences: list[Sentence]
) -> None:
    for sentence in sentences:
        kept = [one.source for one in terms if is_kept(one, sentence.reference, "de")]
        assert sorted(kept) == sorted(set(sentence.terms)), sentence.reference


def test_german_sources_are_found_in_their_inflected_forms(
    terms: list[Term], sentences: list[Sentence]
) -> None:
    german = [term(one.targets[0], [one.source], part_of_speech=one.part_of_speech) for one in terms]
    finder = TermFinder(german, "de")
    for sentence in sentences:
        names = {match.term.targets[0] for match in finder.find(sentence.reference)}
        assert names == set(sentence.terms), sentence.reference


def test_the_longest_term_is_found_first() -> None:
    tank, water_tank = term("tank", ["Tank"]), term("water tank", ["Wassertank"])
    assert found("The water tanks and the tank.", tank, water_tank) == ["water tanks", "tank"]


def test_no_term_is_found_inside_other_words_unless_asked_for() -> None:
    assert found("The tankard and Smugglers", term("tank", ["Tank"]), term("mug", ["Becher"])) == []
    assert found("The watertanks", term("tank", ["Tank"], inside_words=True)) == ["tank"]
    assert found("Der Wassertank", term("Tank", ["tank"]), language="de") == []


@pytest.mark.parametrize(
    ("text", "source", "part_of_speech", "matched"),
    [
        ("He ground the beans", "grind", "verb", ["ground"]),
        ("Both knives", "knife", "noun", ["knives"]),
        ("the box's lid", "box", "noun", ["box"]),
        ("Switch the pump off.", "switch off", "verb", ["Switch … off"]),
        ("It was switched off.", "switch off", "verb", ["switched off"]),
        ("Switch it on. Turn off.", "switch off", "verb", []),
        ("two plugins", "plug-in", "noun", ["plugins"]),
        ("the drip-tray", "drip tray", "noun", ["drip-tray"]),
        ("a drip, tray", "drip tray", "noun", []),
        ("a guide tour", "guided tour", "noun", []),
    ],
)
def test_english_forms(text: str, source: str, part_of_speech: str, matched: list[str]) -> None:
    assert found(text, term(source, ["x"], part_of_speech=part_of_speech)) == matched


def test_a_term_of_exact_case_is_found_only_as_it_is_written() -> None:
    home = term("Home", ["Startseite"], case="exact")
    assert found("Click Home at home", home) == ["Home"]
    assert not is_kept(home, "Auf startseite klicken", "de")
    assert found("HOSE", term("hose", ["Schlauch"])) == ["HOSE"]


@pytest.mark.parametrize(
    ("translation", "target", "part_of_speech", "kept"),
    [
        ("des Abschlagbehälters", "Abschlagbehälter", "noun", True),
        ("der Abschlagbehälterdeckel", "Abschlagbehälter", "noun", True),
        ("der Kaffeeabschlagbehälter", "Abschlagbehälter", "noun", True),
        ("die Schläuche", "Schlauch", "noun", True),
        ("Zieht die Schraube fest!", "festziehen", "verb", True),
        ("Zieht die Schraube. Es sitzt fest.", "festziehen", "verb", False),
        ("fest angezogen", "festziehen", "verb", False),
        ("das neu gestartete Gerät", "neu starten", "verb", True),
        ("einer ständigen Sammlung", "ständige Sammlung", "noun", True),
        ("die Sammlung, ständig", "ständige Sammlung", "noun", False),
    ],
)
def test_kept_is_what_has_a_form_of_the_target(
    translation: str, target: str, part_of_speech: str, kept: bool
) -> None:
    assert is_kept(term("x", [target], part_of_speech=part_of_speech), translation, "de") == kept


def test_occurrences_are_counted() -> None:
    hose = term("hose", ["Schlauch", "Leitung"])
    assert count_kept(hose, "Der Schlauch, die Leitung und die Schläuche", "de") == 3


def test_a_language_without_rules_is_taken_as_it_is_written() -> None:
    assert found("les valves", term("valve", ["Ventil"]), language="fr") == []
    assert found("la Valve", term("valve", ["Ventil"]), language="fr") == ["Valve"]
