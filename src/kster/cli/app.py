"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from kster import __version__
from kster.cli import (
    evaluate_command,
    experiment_command,
    fit_commands,
    import_command,
    keys_commands,
    memory_commands,
    score_command,
    serve_commands,
    train_command,
    translate_command,
)
from kster.cli.output import emit

app = typer.Typer(
    name="kster",
    help="Machine translation that adapts to your examples the moment you add them.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        emit(f"kster {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


memory_commands.app.command("import")(import_command.import_files)
app.add_typer(memory_commands.app, name="memory")
app.command("translate")(translate_command.translate)
app.command("fit")(fit_commands.fit)
app.command("tune")(fit_commands.tune)
app.command("score")(score_command.score)
app.command("evaluate")(evaluate_command.evaluate)
app.command("train")(train_command.train)
app.command("experiment")(experiment_command.experiment)
app.command("serve")(serve_commands.serve)
app.add_typer(keys_commands.app, name="keys")
