"""Which of the served languages a text is in: a light guess from script, common words and letter triples.

Only the languages of the loaded models are candidates, so little evidence is enough. Profiles are written
out below; a language without one is recognised by its script alone.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable

from kster.text.languages import match_rank

COMMON_WORDS = {
    "cs": "a se na je v že s o do i ve by jsem to za jako ale pro který po jsou bylo není od",
    "da": "og i det at en den til er som på de med han af for ikke der var mig sig men et har om vi",
    "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an "
    "werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über so zum wir ich "
    "kann bitte oder nur wenn mehr alle ihre diese vor",
    "en": "the of and to in a is that for it as was with be by on not he his but at are this have from "
    "or had an they which one you were her all their there been if more when will would who so no what "
    "can please do your we my how use click",
    "es": "de la que el en y a los se del las un por con no una su para es al lo como más pero sus le ya",
    "fi": "ja on ei se että hän oli en mutta ole kun niin joka myös kuin mitä tai sen ovat olla nyt",
    "fr": "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont "
    "la vous avec nous être cette mais comme ou",
    "hu": "a az és hogy nem is egy ez meg csak de van el volt még mint azt már ha ki kell fel lehet",
    "it": "di e il la che in un a per è una sono con non le si da del i come dei al più nel alla gli ma",
    "nl": "de het een van en in is dat op te zijn voor met die niet aan er om ook als maar dan bij wordt "
    "naar hij u deze kan heeft nog wel",
    "pl": "i w na się nie z do to że jest a o jak po co ale za od przez dla są tym oraz który jego",
    "pt": "de a o que e do da em um para é com não uma os no se na por mais as dos como mas ao ele das",
    "ro": "de și în a la cu pe nu o să că un este din mai care ce pentru au fi dar sunt prin",
    "sv": "och i att det som en på är av för med den till inte har de ett om ett jag var men vi så kan",
    "tr": "ve bir bu da de için ile çok o ne daha gibi olarak var ama değil kadar sonra mi en her",
}
LETTERS = {  # letters and sequences that tell a language from its neighbours
    "cs": "ř ě ů ž š č ý í á",
    "da": "æ ø å",
    "de": "ä ö ü ß sch ung ich ein cht eit tz",
    "en": "th wh ing tion ght ow oo ee ly 'nt y",
    "es": "ñ ¿ ¡ ción ó á í ll",
    "fi": "ää yy kk aa ssa lla ö",
    "fr": "é è ê à ç œ eau eux ou qu' l' d'",
    "hu": "ő ű gy sz ö ü á é",
    "it": "zione gli che ò ì à è cc zz",
    "nl": "ij aa ee oo uu sch een gg",
    "pl": "ł ą ę ż ś ź ć ń sz cz rz",
    "pt": "ã õ ção ç nh lh á ê",
    "ro": "ă ș ț î â",
    "sv": "å ä ö sk ng",
    "tr": "ş ğ ı ç ö ü lar ler",
}
SCRIPTS = {
    "ar": "ARABIC",
    "bg": "CYRILLIC",
    "el": "GREEK",
    "fa": "ARABIC",
    "he": "HEBREW",
    "hi": "DEVANAGARI",
    "ja": "HIRAGANA",
    "ko": "HANGUL",
    "ru": "CYRILLIC",
    "sr": "CYRILLIC",
    "th": "THAI",
    "uk": "CYRILLIC",
    "zh": "CJK",
}
WORD_WEIGHT, LETTER_WEIGHT, SCRIPT_WEIGHT = 1.0, 0.35, 2.0
LOOKED_AT = 2_000  # characters; more would not change the answer


class Detector:
    """Chooses among some languages."""

    def __init__(self, languages: Iterable[str]) -> None:
        self.languages = sorted(languages)
        self._words = {code: set(_known(COMMON_WORDS, code).split()) for code in self.languages}
        self._letters = {code: _known(LETTERS, code).split() for code in self.languages}
        self._scripts = {code: _known(SCRIPTS, code) or "LATIN" for code in self.languages}

    def detect(self, text: str) -> list[tuple[str, float]]:
        """Languages with confidences from 0 to 100, most likely first."""
        text = unicodedata.normalize("NFC", text[:LOOKED_AT]).casefold()
        scores = {code: self._score(text, code) for code in self.languages}
        highest = max(scores.values())
        shares = {code: math.exp(score - highest) for code, score in scores.items()}
        total = sum(shares.values())
        ranked = sorted(shares.items(), key=lambda item: -item[1])
        # Several equally likely languages, and a text without a word, leave little confidence.
        return [(code, round(100 * share / total, 1)) for code, share in ranked]

    def best(self, text: str) -> tuple[str, float]:
        return self.detect(text)[0]

    def _score(self, text: str, code: str) -> float:
        words = re.findall(r"[^\W\d_]+", text)
        found = sum(word in self._words[code] for word in words)
        letters = sum(text.count(sequence) for sequence in self._letters[code])
        script = sum(
            self._scripts[code] in unicodedata.name(char, "") for char in text[:200] if char.isalpha()
        )
        return WORD_WEIGHT * found + LETTER_WEIGHT * letters + SCRIPT_WEIGHT * script


def _known(profiles: dict[str, str], code: str) -> str:
    return next((profile for known, profile in profiles.items() if match_rank(known, code)), "")
