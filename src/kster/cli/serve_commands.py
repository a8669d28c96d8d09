"""`kster serve`: translation over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kster.cli.options import Memories
from kster.errors import KsterError
from kster.extras import require_extra

Models = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="MODEL", help="A model; repeat for more language pairs."),
]


def serve(
    host: Annotated[
        str | None, typer.Option(help="Anything but loopback needs API keys.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[int | None, typer.Option(show_default="8017")] = None,
    model: Models = None,
    memory: Memories = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Memories made through the API, keys, jobs.", show_default="kster-data"
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings as YAML; KSTER_* variables override it.")
    ] = None,
    device: Annotated[str | None, typer.Option(metavar="DEVICE", show_default="auto")] = None,
    precision: Annotated[str | None, typer.Option(metavar="PRECISION", show_default="auto")] = None,
    ray: Annotated[
        bool, typer.Option("--ray", help="Serve from the Ray cluster that `kster cluster up` started.")
    ] = False,
    ray_address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve from the Ray cluster at this address.")
    ] = None,
    replicas: Annotated[
        int, typer.Option(min=1, max=256, help="How many servers share the requests, with --ray.")
    ] = 1,
    max_replicas: Annotated[
        int | None,
        typer.Option(
            min=1, max=256, help="Start up to so many while many requests wait.", show_default="--replicas"
        ),
    ] = None,
) -> None:
    """Serve translation over HTTP, with a page for people at /.

    The APIs are LibreTranslate's at /, ModernMT's at /mmt, DeepL's at /v2 and KSTER's own at /v1. Memories
    named here serve every client; the model of a memory need not be named.
    """
    require_extra("`kster serve`", "server")
    from kster.server.settings import ServerSettings, read_settings

    given = {"host": host, "port": port, "models": model, "memories": memory, "data": data}

    def read() -> ServerSettings:
        return read_settings(config, {**given, "device": device, "precision": precision})

    settings = read()
    if ray or ray_address:
        require_extra("`kster serve --ray`", "ray")
        from kster.cluster import environment, lifecycle

        address = ray_address or lifecycle.address_of(settings.data)
        environment.prepare(address)  # before Ray is imported
        from kster.cluster.serving import Replicas, serve_on_ray

        if max_replicas is not None and max_replicas < replicas:
            raise KsterError(f"--max-replicas {max_replicas} is less than --replicas {replicas}; raise it")
        serve_on_ray(read, address, Replicas(replicas, max_replicas))
        return
    from kster.server.run import serve as run

    run(settings)
