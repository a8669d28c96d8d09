"""How a text speaks to its reader."""

from __future__ import annotations

import pytest

from kster.text.voice import is_mixed, lacks_verb, leaves, voice_of, voices_in


@pytest.mark.parametrize(
    ("text", "voice"),
    [
        ("Öffnen Sie den Deckel.", "more"),
        ("Bitte leeren Sie Ihren Korb.", "more"),
        ("Wir danken Ihnen, dass Ihre Nachricht kam.", "more"),
        ("Öffne deinen Korb, wenn du willst.", "less"),
        ("Habt ihr euch verletzt?", "less"),
        ("Dein Konto ist bereit.", "less"),
        ("Klicke auf den Knopf und gib den Namen ein.", "less"),
        ("Bitte merk es dir.", "less"),
        ("Zeigt den Namen der Schrift an.", None),
        ("Besuche in der Woche; Filter, die leer sind", None),
        ("Teile der Stadt und Frage der Woche", None),
        ("Die Datei liegt in ${log-dir}.", None),
        ("Sie ging nach Hause.", None),
        ("Ihr Hund bellt.", None),
        ("Der Deckel ist offen.", None),
        ("Der Dirigent duldet keine Fehler.", None),
    ],
)
def test_german_has_a_voice(text: str, voice: str | None) -> None:
    assert voice_of(text, "de-AT") == voice


def test_other_languages_have_none() -> None:
    assert voice_of("Do you want your key?", "en") is None


@pytest.mark.parametrize(
    ("text", "source", "voices"),
    [
        ("Bitte drucken Sie dein Ticket.", "Please print your ticket.", {"more", "less"}),
        ("Klicke auf Ihr Konto.", "Click your account.", {"more", "less"}),
        ("Öffnen Sie die Tür und nimm Platz.", "Open the door and take a seat.", {"more", "less"}),
        ("Sie können dein Konto löschen.", "You can delete your account.", {"more", "less"}),
        ("Sie können dein Konto sehen.", "They can see your account.", {"less"}),
        ("Ich öffne die Tür und nehme Ihre Tasche.", "I open the door and take your bag.", {"more"}),
        ("Prüfen Sie Ihre Angaben.", "Check your details.", {"more"}),
        ("Buche Ihren Tisch.", "Book your table.", {"more", "less"}),
        ("Buche jetzt Ihren Tisch.", "Book your table now.", {"more", "less"}),
        ("Führt Ihre Maus über Ihren Namen.", "Move your mouse over your name.", {"more", "less"}),
        ("Führt Ihre Maus über Ihren Namen?", "Does your mouse move over your name?", {"more"}),
        ("Zeigt Ihre Dateien an.", "Shows your files.", {"more"}),
        ("Wenn Sie wollen, nimm Platz.", "If you want, take a seat.", {"more", "less"}),
        (
            "Nehmen Sie Platz oder Ihr werdet ihn verlieren.",
            "Sit down or you will lose it.",
            {"more", "less"},
        ),
        ("Ihr, die ihr glaubt, helft euch.", "You who believe, help each other.", {"less"}),
        ("Die Tür ist offen.", "The door is open.", set()),
    ],
)
def test_two_voices_in_one_sentence_are_heard(text: str, source: str, voices: set[str]) -> None:
    assert voices_in(text, source) == voices


@pytest.mark.parametrize(
    ("text", "mixed"),
    [
        ("Nehmt deinen Platz.", True),
        ("Setz dein Fahrrad ab und schließt dein Tor.", True),
        ("Dein Nachbar bittet euch, leise zu sein.", True),
        ("Buche Ihren Tisch.", True),
        ("Nimm deine Freunde mit, wenn ihr könnt.", False),
        ("Sag: Nehmt eure Plätze ein.", False),
        ("Nimm deinen Platz und schließe die Tür.", False),
        ("Nehmen Sie Ihren Platz ein.", False),
        ("Danke für Ihre Karte.", False),
    ],
)
def test_one_reader_and_several_are_mixed_within_a_clause(text: str, mixed: bool) -> None:
    assert is_mixed(text, "Take your seat.") is mixed


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("Schließen deine Augen.", True),
        ("Wähle deine Sprache und drücken den Knopf.", True),
        ("Nimm deinen Platz und gibt deinen Namen ein.", True),
        ("Öffne sich mit deinem Konto.", True),
        ("Du darfst gehen, bevor du dein Konto öffnen.", True),
        ("Du kannst gehen, wenn du deine Karte verliertst.", True),
        ("Wie du dein Passwort zurücksetzenst.", True),
        ("Schließen Sie die Augen.", False),
        ("Wenn du es verdienst, bedienst und kennst.", False),
        ("Schließen, um zu gehen.", False),
        ("Wähle die Dateien, die du öffnen, drucken und löschen kannst.", False),
        ("Er weiß mehr als du.", False),
    ],
)
def test_du_needs_verbs_that_go_with_it(text: str, lacks: bool) -> None:
    assert lacks_verb(text, "Close your eyes.") is lacks


@pytest.mark.parametrize(
    ("text", "source", "lacks"),
    [
        ("Wie kann deine Maschine reinigen.", "How to clean your machine.", True),
        ("Wie können Ihre Maschine reinigen.", "How to clean your machine.", True),
        ("Wie kann man deine Maschine reinigen.", "How to clean your machine.", False),
        ("Wie kann deine Maschine gereinigt werden.", "How to clean your machine.", False),
        ("Wie kann deine Maschine helfen?", "How can your machine help?", False),
        ("Wie du deine Maschine reinigst.", "How to clean your machine.", False),
    ],
)
def test_what_is_acted_on_is_not_who_acts(text: str, source: str, lacks: bool) -> None:
    assert lacks_verb(text, source) is lacks


def test_an_infinitive_leaves_the_voice_of_du_at_once() -> None:
    assert leaves("less", "Schließen", "Close your eyes.")
    assert not leaves("less", "Schließe", "Close your eyes.")


@pytest.mark.parametrize(
    ("begun", "left"),
    [
        ("Zieh", False),  # "Ziehen Sie" can still come
        ("Zieh ", True),
        ("Ziehen Sie Ihre", False),
        ("Ziehen Sie dein", True),
        ("Öffnen Sie die Tür und schließ", False),
    ],
)
def test_the_beginning_of_a_sentence_leaves_its_voice_with_the_first_whole_word(
    begun: str, left: bool
) -> None:
    assert leaves("more", begun, "Pull your chair.") is left
