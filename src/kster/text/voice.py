"""Whether a text speaks to its reader formally ("Sie") or not ("du"), where a language tells these apart."""

from __future__ import annotations

import re
from typing import Literal

Voice = Literal["more", "less"]
"""As DeepL calls formality."""

LANGUAGES = ("de",)
WORDS: dict[Voice, tuple[str, ...]] = {
    "more": ("Sie", "Ihnen", "Ihr", "Ihre", "Ihrem", "Ihren", "Ihrer", "Ihres"),
    "less": (
        *("du", "dich", "dir", "dein", "deine", "deinem", "deinen", "deiner", "deines"),
        *("euch", "euer", "eure", "eurem", "euren", "eurer", "eures"),
    ),
}
_INFORMAL = re.compile(rf"\b(?:{'|'.join(WORDS['less'])})\b", re.IGNORECASE)
_FORMAL = re.compile(rf"\b(?:{'|'.join(WORDS['more'])})\b")
# At the beginning of a sentence "Sie" and "Ihr" may be "she", "they" and "her".
_INNER_FORMAL = re.compile(rf"(?<=[\w,;:–] ){_FORMAL.pattern}")
# What one person is told to do ("Klicke", "Gib"): verbs that texts for readers are full of, in forms that are
# no other words. "Ich klicke" is said of oneself.
_VERBS = (
    "aktiviere|aktualisiere|akzeptiere|ändere|antworte|bearbeite|beende|behalte|beginne|benutze"
    "|besuche|bestätige|bewahre|bewege|bring|bringe|denke|drehe|dreh|drucke|drücke|entferne"
    "|entscheide|erlaube|erneuere|erstelle|folge|frag|frage|fülle|geh|gehe|gib|halte|hebe|hilf|hol"
    "|hole|hör|höre|installiere|kauf|kaufe|klick|klicke|komm|komme|kopiere|lade|lass|lasse|leere"
    "|leg|lege|lern|lerne|lies|lösche|mach|mache|melde|miss|nimm|nutze|öffne|pack|packe|plane"
    "|prüfe|putze|reinige|ruf|rufe|sag|sage|schalt|schalte|schau|schaue|schick|schicke|schließ"
    "|schließe|schneide|schreib|schreibe|schütze|sei|sende|setz|setze|sieh|speichere|sprich|starte"
    "|steck|stecke|stell|stelle|tausche|teile|tippe|trag|trage|triff|trink|trinke|überprüfe"
    "|unterschreibe|verbinde|vergiss|vergleiche|verlass|verlasse|vermeide|versuche|verwende|wähle"
    "|warte|wasch|wasche|wechsle|wirf|wische|zahle|zähle|zeig|zeige|zieh|ziehe"
)
TOLD = tuple(_VERBS.split("|"))
_TOLD = re.compile(
    rf"(?:^|[.!?:;,–] |\b(?:bitte|und|oder|dann|danach) )(?:{_VERBS})\b(?! ich\b)", re.IGNORECASE
)
_THEY = re.compile(r"\b(?:they|them|their|these|those|she|hers?|it|its)\b", re.IGNORECASE)


def voice_of(text: str, language: str) -> Voice | None:
    """None for a text that does not address its reader, and for other languages."""
    if not speaks(language):
        return None
    formal, informal = len(_INNER_FORMAL.findall(text)), len(_INFORMAL.findall(text))
    if formal == informal:
        return None
    return "more" if formal > informal else "less"


def speaks(language: str) -> bool:
    """Whether a language tells voices apart, and it is known how."""
    return language.split("-")[0].lower() in LANGUAGES


def voices_in(text: str, source: str = "") -> set[Voice]:
    """All the voices that a German text speaks in: one, none, or by mistake both.

    source: what it translates. Where that is English and speaks of "you" and nobody else, the first "Sie"
    is the reader, too.
    """
    is_you = re.search(r"\byour?\b", source, re.IGNORECASE) is not None and not _THEY.search(source)
    found: set[Voice] = set()
    if (_FORMAL if is_you else _INNER_FORMAL).search(text):
        found.add("more")
    if _INFORMAL.search(text) or (_TOLD.search(text) and not re.search(r"\bich\b", text)):
        found.add("less")
    return found


def includes_writer(text: str) -> bool:
    """Whether a German text speaks of "us"."""
    return re.search(r"\b(?:wir|uns)\b", text, re.IGNORECASE) is not None
