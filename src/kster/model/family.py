"""What differs between the model families: languages, the start of decoding, positions, norm order.

Everything else about the BART family of translation models is alike, down to the names of the layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kster.errors import KsterError

SUPPORTED = {
    "marian": "Marian / OPUS-MT",
    "m2m_100": "M2M100 / NLLB",
}


@dataclass(frozen=True, slots=True)
class Family:
    """How one kind of checkpoint is driven.

    prefix: decoder tokens that precede the first translated token; the model reads all of them, the last
        one's state predicts the first token of the translation.
    position_offset: row of the position table that belongs to the decoder's first token.
    pre_norm: layer norms come before each block (M2M100) instead of after it (Marian).
    source_prefix: text put before every source (multilingual Marian models: ">>de<< ").
    """

    name: str
    prefix: tuple[int, ...]
    position_offset: int
    pre_norm: bool
    source_prefix: str = ""


def require_supported(model_type: str, name: str) -> None:
    if model_type not in SUPPORTED:
        known = ", ".join(f"{key} ({value})" for key, value in SUPPORTED.items())
        raise KsterError(f"{name}: architecture {model_type!r} is not supported; supported are {known}")


def family_of(config: Any, tokenizer: Any, source_lang: str | None, target_lang: str | None) -> Family:
    """Describe a loaded checkpoint; also points a multilingual model's tokenizer at the languages."""
    if config.model_type == "marian":
        return _marian(config, tokenizer, target_lang)
    return _m2m100(config, tokenizer, source_lang, target_lang)


def _marian(config: Any, tokenizer: Any, target_lang: str | None) -> Family:
    start = config.decoder_start_token_id
    codes = [code.strip("<>") for code in getattr(tokenizer, "supported_language_codes", [])]
    prefix = ""
    if codes:
        if target_lang not in codes:
            raise KsterError(
                f"target language {target_lang!r} is not one of this multilingual model's: {', '.join(codes)}"
            )
        prefix = f">>{target_lang}<< "
    return Family("marian", (start,), 0, pre_norm=False, source_prefix=prefix)


def _m2m100(config: Any, tokenizer: Any, source_lang: str | None, target_lang: str | None) -> Family:
    known = _language_tokens(tokenizer)
    for role, lang in (("source", source_lang), ("target", target_lang)):
        if lang not in known:
            shown = ", ".join(sorted(known)[:12])
            raise KsterError(
                f"{role} language {lang!r} is unknown to this multilingual model; "
                f"it knows {len(known)} languages: {shown}{', …' if len(known) > 12 else ''}"
            )
    tokenizer.src_lang = source_lang
    tokenizer.tgt_lang = target_lang
    start = config.decoder_start_token_id
    return Family(
        "m2m_100", (start, known[target_lang or ""]), position_offset=config.pad_token_id + 1, pre_norm=True
    )


def _language_tokens(tokenizer: Any) -> dict[str, int]:
    """Language code → id of its token, for M2M100's and NLLB's tokenizers."""
    if hasattr(tokenizer, "lang_code_to_id"):  # M2M100 and the slow NLLB tokenizer
        return dict(tokenizer.lang_code_to_id)
    if hasattr(tokenizer, "lang_code_to_token"):
        return {c: tokenizer.convert_tokens_to_ids(t) for c, t in tokenizer.lang_code_to_token.items()}
    # NLLB: the codes themselves (eng_Latn) are special tokens.
    codes = [t for t in tokenizer.all_special_tokens if len(t) == 8 and t[3] == "_"]
    return {code: tokenizer.convert_tokens_to_ids(code) for code in codes}
