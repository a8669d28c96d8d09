"""What is said with "Sie", said with "du"."""

from __future__ import annotations

import pytest

from kster.text.du_forms import form_of_du, order_of, repeats_order, says_twice
from kster.text.informal import informal


@pytest.mark.parametrize(
    ("formal", "source", "expected"),
    [
        ("Wählen Sie Ihren Platz.", "Choose your seat.", "Wähle deinen Platz."),
        ("Wie können Sie Ihr Zimmer finden.", "How to find your room.", "Wie kannst du dein Zimmer finden."),
        ("Bitte geben Sie Ihren Code ein.", "Please enter your code.", "Bitte gib deinen Code ein."),
        (
            "Lesen Sie Ihren Vertrag, bevor Sie ihn unterschreiben.",
            "Read your contract before you sign it.",
            "Lies deinen Vertrag, bevor du ihn unterschreibst.",
        ),
        (
            "Öffnen Sie die Tür und schließen das Fenster.",
            "Open the door and close the window.",
            "Öffne die Tür und schließe das Fenster.",
        ),
        (
            "Wählen Sie das Zimmer aus, das Ihnen gefällt, und bezahlen Sie, wenn Sie gehen.",
            "Choose the room you like and pay when you leave.",
            "Wähle das Zimmer aus, das dir gefällt, und bezahle, wenn du gehst.",
        ),
        (
            "Wenn Sie fertig sind, klicken Sie auf {0}.",
            "When you are done, click {0}.",
            "Wenn du fertig bist, klicke auf {0}.",
        ),
        (
            "Wenn Sie den Bericht öffnen, sehen Sie Ihre Punkte.",
            "When you open the report, you see your points.",
            "Wenn du den Bericht öffnest, siehst du deine Punkte.",
        ),
        (
            "Ihr Zahnarzt wird Sie anrufen.",
            "Your dentist will call you.",
            "Dein Zahnarzt wird dich anrufen.",
        ),
        (
            "Wir haben Ihren Brief erhalten und werden Sie anrufen.",
            "We have received your letter and will call you.",
            "Wir haben deinen Brief erhalten und werden dich anrufen.",
        ),
        (
            "Wir drucken es für Sie und schicken es Ihnen.",
            "We print it for you and send it to you.",
            "Wir drucken es für dich und schicken es dir.",
        ),
        ("Melden Sie sich bei Ihrem Konto an.", "Log in to your account.", "Melde dich bei deinem Konto an."),
        ("Sehen Sie sich die Liste an.", "Look at the list.", "Sieh dir die Liste an."),
        ("Haben Sie Ihr Passwort vergessen?", "Forgot your password?", "Hast du dein Passwort vergessen?"),
        ("Hier finden Sie Ihre Dateien.", "Here are your files.", "Hier findest du deine Dateien."),
        (
            "Sie sollten Ihr Passwort ändern, wenn Sie es geteilt haben.",
            "You should change your password if you have shared it.",
            "Du solltest dein Passwort ändern, wenn du es geteilt hast.",
        ),
        ("Öffnen Sie das Menü. Wählen Sie OK.", "Open the menu. Choose OK.", "Öffne das Menü. Wähle OK."),
    ],
)
def test_pronouns_and_the_verbs_that_go_with_them_change(formal: str, source: str, expected: str) -> None:
    assert informal(formal, source) == expected


@pytest.mark.parametrize(
    ("formal", "source"),
    [
        ("Sie öffnet die Tür.", "She opens the door."),
        ("Sie können Ihre Dateien sehen.", "They can see their files."),
        ("Ihre Dateien sind leer, und Sie öffnen die Tür.", "Her files are empty, and she opens the door."),
        ("Frobnitzen Sie Ihren Korb.", "Frobnicate your basket."),  # a verb that nobody knows
        ("Er braucht ihn mehr als Sie.", "He needs it more than you."),
        ("Die Entwickler bitten Sie um Geduld.", "The developers ask you for patience."),
    ],
)
def test_what_the_rules_do_not_understand_is_left_alone(formal: str, source: str) -> None:
    assert informal(formal, source) is None


@pytest.mark.parametrize(
    ("verb", "form", "order"),
    [
        ("öffnen", "öffnest", "öffne"),
        ("rechnen", "rechnest", "rechne"),
        ("wechseln", "wechselst", "wechsle"),
        ("reisen", "reist", "reise"),
        ("geben", "gibst", "gib"),
        ("vergessen", "vergisst", "vergiss"),
        ("verlassen", "verlässt", "verlasse"),
        ("schalten", "schaltest", "schalte"),
        ("verwalten", "verwaltest", "verwalte"),
        ("veröffentlichen", "veröffentlichst", "veröffentliche"),
        ("sind", "bist", None),
    ],
)
def test_verbs_take_the_form_for_one_reader(verb: str, form: str, order: str | None) -> None:
    assert (form_of_du(verb), order_of(verb)) == (form, order)


@pytest.mark.parametrize(("verb", "form"), [("einladen", "einlädst"), ("zurückgeben", "zurückgibst")])
def test_so_do_those_that_end_a_clause_with_their_prefix(verb: str, form: str) -> None:
    assert form_of_du(verb) == form


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ("Füllen Sie ihn mit Wasser füllen.", True),
        ("Schließe den Deckel schließen.", True),
        ("Drücke die Taste kurz drücken und warte.", True),
        ("Füllen Sie ihn mit Wasser.", False),
        ("Den Deckel schließen.", False),
        ("Helfen Sie mir, Ihnen zu helfen.", False),
        ("Schließe die Tür und lass sie schließen.", False),
    ],
)
def test_an_order_that_is_said_twice_is_heard(text: str, repeats: bool) -> None:
    assert repeats_order(text) is repeats


@pytest.mark.parametrize(
    ("source", "text", "twice"),
    [
        ("Wipe it with a dry cloth.", "Mit einem trockenen Tuch reinigen Tuch abwischen.", True),
        ("Raise the dose.", "Erhöhen die Einwaage die Einwaage.", True),
        ("Put one dose on the other dose.", "Die Dosis auf die Dosis geben.", False),
        ("When the tank is full, empty it.", "Wenn der Tank voll ist, den Tank leeren.", False),
        ("Fill the tank.", "Füllen Sie den Tank füllen.", True),
    ],
)
def test_a_noun_that_is_said_twice_is_heard_where_the_source_repeats_none(
    source: str, text: str, twice: bool
) -> None:
    assert says_twice(source, text) is twice


@pytest.mark.parametrize("formal", ["Wie kann Ihr Zimmer finden.", "Wie können Ihre Zimmer finden."])
def test_a_sentence_in_which_nobody_acts_is_left_alone(formal: str) -> None:
    assert informal(formal, "How to find your room.") is None
