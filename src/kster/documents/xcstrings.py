"""Apple's string catalogues (`.xcstrings`): strings that lack the target language get it, to be reviewed.

They are JSON, and are written as Xcode writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from kster.documents.document import Text, Unit, is_prose, plain, require_size
from kster.documents.encoded_text import EncodedText
from kster.documents.json_strings import parsed_json
from kster.errors import FormatError
from kster.text.languages import may_be


class StringCatalogue:
    """A string is what its localisation in the source language says, variations and all, or else its key."""

    def __init__(self, data: bytes, source: str, target: str) -> None:
        self._data = data
        self._file = EncodedText(data)
        require_size(len(self._file.text))
        self._catalogue = _parsed(self._file.text)
        self._target = target
        self.declared_source: str | None = self._catalogue["sourceLanguage"]
        if not may_be(source, self.declared_source):
            raise FormatError(f"wanted {source}, but its sourceLanguage is {self.declared_source}")
        self._wanted = dict(self._missing())
        self._leaves = [(key, leaf) for key, own in self._wanted.items() for leaf in _leaves(own)]
        self.units: list[Unit] = [Unit((leaf["value"],), key) for key, leaf in self._leaves]

    def written(self, translations: Sequence[Text]) -> bytes:
        if not self._wanted:
            return self._data
        for (_, leaf), text in zip(self._leaves, translations, strict=True):
            leaf.update(state="needs_review", value=plain(text))
        strings = self._catalogue["strings"]
        for key, own in self._wanted.items():
            localisations = strings[key].get("localizations", {}) | {self._target: own}
            entry = strings[key] | {"localizations": dict(sorted(localisations.items()))}
            strings[key] = dict(sorted(entry.items()))
        text = json.dumps(self._catalogue, ensure_ascii=False, indent=2, separators=(",", " : "))
        # Xcode puts an empty line into what is empty.
        text = re.sub(r"(?m)^( *)(.* : )\{\}", r"\1\2{\n\n\1}", text)
        end = self._file.text[len(self._file.text.rstrip()) :]
        return self._file.encode(text + end.replace("\r\n", "\n"))

    def _missing(self) -> Iterator[tuple[str, Any]]:
        """Keys, and what of the source is to be translated for them."""
        for key, entry in self._catalogue["strings"].items():
            localisations = entry.get("localizations", {})
            own = localisations.get(self._target)
            is_done = own is not None and any(leaf.get("state") != "new" for leaf in _leaves(own))
            if is_done or entry.get("shouldTranslate") is False or entry.get("extractionState") == "stale":
                continue
            unit = {"stringUnit": {"state": "new", "value": key}}
            text = deepcopy(localisations.get(self.declared_source, unit))
            if any(is_prose(leaf["value"]) for leaf in _leaves(text)):
                yield key, text


def _parsed(text: str) -> Any:
    catalogue = parsed_json(text)
    try:
        strings = catalogue["strings"].values()
        assert isinstance(catalogue["sourceLanguage"], str)
        for entry in strings:
            for own in entry.get("localizations", {}).values():
                assert all(isinstance(leaf["value"], str) for leaf in _leaves(own))
    except (AssertionError, AttributeError, KeyError, TypeError, RecursionError):
        raise FormatError(
            "not a string catalogue: no sourceLanguage or strings as Xcode writes them"
        ) from None
    return catalogue


def _leaves(localisation: Any) -> Iterator[dict[str, Any]]:
    """The units of a localisation: one, or one of each variation."""
    for name, own in localisation.items():
        if name == "stringUnit":
            yield own
        elif isinstance(own, dict):
            yield from _leaves(own)
