"""The server's state: what it offers, how busy it is, and whether it takes requests."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from kster.server.api.context import Reader, TheEngine
from kster.text.languages import language_name
from kster.version import __version__

router = APIRouter(tags=["server"])


@router.get("/v1/status")
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


@router.get("/v1/stats")
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


@router.get("/metrics")
def metrics(engine: TheEngine, principal: Reader) -> Response:
    """For Prometheus; characters by key for admins only."""
    text = engine.metrics.text(engine.catalogue.sizes(), with_keys=principal.may("admin"))
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/live")
async def live() -> dict[str, str]:
    """Whether the process answers; restart it if it does not."""
    return {"status": "live"}


@router.get("/ready")
def ready(engine: TheEngine) -> JSONResponse:
    """Whether requests should be sent here: models are loaded, and the server is not being stopped."""
    if engine.jobs.stopping.is_set():
        return JSONResponse({"status": "stopping"}, 503)
    return JSONResponse({"status": "ready", "pairs": [model.pair for model in engine.models]})
