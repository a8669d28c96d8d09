"""Parts of speech of German and English words, by HanTa."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from kster.errors import KsterError

MODELS = {"de": "morphmodel_ger.pgz", "en": "morphmodel_en.pgz"}

# Beginnings of HanTa's tags (STTS for German, C5 for English) and the classes of the paper's figure;
# the first that fits decides.
_GERMAN = (
    *(("N", "noun"), ("V", "verb"), ("ADJ", "adjective")),
    *(("ADV", "adverb"), ("PROAV", "adverb"), ("PWAV", "adverb")),  # "damit" and "wozu" are no pronouns
    *(("ART", "determiner"), ("PIAT", "determiner"), ("PDAT", "determiner"), ("PPOSAT", "determiner")),
    *(("PTK", "particle"), ("P", "pronoun"), ("AP", "preposition"), ("KO", "conjunction")),
    *(("CARD", "number"), ("$", "punctuation")),
)
_ENGLISH = (
    *(("NN", "noun"), ("NP", "noun"), ("V", "verb"), ("AJ", "adjective"), ("AV", "adverb")),
    *(("AT", "determiner"), ("D", "determiner"), ("PN", "pronoun"), ("PR", "preposition")),
    *(("CJ", "conjunction"), ("CRD", "number"), ("ORD", "number"), ("PU", "punctuation")),
    *(("TO", "particle"), ("XX", "particle"), ("POS", "particle")),
)


def coarse(tag: str, language: str) -> str:
    """The class of a tag: noun, verb, … or other."""
    for beginning, name in _GERMAN if language == "de" else _ENGLISH:
        if tag.startswith(beginning):
            return name
    return "punctuation" if tag and not tag[0].isalpha() else "other"


def shares(sentences: Sequence[Sequence[Sequence[Any]]], language: str) -> dict[str, tuple[int, int]]:
    """Part of speech → (words decided by the memory, words). sentences: lists of (word, decided)."""
    tagger = _tagger(language)
    counts: dict[str, list[int]] = {}
    for sentence in sentences:
        if not sentence:
            continue
        tagged = tagger.tag_sent([word for word, _ in sentence])
        for (_, decided), (_, _, tag) in zip(sentence, tagged, strict=True):
            count = counts.setdefault(coarse(tag, language), [0, 0])
            count[0] += int(decided)
            count[1] += 1
    return {name: (decided, total) for name, (decided, total) in counts.items()}


@lru_cache(maxsize=2)
def _tagger(language: str) -> Any:
    if language not in MODELS:
        raise KsterError(f"no tagger for language {language!r}; accepted: {', '.join(MODELS)}")
    try:
        from HanTa import HanoverTagger
    except ImportError:
        raise KsterError(
            "HanTa is not installed: the report of `pos` tags words with it. Install kster[experiments]"
        ) from None
    return HanoverTagger.HanoverTagger(MODELS[language])
