"""Characters that models do not write: pictographs, arrows, icons, and words of another script.

Translation models have read few of them. They write others in their place, or lose the words beside them. So
they are codes, which come back as they were.
"""

from __future__ import annotations

import re
from functools import lru_cache

from kster.text.languages import script_of

_JOINED = "\u200d\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"  # parts of the one before
_SYMBOLS = (
    "¤¶¹¼"
    "\u2070-\u209c"  # superscripts and subscripts
    "\u20a0-\u20ab\u20ad-\u20cf"  # signs of currencies but €
    "\u2100-\u2121\u2123-\u2211\u2213-\u23ff"  # letterlike but ™, numbers, arrows, mathematics but −, keys
    "\u2400-\u2bff"  # in circles, boxes, shapes, pictographs, more arrows
    "\ufffd\ue000-\uf8ff\U000f0000-\U0010fffd"  # icons of fonts
    "\U0001d400-\U0001d7ff"  # letters of mathematics
    "\U0001f000-\U0001faff"  # emoji
)
SYMBOL = rf"[0-9#*]\ufe0f?\u20e3|[{_SYMBOLS}][{_SYMBOLS}{_JOINED}]*"
_SYMBOL = re.compile(SYMBOL)

_SCRIPTS = {  # ISO 15924 → its letters and marks
    "Grek": "\u0370-\u03ff\u1f00-\u1fff",
    "Cyrl": "\u0400-\u052f",
    "Armn": "\u0531-\u058a",
    "Hebr": "\u0590-\u05ff",
    "Arab": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc",
    "Deva": "\u0900-\u097f",
    "Beng": "\u0980-\u09ff",
    "Taml": "\u0b80-\u0bff",
    "Thai": "\u0e00-\u0e7f",
    "Geor": "\u10a0-\u10ff",
    "Hang": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "Hani": "\u2e80-\u2fdf\u3000-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff9f"
    "\U00020000-\U0003ffff",
}
_WRITTEN_IN = {"Hans": ("Hani",), "Hant": ("Hani",), "Jpan": ("Hani",), "Kore": ("Hang", "Hani")}


def is_symbol(text: str) -> bool:
    """Whether a text is symbols alone."""
    return _SYMBOL.fullmatch(text) is not None


@lru_cache(maxsize=64)
def other_scripts(*languages: str) -> re.Pattern[str]:
    """Matches words of scripts that none of these languages is written in, several in a row at once.

    Nothing, if one of the languages is not known (""): the words may be its own.
    """
    if not all(languages):
        return re.compile("(?!)")
    own = {part for language in languages for part in _written_in(script_of(language))}
    letters = "".join(characters for script, characters in _SCRIPTS.items() if script not in own)
    return re.compile(rf"[{letters}]+(?:[ \u00a0,\-–·]+[{letters}]+)*")


def _written_in(script: str) -> tuple[str, ...]:
    return _WRITTEN_IN.get(script, (script,))
