"""`Memory.check`: what is wrong is listed, what only looks like it is not."""

from __future__ import annotations

import pytest

from kster.errors import KsterError
from kster.memory import Memory
from kster.memory.checks import KINDS, findings
from kster.memory.checks.pairs import codes_differ, is_copy, is_empty, new_numbers, numbers_differ
from kster.memory.segment import Segment


def kinds_of(*pairs: tuple[str, str]) -> list[tuple[str, int]]:
    segments = [Segment(i, *pair, "") for i, pair in enumerate(pairs, 1)]
    return [(found.kind, found.segment.id) for found in findings(lambda: iter(segments), ("en", "de"))]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("page 12 of 30", "Seite 12 von 31"),
        ("RFC 1642", "RFC 2152"),
        ("version 2.5", "Version 2.6"),
        ("press it twice", "1500 Mal drücken"),
        ("keep 250 of them", "einige behalten"),
        ("within 30 days", "innerhalb von vierzig Tagen"),
    ],
)
def test_a_number_of_one_side_alone_is_listed(source: str, target: str) -> None:
    assert numbers_differ(source, target)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("1,250.75 EUR", "1.250,75 EUR"),
        ("10,000 steps", "10\u202f000 Schritte"),
        ("2 000 people", "2000 Leute"),
        ("on 5/13/2020", "am 13.05.2020"),
        ("two lids", "2 Deckel"),
        ("within 30 days", "innerhalb von dreißig Tagen"),
        ("more than 25 days", "mehr als fünfundzwanzig Tage"),
        ("from the 90th day", "ab dem neunzigsten Tag"),
        ("before the fifteenth day of the twenty-first month", "vor dem 15. Tag des 21. Monats"),
        ("Article 43 and its ninth indent", "Artikel 43 sowie Artikel 43 neunter Gedankenstrich"),
        ("the 1986/1987 year", "das Jahr 1986/87"),
        ("at 3:00 PM", "um 15:00 Uhr"),
        ("see {0} and %1$s", "siehe {0} und %1$s"),
    ],
)
def test_numbers_may_be_written_in_another_way(source: str, target: str) -> None:
    assert numbers_differ(source, target) is None


@pytest.mark.parametrize(
    ("source", "target", "new"),
    [
        ("The concert begins at 5 pm.", "Das Konzert beginnt um 50 Uhr.", {"50"}),
        ("The concert begins at 5 pm.", "Das Konzert beginnt um 17 Uhr.", set()),
        ("at 5 p.m.", "um 17:00 Uhr", set()),
        ("The gates close at 9 am.", "Die Tore schließen um 98 Uhr.", {"98"}),
        ("1,250.75 EUR", "1.250,75 EUR", set()),
        ("10,000 steps", "10\u202f000 Schritte", set()),
        ("two lids of 12", "2 Deckel", set()),
        ("Open the lid.", "Öffnen Sie den Deckel.", set()),
    ],
)
def test_a_number_that_the_source_has_in_no_form_is_new(source: str, target: str, new: set[str]) -> None:
    assert new_numbers(source, target) == new


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("Save %s", "Speichern", "%s not in the target"),
        ("Save {name}", "{Name} speichern", "{name} not in the target; {Name} not in the source"),
        ("Press <b>Start</b>", "<b>Start drücken", "</b> not in the target"),
        ("one<br>two", "eins zwei", "<br> not in the target"),
    ],
)
def test_a_lost_placeholder_or_tag_is_named(source: str, target: str, reason: str) -> None:
    assert codes_differ(source, target) == reason


def test_codes_may_move_and_links_may_be_localised() -> None:
    assert codes_differ("%s of %d", "von %2$d: %1$s") is None
    assert codes_differ("%sLoading %s, %iHz", "%sLade %s, %i Hz") is None
    assert codes_differ("%sLoading %s", "Lade %s") == "%s not in the target"
    same = ('See <a href="/en/help">help</a>', '<a href="/de/hilfe">Hilfe</a> ansehen')
    assert codes_differ(*same) is None
    assert codes_differ("R&amp;D, https://x.org/en", "F&E, https://x.org/de") is None


def test_only_language_counts_as_copied_and_only_letters_as_translated() -> None:
    assert is_copy("Please close the lid first.", "please close the lid first.")
    assert is_copy("Microsoft SQL Server Management Studio", "Microsoft SQL Server Management Studio") is None
    assert is_copy("/text/shared/guide/main.xhp", "/text/shared/guide/main.xhp") is None
    assert is_copy("Please close the lid.", "Bitte den Deckel schließen.") is None
    assert is_empty("Close the lid", "…")
    assert is_empty("—", "…") is None
    assert is_empty("Grade", "1") is None


def test_of_two_that_disagree_the_older_is_listed() -> None:
    found = kinds_of(("Open", "Offen"), ("Close", "Schließen"), ("open", "Öffnen"))
    assert found == [("contradictions", 1)]


def test_what_differs_by_context_is_no_contradiction() -> None:
    segments = [
        Segment(1, "Open", "Öffnen", "", context="menu"),
        Segment(2, "Open", "Geöffnet", "", context="state"),
        Segment(3, "Open", "Öffne", "", context="menu"),
        Segment(4, "Open", "Geöffnet", "", context="door"),
    ]
    found = findings(lambda: iter(segments), ("en", "de"))
    assert [(one.kind, one.segment.id) for one in found] == [("contradictions", 1)]


def test_of_two_that_say_the_same_the_older_is_listed() -> None:
    assert kinds_of(("Open the lid.", "Deckel öffnen."), ("open the lid", "Deckel öffnen")) == [
        ("duplicates", 1)
    ]
    assert kinds_of(("Open lid 1", "Deckel 1 öffnen"), ("Open lid 2", "Deckel 2 öffnen")) == []


def test_text_in_another_language_is_listed() -> None:
    pairs = [
        ("Close the lid before you start the machine.", "Fermez le couvercle avant de démarrer la machine."),
        ("Schließen Sie zuerst den Deckel der Maschine.", "First close the lid of the machine, please."),
        ("Close the lid before you begin.", "Schließen Sie den Deckel, bevor Sie beginnen."),
    ]
    assert kinds_of(*pairs) == [("language", 1), ("language", 2)]
    unknown = [Segment(1, *pairs[0], "")]
    assert not list(findings(lambda: iter(unknown), ("en", None)))


def test_a_target_far_from_the_usual_length_is_listed() -> None:
    usual = [
        (
            f"close lid {chr(65 + i % 26)} {'now ' * (i % 5)}",
            f"Deckel {chr(65 + i % 26)} zu {'nun ' * (i % 5)}",
        )
        for i in range(60)
    ]
    cut = ("close the lid, open the valve and wait until the light is green", "Deckel")
    found = kinds_of(*dict.fromkeys(usual), cut)
    assert found == [("length", len(dict.fromkeys(usual)) + 1)]
    assert kinds_of(cut) == []  # nothing to compare it with


def test_a_memory_is_checked_as_it_is_and_for_what_is_asked(memory: Memory) -> None:
    memory.add("page 12", "Seite 13")
    memory.add("Save %s", "Speichern")
    removed = memory.add("page 7777", "Seite 8888")
    memory.remove(removed.id)
    assert [(found.kind, found.segment.target) for found in memory.check()] == [
        ("numbers", "Seite 13"),
        ("codes", "Speichern"),
    ]
    assert [found.segment.id for found in memory.check(["codes"])] == [2]
    with pytest.raises(KsterError, match="unknown kind 'typos'; accepted: contradictions, "):
        list(memory.check(["typos"]))
    assert set(KINDS) >= {"contradictions", "numbers"}
