"""Terms that come with a request."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kster.errors import KsterError
from kster.terms import Term, term


class GivenTerm(BaseModel):
    """A term of a request; `target` or `targets`, the preferred one first."""

    model_config = ConfigDict(extra="forbid")

    source: str
    target: str | None = None
    targets: list[str] = Field(default_factory=list)
    part_of_speech: str | None = None
    case: str = "any"
    translate: bool = True
    inside_words: bool = False
    gender: str | None = None

    def term(self) -> Term:
        return term(
            self.source,
            [*([self.target] if self.target is not None else []), *self.targets],
            part_of_speech=self.part_of_speech,
            case=self.case,
            translate=self.translate,
            inside_words=self.inside_words,
            gender=self.gender,
        )


def terms_in(value: Any) -> list[Term]:
    """The `terms` of a borrowed API: a list of terms, or an object of sources and targets; JSON in a form."""
    try:
        given = json.loads(value) if isinstance(value, str) and value else value
        if isinstance(given, dict):
            given = [{"source": source, "target": target} for source, target in given.items()]
        return [GivenTerm.model_validate(item).term() for item in given or []]
    except (ValueError, TypeError, ValidationError):
        raise KsterError(
            '`terms` must be a list of {"source", "target"}, or an object of sources and targets'
        ) from None
