"""The application, put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import anyio.to_thread
from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kster.server import errors
from kster.server.api import (
    deepl,
    deepl_documents,
    deepl_glossaries,
    file_translation,
    libretranslate,
    modernmt,
    modernmt_glossaries,
    v1_jobs,
    v1_memories,
    v1_status,
    v1_terms,
    v1_translate,
)
from kster.server.api.context import principal_of
from kster.server.middleware import RequestMiddleware
from kster.server.page.routes import add_pages
from kster.server.settings import ServerSettings
from kster.server.work.engine import Engine
from kster.version import __version__

THREADS = 64


def create_app(settings: ServerSettings, engine: Engine | None = None) -> FastAPI:
    """The server's application. The engine is made here unless given, and closed when the server stops."""
    working = engine or Engine(settings)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        # Writers may wait for each other for a while, and must not keep readers from a thread.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS  # of routes that may wait
        app.state.documents = deepl_documents.Documents()
        yield
        await app.state.documents.close()
        working.close()

    app = FastAPI(
        title="KSTER",
        version=__version__,
        description="Machine translation that adapts to your examples the moment you add them.",
        lifespan=life,
        docs_url=None,  # FastAPI's own pages load scripts from elsewhere
        redoc_url=None,
    )
    app.state.engine = working
    errors.install(app)
    apis = (
        libretranslate,
        file_translation,
        modernmt,
        modernmt_glossaries,
        deepl,
        deepl_documents,
        deepl_glossaries,
        v1_translate,
        v1_memories,
        v1_status,
        v1_terms,
        v1_jobs,
    )
    for api in apis:
        app.include_router(api.router)
    add_pages(app)
    _add_metrics(app)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=settings.cors_origins, allow_methods=["*"], allow_headers=["*"]
        )
    app.add_middleware(RequestMiddleware, settings=settings)
    return app


def _add_metrics(app: FastAPI) -> None:
    @app.get("/metrics", tags=["server"])
    def metrics(request: Request) -> Response:
        """For Prometheus; characters by key for admins only."""
        principal = principal_of(request)
        engine: Engine = request.app.state.engine
        text = engine.metrics.text(engine.catalogue.sizes(), with_keys=principal.may("admin"))
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/live", tags=["server"])
    async def live() -> dict[str, str]:
        """The process answers. If it does not, start it again."""
        return {"status": "live"}

    @app.get("/ready", tags=["server"])
    def ready(request: Request) -> JSONResponse:
        """Whether requests should be sent here: models are loaded, and the server is not being stopped."""
        engine: Engine = request.app.state.engine
        if engine.jobs.stopping.is_set():
            return JSONResponse({"status": "stopping"}, 503)
        return JSONResponse({"status": "ready", "pairs": [model.pair for model in engine.models]})
