"""Connections: how many there may be at once, and how long a client may take to send its request.

uvicorn closes connections that are idle after a request, and waits for ever for the first one. A client that
opens connections and says nothing would use up the descriptors the server needs for its memories.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

log = logging.getLogger("kster.server")

FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 5\r\n"
    b'connection: close\r\n\r\n{"error": "too many connections; try again in a few seconds"}'
)
SHARE = 2  # connections may take one descriptor in so many; memories and files need the others


class LimitedConnection(H11Protocol):
    """most: how many there may be; header_seconds: how long a client may take for the head of a request."""

    def __init__(self, *arguments: Any, most: int, header_seconds: float, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._most, self._header_seconds = most, header_seconds
        self._waiting_for_headers: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._most:
            log.warning("a connection was refused: there are too many", extra={"most": self._most})
            transport.write(FULL)
            transport.close()
            return
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._headers_are_there()
        elif self._waiting_for_headers is None:  # the beginning of the next request
            self._expect_headers()

    def on_response_complete(self) -> None:
        self._headers_are_there()  # from now on the keep-alive timeout counts
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._headers_are_there()
        super().connection_lost(exc)

    def _expect_headers(self) -> None:
        self._waiting_for_headers = self.loop.call_later(self._header_seconds, self.transport.close)

    def _headers_are_there(self) -> None:
        if self._waiting_for_headers is not None:
            self._waiting_for_headers.cancel()
            self._waiting_for_headers = None


def connection_limit(wanted: int) -> int:
    """As many as wanted, if there are descriptors for them; first raises this process's limit on those."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return wanted if hard == resource.RLIM_INFINITY else max(1, min(wanted, hard // SHARE))
