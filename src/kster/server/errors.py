"""What a client is told when something goes wrong, in the words of the API it speaks."""

from __future__ import annotations

import errno
import logging
import sqlite3
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from kster.errors import KsterError

log = logging.getLogger("kster.server")

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# SQLite says FULL where the system says ENOSPC, and that writing failed where it says anything else.
SQLITE_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}


class ApiError(KsterError):
    """A mistake of the client with a status of its own."""

    status: int = 400
    kind: str = "BadRequestException"  # as ModernMT's clients know errors
    headers: dict[str, str] | None = None


class TooLarge(ApiError):
    status, kind = 413, "PayloadTooLargeException"


class TooMany(ApiError):
    status, kind = 429, "TooManyRequestsException"


class TooSlow(ApiError):
    status, kind = 504, "TimeoutException"


def is_disk_full(error: BaseException | None) -> bool:
    """Whether an error, or one that caused it, says that the disk is full."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            return True
        if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) in SQLITE_NO_ROOM:
            return True
        error = error.__cause__ or error.__context__
    return False


def error_response(
    request: Request, status: int, message: str, kind: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    message = message.encode("utf-8", "replace").decode()  # it may quote half characters
    content: dict[str, Any] = {"error": message}
    if request.scope["path"].startswith("/mmt"):
        content = {"status": status, "error": {"type": kind, "message": message}}
    elif request.scope["path"].startswith("/v2/"):
        content = {"message": message}
        status = 403 if status == 401 else status  # DeepL's clients know no other
    if status >= 500 and (id := request.scope.get("state", {}).get("request_id")):
        content["request_id"] = id
    return JSONResponse(content, status, headers)


def install(app: FastAPI) -> None:
    """Answers for mistakes; `bug_response` is for bugs."""

    @app.exception_handler(KsterError)
    async def mistaken(request: Request, error: KsterError) -> JSONResponse:
        if is_disk_full(error):
            return _no_room(request)
        told = error if isinstance(error, ApiError) else ApiError
        message = request.app.state.engine.catalogue.forget_paths(str(error))
        return error_response(request, told.status, message, told.kind, told.headers)

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        problems = "; ".join(_problem(problem) for problem in error.errors()[:5])
        return error_response(request, 400, f"malformed request: {problems}", "BadRequestException")

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers) if error.headers else None
        return error_response(request, error.status_code, str(error.detail), "HttpException", headers)

    @app.exception_handler(ClientDisconnect)
    async def gone(request: Request, _: ClientDisconnect) -> JSONResponse:
        return error_response(request, 400, "the request ended too early", "BadRequestException")


def bug_response(request: Request, error: Exception) -> JSONResponse:
    """For everything else: the log says what happened, the client learns by which id to find it there."""
    if is_disk_full(error):
        return _no_room(request)
    id = request.scope.get("state", {}).get("request_id")
    log.error("internal error", exc_info=error, extra={"request_id": id})
    return error_response(request, 500, "internal error", "InternalException")


def _no_room(request: Request) -> JSONResponse:
    log.error("the disk is full")
    message = "the server's disk is full; nothing was changed; try again when there is room"
    return error_response(request, 507, message, "InsufficientStorageException")


def _problem(problem: Any) -> str:
    where = ".".join(str(part) for part in problem["loc"] if part not in ("body", "query", "path"))
    return f"{where}: {problem['msg']}" if where else str(problem["msg"])
