"""One way from a text to its translation: what a model is asked for, and what becomes of its answers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kster import Translator
from kster.text.codes import Code, CodedText
from kster.text.marks import MARK
from kster.text.messages import with_messages
from kster.text.recognition import are_kept, recognise
from kster.translation.decoding import Decoding
from kster.translation.known_texts import Taught
from kster.translation.piece import CodedPiece
from kster.translation.result import Output, Translation
from kster.translation.service import Cutting, Round, Text, run, translation_steps


def translate(
    texts: Sequence[Text],
    *,
    keeps: bool = True,
    taught: dict[str, str] | None = None,
    says: dict[str, str] | None = None,
    sentences: bool = True,
) -> tuple[list[Translation], list[Round]]:
    """By a model that writes capitals, and loses marks unless it `keeps` them; also what it was asked for.

    says: what else it writes.
    """
    rounds: list[Round] = []
    known = taught or {}

    def model(wanted: Round) -> list[Output]:
        rounds.append(wanted)
        return [output(text) for text in wanted.texts]

    def output(text: str) -> Output:
        written = (says or known).get(text) or (text if keeps else MARK.sub("", text)).upper()
        words = [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
        return Output(((written, -1.0),), None, (tuple((span, span) for span in words),))

    def find(text: str, context: str | None) -> Taught:
        return Taught((known[text],)) if text in known else Taught()

    cutting = Cutting(lambda text: len(text) < 200, find, sentences, languages=("en", "de"))
    return run(translation_steps(texts, Decoding(), cutting), model), rounds


def test_sentences_are_asked_for_one_by_one_and_codes_go_as_marks() -> None:
    (done,), rounds = translate(["Save <b>%s</b> now. Then {0} is here!"])
    assert [wanted.texts for wanted in rounds] == [["Save {0} now.", "Then {0} is here!"]]
    assert done.text == "SAVE <b>%s</b> NOW. THEN {0} IS HERE!"
    assert not done.repaired


def test_a_sentence_with_nothing_but_tags_is_translated_without_them() -> None:
    """Words in marks are translated worse: see docs/results/placeholders.md."""
    (done,), rounds = translate(["Press the <b>red</b> <i>button</i> now. Then wait."])
    assert rounds == [Round(["Then wait."]), Round(["Press the red button now."], align=True)]
    assert done.text == "PRESS THE <b>RED</b> <i>BUTTON</i> NOW. THEN WAIT."
    assert not done.repaired
    taught = {"Press the <b>red</b> button": "Die <b>rote</b> Taste drücken"}
    (done,), rounds = translate(list(taught), taught=taught)
    assert done.text == "Die <b>rote</b> Taste drücken"


def test_a_sentence_with_tags_and_other_codes_is_translated_without_the_tags() -> None:
    (done,), rounds = translate(["Press the <b>red button</b> of <code>x-1</code> <i>%d times</i>."])
    assert rounds == [Round(["Press the red button of {0} {1} times."], align=True)]
    assert done.text == "PRESS THE <b>RED BUTTON</b> OF <code>x-1</code> <i>%d TIMES</i>."
    assert not done.repaired


def test_symbols_and_words_of_other_scripts_are_not_given_to_the_model() -> None:
    """Models write others in their place, or nothing at all."""
    texts = ["Done! 🎉", "→ Next page", "Choose 日本語 or русский язык.", "♪ music ♪", "🎉"]
    done, rounds = translate(texts)
    assert rounds[0].texts == ["Done!", "Next page", "Choose {0} or {1}.", "music"]
    assert [one.text for one in done] == [
        "DONE! 🎉",
        "→ NEXT PAGE",
        "CHOOSE 日本語 OR русский язык.",
        "♪ MUSIC ♪",
        "🎉",
    ]


@pytest.mark.parametrize(
    ("source", "written", "shown"),
    [
        ("Could not read it.", "konnte es nicht lesen", "Konnte es nicht lesen."),
        ("It is closed", "Es ist geschlossen.", "Es ist geschlossen"),
        ("npm cannot run.", "npm läuft nicht", "npm läuft nicht."),
        ("Use npm now", "npm jetzt nutzen", "npm jetzt nutzen"),
        ("Is it on?", "ist es an", "Ist es an?"),
        ("size and so on", "Größe usw.", "Größe usw."),
        ("Wait...", "Warten", "Warten..."),
    ],
)
def test_a_translation_begins_and_ends_as_its_source(source: str, written: str, shown: str) -> None:
    """Whatever habits the examples have; a text that was taught comes back as taught."""
    (done,), _ = translate([source], says={source: written})
    assert done.text == shown
    (done,), _ = translate([source], taught={source: written})
    assert done.text == written


def test_codes_that_a_model_loses_are_put_back_and_the_translation_says_so() -> None:
    (lost, whole), rounds = translate(["Press the <b>red</b> button %d times.", "All is well."], keeps=False)
    assert rounds[1:] == [
        Round(["Press the red button {0} times."], align=True),
        Round(["Press the red button times."], align=True),
    ]
    assert lost.text == "PRESS THE <b>RED</b> BUTTON %d TIMES."
    assert lost.repaired
    assert lost.to_json()["repaired"] is True
    assert not whole.repaired
    assert "repaired" not in whole.to_json()


def test_the_hypothesis_that_was_taken_comes_first_whatever_its_score_and_however_many_are_asked_for() -> (
    None
):
    """A more probable one may have lost a negation."""
    said = {"Go.": ["Geh nicht.", "Geh."], "Wait.": ["Warte.", "Halt."]}
    scores = [-2.0, -1.0]

    def model(wanted: Round) -> list[Output]:
        return [Output(tuple(zip(said[text], scores, strict=True))) for text in wanted.texts]

    cutting = Cutting(lambda _: True, lambda *_: Taught(), sentences=True)
    (done,) = run(translation_steps(["Go. Wait."], Decoding(n_best=4), cutting), model)
    assert done.text == "Geh nicht. Warte."
    assert set(done.alternatives) == {"Geh. Warte.", "Geh nicht. Halt.", "Geh. Halt."}


@pytest.mark.parametrize("text", ["Press %MOD1 or %MOD1 now", "%1 of %1", "Use %d and %d; or %d."])
def test_codes_that_are_put_back_side_by_side_are_not_read_as_others(text: str) -> None:
    piece = CodedPiece(recognise(text), lambda _: Taught())
    piece.place_codes(
        Output((("Fertig", -1.0),), None, ((),))
    )  # a model that says nothing about what became what
    ((repaired, _),) = piece.hypotheses
    assert are_kept(text, str(repaired)), str(repaired)


def test_what_a_model_makes_up_that_reads_as_a_code_is_left_out() -> None:
    piece = CodedPiece(recognise("Press %s % now"), lambda _: Taught())
    piece.place_codes(Output((("Jetzt % %tagsreden <b>drücken {jetzt{", -1.0),), None, ((),)))
    ((repaired, _),) = piece.hypotheses
    assert [str(code) for _, code in recognise(str(repaired)).codes] == ["%s"]
    assert "{" not in str(repaired)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            {"Drop ~sum now.": "Jetzt <sum weg.", "Then on -> off.": "Dann an -> aus."},
            "Jetzt sum weg. Dann an -> aus.",
        ),
        ({"If one < two.": "Wenn 1 <zwei.", "Then six > one.": "Dann 6> 1."}, "Wenn 1 < zwei. Dann 6> 1."),
        ({"It is 100% safe.": "Es ist 100 % sicher."}, "Es ist 100 % sicher."),
        ({"It is 100% safe.": "Es ist %sicher."}, "Es ist % sicher."),
        ({"It is quite safe.": "Es ist 100 %ig sicher."}, "Es ist 100 %ig sicher."),
        ({"Press Enter twice.": "Zweimal <Enter> drücken."}, "Zweimal Enter drücken."),
        ({"See the name here.": "Siehe hier %s, {name}&nbsp;\\n<b>."}, "Siehe hier , name."),
        ({"Ask $ now.": "Jetzt $fragen."}, "Jetzt $ fragen."),
    ],
)
def test_what_a_model_writes_never_forms_a_code_that_the_source_lacks(
    said: dict[str, str], shown: str
) -> None:
    """Neither in one sentence nor by two that stand side by side."""
    (done,), _ = translate([" ".join(said)], says=said)
    assert done.text == shown
    assert done.repaired == (" ".join(said.values()) != shown)


@given(
    st.sampled_from(
        ["a % b", "Set %s -> {0}.", "<b>One.</b> Two %d < 3.", "{n, plural, other {# of {x}}} on"]
    ),
    st.lists(st.text(alphabet="ab1 .%sd$(){}<>/&;#\\n'`@-[]", max_size=30), min_size=8, max_size=8),
)
def test_any_answer_of_a_model_leaves_the_codes_of_the_source(source: str, answers: list[str]) -> None:
    waiting = iter(answers * 9)

    def model(wanted: Round) -> list[Output]:
        marks = [" ".join(mark[0] for mark in MARK.finditer(text)) for text in wanted.texts]
        return [Output(((next(waiting) + " " + mark, -1.0),), None, ((),)) for mark in marks]

    cutting = Cutting(lambda _: True, lambda *_: Taught(), sentences=True)
    (done,) = run(translation_steps([source], Decoding(), cutting), model)
    assert are_kept(source, done.text), done.text
    messages = [token.data for token in with_messages(done.text) if isinstance(token, Code)]
    assert len(messages) == source.count("plural")


@pytest.mark.parametrize("text", ["%s", "<b>%d</b> / {total}", "https://a.example/b", "", " \n "])
def test_a_text_with_nothing_but_codes_is_not_translated(text: str) -> None:
    (done,), rounds = translate([text])
    assert done.text == text
    assert not rounds


def test_messages_are_translated_inside_their_branches() -> None:
    message = "You have {n, plural, offset:1 =0 {nothing} one {# file} other {{who} has # files}} here."
    (done,), rounds = translate([message])
    assert done.text == (
        "YOU HAVE {n, plural, offset:1 =0 {NOTHING} one {# FILE} other {{who} HAS # FILES}} HERE."
    )
    assert rounds[0].texts == ["You have {0} here.", "nothing", "{0} file", "{0} has {1} files"]
    nested = "{sex, select, female {{n, plural, one {her #th} other {hers}}} other {theirs}}"
    assert translate([nested])[0][0].text == (
        "{sex, select, female {{n, plural, one {HER #TH} other {HERS}}} other {THEIRS}}"
    )


def test_a_branch_gets_no_sign_of_the_syntax_that_its_source_lacks() -> None:
    message = "{n, plural, one {No box} other {Take number # from {box}}}"
    said = {"No box": "Kein '{Karton}' }#", "Take number {0} from {1}": "Nehmen S' #{0} aus '{1}'"}
    (done,), _ = translate([message], says=said)
    written = " ".join(done.text.split())
    assert written == "{n, plural, one {Kein ’ Karton ’ } other {Nehmen S’ # aus ’{box}’}}"


def test_a_message_that_was_taught_comes_back_as_taught_and_is_not_missing_from_the_source() -> None:
    message = "{n, plural, one {# file} other {# files}}"
    taught = {message: message.upper(), f"Copied {message} now.": f"Jetzt {message} kopiert."}
    done, _ = translate(list(taught), taught=taught)
    assert [own.text for own in done] == list(taught.values())
    assert [own.source for own in done] == list(taught)


def test_line_breaks_written_as_escapes_or_tags_end_a_line() -> None:
    (done,), rounds = translate(["One line\\nTwo lines<br>three lines"])
    assert rounds[0].texts == ["One line", "Two lines", "three lines"]
    assert done.text == "ONE LINE\\nTWO LINES<br>THREE LINES"


@pytest.mark.parametrize(
    ("source", "written", "shown"),
    [
        ("It weighs 5~kg.", "Es wiegt 5 kg.", "Es wiegt 5~kg."),
        ("It costs 5~euros.", "Es kostet 5 Euro und 15 Cent.", "Es kostet 5~Euro und 15 Cent."),
        ("See No.~5.", "Siehe Nr. 5.", "Siehe Nr.~5."),
        ("5~to 6", "5 bis 6", "5~bis 6"),
        ("Ada~Lovelace wrote", "Geschrieben hat Ada Lovelace", "Geschrieben hat Ada~Lovelace"),
    ],
)
def test_spaces_that_forbid_a_line_break_come_back_between_the_same_words_or_beside_the_number(
    source: str, written: str, shown: str
) -> None:
    source, shown = source.replace("~", "\xa0"), shown.replace("~", "\xa0")
    assert translate([source], says={source: written})[0][0].text == shown
    assert translate([source], taught={source: written})[0][0].text == written


def test_columns_between_tabs_are_texts_of_their_own() -> None:
    (done,), rounds = translate(["Name:\t%s\tLast seen \t then"])
    assert done.text == "NAME:\t%s\tLAST SEEN \t THEN"
    assert rounds[0].texts == ["Name:", "Last seen", "then"]


def test_what_was_taught_comes_back_as_taught_with_whatever_codes() -> None:
    taught = {"Hello %s. Bye.": "Tag, %s!", "Press {key} now": "Jetzt drücken"}
    done, rounds = translate(list(taught), taught=taught)
    assert [own.text for own in done] == list(taught.values())
    assert rounds[0].texts == list(taught)
    assert not any(own.repaired for own in done)


def test_a_documents_own_codes_come_back_as_the_same_objects_in_their_places() -> None:
    begin, end, image = Code("open", object(), 1), Code("close", object(), 1), Code("alone", object())
    text = CodedText.of(["One ", begin, "two. ", image, "Three", end, " four."])
    for keeps in (True, False):
        (done,), _ = translate([text], keeps=keeps)
        assert done.content == ("ONE ", begin, "TWO. ", image, "THREE", end, " FOUR.")
    taught = {"One two. Three four.": "Een twe. Thrie fuor."}
    (done,), _ = translate([text], taught=taught)
    assert [code for code in done.content if isinstance(code, Code)] == [begin, image, end]
    assert done.text == "Een twe. Thrie fuor."


def test_whole_lines_are_one_text_where_asked_for() -> None:
    _, rounds = translate(["One. Two."], sentences=False)
    assert rounds[0].texts == ["One. Two."]


@pytest.fixture(params=["taught_marian", "taught_m2m100"], scope="module")
def translator(request: pytest.FixtureRequest) -> Translator:
    return Translator(request.getfixturevalue(request.param))


def test_a_text_gives_one_translation_and_a_list_gives_a_list(translator: Translator) -> None:
    with translator as same:
        one = same.translate("the red house")
        assert isinstance(one, Translation)
        assert same.translate(["the red house"]) == [one]
        assert same.translate([]) == []


def test_any_model_gives_back_all_codes(translator: Translator) -> None:
    texts = ["open the <b>red</b> tank", "%(n)d of {0} run &amp; read", "press <i>the {key}</i>."]
    texts.append("{n, plural, other {# dogs}}")
    for explain in (False, True):
        for text, done in zip(texts, translator.translate(texts, explain=explain), strict=True):
            codes = r"</?\w>|%\(n\)d|\{\w+\}|&amp;|\{n, plural, other|#"
            assert sorted(re.findall(codes, done.text)) == sorted(re.findall(codes, text))
            assert done.text == str(translator.translate(text))
