from pathlib import Path

import numpy as np
import pytest

from kster import BaseModel, Memory, Translator
from kster.errors import KsterError
from kster.terms import Term, TermBase, is_kept, term
from kster.terms.gender import readings_before
from kster.translation.term_agreement import DISAGREEMENT, NO_ARTICLE, agreement_of
from kster.translation.term_constraints import (
    Course,
    Requirement,
    Trie,
    written_terms,
)
from kster.translation.term_guide import TermGuide
from tiny import ENGLISH, GERMAN

MACHINE = term("machine", ["Apparat"], part_of_speech="noun")
CLEAN = term("clean", ["ausspülen"], part_of_speech="verb")
TERMS = [MACHINE, CLEAN, term("bird", ["Papagei"], part_of_speech="noun")]
WITH_TERMS = [
    i for i, text in enumerate(ENGLISH) if any(word in text for word in ("machine", "clean", "bird"))
]


@pytest.fixture(scope="module", params=["taught_marian", "taught_m2m100"])
def translator(request: pytest.FixtureRequest) -> Translator:
    model = BaseModel.load(
        request.getfixturevalue(request.param), device="cpu", source_lang="en", target_lang="de"
    )
    return Translator(model)


@pytest.mark.parametrize("beam", [1, 2, 4, 6])
def test_every_translation_has_its_terms(translator: Translator, beam: int) -> None:
    texts = [ENGLISH[i] for i in WITH_TERMS]
    for one in translator.translate(texts, terms=TERMS, beam=beam):
        for own in TERMS:
            assert own.source not in one.source or is_kept(own, one.text, "de"), one.text


def test_what_has_no_terms_is_translated_as_without(translator: Translator) -> None:
    plain = translator.translate(ENGLISH)
    guided = translator.translate(ENGLISH, terms=TERMS)
    for i, (before, after) in enumerate(zip(plain, guided, strict=True)):
        assert (before.text == after.text) == (i not in WITH_TERMS)


def test_terms_do_not_depend_on_the_batch(translator: Translator) -> None:
    together = translator.translate(ENGLISH, terms=TERMS)
    alone = translator.translate(ENGLISH, terms=TERMS, batch_sentences=1)
    assert [one.text for one in together] == [one.text for one in alone]


def test_alternatives_have_the_terms_too(translator: Translator) -> None:
    one = translator.translate("clean the filter once a week", terms=TERMS, n_best=3)
    assert len(one.alternatives) == 2
    assert all(is_kept(CLEAN, text, "de") for text in (one.text, *one.alternatives))


def test_explanations_say_which_words_are_terms(translator: Translator) -> None:
    one = translator.translate("press the button to start the machine", terms=TERMS, explain=True)
    assert one.tokens is not None
    written = "".join(token.token for token in one.tokens if token.term == "machine")
    assert "ppar" in written  # the first letter is a byte to this model, and the form its choice
    assert {token.term for token in one.tokens} == {"machine", None}


def test_a_term_is_stronger_than_a_memory(taught_marian: Path, tmp_path: Path) -> None:
    model = BaseModel.load(taught_marian, device="cpu")
    text = "the machine is ready when the light is green"
    with Memory.create(tmp_path / "m", model) as memory:
        memory.add(text, GERMAN[ENGLISH.index(text)])
        one = Translator(model, memory, terms=[MACHINE]).translate(text)
    assert is_kept(MACHINE, one.text, "de")


def test_a_term_that_is_not_translated_stays_as_it_is(translator: Translator) -> None:
    port = term("QuickPort", translate=False, case="exact")
    assert "QuickPort" in translator.translate("the QuickPort is green", terms=[port]).text


def test_placeholders_and_terms_are_both_kept(translator: Translator) -> None:
    one = translator.translate("press {name} to start the machine", terms=TERMS)
    assert "{name}" in one.text
    assert is_kept(MACHINE, one.text, "de")


def test_a_translators_own_terms_give_way_to_those_of_a_call(taught_marian: Path) -> None:
    own = Translator(taught_marian, device="cpu", terms=[MACHINE])
    text = "press the button to start the machine"
    assert "Apparat" in own.translate(text).text
    assert own.translate(text, terms=[]).text == Translator(own.model).translate(text).text


def test_a_term_base_serves_by_its_name_and_only_its_languages(taught_marian: Path, tmp_path: Path) -> None:
    for name, languages in (("right", ("en", "de")), ("wrong", ("de", "en"))):
        with TermBase.create(tmp_path / name, *languages) as base:
            base.add(MACHINE)
    translator = Translator(taught_marian, device="cpu", terms=tmp_path / "right")
    assert "Apparat" in translator.translate("press the button to start the machine").text
    with pytest.raises(KsterError, match="its terms are de → en; the model translates en → de"):
        translator.translate("x", terms=tmp_path / "wrong")


def test_the_model_reads_the_target_in_the_number_and_tense_of_the_source(taught_marian: Path) -> None:
    guide = TermGuide(
        [
            term("group head", ["Brühkopf"], part_of_speech="noun"),
            term("tighten", ["festziehen"], part_of_speech="verb"),
        ],
        BaseModel.load(taught_marian, device="cpu"),
    )
    assert guide.guide("Two group heads were tightened.").text == "Two Brühköpfe were festgezogen."


# The trie -----------------------------------------------------------------------------------------------


def _requirement(*forms: list[list[int]], count: int = 1) -> Requirement:
    trie = Trie()
    for parts in forms:
        trie.add(parts)
    return Requirement(MACHINE, trie, count)


def _read(requirement: Requirement, tokens: list[int]) -> int:
    """How much is unmet after some tokens."""
    course = Course([requirement])
    progress = course.start
    for token in tokens:
        progress = course.ahead(progress).after(token)
    return progress.unmet


def test_a_form_is_met_by_its_tokens_in_a_row() -> None:
    one = _requirement([[5, 6, 7]])
    assert _read(one, [5, 6, 7]) == 0
    assert _read(one, [5, 6, 1, 7]) == 1
    assert _read(one, [5, 6, 5, 6, 7]) == 0


def test_a_longer_form_counts_once() -> None:
    twice = _requirement([[5]], [[5, 6]], count=2)
    assert _read(twice, [5, 6]) == 1
    assert _read(twice, [5, 6, 1, 5]) == 0
    assert _read(_requirement([[5]], [[5, 6, 7]], count=2), [5, 6, 7]) == 1


def test_a_form_that_is_left_while_it_grows_is_none() -> None:
    """ "auf" has been met, "aufzu" is no word: the search must go on to "aufzupumpen"."""
    divided = _requirement([[8], [5]], [[5, 6, 7]])
    course = Course([divided])
    progress = course.start
    for token, grown in ((8, False), (5, False), (6, True), (7, False)):
        progress = course.ahead(progress).after(token)
        assert progress.grown == grown
    assert not progress.unmet


def test_what_goes_on_with_a_form_and_begins_one_is_there_once() -> None:
    course = Course([_requirement([[5, 5, 6]])])
    begun = course.ahead(course.start).after(5)
    ahead = course.ahead(begun)
    assert ahead.tokens.tolist() == [5, 5]
    assert np.isinf(ahead.columns(1)[3]).tolist() == [False, True, False]
    assert ahead.after(5).within == ((0, 3), (0, 2))  # either in the middle, or at the beginning of another


def test_the_parts_of_a_form_may_stand_apart_but_in_their_order() -> None:
    divided = _requirement([[5, 6], [7]], [[8]])
    assert _read(divided, [5, 6, 1, 2, 7]) == 0
    assert _read(divided, [7, 5, 6]) == 1
    assert _read(divided, [5, 6, 1, 8]) == 0
    assert [owner is not None for owner in written_terms([divided], [5, 6, 1, 7, 7])] == [
        *(True, True, False, True, False)
    ]


ATTACHMENT = term("attachment", ["Dateianhang"], part_of_speech="noun")


@pytest.mark.parametrize(
    ("said", "cost"),
    [
        ("Öffnen Sie den", 0.0),
        ("Öffnen Sie das", DISAGREEMENT),
        ("Öffnen Sie die neue", DISAGREEMENT),
        ("Mit der", DISAGREEMENT),
        ("Mit dem neuen", 0.0),
        ("Die", DISAGREEMENT),  # one attachment
        ("Öffnen Sie", NO_ARTICLE),
    ],
)
def test_a_term_is_begun_after_an_article_of_its_gender(said: str, cost: float) -> None:
    agreement = agreement_of(ATTACHMENT, plural=False, article=True)
    assert agreement is not None
    assert agreement.cost_of_beginning(readings_before(said)) == cost


@pytest.mark.parametrize(
    ("plural", "said", "fits"),
    [
        (False, "das Ende des Dateianhangs", True),
        (False, "das Ende des Dateianhang", False),
        (True, "Öffnen Sie die Dateianhänge", True),
        (True, "Öffnen Sie den Dateianhang", False),
        (None, "Öffnen Sie den Dateianhang", True),
        (True, "mit den Dateianhänge", False),
        (True, "mit den neuen Dateianhängen", True),
    ],
)
def test_a_form_goes_with_the_article_before_it(plural: bool | None, said: str, fits: bool) -> None:
    agreement = agreement_of(ATTACHMENT, plural=plural)
    assert agreement is not None
    assert agreement.fits(said) == fits


@pytest.mark.parametrize(
    "other",
    [
        term("to attach", ["anhängen"], part_of_speech="verb"),
        term("SoftRamp", translate=False),
        term("Harbour", ["Hafen"], part_of_speech="proper noun"),
        term("thing", ["Xyz"], part_of_speech="noun"),
    ],
)
def test_what_is_no_noun_of_a_known_gender_may_stand_after_any_article(other: Term) -> None:
    assert agreement_of(other, plural=None) is None


@pytest.mark.parametrize(("gender", "costs"), [("m", (0.0, DISAGREEMENT)), ("n", (DISAGREEMENT, 0.0))])
def test_a_gender_of_the_term_base_is_believed(gender: str, costs: tuple[float, float]) -> None:
    for own in (
        term("thing", ["Xyz"], gender=gender),
        term("SoftRamp", translate=False, gender=gender),
        term("attachment", ["Dateianhang"], gender=gender),
    ):
        agreement = agreement_of(own, plural=False)
        assert agreement is not None
        cost = agreement.cost_of_beginning
        assert (cost(readings_before("der")), cost(readings_before("das"))) == costs
