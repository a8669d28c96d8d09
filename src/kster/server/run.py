"""Running the server until it is told to stop."""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import threading
from functools import partial
from types import FrameType

import uvicorn

from kster.errors import KsterError
from kster.server.app import create_app
from kster.server.connections import LimitedConnection, connection_limit
from kster.server.database import sole_server
from kster.server.logs import log_to_stderr
from kster.server.settings import ServerSettings
from kster.server.work.engine import Engine

log = logging.getLogger("kster.server")

LAST_PATIENCE = 15  # seconds after `shutdown_seconds` for what cannot be interrupted, such as reading a file
PRIVATE = 0o077  # files are the server's own: nobody else reads them


class _Server(uvicorn.Server):
    """Tells the engine of a signal at once, so that clients that watch a job are disconnected."""

    def __init__(self, config: uvicorn.Config, engine: Engine) -> None:
        super().__init__(config)
        self._engine = engine

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._engine.jobs.stopping.set()
        end = threading.Timer(self._engine.settings.shutdown_seconds + LAST_PATIENCE, _give_up)
        end.daemon = True
        end.start()
        super().handle_exit(sig, frame)


def serve(settings: ServerSettings) -> None:
    """Returns after a graceful shutdown: requests in progress are answered, jobs left for the next start.

    Raises KsterError if the address cannot be used, before any model is loaded.
    """
    os.umask(PRIVATE)
    with sole_server(settings.data), _bound(settings) as address:
        _serve(settings, address)


def _serve(settings: ServerSettings, address: socket.socket) -> None:
    log_to_stderr(settings.log_level)
    engine = Engine(settings)
    app = create_app(settings, engine)
    most = connection_limit(settings.max_connections)
    connection = partial(LimitedConnection, most=most, header_seconds=settings.header_seconds)
    config = uvicorn.Config(
        app,
        http=connection,  # type: ignore[arg-type]  # called as the class would be
        loop="asyncio",  # also where another package has brought uvloop: what is tested is what runs
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=math.ceil(settings.shutdown_seconds),
    )
    log.info(
        "serving",
        extra={
            "address": f"http://{settings.host}:{address.getsockname()[1]}/",
            "pairs": [model.pair for model in engine.models],
            "keys_required": settings.keys_required,
        },
    )
    # uvicorn hands a signal on when it is done; a server that was told to stop and did has not failed.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    _Server(config, engine).run([address])
    if not engine.idle:
        _end()


def _bound(settings: ServerSettings) -> socket.socket:
    """A socket bound to the address."""
    address = None
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        address = socket.socket(family, kind, protocol)
        address.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        address.bind(where)
        address.listen()  # two servers that only bind would both succeed
    except OSError as error:
        if address is not None:
            address.close()
        raise KsterError(
            f"{settings.host}:{settings.port} cannot be served ({error.strerror}); choose another with "
            "--port or --host; nothing was started"
        ) from None
    return address


def _give_up() -> None:
    log.warning("ended with work in progress that could not be interrupted")
    _end()


def _end() -> None:
    """What was acknowledged is on disk, and a job that is cut off starts anew with the next server."""
    logging.shutdown()
    os._exit(0)
