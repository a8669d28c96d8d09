"""Which of some languages a text is in.

Only the languages of the loaded models are candidates. Of 214 short strings of user interfaces, English or
German (`tests/text/ui_strings.tsv`), py3langid's byte n-grams identify 94.4 %, and so does lingua, whose
files are 20 times as large; among 15 languages 71.5 % against lingua's 79.9 %, which takes 400 MB of memory.
Our own lists of common words, which it replaced, identified 74.3 % and 48.6 %
(`benchmarks/language_identification.py`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from kster.text.languages import match_rank

LOOKED_AT = 2_000  # characters; more would not change the answer


class Detector:
    """Chooses among some languages; one that the library does not know is never chosen."""

    def __init__(self, languages: Iterable[str]) -> None:
        self.languages = sorted(languages)
        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        known = self._identifier.labels
        self._labels = {
            code: label
            for code in self.languages
            if (label := next((label for label in known if match_rank(label, code)), None))
        }
        if self._labels:
            self._identifier.set_languages(set(self._labels.values()))

    def detect(self, text: str) -> list[tuple[str, float]]:
        """Languages with confidences from 0 to 100, most likely first; all equal for a text without words."""
        text = unicodedata.normalize("NFC", text[:LOOKED_AT]).casefold()
        if not self._labels or not any(map(str.isalpha, text)):
            return [(code, round(100 / len(self.languages), 1)) for code in self.languages]
        shares = dict(self._identifier.rank(text))
        found = [(code, shares.get(self._labels.get(code, ""), 0.0)) for code in self.languages]
        return sorted(((code, round(100 * share, 1)) for code, share in found), key=lambda item: -item[1])

    def best(self, text: str) -> tuple[str, float]:
        return self.detect(text)[0]


class AnyLanguage:
    """Says which of all languages that the library knows a text is in."""

    def __init__(self) -> None:
        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        self._labels: dict[str, str | None] = {}

    def compare(self, text: str, wanted: str) -> tuple[str, float, float | None]:
        """The likeliest language, its probability, and that of the one wanted; None where it is unknown."""
        shares = dict(self._identifier.rank(unicodedata.normalize("NFC", text[:LOOKED_AT]).casefold()))
        if wanted not in self._labels:
            self._labels[wanted] = next((label for label in shares if match_rank(label, wanted)), None)
        label = self._labels[wanted]
        best = next(iter(shares))
        return best, shares[best], None if label is None else shares[label]
