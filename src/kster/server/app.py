"""The application, put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import anyio.to_thread
from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from kster.server import errors
from kster.server.api import (
    deepl,
    deepl_documents,
    deepl_glossaries,
    file_translation,
    libretranslate,
    modernmt,
    modernmt_glossaries,
    server_state,
    v1_jobs,
    v1_memories,
    v1_segments,
    v1_terms,
    v1_translate,
)
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
        v1_segments,
        v1_terms,
        v1_jobs,
        server_state,
    )
    for api in apis:
        app.include_router(api.router)
    add_pages(app)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=settings.cors_origins, allow_methods=["*"], allow_headers=["*"]
        )
    app.add_middleware(RequestMiddleware, settings=settings)
    return app
