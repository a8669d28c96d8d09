"""What happens to every request before and after its route: an id, limits, a log line, a measurement."""

from __future__ import annotations

import logging
import math
import re
import secrets
import time
from collections import OrderedDict
from urllib.parse import SplitResult, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kster.server.auth.access import token_of
from kster.server.errors import bug_response, error_response
from kster.server.settings import ServerSettings

log = logging.getLogger("kster.server.auth.access")

Refusal = tuple[int, str, str] | tuple[int, str, str, dict[str, str]]  # status, message, kind, headers
UPLOADS = re.compile(r"^/(?:translate_file|v1/memories/\d+/import|mmt/memories/[^/]+/(?:content|glossary))$")
METHODS = (b"GET", b"POST", b"PUT", b"DELETE")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
LOOPBACK_NAMES = {"localhost", "127.0.0.1", "::1"}
MAX_CLIENTS = 10_000  # whose buckets are remembered
UNLIMITED = re.compile(r"^/(?:health|metrics|docs|page/.*)?$")  # the page has many small files


class Buckets:
    """A bucket of tokens for each client: full at first, refilled steadily, one taken a request."""

    def __init__(self, per_minute: int) -> None:
        self._rate, self._size = per_minute / 60.0, max(1.0, per_minute / 4)
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str) -> float:
        """0 when the request may pass, else the seconds after which it may."""
        now = time.monotonic()
        level, then = self._levels.pop(client, (self._size, now))
        level = min(self._size, level + (now - then) * self._rate)
        allowed = level >= 1.0
        self._levels[client] = (level - 1.0 if allowed else level, now)
        if len(self._levels) > MAX_CLIENTS:
            self._levels.popitem(last=False)
        return 0.0 if allowed else (1.0 - level) / self._rate


class Gate:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self.app, self.settings = app, settings
        self._buckets = Buckets(settings.rate) if settings.rate else None
        self._hosts = LOOPBACK_NAMES | {settings.host.lower(), *(h.lower() for h in settings.allowed_hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        id = secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = id
        began, status = time.monotonic(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    (b"x-request-id", id.encode()),
                    (b"x-content-type-options", b"nosniff"),
                ]
            await send(message)

        try:
            if (refusal := self._refusal(request)) is not None:
                await error_response(request, *refusal)(scope, receive, answer)
            else:
                await self.app(_as_meant(scope), self._limited(request, receive), answer)
        except Exception as error:
            response = bug_response(request, error)
            if status == 0:
                await response(scope, receive, answer)
        finally:
            self._note(request, status, time.monotonic() - began)

    # Before ------------------------------------------------------------------------------------------

    def _refusal(self, request: Request) -> Refusal | None:
        """For a request that goes no further."""
        if self.settings.on_loopback and not self.settings.keys_required:
            host = _netloc(f"//{request.headers.get('host', '')}").hostname or ""
            if host not in self._hosts:
                # Some page's domain that was made to point here: its scripts have no business with us.
                return (
                    403,
                    f"this server is not {host!r}; allow the name with `allowed_hosts`",
                    "HostException",
                )
        if request.method not in SAFE_METHODS and not self._same_origin(request):
            return 403, "requests from other sites' pages are not accepted", "OriginException"
        if int(_digits(request.headers.get("content-length"))) > self._limit(request):
            return 413, self._too_large(request), "PayloadTooLargeException"
        buckets = None if UNLIMITED.match(request.url.path) else self._buckets
        if buckets is not None and (seconds := buckets.wait(_client(request))) > 0:
            headers = {"Retry-After": str(math.ceil(seconds))}
            return 429, f"slow down: try again in {seconds:.1f} s", "TooManyRequestsException", headers
        return None

    def _same_origin(self, request: Request) -> bool:
        origin = request.headers.get("origin")
        if origin is None or origin in self.settings.cors_origins:
            return True
        return _netloc(origin).netloc == request.headers.get("host")

    def _limit(self, request: Request) -> int:
        upload = UPLOADS.match(request.url.path) is not None
        megabytes = self.settings.max_upload_mb if upload else self.settings.max_body_mb
        return int(megabytes * 1_000_000) + (100_000 if upload else 0)  # the form around the file

    def _too_large(self, request: Request) -> str:
        return f"the request has more than {self._limit(request) / 1_000_000:.4g} MB; nothing was done"

    def _limited(self, request: Request, receive: Receive) -> Receive:
        """Counts what arrives: a length may be missing or wrong."""
        limit, seen = self._limit(request), 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > limit:
                    raise HTTPException(413, self._too_large(request))
            return message

        return counted

    # After -------------------------------------------------------------------------------------------

    def _note(self, request: Request, status: int, seconds: float) -> None:
        route = getattr(request.scope.get("route"), "path", "other")
        engine = getattr(request.app.state, "engine", None) if "app" in request.scope else None
        if engine is not None:
            engine.metrics.requests.labels(route, str(status)).inc()
            engine.metrics.seconds.labels(route).observe(seconds)
        log.info(
            "request",
            extra={
                "request_id": request.scope["state"]["request_id"],
                "method": request.method,
                "path": request.url.path,  # without the query, which may hold a key
                "status": status,
                "ms": round(1000 * seconds, 1),
                "client": request.client.host if request.client else None,
            },
        )


def _as_meant(scope: Scope) -> Scope:
    """ModernMT's client sends everything with POST and says in a header what it means."""
    if scope["method"] == "POST" and scope["path"].startswith("/mmt/"):
        for name, value in scope["headers"]:
            if name == b"x-http-method-override" and value.upper() in METHODS:
                scope["method"] = value.upper().decode()
    return scope


def _client(request: Request) -> str:
    """Whose requests are counted together: a key's, or an address'. A key that is none counts for nothing,
    or a client could have a full bucket for each that it makes up."""
    if (token := token_of(request)) is not None:
        key = request.app.state.engine.keys.find(token)
        if key is not None:
            return f"key {key.id}"
    return request.client.host if request.client else ""


def _netloc(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:  # such as a bracket that is never closed
        return urlsplit("")


def _digits(text: str | None) -> str:
    return text if text and text.isascii() and text.isdigit() else "0"
