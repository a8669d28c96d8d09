"""`kster models`: which models there are on this machine, and whether their files are whole."""

from __future__ import annotations

from typing import Annotated

import typer

from kster.cli.options import Json
from kster.cli.output import emit, emit_json, note
from kster.model_places import CHECKSUMS, list_models, places, require_model, verify_model

app = typer.Typer(
    help="Base models on this machine: list, path, verify. A plain name, such as en-de, is looked for in "
    "$KSTER_MODEL_HOME, ./models and ~/.local/share/kster/models.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="MODEL", help="A model's name or directory.")]


@app.command("list")
def list_all(json: Json = False) -> None:
    """List the models that can be used by name."""
    found = {directory.name: str(directory) for directory in list_models()}
    if json:
        emit_json(found)
    elif not found:
        note(f"no models in {', '.join(map(str, places()))}")
    for name, directory in {} if json else found.items():
        emit(f"{name}\t{directory}")


@app.command()
def path(model: Name) -> None:
    """Show a model's directory."""
    emit(str(require_model(model).resolve()))


@app.command()
def verify(model: Name) -> None:
    """Compare a model's files with its checksums (checksums.txt, as sha256sum writes it)."""
    directory = require_model(model)
    problems = verify_model(directory)
    for problem in problems:
        emit(problem)
    if problems:
        raise typer.Exit(1)
    note(f"{directory}: every file is as {CHECKSUMS} says")
