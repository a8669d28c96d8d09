"""German terms whose articles and adjectives agree with them: gender, number and case.

A model that does not know a compound guesses its gender ("das Dateianhang"). Where the gender is known
(`terms/gender.py`), a search lets those hypotheses fall behind that begin a term after an article which none
of its forms can follow, or leave it in a form that its article does not go with ("des Dateianhang").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kster.terms import Term
from kster.terms.gender import Readings, forms_with_readings, gender_of, readings_before
from kster.terms.german import part_of_speech

DISAGREEMENT = (
    4.0  # taken from the score of what begins or leaves a term after an article of another gender, …
)
NO_ARTICLE = 1.5  # … and of what begins one without an article where the source has one


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a noun's forms may be. article: whether one stands before it in the source."""

    forms: Mapping[str, Readings]
    any: Readings
    article: bool

    def cost_of_beginning(self, before: Readings | None) -> float:
        """What it costs to begin a form after words that allow these readings (`readings_before`)."""
        if before is None:
            return NO_ARTICLE if self.article else 0.0
        return 0.0 if before & self.any else DISAGREEMENT

    def fits(self, said: str) -> bool:
        """Whether the form at the end of what a hypothesis has said goes with the words before it."""
        word = said.rpartition(" ")[2]
        readings = self.forms.get(word)
        if readings is None:
            return True
        allowed = readings_before(said[: len(said) - len(word)])
        return allowed is None or bool(allowed & readings)


def agreement_of(term: Term, *, plural: bool | None, article: bool = False) -> Agreement | None:
    """None for what is no noun of a known gender. plural: whether its source is; None if that is unknown."""
    forms: dict[str, Readings] = {}
    for i, target in enumerate(term.targets):
        noun = target.rpartition(" ")[2]
        is_noun = term.translate and (term.part_of_speech or part_of_speech(target)) == "noun"
        genders = gender_of(noun) if is_noun else None
        if term.gender and i == 0:
            genders = frozenset(term.gender[0])
        if genders is None or not noun[:1].isupper():
            return None
        number = None if plural is None or genders == {"p"} else plural
        for form, readings in forms_with_readings(noun, genders).items():
            own = {one for one in readings if number is None or (one[1] == "p") == number}
            forms[form] = forms.get(form, frozenset()) | own
    return Agreement(forms, frozenset().union(*forms.values()), article)
