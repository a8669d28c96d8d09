"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from kster.cli import (
    cluster_commands,
    evaluate_commands,
    fit_commands,
    import_command,
    keys_commands,
    memory_commands,
    models_commands,
    segment_commands,
    serve_commands,
    terms_commands,
    train_command,
    translate_command,
)
from kster.cli.output import Talk, emit, set_talk
from kster.errors import KsterError
from kster.version import __version__

app = typer.Typer(
    name="kster",
    help="Machine translation that adapts to your examples the moment you add them.",
    rich_markup_mode=None,  # importing rich takes longer than all else that --help does
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
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="Show no progress, notes or warnings; errors are still shown."),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also show what is being done.")] = False,
) -> None:
    if quiet and verbose:
        raise KsterError("--quiet and --verbose cannot be combined; choose one")
    set_talk(Talk.QUIET if quiet else Talk.VERBOSE if verbose else Talk.NORMAL)


memory = typer.Typer(help="Make, fill and look after memories: the examples a translation learns from.")
for group in (memory_commands, import_command, segment_commands):
    memory.add_typer(group.app)

# Short helps: in the list of commands a longer one would be cut off.
app.add_typer(memory, name="memory", short_help="Make, fill and look after memories.")
app.add_typer(models_commands.app, name="models", short_help="Which models there are, and where.")
app.add_typer(terms_commands.app, name="terms", short_help="Make, fill and look after term bases.")
app.command("translate", short_help="Translate line by line.")(translate_command.translate)
app.command("fit", short_help="Learn how much to believe a memory's examples.")(fit_commands.fit)
app.command("tune", short_help="Choose kNN-MT's settings on development text.")(fit_commands.tune)
app.command("score", short_help="Say how probable given translations are.")(evaluate_commands.score)
app.command("evaluate", short_help="Compare the methods by BLEU and chrF.")(evaluate_commands.evaluate)
app.command("train", short_help="Train or fine-tune a translation model.")(train_command.train)
app.command("serve", short_help="Serve translation and memories over HTTP.")(serve_commands.serve)
app.add_typer(keys_commands.app, name="keys")
app.add_typer(cluster_commands.app, name="cluster", short_help="Run memories and servers on Ray.")
