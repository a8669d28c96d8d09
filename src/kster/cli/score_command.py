"""`kster score`: how probable given translations are."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from kster.cli.lines import file_lines, paired_lines
from kster.cli.loading import open_translator
from kster.cli.options import (
    Device,
    Memories,
    Methods,
    Model,
    Precision,
    SourceLang,
    TargetLang,
    chosen_methods,
)
from kster.cli.output import as_json, emit, flush
from kster.cli.progress import is_watched, progress_bar
from kster.errors import KsterError

BLOCK = 1_024  # pairs scored at a time


def score(
    source: Annotated[
        Path, typer.Option(metavar="FILE", help="Source texts, one a line.", show_default=False)
    ],
    target: Annotated[Path, typer.Option(metavar="FILE", help="Their translations.", show_default=False)],
    memory: Memories = None,
    model: Model = None,
    methods: Methods = None,
    device: Device = "auto",
    precision: Precision = "auto",
    source_lang: SourceLang = None,
    target_lang: TargetLang = None,
    json: Annotated[bool, typer.Option("--json", help="Write one JSON object a line.")] = False,
) -> None:
    """Write the log-probability of each translation, end of sentence included.

    One line for each pair; with several methods one column for each, separated by tabs.
    """
    for file in (source, target):
        if not file.is_file():
            raise KsterError(f"{file}: no such file")
    chosen = chosen_methods(methods, with_memory=bool(memory))
    translator = open_translator(memory or [], model, device, source_lang, target_lang, precision)
    pairs = paired_lines(source, target)
    done = 0
    total = sum(1 for _ in file_lines(source)) if is_watched() else None
    with progress_bar("scoring", "pairs", total) as show:
        while block := list(islice(pairs, BLOCK)):
            sources, targets = [one for one, _ in block], [other for _, other in block]
            try:
                columns = [translator.score(sources, targets, method=method) for method in chosen]  # type: ignore[arg-type]
            except KsterError as error:
                raise KsterError(f"{source}, from line {done + 1}: {error}") from error
            for one, other, *scores in zip(sources, targets, *columns, strict=True):
                if json:
                    named = dict(zip(chosen, scores, strict=True))
                    emit(as_json({"source": one, "target": other, "scores": named}))
                else:
                    emit("\t".join(f"{value:.6f}" for value in scores))
            flush()
            done += len(block)
            show(done)
