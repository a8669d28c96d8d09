"""Options that several commands share: one spelling, one explanation."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kster.errors import KsterError


class Method(StrEnum):
    """How to translate: the base model alone, with kNN-MT, or with KSTER."""

    BASE = "base"
    KNN = "knn"
    KSTER = "kster"


class SearchMode(StrEnum):
    """What of a memory is searched: all, the segments most like the sentence, or whichever suits its size."""

    AUTO = "auto"
    EXACT = "exact"
    SHORTLIST = "shortlist"


Search = Annotated[
    SearchMode,
    typer.Option(
        help="Search all of a memory, or only the segments whose sources are most like the sentence; "
        "auto does so where a memory is large."
    ),
]
Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The memory's directory.", show_default=False)]
Memories = Annotated[
    list[Path] | None,
    typer.Option(
        "--memory", metavar="DIR", help="A memory; repeat to search several as one.", show_default=False
    ),
]
Terms = Annotated[
    Path | None,
    typer.Option("--terms", metavar="BASE", help="A term base, whose terms are kept.", show_default=False),
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="A directory, a name (`kster models list`) or a hub id; a memory knows its own.",
        show_default=False,
    ),
]
Device = Annotated[str, typer.Option(metavar="DEVICE", help="auto, cpu, cuda, cuda:0, …")]
Precision = Annotated[
    str,
    typer.Option(
        metavar="PRECISION",
        help="auto (bfloat16 on a CPU made for it, float16 on a GPU), int8, bfloat16, float16 or float32.",
    ),
]
SourceLang = Annotated[
    str | None,
    typer.Option("--source-lang", metavar="CODE", help="Source language.", show_default=False),
]
TargetLang = Annotated[
    str | None,
    typer.Option("--target-lang", metavar="CODE", help="Target language.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON.")]
Beam = Annotated[int, typer.Option(min=1, max=256, help="Hypotheses kept at each step.")]
LengthPenalty = Annotated[
    float | None,
    typer.Option(
        "--length-penalty",
        min=-10,
        max=10,
        help="Above 0 favours longer translations.",
        show_default="what the memory's fit chose, or 0.6",
    ),
]
BatchSentences = Annotated[
    int | None,
    typer.Option(
        "--batch-sentences", min=1, help="Sentences at once.", show_default="32, on a GPU as memory allows"
    ),
]
Methods = Annotated[
    str | None,
    typer.Option(
        "--methods",
        "--method",
        metavar="LIST",
        help="Of base (the model alone), knn (kNN-MT: examples with fixed weights) and kster (learned ones), "
        "separated by commas.",
        show_default="all three with a memory, else base",
    ),
]


def chosen_methods(given: str | None, *, with_memory: bool) -> list[str]:
    """The methods of a `--methods` list, in the order given."""
    known = [method.value for method in Method]
    if given is None:
        return known if with_memory else [known[0]]
    chosen = [name.strip() for name in given.split(",") if name.strip()]
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        raise KsterError(
            f"--methods {given!r}: {', '.join(unknown) or 'nothing'} is no method; "
            f"accepted: {', '.join(known)}, separated by commas"
        )
    if not with_memory and chosen != [known[0]]:
        raise KsterError(f"--methods {given}: all but base need a memory; give one with --memory DIR")
    return list(dict.fromkeys(chosen))
