"""`kster train`: make or fine-tune a base model, from a recipe or from a file of pairs alone."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from kster.cli.options import Json, SourceLang, TargetLang
from kster.cli.output import emit, emit_json, note
from kster.errors import KsterError
from kster.extras import require_extra


def train(
    config: Annotated[
        Path | None, typer.Argument(metavar="CONFIG", help="YAML; see recipes/example.yaml.")
    ] = None,
    pairs: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Instead of CONFIG: TMX, XLIFF, PO, TSV, CSV, or NAME for NAME.en and NAME.de; repeatable.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="With --pairs: where everything is written.")
    ] = None,
    source_lang: SourceLang = None,
    target_lang: TargetLang = None,
    set: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Override a key (training.steps=100); repeatable."),
    ] = None,
    smoother: Annotated[
        bool,
        typer.Option(
            "--smoother",
            help="Also fit the smoother that the model carries, on the recipe's domains: it says how much to "
            "believe examples.",
        ),
    ] = False,
    prepare_only: Annotated[bool, typer.Option("--prepare-only", help="Prepare the data and stop.")] = False,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            min=0, help="Stop with a checkpoint after this many seconds; the same command continues."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Train a translation model from parallel text, or fine-tune one, as a YAML file describes.

    With --pairs a recipe that suits the amount of text is written to DIR/recipe.yaml and used. An interrupted
    run continues where it was when the same command is given again. For several GPUs:
    `torchrun --nproc-per-node N -m kster train CONFIG`.
    """
    require_extra("`kster train`", "train")
    from kster.training import load_settings
    from kster.training import train as train_model
    from kster.training.__main__ import parse_overrides
    from kster.training.distributed import is_first

    recipe = _recipe(config, pairs or [], output, source_lang, target_lang)
    overrides = parse_overrides(set or [])
    settings = load_settings(recipe, overrides)
    if smoother and not settings.smoother.domains:
        raise KsterError(
            f"{recipe}: --smoother needs text that was not trained on: name it under smoother.domains and "
            f"smoother.general (a recipe made of few pairs has none to spare); nothing was trained"
        )
    # Training reports its progress on stdout, where --json wants nothing but the result.
    with contextlib.redirect_stdout(sys.stderr) if json else contextlib.nullcontext():
        report = train_model(recipe, overrides=overrides, prepare_only=prepare_only, max_seconds=max_seconds)
    if not is_first():
        return
    if smoother and report.model is not None:
        from kster.smoothing.fitting.carried import fit_carried, table

        results = fit_carried(settings, report.model, device=settings.device, say=note)
        note(table(results))
    if json:
        emit_json(report)
    elif report.finished:
        emit(f"finished in {report.seconds:.0f} s: {report.model}")
    if report.stopped_by:
        raise typer.Exit(128 + report.stopped_by)  # as shells report a process that a signal ended


def _recipe(
    config: Path | None, pairs: list[Path], output: Path | None, source: str | None, target: str | None
) -> Path:
    """The recipe that was named, or one written for the pairs."""
    if config is not None and not (pairs or output or source or target):
        return config
    if config is not None or not pairs or output is None or not source or not target:
        raise KsterError(
            "accepted: CONFIG alone, or --pairs FILE --source-lang CODE --target-lang CODE --output DIR"
        )
    from kster.training.distributed import is_first
    from kster.training.from_pairs import RECIPE, recipe_from_pairs

    return recipe_from_pairs(pairs, source, target, output) if is_first() else output / RECIPE
