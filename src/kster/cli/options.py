"""Options that several commands share: one spelling, one explanation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from kster.errors import KsterError

Method = Literal["base", "knn", "kster"]  # as `kster.translation.Method`, without importing torch

Search = Annotated[
    Literal["auto", "exact", "shortlist"],
    typer.Option(
        help="exact: search all of a memory; shortlist: only the segments whose sources are most like the "
        "sentence; auto: shortlist, but exact on a GPU for smoothers that do not look at sources."
    ),
]
Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The memory's directory.")]
Memories = Annotated[
    list[Path] | None,
    typer.Option("--memory", metavar="DIR", help="A memory; repeat to search several as one."),
]
Terms = Annotated[Path | None, typer.Option(metavar="BASE", help="A term base whose terms must be kept.")]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL", help="A directory, a name (`kster models list`) or a hub id; a memory knows its own."
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
SourceLang = Annotated[str | None, typer.Option(metavar="CODE", help="Source language.")]
TargetLang = Annotated[str | None, typer.Option(metavar="CODE", help="Target language.")]
Limit = Annotated[int | None, typer.Option(min=1, help="At most this many.", show_default="all")]
Json = Annotated[bool, typer.Option("--json", help="Write JSON.")]
Beam = Annotated[int, typer.Option(min=1, max=256, help="Hypotheses kept at each step.")]
LengthPenalty = Annotated[
    float | None,
    typer.Option(
        min=-10,
        max=10,
        help="Above 0 favours longer translations.",
        show_default="what the memory's fit chose, or 0.6",
    ),
]
BatchSentences = Annotated[
    int | None,
    typer.Option(
        min=1, help="How many sentences to translate at once.", show_default="32, on a GPU as memory allows"
    ),
]
Methods = Annotated[
    str | None,
    typer.Option(
        "--methods",
        "--method",
        metavar="LIST",
        help="base (the model alone), knn (kNN-MT: examples with fixed weights), kster (with learned ones); "
        "several are separated by commas.",
        show_default="all three with a memory, else base",
    ),
]


def chosen_methods(given: str | None, *, with_memory: bool) -> list[Method]:
    """The methods of a `--methods` list, in the order given."""
    known: tuple[Method, ...] = get_args(Method)
    if given is None:
        return list(known) if with_memory else ["base"]
    names = [name.strip() for name in given.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise KsterError(
            f"--methods {given!r}: {', '.join(unknown) or 'nothing'} is not a method; "
            f"accepted: {', '.join(known)}, separated by commas"
        )
    if not with_memory and names != ["base"]:
        raise KsterError(f"--methods {given}: all but base need a memory; give one with --memory DIR")
    return [method for name in dict.fromkeys(names) for method in known if method == name]
