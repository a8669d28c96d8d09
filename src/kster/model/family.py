"""What differs between the model families in how they are driven: languages, and the start of decoding.

What differs in the computation is in `configuration.py`; the rest is alike, down to the names of the layers.
"""

from __future__ import annotations

from dataclasses import dataclass

from kster.errors import ModelError
from kster.model.configuration import Configuration
from kster.model.tokenizer import LibraryTokens, MarianTokens, Tokenizer


@dataclass(frozen=True, slots=True)
class Family:
    """How one kind of checkpoint is driven.

    prefix: decoder tokens that precede the first translated token; the model reads all of them, the last
        one's state predicts the first token of the translation.
    source_prefix: text put before every source (multilingual Marian models: ">>de<< ").
    """

    name: str
    prefix: tuple[int, ...]
    source_prefix: str = ""


def family_of(
    config: Configuration, tokenizer: Tokenizer, source_lang: str | None, target_lang: str | None
) -> Family:
    """Describe a loaded checkpoint; also points a multilingual model's tokenizer at the languages."""
    if isinstance(tokenizer, MarianTokens):
        return _marian(config, tokenizer, target_lang)
    assert isinstance(tokenizer, LibraryTokens)
    return _m2m100(config, tokenizer, source_lang, target_lang)


def _marian(config: Configuration, tokenizer: MarianTokens, target_lang: str | None) -> Family:
    codes, prefix = tokenizer.language_codes, ""
    if codes:
        if target_lang not in codes:
            raise ModelError(
                f"target language {target_lang!r} is not one of this multilingual model's: {', '.join(codes)}"
            )
        prefix = f">>{target_lang}<< "
    return Family("marian", (config.decoder_start_token_id,), source_prefix=prefix)


def _m2m100(
    config: Configuration, tokenizer: LibraryTokens, source_lang: str | None, target_lang: str | None
) -> Family:
    known = tokenizer.language_tokens()
    for role, lang in (("source", source_lang), ("target", target_lang)):
        if lang not in known:
            shown = ", ".join(sorted(known)[:12])
            raise ModelError(
                f"{role} language {lang!r} is unknown to this multilingual model; "
                f"it knows {len(known)} languages: {shown}{', …' if len(known) > 12 else ''}"
            )
    tokenizer.use(source_lang or "", target_lang or "")
    return Family("m2m_100", (config.decoder_start_token_id, known[target_lang or ""]))
