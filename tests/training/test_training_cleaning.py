"""Each cleaning rule leaves out what it should, keeps the rest, and counts."""

from __future__ import annotations

from kster.training.cleaning import Cleaner, CleaningReport, LanguageProfile, normalise
from kster.training.settings import CleaningSettings

GOOD = ("the red house stands by the river", "das rote Haus steht am Fluss")


def clean(
    pairs: list[tuple[str, str]], held_out: tuple[str, ...] = (), profile: LanguageProfile | None = None
) -> tuple[list[tuple[str, str]], dict[str, int]]:
    report = CleaningReport()
    settings = CleaningSettings(max_characters=200)
    kept = list(Cleaner(settings, profile, held_out).clean(pairs, report))
    assert report.read == len(pairs)
    assert report.kept == len(kept)
    return kept, {rule: count for rule, count in report.dropped.items() if count}


def test_good_pairs_stay_and_are_normalised() -> None:
    kept, dropped = clean([("a\u2009 small\tdog\u200b", "ein  kleiner Hund u\u0308ber")])
    assert kept == [("a small dog", "ein kleiner Hund über")]
    assert dropped == {}


def test_normalise_keeps_what_people_see() -> None:
    assert normalise("m² ½ … ™ „Zitat“ – 日本") == "m² ½ … ™ „Zitat“ – 日本"
    assert normalise("\ufeffa\u0007b\u00adc") == "abc"
    assert normalise(" 10\u00a0km,  «\u202foui\u202f» ") == "10\u00a0km, «\u202foui\u202f»"


def test_length_rules() -> None:
    long = "x " * 150
    pairs = [
        GOOD,
        ("", "leer"),
        ("empty", "  "),
        (long, long + "y"),
        ("one two three four five six " * 4, "kurz"),
    ]
    kept, dropped = clean(pairs)
    assert kept == [GOOD]
    assert dropped == {"too_short": 2, "too_long": 1, "ratio": 1}


def test_short_pairs_may_differ_in_length() -> None:
    assert clean([("Hi", "Guten Tag allerseits")])[1] == {}


def test_copies_are_left_out_unless_they_are_names() -> None:
    pairs = [
        ("European Commission", "European Commission"),
        ("this was never translated", "This was never translated"),
    ]
    kept, dropped = clean(pairs)
    assert kept == pairs[:1]
    assert dropped == {"copied": 1}


def test_duplicates_are_left_out_but_other_translations_stay() -> None:
    other = (GOOD[0], "das rote Gebäude steht am Fluss")
    kept, dropped = clean([GOOD, other, GOOD])
    assert kept == [GOOD, other]
    assert dropped == {"duplicate": 1}


def test_held_out_sentences_are_never_trained_on() -> None:
    pairs = [
        GOOD,
        ("Thank you.", "Danke."),
        ("she reads an old book today", "sie liest heute ein altes Buch"),
    ]
    kept, dropped = clean(pairs, held_out=(GOOD[1], "Thank you.", "she reads an  old book today"))
    assert kept == [("Thank you.", "Danke.")]  # too common to give a test away
    assert dropped == {"held_out": 2}


def test_language_profile_finds_swapped_and_untranslated_pairs() -> None:
    from tiny import ENGLISH, GERMAN

    pairs = list(zip(ENGLISH, GERMAN, strict=True))
    profile = LanguageProfile(pairs * 20)
    swapped = (GERMAN[3], ENGLISH[3])
    untranslated = (ENGLISH[4], ENGLISH[5])
    kept, dropped = clean([*pairs, swapped, untranslated, ("XJ-900", "XJ-900")], profile=profile)
    assert kept == [*pairs, ("XJ-900", "XJ-900")]
    assert dropped == {"language": 2}


def test_pairs_whose_numbers_or_placeholders_differ_can_be_left_out() -> None:
    pairs = [
        ("It weighs 3.5 kg.", "Es wiegt 3,5 kg."),
        ("On May 1, 2020", "Am 1. Mai 2020"),
        ("It weighs 35 kg.", "Es wiegt 53,2 kg."),
        ("Open {0} now", "Öffnen Sie jetzt {0}"),
        ("Open {name} now", "Öffnen Sie jetzt {Name}"),
        ("Press <b>OK</b>", "Drücken Sie OK"),
        ("It costs $5.", "Es kostet 5 €."),
    ]
    report = CleaningReport()
    strict = CleaningSettings(same_numbers=True, same_placeholders=True)
    assert list(Cleaner(strict, None).clean(pairs, report)) == [pairs[0], pairs[1], pairs[3]]
    assert [report.dropped[rule] for rule in ("numbers", "currencies", "placeholders")] == [1, 1, 2]
    assert clean(pairs)[1] == {}


def test_a_held_out_sentence_is_recognised_by_its_words() -> None:
    kept, dropped = clean(
        [("we drove 10 km on Sunday", "x y z")], held_out=("we drove 10\u00a0km on Sunday",)
    )
    assert (kept, dropped) == ([], {"held_out": 1})
