"""Documents of which every unit comes back in capitals, or as what is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kster.documents.document import Text
from kster.documents.kinds import open_document
from kster.text.codes import Token


def capitals(name: str, content: bytes) -> bytes:
    return translated(name, content, str.upper)


def translated(name: str, content: bytes, translate: Callable[[str], str]) -> bytes:
    """Every string of every unit translated, with the codes where they were."""
    document = open_document(name, content, "en", "de")
    return document.written([[_each(token, translate) for token in unit.text] for unit in document.units])


def _each(token: Token, translate: Callable[[str], str]) -> Token:
    return translate(token) if isinstance(token, str) else token


def texts(name: str, content: bytes) -> list[str]:
    """The units in short: `<1>` and `</1>` are the ends of a pair of codes, `<1/>` stands alone."""
    return [shown(unit.text) for unit in open_document(name, content, "en", "de").units]


def shown(text: Text) -> str:
    numbers: dict[int, int] = {}
    return "".join(token if isinstance(token, str) else _code(token, numbers) for token in text)


def _code(code: Token, numbers: dict[int, int]) -> str:
    assert not isinstance(code, str)
    number = numbers.setdefault(id(code.pair if code.pair is not None else code), len(numbers) + 1)
    return {"open": f"<{number}>", "close": f"</{number}>", "alone": f"<{number}/>"}[code.kind]


def with_codes(text: Text, translation: str) -> list[Token]:
    """A translation in which the codes of a text stand as `shown` writes them."""
    import re

    numbers: dict[int, int] = {}
    codes = {_code(token, numbers): token for token in text if not isinstance(token, str)}
    parts = re.split(r"(</?\d+/?>)", translation)
    return [codes.get(part, part) for part in parts if part]


def written(name: str, content: bytes, translations: Sequence[str]) -> bytes:
    """A document whose units have become these, in order."""
    document = open_document(name, content, "en", "de")
    assert len(translations) == len(document.units), [shown(unit.text) for unit in document.units]
    return document.written(
        [with_codes(unit.text, own) for unit, own in zip(document.units, translations, strict=True)]
    )
