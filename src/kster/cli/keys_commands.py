"""`kster keys`: who may use a server that others can reach."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kster.cli.options import Json
from kster.cli.output import emit, emit_json, note, table
from kster.errors import KsterError
from kster.extras import require_extra

if TYPE_CHECKING:
    from kster.server.auth.keys import Keys

app = typer.Typer(help="API keys of a server: add, list, revoke.", no_args_is_help=True)

Data = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The server's data directory.", show_default="kster-data")
]


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Who the key is for.")],
    scope: Annotated[
        str,
        typer.Option(
            metavar="SCOPE",
            help="read: translate and look; write: also teach memories of its own; admin: everything.",
        ),
    ] = "write",
    data: Data = None,
    json: Json = False,
) -> None:
    """Make a key. It is shown once: only its hash is kept."""
    key, token = _keys(data, create=True).add(name, scope)
    if json:
        emit_json({**asdict(key), "key": token})
        return
    note(f"key {key.id} ({key.name}, {key.scope}); it is not shown again:")
    emit(token)


@app.command("list")
def list_keys(data: Data = None, json: Json = False) -> None:
    """List the keys. Their tokens are not kept and cannot be shown."""
    keys = _keys(data).list()
    if json:
        emit_json(keys)
        return
    rows = [(str(key.id), key.name, key.scope, key.created, key.revoked or "") for key in keys]
    emit(table([("id", "name", "scope", "made", "revoked"), *rows], left=5))


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="NAME", help="Name or id.")], data: Data = None
) -> None:
    """Revoke a key, at once and for good. Its memories stay; admins can use them."""
    revoked = _keys(data).revoke(key)
    emit(f"revoked key {revoked.id} ({revoked.name})")


def _keys(data: Path | None, *, create: bool = False) -> Keys:
    """create: whether to make a missing data directory, whose name could also be a typing mistake."""
    require_extra("`kster keys`", "server")
    from kster.server.auth.keys import Keys
    from kster.server.database import FILE, ServerDatabase
    from kster.server.settings import read_settings

    directory = read_settings(None, {"data": data}).data
    if not create and not (directory / FILE).exists():
        raise KsterError(
            f"{directory}: not a server's data directory, so there are no keys in it; "
            f"`kster keys add NAME --data {directory}` makes both"
        )
    return Keys(ServerDatabase(directory))
