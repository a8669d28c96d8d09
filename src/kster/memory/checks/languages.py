"""Texts in another language than their side of a memory, as py3langid detects it."""

from __future__ import annotations

from kster.memory.checks.pairs import without_codes

LEAST_LETTERS = 20  # shorter texts say too little
UNLIKELY = 0.01  # probability of the language it should be …
LIKELY = 0.5  # … and of the one that it is instead
OF_NAMES = {"la"}  # plants and animals have names in it; nobody writes it


class LanguageCheck:
    """source, target: the codes of a memory's languages; a side without one is not checked."""

    def __init__(self, source: str | None, target: str | None) -> None:
        from kster.text.detection import AnyLanguage

        self._sides = [(side, code) for side, code in (("source", source), ("target", target))]
        self._detector = AnyLanguage()

    def problem(self, source: str, target: str) -> str | None:
        for (side, wanted), text in zip(self._sides, (source, target), strict=True):
            text = without_codes(text)
            if wanted is None or sum(map(str.isalpha, text)) < LEAST_LETTERS:
                continue
            found, probability, share = self._detector.compare(text, wanted)
            if found not in OF_NAMES and probability >= LIKELY and share is not None and share < UNLIKELY:
                return f"the {side} is {found}, not {wanted}"
        return None
