"""What every route needs: the engine, and who is asking."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from kster.server.auth.access import Principal, identified
from kster.server.errors import ApiError
from kster.server.work.engine import Engine


def engine_of(request: Request) -> Engine:
    return request.app.state.engine


def principal_of(request: Request) -> Principal:
    """By the key in headers or query; for keys in a body see `libretranslate.principal_by`."""
    who = identified(request)
    if isinstance(who, ApiError):
        raise who
    return who


def writer_of(request: Request) -> Principal:
    principal = principal_of(request)
    principal.require("write")
    return principal


TheEngine = Annotated[Engine, Depends(engine_of)]
Reader = Annotated[Principal, Depends(principal_of)]
Writer = Annotated[Principal, Depends(writer_of)]
