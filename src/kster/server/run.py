"""Running the server until it is told to stop."""

from __future__ import annotations

import logging
import signal
from types import FrameType

import uvicorn

from kster.server.app import create_app
from kster.server.database import sole_server
from kster.server.logs import log_as_json
from kster.server.settings import ServerSettings
from kster.server.work.engine import Engine

log = logging.getLogger("kster.server")

PATIENCE = 30  # seconds that requests in progress get to finish after a signal


class _Server(uvicorn.Server):
    """Tells the engine of a signal at once, so that watched jobs let go of their connections."""

    def __init__(self, config: uvicorn.Config, engine: Engine) -> None:
        super().__init__(config)
        self._engine = engine

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._engine.jobs.stopping.set()
        super().handle_exit(sig, frame)


def serve(settings: ServerSettings) -> None:
    """Returns after a graceful shutdown: requests in progress are answered, jobs left for the next start."""
    with sole_server(settings.data):
        _serve(settings)


def _serve(settings: ServerSettings) -> None:
    log_as_json(settings.log_level)
    engine = Engine(settings)
    app = create_app(settings, engine)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=PATIENCE,
    )
    log.info(
        "serving",
        extra={
            "address": f"http://{settings.host}:{settings.port}/",
            "pairs": [model.pair for model in engine.models],
            "keys_required": settings.keys_required,
        },
    )
    # uvicorn hands a signal on when it is done; a server that was told to stop and did has not failed.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    _Server(config, engine).run()
