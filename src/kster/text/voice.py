"""Whether a text speaks to its reader formally ("Sie") or not ("du"), where a language tells these apart."""

from __future__ import annotations

import re
from typing import Literal

Voice = Literal["more", "less"]
"""As DeepL calls formality."""

LANGUAGES = ("de",)
_INFORMAL = re.compile(r"\b(?:du|dich|dir|dein(?:e[mnrs]?)?|euch|eu(?:er|re[mnrs]?))\b", re.IGNORECASE)
# Not at the beginning of a sentence, where "Sie" and "Ihr" may be "she", "they" and "her".
_FORMAL = re.compile(r"(?<=[\w,;:–] )(?:Sie|Ihnen|Ihr(?:e[mnrs]?)?)\b")


def voice_of(text: str, language: str) -> Voice | None:
    """None for a text that does not address its reader, and for other languages."""
    if language.split("-")[0].lower() not in LANGUAGES:
        return None
    formal, informal = len(_FORMAL.findall(text)), len(_INFORMAL.findall(text))
    if formal == informal:
        return None
    return "more" if formal > informal else "less"
