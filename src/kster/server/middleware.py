"""What happens to every request before and after its route: an id, limits, a log line, a measurement."""

from __future__ import annotations

import asyncio
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

from kster.server.auth.access import Principal, identified, token_of
from kster.server.errors import ApiError, TooLarge, TooMany, bug_response, error_response
from kster.server.settings import ServerSettings

log = logging.getLogger("kster.server.auth.access")

UPLOADS = re.compile(
    r"^/(?:translate_file|v2/document|v1/(?:memories|terms)/\d+/import|mmt/memories/[^/]+/(?:content|glossary))$"
)
TRANSLATING = re.compile(
    r"^/(?:v1/|v2/|mmt/)?translate$|^/translate_file$"
)  # of no use to a client that has gone
TRANSLATED = ("/translate_file", "/v2/document")  # uploads that change nothing here
METHODS = (b"GET", b"POST", b"PUT", b"DELETE")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
LOOPBACK_NAMES = {"localhost", "127.0.0.1", "::1"}
MAX_CLIENTS = 10_000  # whose buckets are remembered
UNLIMITED = re.compile(r"^/(?:health|live|ready|metrics|docs|page/.*)?$")  # the page has many small files
KEYS_IN_HEADERS = re.compile(r"^/(?:v1|v2|mmt)/")  # LibreTranslate's clients have theirs in the body
CHOSEN = re.compile(r"^/memories/(none|[\d,]+)(/.*)$")  # before any path: which memories to use
WITH_BODY = ("POST", "PUT", "PATCH")
GONE = 499  # in the log, of a request whose client did not wait for the answer
BODY_SECONDS = 30.0  # between two parts of a body


class UnknownHost(ApiError):
    status, kind = 403, "HostException"


class OtherOrigin(ApiError):
    status, kind = 403, "OriginException"


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


class RequestMiddleware:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self.app, self.settings = app, settings
        self._buckets = Buckets(settings.rate) if settings.rate else None
        self._hosts = LOOPBACK_NAMES | {settings.host.lower(), *(h.lower() for h in settings.allowed_hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if chosen := CHOSEN.match(scope["path"]):
            scope = {**scope, "path": chosen[2], "raw_path": chosen[2].encode()}
            scope["state"] = {**scope.get("state", {}), "memories": chosen[1]}
        request = Request(scope)
        id = secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = id
        began, status, answered, gone = time.monotonic(), 0, False, False
        complete = asyncio.Event()  # its body has arrived

        async def answer(message: Message) -> None:
            nonlocal status, answered
            answered = message["type"] == "http.response.body" and not message.get("more_body", False)
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    (b"x-request-id", id.encode()),
                    (b"x-content-type-options", b"nosniff"),
                ]
            await send(message)

        async def stop_when_gone(work: asyncio.Task[None]) -> None:
            nonlocal gone
            await complete.wait()
            while (await receive())["type"] != "http.disconnect":
                pass
            if not answered:
                gone = work.cancel()

        watching: asyncio.Task[None] | None = None
        if TRANSLATING.match(request.url.path) and (work := asyncio.current_task()) is not None:
            watching = asyncio.create_task(stop_when_gone(work))
        in_progress = request.app.state.engine.metrics.in_progress
        in_progress.inc()
        try:
            self._require_own_pages(request)
            await self._require_key(request)
            await self.app(_as_meant(scope), self._limited(request, receive, complete), answer)
        except ApiError as refusal:  # from the two checks above; the application answers those of routes
            told = error_response(request, refusal.status, str(refusal), refusal.kind, refusal.headers)
            await told(scope, receive, answer)
        except asyncio.CancelledError:  # the client has gone, or the server stops and has waited long enough
            if gone:
                status = GONE
            elif status == 0:
                message = "the server is being stopped; nothing was kept; try again when it is back"
                await error_response(request, 503, message, "StoppedException")(scope, receive, answer)
        except Exception as error:
            response = bug_response(request, error)
            if status == 0:
                await response(scope, receive, answer)
        finally:
            if watching is not None:
                watching.cancel()
            in_progress.dec()
            self._note(request, status, time.monotonic() - began)

    # Before ------------------------------------------------------------------------------------------

    def _require_own_pages(self, request: Request) -> None:
        """Raises ApiError for requests that the pages of other sites make a browser send."""
        if self.settings.on_loopback and not self.settings.keys_required:
            host = _netloc(f"//{request.headers.get('host', '')}").hostname or ""
            if host not in self._hosts:
                # The domain of some web page was made to point here, so that its scripts could reach us.
                raise UnknownHost(f"this server is not {host!r}; allow the name with `allowed_hosts`")
        if request.method not in SAFE_METHODS and not self._same_origin(request):
            raise OtherOrigin("requests from other sites' pages are not accepted")

    async def _require_key(self, request: Request) -> None:
        """Before the body is read: check who is asking, and whether they may send so much so often."""
        path, upload = request.url.path, UPLOADS.match(request.url.path)
        if UNLIMITED.match(path):
            return
        who = await asyncio.to_thread(identified, request)
        if self._buckets is not None and (seconds := self._buckets.wait(_client(request, who))) > 0:
            refusal = TooMany(f"slow down: try again in {seconds:.1f} s")
            refusal.headers = {"Retry-After": str(math.ceil(seconds))}
            raise refusal
        if request.method in WITH_BODY and (KEYS_IN_HEADERS.match(path) or (upload and token_of(request))):
            if isinstance(who, ApiError):
                raise who
            if upload and path not in TRANSLATED:
                who.require("write")
        if int(_digits(request.headers.get("content-length"))) > self._limit(request):
            raise TooLarge(self._too_large(request))

    def _same_origin(self, request: Request) -> bool:
        origin = request.headers.get("origin")
        if origin is None or origin in self.settings.cors_origins:
            return True
        return _netloc(origin).netloc == request.headers.get("host")

    def _limit(self, request: Request) -> int:
        """How many bytes its body may have. For a large one the key must be known before it is read."""
        upload = UPLOADS.match(request.url.path) is not None
        if not upload or isinstance(request.scope["state"].get("principal"), ApiError):
            return int(self.settings.max_body_mb * 1_000_000)
        return int(self.settings.max_upload_mb * 1_000_000) + 100_000  # the form around the file

    def _too_large(self, request: Request) -> str:
        limit = f"the request has more than {self._limit(request) / 1_000_000:.4g} MB"
        if UPLOADS.match(request.url.path) and isinstance(request.scope["state"]["principal"], ApiError):
            return f"{limit}; send the key of a large file as `Authorization: Bearer KEY`; nothing was done"
        return f"{limit}; nothing was done"

    def _limited(self, request: Request, receive: Receive, complete: asyncio.Event) -> Receive:
        """Counts what arrives: a length may be missing or wrong."""
        limit, seen = self._limit(request), 0

        async def counted() -> Message:
            nonlocal seen
            try:
                async with asyncio.timeout(None if complete.is_set() else BODY_SECONDS):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, f"nothing more came for {BODY_SECONDS:.0f} s") from None
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if not message.get("more_body", False):
                    complete.set()
                if seen > limit:
                    raise HTTPException(413, self._too_large(request))
            return message

        return counted

    # After -------------------------------------------------------------------------------------------

    def _note(self, request: Request, status: int, seconds: float) -> None:
        route = getattr(request.scope.get("route"), "path", "other")
        metrics = request.app.state.engine.metrics
        metrics.requests.labels(route, str(status)).inc()
        metrics.seconds.labels(route).observe(seconds)
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
    """ModernMT's client sends everything with POST and names the real method in a header."""
    if scope["method"] == "POST" and scope["path"].startswith("/mmt/"):
        for name, value in scope["headers"]:
            if name == b"x-http-method-override" and value.upper() in METHODS:
                scope["method"] = value.upper().decode()
    return scope


def _client(request: Request, who: Principal | ApiError) -> str:
    """Whose requests are counted together: a key's, or an address's. Unknown keys are counted by address, or
    a client could make up a key for each request."""
    if isinstance(who, Principal) and who.key_id is not None:
        return f"key {who.key_id}"
    return request.client.host if request.client else ""


def _netloc(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:  # such as a bracket that is never closed
        return urlsplit("")


def _digits(text: str | None) -> str:
    return text if text and text.isascii() and text.isdigit() else "0"
