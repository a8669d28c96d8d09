"""Languages as clients name them: codes matched loosely, names for people."""

from __future__ import annotations

from kster.formats.languages import match_rank

AUTO = "auto"  # a source language that is to be found out
NAMES = {
    "ar": "Arabic",
    "bg": "Bulgarian",
    "ca": "Catalan",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "et": "Estonian",
    "fa": "Persian",
    "fi": "Finnish",
    "fr": "French",
    "he": "Hebrew",
    "hi": "Hindi",
    "hr": "Croatian",
    "hu": "Hungarian",
    "id": "Indonesian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "lt": "Lithuanian",
    "lv": "Latvian",
    "nb": "Norwegian",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sk": "Slovak",
    "sl": "Slovenian",
    "sr": "Serbian",
    "sv": "Swedish",
    "th": "Thai",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "vi": "Vietnamese",
    "zh": "Chinese",
}


def language_name(code: str) -> str:
    """The English name, or the code where we know none."""
    return next((name for known, name in NAMES.items() if match_rank(known, code)), code)


def serves(wanted: str, offered: str) -> int:
    """How well the language `offered` serves `wanted` (3 the same … 1 one says more than the other, 0 no)."""
    return match_rank(wanted, offered)


def may_be(wanted: str, declared: str | None) -> bool:
    """Whether a file that declares this language, or none, will do."""
    return wanted == AUTO or not (declared or "").strip() or bool(match_rank(wanted, declared or ""))
