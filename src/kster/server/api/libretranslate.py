"""LibreTranslate's API at `/`, as its public clients speak it, and Apertium's `GET /translate` for OmegaT."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse

from kster.documents.html import HtmlText
from kster.documents.kinds import SUFFIXES
from kster.documents.translating import PlainTexts
from kster.errors import KsterError
from kster.formats import Pair
from kster.server.api.context import TheEngine
from kster.server.api.parameters import Parameters
from kster.server.auth.access import Principal, Unauthorised, identify, token_of
from kster.server.work.engine import Engine
from kster.server.work.served_model import ServedModel
from kster.text.languages import language_name, match_rank
from kster.text.placeholders import Placeholders, can_be_mended, mended, with_marks

router = APIRouter(tags=["LibreTranslate"])

MAX_ALTERNATIVES = 8
# LibreTranslate's documentation of parameters, for readers of /docs; they may also come as form or query.
_BODY = {
    "requestBody": {
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "q": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
                        "source": {"type": "string", "example": "en"},
                        "target": {"type": "string", "example": "de"},
                        "format": {"type": "string", "enum": ["text", "html"]},
                        "alternatives": {"type": "integer"},
                        "api_key": {"type": "string"},
                    },
                }
            }
        }
    }
}


def principal_by(engine: Engine, request: Request, parameters: Parameters) -> Principal:
    """Who asks: LibreTranslate's clients send their key among the parameters."""
    token = parameters.text("api_key") or token_of(request)
    try:
        return identify(engine.keys, token, required=engine.settings.keys_required)
    except Unauthorised as error:
        raise KsterError(str(error)) from None  # 400, as LibreTranslate answers


@router.post("/translate", openapi_extra=_BODY)
async def translate(request: Request, engine: TheEngine) -> dict[str, Any]:
    """Translate a text or a list of them with the memories that serve automatically."""
    parameters = await Parameters.of(request)
    principal = principal_by(engine, request, parameters)
    q = parameters.texts("q")
    source, target = parameters.require("source"), parameters.require("target")
    format = parameters.text("format") or "text"
    if format not in ("text", "html"):
        raise KsterError(f"{format} format is not supported; accepted: text, html")
    alternatives = parameters.number("alternatives", 0, MAX_ALTERNATIVES)
    texts = [q] if isinstance(q, str) else q
    engine.require_size(texts)
    detected = [engine.detector.best(text) for text in texts] if source == "auto" else None
    sources = [code for code, _ in detected] if detected else [source] * len(texts)
    answers = await _translate_all(engine, principal, texts, sources, target, format, alternatives)
    many = not isinstance(q, str)
    answer: dict[str, Any] = {"translatedText": [text for text, _ in answers] if many else answers[0][0]}
    if detected is not None:
        found = [{"confidence": confidence, "language": code} for code, confidence in detected]
        answer["detectedLanguage"] = found if many else found[0]
    if alternatives:
        answer["alternatives"] = [others for _, others in answers] if many else answers[0][1]
    return answer


async def _translate_all(
    engine: Engine,
    principal: Principal,
    texts: list[str],
    sources: list[str],
    target: str,
    format: str,
    alternatives: int,
) -> list[tuple[str, list[str]]]:
    """For each text its translation and the alternatives; a text already in the target stays as it is."""
    answers: list[tuple[str, list[str]]] = [(text, []) for text in texts]
    for source in dict.fromkeys(sources):
        if is_target_already(engine, source, target):
            continue
        served = engine.model_for(source, target)
        mine = [i for i, own in enumerate(sources) if own == source]
        chosen = [texts[i] for i in mine]
        done = await translate_texts(engine, principal, served, chosen, format, alternatives)
        for i, answer in zip(mine, done, strict=True):
            answers[i] = answer
    return answers


def is_target_already(engine: Engine, source: str, target: str) -> bool:
    """Whether there is nothing to translate, as no model is there for two variants of one language."""
    return bool(match_rank(source, target)) and not any(
        match_rank(source, m.source) and match_rank(target, m.target) for m in engine.models
    )


async def translate_texts(
    engine: Engine,
    principal: Principal,
    served: ServedModel,
    texts: list[str],
    format: str = "text",
    alternatives: int = 0,
    memories: list[Any] | None = None,
) -> list[tuple[str, list[str]]]:
    """For each text or HTML its translation and alternatives, with the given or the automatic memories."""
    if memories is None:
        memories = [part for _, part in engine.catalogue.automatic(principal, served)]
    if format == "text":
        kept = [Placeholders(text) for text in texts]
        done = await engine.translate(served, [k.text for k in kept], memories, n_best=1 + alternatives)
        sent, back = [k.text for k in kept], [d.text for d in done]
        best = await keeping_placeholders(engine, served, sent, back, memories)
        return [
            (k.restore(text), [k.restore(other) for other in result.alternatives])
            for k, text, result in zip(kept, best, done, strict=True)
        ]
    documents = [HtmlText(text) for text in texts]
    plain = [PlainTexts(document.units) for document in documents]
    first = await _in_lists(engine, served, [own.pieces for own in plain], memories)
    again = [own.again(done) for own, done in zip(plain, first, strict=True)]
    more = await _in_lists(engine, served, again, memories)
    return [
        (document.written(own.results(done, rest)), [])
        for document, own, done, rest in zip(documents, plain, first, more, strict=True)
    ]


async def keeping_placeholders(
    engine: Engine,
    served: ServedModel,
    texts: list[str],
    done: list[str],
    memories: list[Any],
    patience: float = 1.0,
) -> list[str]:
    """Translations, made again for texts whose placeholders and tags were not kept."""
    lost = [i for i, (text, own) in enumerate(zip(texts, done, strict=True)) if can_be_mended(text, own)]
    if not lost:
        return done
    marked = [with_marks(texts[i]).text for i in lost]
    second = await engine.translate(served, marked, memories, patience=patience)
    better = {i: mended(texts[i], done[i], new.text) for i, new in zip(lost, second, strict=True)}
    return [better.get(i, own) for i, own in enumerate(done)]


async def _in_lists(
    engine: Engine, served: ServedModel, lists: list[list[str]], memories: list[Any]
) -> list[list[str]]:
    """The translations of several lists of texts, made together."""
    texts = [text for texts in lists for text in texts]
    results = await engine.translate(served, texts, memories)
    done = iter(await keeping_placeholders(engine, served, texts, [r.text for r in results], memories))
    return [[next(done) for _ in texts] for texts in lists]


@router.get("/translate", tags=["Apertium"])
async def translate_for_omegat(request: Request, engine: TheEngine) -> JSONResponse:
    """Apertium's way, which OmegaT speaks: `?q=…&langpair=en|de&key=…`."""
    parameters = await Parameters.of(request)
    if "langpair" not in parameters.values:
        raise KsterError("send LibreTranslate's parameters with POST; GET takes `q` and `langpair=en|de`")
    principal = principal_by(engine, request, parameters)
    q = parameters.texts("q")
    texts = [q] if isinstance(q, str) else q
    engine.require_size(texts)
    source, bar, target = parameters.require("langpair").partition("|")
    if not bar:
        raise KsterError("langpair must be two languages with a bar between them, such as en|de")
    format = "html" if parameters.text("format") == "html" else "text"
    answers = await translate_texts(engine, principal, engine.model_for(source, target), texts, format)
    data = [{"translatedText": text} for text, _ in answers]
    return JSONResponse(
        {
            "responseData": data[0] if isinstance(q, str) else [{"responseData": item} for item in data],
            "responseDetails": None,
            "responseStatus": 200,
        }
    )


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
async def detect(request: Request, engine: TheEngine) -> list[dict[str, Any]]:
    """Which of the served languages a text is in, most likely first."""
    parameters = await Parameters.of(request)
    principal_by(engine, request, parameters)
    q = parameters.require("q")
    engine.require_size([q])
    return [
        {"confidence": confidence, "language": code}
        for code, confidence in engine.detector.detect(q)
        if confidence > 0
    ]


@router.post("/suggest", openapi_extra=_BODY)
async def suggest(request: Request, engine: TheEngine) -> dict[str, Any]:
    """A better translation: it is learned at once."""
    parameters = await Parameters.of(request)
    principal = principal_by(engine, request, parameters)
    principal.require("write")
    example = Pair(parameters.require("q"), parameters.require("s"))
    served = engine.model_for(parameters.require("source"), parameters.require("target"))
    memory = engine.catalogue.default(principal, served)
    await engine.teach(memory, served, [example], "suggestion")
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
