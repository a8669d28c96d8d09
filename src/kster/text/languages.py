"""Language codes, matched as people mean them: `en-GB` and `EN_us` serve `en`, `eng_Latn` is `en`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

AUTO = "auto"  # a source language that is to be detected

# What langcodes leaves apart though files mean the same: Norwegian, and NLLB's names of single dialects.
_SAME = {"no": "nb", "fuv": "ff", "pbt": "ps", "quy": "qu"}
# Written Chinese is told apart by script, but most files name a region instead.
_CHINESE_SCRIPTS = {"CN": "Hans", "SG": "Hans", "TW": "Hant", "HK": "Hant", "MO": "Hant"}
_SEVERAL_SCRIPTS = frozenset(["az", "bs", "kk", "ks", "ku", "mn", "ms", "pa", "sd", "sr", "tg", "uz", "zh"])
_CODE = re.compile(r"(?:[A-Za-z]{2,3}|x)(?:[-_][A-Za-z0-9]{2,8})*")
# Codes that need no library to be understood, so that a bare GPU machine does without it.
_PLAIN = frozenset(["ar", "cs", "da", "de", "en", "es", "fr", "it", "ja", "nl", "pl", "pt", "ru", "zh"])
_PLAIN_SCRIPTS = {"ar": "Arab", "ja": "Jpan", "ru": "Cyrl", "zh": "Hans"}  # the others: Latn


@dataclass(frozen=True, slots=True)
class _Language:
    primary: str
    script: str | None = None
    region: str | None = None


@lru_cache(maxsize=1024)
def _parse(code: str) -> _Language:
    tag = code.strip().replace("_", "-")
    if tag.lower() in _PLAIN:
        return _Language(tag.lower())
    if len(tag.split("-")[0]) < 2:  # x-klingon, i-default: private or grandfathered, compared as a whole
        return _Language(tag.lower())
    from langcodes import Language, standardize_tag
    from langcodes.tag_parser import LanguageTagError

    try:
        parsed = Language.get(tag)
        primary = standardize_tag(parsed.language or tag, macro=True).split("-")[0]
    except LanguageTagError:
        return _Language(tag.lower())
    primary = _SAME.get(parsed.language or "", _SAME.get(primary, primary))
    script, region = parsed.script, parsed.territory
    if primary == "zh" and script is None and region is not None:
        script = _CHINESE_SCRIPTS.get(region)
    return _Language(primary, script, region)


def looks_like_code(text: str) -> bool:
    """Whether `text` has the form of a language code (not whether there is such a language)."""
    return _CODE.fullmatch(text.strip()) is not None


def is_one_language(code: str) -> bool:
    """Whether a code names a language rather than a group of them, as `mul`, `gem` and `ROMANCE` do."""
    return len(_parse(code).primary) == 2


def bcp47(code: str) -> str:
    """The code as TMX wants it and other programs know it: `eng_Latn` is `en`, `pt_br` is `pt-BR`."""
    if len(re.split(r"[-_]", code.strip())[0]) < 2:
        return code.strip()
    language = _parse(code)
    script = language.script if language.primary in _SEVERAL_SCRIPTS and not language.region else None
    return "-".join(filter(None, (language.primary, script, language.region)))


@lru_cache(maxsize=1024)
def match_rank(wanted: str, found: str) -> int:
    """How well the language `found` serves the one `wanted`; 0 means not at all.

    3: the same code but for case and separator. 2: the same language, script and region in other
    spelling (`eng`, `en`). 1: one of them says more than the other (`en`, `en-GB`). Two different
    regions or scripts (`pt-BR`, `pt-PT`) do not serve each other.
    """
    if wanted.strip().lower().replace("_", "-") == found.strip().lower().replace("_", "-"):
        return 3
    one, other = _parse(wanted), _parse(found)
    if one == other:
        return 2
    if one.primary != other.primary:
        return 0
    if one.script and other.script and one.script != other.script:
        return 0
    if one.region and other.region and one.region != other.region:
        return 0
    return 1


def may_be(wanted: str, declared: str | None) -> bool:
    """Whether a file that declares this language, or none, can be used."""
    return wanted == AUTO or not (declared or "").strip() or bool(match_rank(wanted, declared or ""))


@lru_cache(maxsize=1024)
def script_of(code: str) -> str:
    """What a language is written in, by ISO 15924: `de` in Latn."""
    language = _parse(code)
    if language.script is not None:
        return language.script
    if language.primary in _PLAIN:
        return _PLAIN_SCRIPTS.get(language.primary, "Latn")
    from langcodes import Language

    return Language.get(language.primary).maximize().script or "Latn"


@lru_cache(maxsize=1024)
def language_name(code: str) -> str:
    """The English name (`de`: German), or the code where there is none."""
    from langcodes import Language

    language = _parse(code)
    name = Language.get(language.primary).language_name() if len(language.primary) in (2, 3) else ""
    return code if not name or name.startswith("Unknown language") else name
