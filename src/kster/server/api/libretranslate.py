"""LibreTranslate's API at `/`, as its public clients speak it, and Apertium's `GET /translate` for OmegaT."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request

from kster.documents.html import HtmlText
from kster.documents.kinds import SUFFIXES
from kster.errors import KsterError
from kster.formats import Pair
from kster.server.api.context import TheEngine
from kster.server.api.given_terms import terms_in
from kster.server.api.parameters import Given
from kster.server.api.texts import MAX_ALTERNATIVES, MAX_MATCHES, Wish, translate_from_each, translate_texts
from kster.server.auth.access import Principal, Unauthorised, identify, token_of
from kster.text.languages import language_name

router = APIRouter(tags=["LibreTranslate"])

# LibreTranslate's documentation of parameters, for readers of /docs; they may also come as form or query.
_TEXT: dict[str, Any] = {"type": "string"}
_IDS: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}
_PARAMETERS = {
    "q": {"oneOf": [_TEXT, {"type": "array", "items": _TEXT}]},
    "source": {**_TEXT, "example": "en"},
    "target": {**_TEXT, "example": "de"},
    "format": {**_TEXT, "enum": ["text", "html"]},
    "alternatives": {"type": "integer"},
    "matches": {"type": "integer", "description": "how many fuzzy matches to list"},
    "exact_matches": {
        "type": "boolean",
        "default": True,
        "description": "whether a text that a memory holds as a whole comes back as taught",
    },
    "confidence": {"type": "boolean", "description": "whether to say how likely the translation is right"},
    "memories": {**_IDS, "description": "ids of the memories to use; by default the automatic ones"},
    "terms": {
        "type": "object",
        "additionalProperties": _TEXT,
        "description": "source terms, each with the target it must have",
    },
    "term_bases": {**_IDS, "description": "ids of the term bases to use; by default the automatic ones"},
    "api_key": _TEXT,
}
_SCHEMA = {"type": "object", "properties": _PARAMETERS}
_BODY = {"requestBody": {"content": {"application/json": {"schema": _SCHEMA}}}}


def principal_by(request: Request, parameters: Given, engine: TheEngine) -> Principal:
    """Who is asking: LibreTranslate's clients send their key among the parameters."""
    token = parameters.text("api_key") or token_of(request)
    try:
        return identify(engine.keys, token, required=engine.settings.keys_required)
    except Unauthorised as error:
        raise KsterError(str(error)) from None  # 400, as LibreTranslate answers


Caller = Annotated[Principal, Depends(principal_by)]


@router.post("/translate", openapi_extra=_BODY)
async def translate(parameters: Given, engine: TheEngine, principal: Caller) -> dict[str, Any]:
    """Translate a text or a list of texts with the memories that are named, or else the automatic ones.

    A client that only lets you set an address can name them there: `/memories/1,2/translate`.
    """
    texts = parameters.texts("q")
    source, target = parameters.require("source"), parameters.require("target")
    format = parameters.text("format") or "text"
    if format not in ("text", "html"):
        raise KsterError(f"{format} format is not supported; accepted: text, html")
    alternatives = parameters.number("alternatives", 0, MAX_ALTERNATIVES)
    engine.require_size(texts)
    detected = [engine.detector.best(text) for text in texts] if source == "auto" else None
    sources = [code for code, _ in detected] if detected else [source] * len(texts)
    matches = parameters.number("matches", 0, MAX_MATCHES)
    confidence = parameters.flag("confidence")
    wish = Wish(
        HtmlText if format == "html" else None,
        alternatives,
        matches,
        confidence,
        memories=parameters.memories("memories"),
        exact_matches=parameters.flag("exact_matches", default=True),
        terms=terms_in(parameters.values.get("terms")),
        term_bases=parameters.ids("term_bases") if "term_bases" in parameters.values else None,
    )
    answers = await translate_from_each(engine, principal, texts, sources, target, wish)
    shown = texts.answer
    answer: dict[str, Any] = {"translatedText": shown([own.text for own in answers])}
    if detected is not None:
        found = [{"confidence": confidence, "language": code} for code, confidence in detected]
        answer["detectedLanguage"] = shown(found)
    if alternatives:
        answer["alternatives"] = shown([own.alternatives for own in answers])
    if matches:
        answer["matches"] = shown([own.matches for own in answers])
    if confidence:
        answer["confidence"] = shown([own.confidence for own in answers])
    if any(own.repaired for own in answers):
        answer["repaired"] = shown([own.repaired for own in answers])
    if warnings := list(dict.fromkeys(warning for own in answers for warning in own.warnings)):
        answer["warnings"] = warnings
    return answer


@router.get("/translate", tags=["Apertium"])
async def translate_for_omegat(parameters: Given, engine: TheEngine, principal: Caller) -> dict[str, Any]:
    """Apertium's way, which OmegaT speaks: `?q=…&langpair=en|de&key=…`."""
    if "langpair" not in parameters.values:
        raise KsterError("send LibreTranslate's parameters with POST; GET takes `q` and `langpair=en|de`")
    texts = parameters.texts("q")
    engine.require_size(texts)
    source, bar, target = parameters.require("langpair").partition("|")
    if not bar:
        raise KsterError("langpair must be two languages with a bar between them, such as en|de")
    markup = HtmlText if parameters.text("format") == "html" else None
    wish = Wish(markup, memories=parameters.memories("memories"))
    answers = await translate_texts(engine, principal, engine.model_for(source, target), texts, wish)
    data = [{"translatedText": own.text} for own in answers]
    shown = data[0] if texts.alone else [{"responseData": item} for item in data]
    return {"responseData": shown, "responseDetails": None, "responseStatus": 200}


@router.api_route("/languages", methods=["GET", "POST"])
async def languages(engine: TheEngine) -> list[dict[str, Any]]:
    """Source languages, each with the languages it can be translated to."""
    targets: dict[str, list[str]] = {}
    for model in engine.models:
        targets.setdefault(model.source, []).append(model.target)
        targets.setdefault(model.target, [])
    return [
        {"code": code, "name": language_name(code), "targets": sorted({*others, code})}
        for code, others in targets.items()
    ]


@router.post("/detect", openapi_extra=_BODY)
def detect(parameters: Given, engine: TheEngine, principal: Caller) -> list[dict[str, Any]]:
    """Which of the served languages a text is in, most likely first."""
    q = parameters.require("q")
    engine.require_size([q])
    return [
        {"confidence": confidence, "language": code}
        for code, confidence in engine.detector.detect(q)
        if confidence > 0
    ]


@router.post("/suggest", openapi_extra=_BODY)
def suggest(parameters: Given, engine: TheEngine, principal: Caller) -> dict[str, Any]:
    """Learn a better translation at once."""
    principal.require("write")
    example = Pair(parameters.require("q"), parameters.require("s"))
    served = engine.model_for(parameters.require("source"), parameters.require("target"))
    memory = engine.catalogue.default(principal, served)
    engine.teach(memory, served, [example], "suggestion", author=principal.name)
    return {"success": True}


@router.get("/frontend/settings")
async def frontend_settings(engine: TheEngine) -> dict[str, Any]:
    first = engine.models[0]
    settings = engine.settings
    return {
        "charLimit": settings.max_characters,
        "frontendTimeout": 500,
        "apiKeys": settings.keys_required,
        "keyRequired": settings.keys_required,
        "suggestions": True,
        "filesTranslation": True,
        "supportedFilesFormat": list(SUFFIXES),
        "language": {
            "source": {"code": first.source, "name": language_name(first.source)},
            "target": {"code": first.target, "name": language_name(first.target)},
        },
    }


@router.get("/health")
async def health() -> dict[str, str]:
    return {"status": "ok"}
