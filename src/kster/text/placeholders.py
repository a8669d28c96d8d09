"""What a program puts into a text later, and tags in it: a translation must have all of them.

Models keep `%s` and `{name}` mostly, and make a mess of `<a href="%s">`. `{0}` is what software has been
translated with for decades, and what they keep best.
"""

from __future__ import annotations

import re
from itertools import count

# As Weblate sends them: `[X7X]` stands for the `%(count)d` at character 7. Models make `[X]` or nothing of
# it, and Weblate cannot put the `%(count)d` back.
OF_WEBLATE = re.compile(r"\[X\d+X\]")
OF_PROGRAMS = re.compile(
    r"</?[A-Za-z][^<>]*>"  # tags
    r"|%(?:\(\w+\))?(?:\d+\$)?[-+#0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z)?[diouxXeEfgGcrsa@]\b|%@"  # C, Python, PHP
    r"|\$?\{\{?[^{}\n]{0,60}\}\}?"  # Python, JavaScript, Qt, templates
    r"|&\w{2,8};"
)
NO_MARKS = re.compile(rf"(?!\{{\d+\}})(?:{OF_PROGRAMS.pattern})")


class Placeholders:
    """`text` with its placeholders as `{0}`, `{1}` …; `restore` puts them back into a translation."""

    def __init__(self, text: str, pattern: re.Pattern[str] = OF_WEBLATE) -> None:
        unused = (f"{{{number}}}" for number in count() if f"{{{number}}}" not in text)
        self._original = {next(unused): name for name in dict.fromkeys(pattern.findall(text))}
        marks = {name: mark for mark, name in self._original.items()}
        self.text = pattern.sub(lambda found: marks[found[0]], text)

    def restore(self, translation: str) -> str:
        for mark, name in self._original.items():
            translation = translation.replace(mark, name)
        return translation


def are_kept(source: str, translation: str) -> bool:
    """Whether a translation has the placeholders and tags of its source, in whatever order."""
    return sorted(OF_PROGRAMS.findall(source)) == sorted(OF_PROGRAMS.findall(translation))


def with_marks(text: str) -> Placeholders:
    """A text whose placeholders and tags were lost, for another try."""
    return Placeholders(text, NO_MARKS)


def can_be_mended(source: str, translation: str) -> bool:
    """Whether something was lost that another try may keep: no other mark is kept better than `{0}`."""
    return not are_kept(source, translation) and with_marks(source).text != source


def mended(source: str, translation: str, second: str) -> str:
    """second: the translation `with_marks`, which counts if it has everything."""
    restored = with_marks(source).restore(second)
    return restored if are_kept(source, restored) else translation
