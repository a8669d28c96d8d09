"""`kster train`: make or fine-tune a base model."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from kster.cli.options import Json
from kster.cli.output import emit, emit_json


def train(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="YAML; see recipes/example.yaml.", show_default=False)
    ],
    set: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a key (training.steps=100); repeatable."),
    ] = None,
    prepare_only: Annotated[bool, typer.Option("--prepare-only", help="Prepare the data and stop.")] = False,
    max_seconds: Annotated[
        float | None,
        typer.Option("--max-seconds", min=0, help="Stop with a checkpoint after so long; a rerun continues."),
    ] = None,
    json: Json = False,
) -> None:
    """Train a translation model from parallel text, or fine-tune one, as a YAML file describes.

    An interrupted run continues where it was when the same command is given again. For several GPUs:
    `torchrun --nproc-per-node N -m kster train CONFIG`.
    """
    from kster.training import train as train_model
    from kster.training.__main__ import parse_overrides
    from kster.training.distributed import is_first

    # Training tells its story on stdout, which is for the result alone when a machine reads it.
    with contextlib.redirect_stdout(sys.stderr) if json else contextlib.nullcontext():
        report = train_model(
            config, overrides=parse_overrides(set or []), prepare_only=prepare_only, max_seconds=max_seconds
        )
    if not is_first():
        return
    if json:
        emit_json({name: str(v) if isinstance(v, Path) else v for name, v in asdict(report).items()})
    elif report.finished:
        emit(f"finished in {report.seconds:.0f} s: {report.model}")
    if report.stopped_by:
        raise typer.Exit(128 + report.stopped_by)  # as shells report a process that a signal ended
