"""Whether a text speaks to its reader formally ("Sie") or not ("du"), where a language tells these apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from kster.text.imperatives import orders_in

Voice = Literal["more", "less"]
"""As DeepL calls formality."""

Address = Literal["Sie", "du", "ihr", "nobody"]
"""One reader or several, formally; one; several; in a form that goes with none of these."""

LANGUAGES = ("de",)
VOICE_OF: dict[Address, Voice | None] = {"Sie": "more", "du": "less", "ihr": "less", "nobody": None}
WORDS: dict[Address, tuple[str, ...]] = {
    "Sie": ("Sie", "Ihnen", "Ihr", "Ihre", "Ihrem", "Ihren", "Ihrer", "Ihres"),
    "du": ("du", "dich", "dir", "dein", "deine", "deinem", "deinen", "deiner", "deines"),
    "ihr": ("euch", "euer", "eure", "eurem", "euren", "eurer", "eures"),
}
_YOU_DO = "(?:könnt|habt|seid|werdet|müsst|dürft|sollt|wollt|wisst|gebt|nehmt)"  # said of several
_FORMAL = re.compile(rf"\b(?:{'|'.join(WORDS['Sie'])})\b(?! {_YOU_DO}\b)")
# At the beginning of a sentence "Sie" and "Ihr" may be "she", "they" and "her".
_INNER_FORMAL = re.compile(rf"(?<=[\w,;:–] ){_FORMAL.pattern}")
_TO_ONE = re.compile(rf"(?<![-/{{$.])\b(?:{'|'.join(WORDS['du'])})\b", re.IGNORECASE)  # "${log-dir}" is none
_TO_SEVERAL = re.compile(rf"\b(?:{'|'.join(WORDS['ihr'])}|ihr {_YOU_DO})\b", re.IGNORECASE)
_THEY = re.compile(r"\b(?:they|them|their|these|those|she|hers?|it|its)\b", re.IGNORECASE)
# English that tells nobody to do something: "Shows your files" is no order either.
_ASKS = re.compile(
    r"(?:if|when|while|before|after|once|unless|do|does|did|is|are|was|were|can|could|will|would|shall|should|may"
    r"|might|must|have|has|had|what|where|why|how|who|whose|which|\w+[^s]s)\b(?! not\b)",
    re.IGNORECASE,
)
_DU = re.compile(r"(?<!als )(?<!wie )(?<!und )(?<!oder )\b[Dd]u\b(?! (?:und|oder)\b)")
_VERB_OF_DU = re.compile(r"[a-zäöü][sßxz]t\b")
_NO_VERB_OF_DU = re.compile(  # "verliertst", "zurücksetzenst"
    r"(?<!häl)(?<!trit)(?<!rä)(?<!brä)tst\b|\b[a-zäöüß]+(?<!i)enst\b"
)
_HOW_TO = re.compile(r"\W*how to\b", re.IGNORECASE)
_CAN_YOURS = re.compile(  # "Wie kann deine Maschine", where nobody is named who acts
    r"\W*Wie (?:kann|könn(?:en|ten?)|soll(?:en|ten?|te)?|muss|müssen) (?:[Dd]eine?|Ihre?|[Ee]ure?)\b"
)
_SOMEBODY_ACTS = re.compile(r"\b(?:man|ich|wir|du|Sie|ihr|werden|sein)\b")
_SENTENCE = re.compile(r"[^.!?…\n]+")
_CLAUSE = re.compile(r"[^.,;:!?…–—()\"„“”»«\n]+")


class Heard(NamedTuple):
    """Where a text addresses its reader."""

    address: Address
    at: int
    end: int
    is_order: bool = False


def voice_of(text: str, language: str) -> Voice | None:
    """None for a text that does not address its reader, and for other languages."""
    if not speaks(language):
        return None
    heard = Counter(VOICE_OF[one.address] for one in _heard(text, ""))
    if heard["more"] == heard["less"]:
        return None
    return "more" if heard["more"] > heard["less"] else "less"


def speaks(language: str) -> bool:
    """Whether a language tells voices apart, and it is known how."""
    return language.split("-")[0].lower() in LANGUAGES


def voices_in(text: str, source: str = "") -> set[Voice]:
    """All the voices that a German text speaks in: one, none, or by mistake both.

    source: what it translates. Where that is English and speaks of "you" and nobody else, the first "Sie"
    is the reader, too, and a verb at the head tells the reader something if the source's does.
    """
    return _voices(_heard(text, source))


def is_mixed(text: str, source: str = "") -> bool:
    """Whether a German text speaks in two voices, or in one clause to one reader and to several.

    source: see `voices_in`.
    """
    return _mixes(text, list(_heard(text, source)))


def lacks_verb(text: str, source: str = "") -> bool:
    """Whether a German text says "du" without a verb for it: "Schließen deine Augen", "wenn du kommen",
    "wenn du verliertst"; or has a verb without anybody for it, see `lacks_subject`.

    source: see `voices_in`.
    """
    heard = list(_heard(text, source))
    if any(one.address == "nobody" for one in heard) and _voices(heard) == {"less"}:
        return True
    if lacks_subject(text, source):
        return True
    for sentence in _SENTENCE.findall(text):
        clauses = _CLAUSE.findall(sentence)
        for clause in clauses:
            goes_on = clause is not clauses[-1] and clause.endswith(
                "n"
            )  # "… du öffnen, drucken und löschen kannst"
            if _DU.search(clause) and not _VERB_OF_DU.search(clause) and not goes_on:
                return True
    return _NO_VERB_OF_DU.search(text) is not None


def lacks_subject(text: str, source: str) -> bool:
    """Whether "How to clean your machine" became "Wie kann deine Maschine reinigen"."""
    if not (_HOW_TO.match(source) and (asks := _CAN_YOURS.match(text))):
        return False
    clause = _CLAUSE.match(text, asks.start())
    return clause is None or _SOMEBODY_ACTS.search(text, 0, clause.end()) is None


def leaves(voice: Voice, text: str, source: str) -> bool:
    """Whether the beginning of a German text speaks in another voice than this, or in a mixed one already.

    Its last word may go on, "Zieh" as "Ziehen"; source: see `voices_in`.
    """
    heard = list(_heard(text, source))
    if voice == "less" and any(one.address == "nobody" for one in heard):
        return True  # "Ziehen" could only go on as "Ziehen Sie"
    heard = [one for one in heard if not (one.is_order and one.end == len(text))]
    return bool(_voices(heard) - {voice}) or _mixes(text, heard)


def _voices(heard: Iterable[Heard]) -> set[Voice]:
    return {voice for one in heard if (voice := VOICE_OF[one.address]) is not None}


def speaks_of_others(source: str) -> bool:
    """Whether an English text speaks of somebody or something that German could call "sie"."""
    return _THEY.search(source) is not None


def _heard(text: str, source: str) -> Iterator[Heard]:
    is_you, is_order = _says_to_reader(source)
    for order in orders_in(text, to_reader=is_order):
        yield Heard(order.to, order.at, order.at + len(order.word), is_order=True)
    for found in _TO_ONE.finditer(text):
        yield Heard("du", *found.span())
    several = [Heard("ihr", *found.span()) for found in _TO_SEVERAL.finditer(text)]
    yield from several
    # "Ihr, die ihr glaubt" speaks to several.
    first_is_formal = is_you and not (several and re.match(r"\W*Ihr\b", text))
    for found in (_FORMAL if first_is_formal else _INNER_FORMAL).finditer(text):
        yield Heard("Sie", *found.span())


@lru_cache(maxsize=1_024)
def _says_to_reader(source: str) -> tuple[bool, bool]:
    """Whether English speaks of "you" and nobody else, and whether it tells the reader something."""
    is_you = re.search(r"\byour?\b", source, re.IGNORECASE) is not None and not speaks_of_others(source)
    return is_you, is_you and not _ASKS.match(source)


def _mixes(text: str, heard: list[Heard]) -> bool:
    if len(_voices(heard)) > 1:
        return True
    if {one.address for one in heard} - {"nobody"} != {"du", "ihr"}:
        return False
    spans = [clause.span() for clause in _CLAUSE.finditer(text)]
    return any(len({one.address for one in heard if begin <= one.at < end}) > 1 for begin, end in spans)


def includes_writer(text: str) -> bool:
    """Whether a German text speaks of "us"."""
    return re.search(r"\b(?:wir|uns)\b", text, re.IGNORECASE) is not None
