"""/v1/translate: with provenance, and beside what the base model alone would have said; /v1/status."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from kster.errors import KsterError
from kster.memory import Memory
from kster.server.api.context import Reader, TheEngine
from kster.server.api.given_terms import GivenTerm
from kster.server.api.provenance import mark_changes, plain_words, words_of
from kster.server.api.texts import MAX_ALTERNATIVES, MAX_MATCHES, match_json
from kster.server.auth.access import Principal
from kster.server.work.catalogue import ServerMemory
from kster.server.work.engine import Engine
from kster.server.work.served_model import ServedModel
from kster.text.languages import language_name
from kster.translation import Translation
from kster.version import __version__

router = APIRouter(prefix="/v1", tags=["translate"])


class TranslateRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str | list[str]
    source: str = Field(description="Language code, or `auto`.")
    target: str
    memories: list[int] | None = Field(
        None, description="Ids; left out: those that serve automatically; []: the base model alone."
    )
    method: Literal["base", "knn", "kster"] | None = None
    compare: bool = Field(False, description="Also the base model's translation, with changes marked.")
    explain: bool = Field(False, description="For every word who decided it and which examples spoke.")
    alternatives: int = Field(0, ge=0, le=MAX_ALTERNATIVES)
    terms: list[GivenTerm] = Field(default_factory=list, description="Kept in the translation, in any form.")
    matches: int = Field(0, ge=0, le=MAX_MATCHES, description="How many fuzzy matches to name, best first.")


@router.post("/translate")
async def translate(wanted: TranslateRequest, engine: TheEngine, principal: Reader) -> dict[str, Any]:
    texts = [wanted.text] if isinstance(wanted.text, str) else wanted.text
    engine.require_size(texts)
    detected = None
    source = wanted.source
    if source == "auto":
        source, confidence = engine.detector.best("\n".join(texts))
        detected = {"language": source, "confidence": confidence}
    served = engine.model_for(source, wanted.target)
    used = await asyncio.to_thread(chosen_memories, engine, principal, served, wanted.memories)
    if not used and wanted.method in ("knn", "kster") and wanted.memories:
        raise KsterError(f"none of these memories has examples for {served.pair}")
    method = (wanted.method or "kster") if used else "base"
    parts = [part for _, part in used]
    adapted = engine.translate(
        served,
        texts,
        parts,
        method=method,
        n_best=1 + wanted.alternatives,
        explain=wanted.explain,
        terms=[given.term() for given in wanted.terms],
    )
    if wanted.compare and method != "base":
        results, base = await asyncio.gather(
            adapted, engine.translate(served, texts, [], method="base", explain=wanted.explain)
        )
    else:
        results = await adapted
        base = results if wanted.compare else []
    found = await engine.matches(texts, parts, wanted.matches)
    homes = {
        str(part.directory): {"id": memory.id, "name": memory.name, "pair": served.pair}
        for memory, part in used
    }
    end = served.model.token_text(served.model.eos_id)
    return {
        "source": served.source,
        "target": served.target,
        "pair": served.pair,
        "detected": detected,
        "method": method,
        "smoother": await asyncio.to_thread(_smoother, served, method, parts),
        "memories": list(homes.values()),
        "warnings": engine.catalogue.warnings(principal, served) if wanted.memories is None else [],
        "translations": [
            _translation_json(result, base[i] if base else None, homes, end if wanted.explain else None)
            | {"matches": [match_json(texts[i], match, homes.get(match.memory)) for match in found[i]]}
            for i, result in enumerate(results)
        ],
    }


def chosen_memories(
    engine: Engine, principal: Principal, served: ServedModel, ids: list[int] | None
) -> list[tuple[ServerMemory, Memory]]:
    """The memories to use: those named that have examples for this pair, or, if none is, the automatic."""
    if ids is None:
        return engine.catalogue.automatic(principal, served)
    named = [engine.catalogue.get(principal, id) for id in dict.fromkeys(ids)]
    return engine.catalogue.parts(named, served)


def _translation_json(
    result: Translation, base: Translation | None, homes: dict[str, dict[str, Any]], end: str | None
) -> dict[str, Any]:
    """end: the end-of-sentence token, where the translations are explained."""
    answer: dict[str, Any] = {
        "source": result.source,
        "text": result.text,
        "score": result.score,
        "alternatives": list(result.alternatives),
        "repaired": result.repaired,
    }
    if end is not None:
        answer["words"] = words_of(result, homes, end)
    if base is not None:
        words = words_of(base, homes, end) if end is not None else plain_words(base.text)
        answer.setdefault("words", plain_words(result.text))
        mark_changes(words, answer["words"])
        answer["base"] = {"text": base.text, "score": base.score, "words": words}
    return answer


def _smoother(served: ServedModel, method: str, parts: list[Memory]) -> str | None:
    """Where the smoother comes from: "memory" (fitted), "model", or "default"."""
    from kster.memory import MemoryGroup

    if method == "base":
        return None
    memory = parts[0] if len(parts) == 1 else MemoryGroup(parts)
    resolved = served.translator.resolve("knn" if method == "knn" else "kster", memory)
    return resolved.origin if resolved is not None else None


@router.get("/status", tags=["server"])
def status(engine: TheEngine, principal: Reader) -> dict[str, Any]:
    """What there is to work with: language pairs, limits, and what this key may do."""
    settings = engine.settings
    return {
        "version": __version__,
        "scope": principal.scope,
        "keys_required": settings.keys_required,
        "pairs": [
            {
                "pair": model.pair,
                "source": model.source,
                "target": model.target,
                "source_name": language_name(model.source),
                "target_name": language_name(model.target),
                "model": model.name,
            }
            for model in engine.models
        ],
        "limits": {
            "characters": settings.max_characters,
            "texts": settings.max_texts,
            "upload_mb": settings.max_upload_mb,
            "requests_per_minute": settings.rate or None,
        },
    }


@router.get("/stats", tags=["server"])
def stats(engine: TheEngine, principal: Reader) -> dict[str, Any]:
    """Sizes of what this key may see, and how busy the server is."""
    visible = engine.catalogue.visible(principal)
    parts = [part for memory in visible for _, part in engine.catalogue.pairs(memory)]
    return {
        "memories": len(visible),
        "segments": sum(part.segment_count() for part in parts),
        "entries": sum(part.entry_count for part in parts),
        "waiting_texts": sum(model.batcher.waiting for model in engine.models),
    }
