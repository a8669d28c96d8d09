"""Placeholders as Weblate sends them: `[X7X]` stands for the `%(count)d` at character 7.

Models make `[X]` or nothing of that, and Weblate cannot put the `%(count)d` back. `{0}` is what software
has been translated with for decades, and what models keep.
"""

from __future__ import annotations

import re
from itertools import count

_OF_WEBLATE = re.compile(r"\[X\d+X\]")


class Placeholders:
    """`text` with its placeholders as `{0}`, `{1}` …; `restore` puts them back into a translation."""

    def __init__(self, text: str) -> None:
        unused = (f"{{{number}}}" for number in count() if f"{{{number}}}" not in text)
        self._original = {next(unused): name for name in dict.fromkeys(_OF_WEBLATE.findall(text))}
        self.text = text
        for mark, name in self._original.items():
            self.text = self.text.replace(name, mark)

    def restore(self, translation: str) -> str:
        for mark, name in self._original.items():
            translation = translation.replace(mark, name)
        return translation
