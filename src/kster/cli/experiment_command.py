"""`kster experiment`: the paper's tables and figures, on your data and models."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kster.cli.options import Device


class Stage(StrEnum):
    """The translating, the scoring, or one after the other."""

    RUN = "run"
    REPORT = "report"
    BOTH = "both"


def experiment(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="damt, mdmt, tradeoff, robustness, unseen, ablation, k, dropout, kernels, recipes, seeds, "
            "sizes, lengths, speed, pos, wsd, online, or all.",
            show_default=False,
        ),
    ],
    data: Annotated[
        Path,
        typer.Option(
            "--data",
            metavar="DIR",
            help="Corpora: <corpus>/<split>.<language>.xz; for wsd, if you have it, ContraWSD: "
            "wsd/contrawsd.<direction>.json.",
            show_default=False,
        ),
    ],
    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="MODEL", help="Base model; repeat for both directions."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Results, small.")] = Path(
        "runs/experiments"
    ),
    cache: Annotated[
        Path | None,
        typer.Option(
            "--cache", metavar="DIR", help="Memories, fits and models, large.", show_default="OUT/cache"
        ),
    ] = None,
    stage: Annotated[Stage, typer.Option(help="run translates, report scores.")] = Stage.BOTH,
    quick: Annotated[bool, typer.Option("--quick", help="A small sample: minutes on a CPU.")] = False,
    device: Device = "auto",
    max_seconds: Annotated[
        float | None,
        typer.Option("--max-seconds", min=0, help="Begin nothing new after so long; a rerun continues."),
    ] = None,
    workers: Annotated[
        int,
        typer.Option("--workers", metavar="N", min=1, help="Processes that share the work, on one GPU, too."),
    ] = 1,
    unseen: Annotated[
        list[str] | None,
        typer.Option(
            "--unseen", metavar="CORPUS", help="A further unseen domain with a test split; repeatable."
        ),
    ] = None,
    list_data: Annotated[
        bool, typer.Option("--list-data", help="Print the files it reads, and stop.")
    ] = False,
    pack: Annotated[
        Path | None,
        typer.Option(
            "--pack", metavar="DIR", help="Copy what it reads to a smaller data directory, and stop."
        ),
    ] = None,
) -> None:
    """Reproduce a table or figure of the paper.

    Everything is kept as it is made: a run that was stopped continues with the same command, and ends with
    status 75 when --max-seconds was not enough.
    """
    from experiments.command import Request, carry_out
    from experiments.workers import NOT_FINISHED

    request = Request(
        name=name,
        data=data,
        model=model or [],
        out=out,
        cache=cache,
        stage=stage.value,
        quick=quick,
        device=device,
        max_seconds=max_seconds,
        workers=workers,
        unseen=unseen or [],
        list_data=list_data,
        pack=pack,
    )
    if not carry_out(request):
        raise typer.Exit(NOT_FINISHED)
