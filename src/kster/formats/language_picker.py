"""Which of the languages of a file are source and target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from kster.errors import FormatError
from kster.formats.pair import UnusableUnit
from kster.text.languages import match_rank

MAX_LISTED = 100  # languages remembered for an error message; no honest file has more


def best_two(source_ranks: Sequence[int], target_ranks: Sequence[int]) -> tuple[int, int] | None:
    """Positions of the best source and the best target that are not the same; None if there are none.

    Of equally good ones the first wins. Looking at the two best of each side is enough: at most one of
    them is taken by the other side.
    """

    def leaders(ranks: Sequence[int]) -> list[int]:
        matching = [i for i, rank in enumerate(ranks) if rank]
        return sorted(matching, key=lambda i: -ranks[i])[:2]

    choices = [(s, t) for s in leaders(source_ranks) for t in leaders(target_ranks) if s != t]
    return max(choices, key=lambda choice: source_ranks[choice[0]] + target_ranks[choice[1]], default=None)


class LanguagePicker:
    """Picks source and target among the languages of each unit of a multilingual file.

    A wanted language of None means: let the file say. The source is then the one the file declares, the
    target the only other language there is.
    """

    def __init__(self, path: Path, source_lang: str | None, target_lang: str | None) -> None:
        self._path = path
        self.source_lang = source_lang
        self.target_lang = target_lang
        self._found: Counter[str] = Counter()
        self._matched = False

    def pick(self, languages: Sequence[str], declared_source: str | None = None) -> tuple[int, int]:
        """Positions of source and target in `languages`; `UnusableUnit` if one of them is missing."""
        if len(self._found) < MAX_LISTED or self._found.keys() >= set(languages):
            self._found.update(set(languages))
        if self.source_lang is None or self.target_lang is None:
            self._let_the_file_say(languages, declared_source)
        assert self.source_lang
        assert self.target_lang
        chosen = best_two(
            [match_rank(self.source_lang, language) for language in languages],
            [match_rank(self.target_lang, language) for language in languages],
        )
        if chosen is None:
            has = ", ".join(languages[:10]) or "no language"
            raise UnusableUnit(f"not in both {self.source_lang} and {self.target_lang} (has {has})")
        self._matched = True
        return chosen

    def _let_the_file_say(self, languages: Sequence[str], declared_source: str | None) -> None:
        source = self.source_lang or declared_source
        if source is None:
            raise FormatError(
                f"{self._path} does not say which language is the source; name source and target "
                f"(found: {', '.join(languages)})"
            )
        others = [language for language in languages if not match_rank(source, language)]
        if self.target_lang is None and len(set(others)) != 1:
            raise FormatError(
                f"{self._path} does not say which language is the target; name it "
                f"(found: {', '.join(languages)})"
            )
        self.source_lang, self.target_lang = source, self.target_lang or others[0]

    def require_a_match(self) -> None:
        """At the end of a file: an error for people if it had units but none in both languages."""
        if self._found and not self._matched:
            found = ", ".join(f"{language} ({n:,} units)" for language, n in self._found.most_common(20))
            raise FormatError(
                f"{self._path}: no unit is in both {self.source_lang} and {self.target_lang}. "
                f"Languages found: {found}"
            )
