"""DeepL's API at `/v2`, as its public client and Weblate speak it: texts, languages, usage.

Parameters and fields that begin with `kster_` are our own.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from fastapi import APIRouter

from kster.documents.html import HtmlText
from kster.documents.xml_fragment import XmlFragment
from kster.errors import KsterError
from kster.server.api.context import Reader, TheEngine
from kster.server.api.deepl_glossaries import glossary_part
from kster.server.api.parameters import Given, Parameters
from kster.server.api.texts import MAX_MATCHES, Wish, translate_from_each
from kster.server.auth.access import Principal
from kster.server.work.engine import Engine
from kster.server.work.served_model import ServedModel
from kster.text.languages import bcp47, language_name, match_rank
from kster.text.voice import Voice

router = APIRouter(prefix="/v2", tags=["DeepL"])

NO_LIMIT = 1_000_000_000_000  # what DeepL says to customers without one
# Languages that DeepL offers as targets only in these variants; its client refuses the plain codes.
VARIANTS = {
    "EN": {"EN-GB": "English (British)", "EN-US": "English (American)"},
    "PT": {"PT-BR": "Portuguese (Brazilian)", "PT-PT": "Portuguese (European)"},
}
_LINE_BREAK = re.compile(r"[^\S\n]*\n\s*")


@router.post("/translate")
async def translate(given: Given, engine: TheEngine, principal: Reader) -> dict[str, Any]:
    """A text or a list of them, plain or marked up (`tag_handling`)."""
    texts = _texts(given)
    engine.require_size(texts)
    target = required(given, "target_lang")
    source = given.text("source_lang")
    require_languages(engine, source, target)
    sources = [source or engine.detector.best(text)[0] for text in texts]
    way = choice(given, "split_sentences", ("0", "1", "nonewlines"))
    markup = _markup(given)
    matches = given.number("kster_matches", 0, MAX_MATCHES)
    split = None if way is None else way != "0"
    wish = replace(
        wish_of(engine, principal, given),
        markup=markup,
        matches=matches,
        confidence=given.flag("kster_confidence"),
        split_sentences=split,
    )
    sent = [_LINE_BREAK.sub(" ", text) for text in texts] if way == "nonewlines" and not markup else texts
    answers = await translate_from_each(engine, principal, sent, sources, target, wish)
    translations = []
    for text, own_source, answer in zip(texts, sources, answers, strict=True):
        item: dict[str, Any] = {
            "detected_source_language": deepl_code(own_source),
            "text": answer.text,
            "billed_characters": len(text),
        }
        if matches:
            item["kster_matches"] = answer.matches
        if answer.confidence is not None:
            item["kster_confidence"] = answer.confidence
        if answer.repaired:
            item["kster_repaired"] = True
        translations.append(item)
    return {"translations": translations}


def _texts(given: Parameters) -> list[str]:
    if not given.values.get("text"):
        raise KsterError("Parameter 'text' not specified.")
    return given.texts("text")


def required(given: Parameters, name: str) -> str:
    value = given.text(name)
    if value is None:
        raise KsterError(f"Parameter '{name}' not specified.")
    return value


def choice(given: Parameters, name: str, accepted: tuple[str, ...]) -> str | None:
    """A parameter that must have one of these values; None if it is missing."""
    value = given.values.get(name)
    if value is None or value == "":
        return None
    chosen = str(int(value) if isinstance(value, bool) else value).lower()
    if chosen not in accepted:
        raise KsterError(f"Value for '{name}' not supported. Accepted: {', '.join(accepted)}.")
    return chosen


def voice_wanted(given: Parameters) -> tuple[Voice | None, bool]:
    """What `formality` asks for, and whether it must be met: as with DeepL, `more` and `less` are refused
    for a language without formality. Here a language has it if memories have such segments."""
    wanted = choice(given, "formality", ("default", "more", "less", "prefer_more", "prefer_less"))
    voices: dict[str, Voice] = {"more": "more", "less": "less"}
    return voices.get((wanted or "default").removeprefix("prefer_")), wanted in voices


def require_languages(engine: Engine, source: str | None, target: str) -> None:
    pairs = ", ".join(f"{deepl_code(m.source)} → {deepl_code(m.target)}" for m in engine.models)
    if not any(match_rank(target, model.target) for model in engine.models):
        raise KsterError(f"Value for 'target_lang' not supported. Available: {pairs}.")
    if source and not any(match_rank(source, code) for m in engine.models for code in (m.source, m.target)):
        raise KsterError(f"Value for 'source_lang' not supported. Available: {pairs}.")


def deepl_code(code: str) -> str:
    """A source language as DeepL writes it: `EN`."""
    return bcp47(code).split("-")[0].upper()


def _markup(given: Parameters) -> Callable[[str], HtmlText] | None:
    kind = choice(given, "tag_handling", ("html", "xml"))
    ignored = given.listed("ignore_tags")
    if kind == "html":
        return partial(HtmlText, ignored=ignored)
    if kind == "xml":
        return partial(
            XmlFragment,
            ignored=ignored,
            inline=given.listed("non_splitting_tags"),
            paragraphs=given.listed("splitting_tags"),
            by_neighbours=choice(given, "outline_detection", ("0", "1")) != "0",
        )
    return None


def wish_of(engine: Engine, principal: Principal, given: Parameters) -> Wish:
    """`kster_memories`, or the automatic ones, and the glossaries, whose terms are kept."""
    ids = dict.fromkeys(given.listed("glossary_id") + given.listed("glossary_ids"))
    if ids and given.text("source_lang") is None:
        raise KsterError("Use of a glossary requires the 'source_lang' parameter to be specified.")
    voice, needed = voice_wanted(given)
    return Wish(
        voice=voice,
        voice_needed=needed,
        memories=given.memories("kster_memories"),
        context=given.text("context"),
        exact_matches=given.flag("kster_exact_matches", default=True),
        glossaries=lambda served: [glossary_part(engine, principal, id, served) for id in ids],
    )


@router.api_route("/languages", methods=["GET", "POST"])
async def languages(given: Given, engine: TheEngine, principal: Reader) -> list[dict[str, Any]]:
    """Languages to translate from or, with `type=target`, to."""
    if choice(given, "type", ("source", "target")) != "target":
        codes = dict.fromkeys(deepl_code(model.source) for model in engine.models)
        return [{"language": code, "name": language_name(code)} for code in codes]
    names: dict[str, str] = {}
    spoken: set[str] = set()
    for model in engine.models:
        code = bcp47(model.target).upper()
        own = VARIANTS.get(code, {code: language_name(model.target)})
        names |= own
        if await asyncio.to_thread(_has_voices, engine, principal, model):
            spoken |= own.keys()
    return [
        {"language": code, "name": name, "supports_formality": code in spoken}
        for code, name in sorted(names.items())
    ]


def _has_voices(engine: Engine, principal: Principal, served: ServedModel) -> bool:
    """Whether an automatic memory has segments that are clearly formal or informal."""
    used = engine.catalogue.automatic(principal, served)
    return any(engine.voices.count(memory, served.target) for _, memory in used)


@router.api_route("/usage", methods=["GET", "POST"])
async def usage(engine: TheEngine, principal: Reader) -> dict[str, Any]:
    """Characters that this server has translated since it was started."""
    return {"character_count": engine.metrics.characters_translated, "character_limit": NO_LIMIT}
