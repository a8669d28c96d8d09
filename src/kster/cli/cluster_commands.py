"""`kster cluster`: a Ray cluster on this machine, for `kster serve --ray`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kster.cli.options import Json
from kster.cli.output import emit, emit_json, note
from kster.extras import require_extra

app = typer.Typer(
    help="Run memories and servers on Ray: a first cluster on this machine.", no_args_is_help=True
)

Data = Annotated[Path, typer.Option(metavar="DIR", help="Where shards and the catalogue keep their files.")]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="The address of the cluster.", show_default="the one of this data directory"
    ),
]


@app.command()
def up(
    data: Data = Path("kster-data"),
    shards: Annotated[int, typer.Option(min=1, max=64, help="How many shards memories are spread over.")] = 2,
    host: Annotated[
        str, typer.Option(help="Anything but loopback lets others reach Ray's ports.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 6379,
    cores: Annotated[
        int | None, typer.Option(min=1, help="How many cores Ray may use.", show_default="all of the machine")
    ] = None,
) -> None:
    """Start a cluster on this machine: Ray, the catalogue and the shards. A token protects it."""
    require_extra("`kster cluster`", "ray")
    from kster.cluster import lifecycle

    if warning := lifecycle.warn_where_open(host):
        note(f"warning: {warning}")
    started = lifecycle.up(data, shards, host=host, port=port, cores=cores)
    emit(f"a cluster with {len(started['shards'])} shards runs at {started['address']}")
    emit(f"serve from it with `kster serve --ray --data {data}`")


@app.command()
def status(data: Data = Path("kster-data"), address: Address = None, json: Json = False) -> None:
    """Show the parts of a cluster, and which of them answer."""
    require_extra("`kster cluster`", "ray")
    from kster.cluster import lifecycle

    found = lifecycle.status(address or lifecycle.address_of(data))
    if json:
        emit_json(found)
        return
    emit(
        f"nodes      {len(found['nodes'])} ({', '.join(sorted(set(found['nodes'])))}), {found['cores']} cores"
    )
    memories = found["memories"]
    emit(f"catalogue  {'does not answer' if memories is None else f'{memories} memories'}")
    for name, size in found["shards"].items():
        emit(f"shard {name:<4} {_size(size)}")
    states = ", ".join(f"{count} {state.lower()}" for state, count in found["replicas"].items())
    emit(f"replicas   {states or 'none; nothing is served'}")


def _size(size: dict[str, int] | None) -> str:
    if size is None:
        return "does not answer"
    return f"{size['directories']} directories, {size['entries']:,} entries, {size['bytes'] / 1e6:,.1f} MB"


@app.command()
def down(data: Data = Path("kster-data")) -> None:
    """Stop the cluster that `up` started here. What was acknowledged is on the disk."""
    require_extra("`kster cluster`", "ray")
    from kster.cluster import lifecycle

    emit(f"the cluster at {lifecycle.down(data)} is stopped")
