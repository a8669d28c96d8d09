"""What people see: the page at `/`, the API's documentation at `/docs`, and their files at `/page`.

Everything comes from this server, and the policy tells browsers to refuse anything else.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FILES = Path(__file__).parent / "static"
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'self'; object-src 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # asked for again each time, and answered with 304 while it is the same
}


class _Files(StaticFiles):
    """Files of the page, which belong to this version of the server."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(HEADERS)
        return response


def add_pages(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(FILES / "index.html", headers=HEADERS)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return FileResponse(FILES / "docs.html", headers=HEADERS)

    app.mount("/page", _Files(directory=FILES), name="page")
