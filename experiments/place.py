"""What is looked at before anything is done: the models, the text, and where the results go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from experiments.data import Corpora
from experiments.example import EXAMPLE
from experiments.preparation import original
from experiments.run import needed_data, result_file
from experiments.scale import FULL
from experiments.stages import read_json
from kster.errors import KsterError

if TYPE_CHECKING:
    from experiments.command import Request
    from kster.model import BaseModel

Direction = tuple[str, str]


def directions_of(request: Request, names: Sequence[str]) -> dict[str, Direction]:
    """Each model's direction; refuses what would fail hours later, or replace what took hours."""
    from experiments.pipeline import languages_of
    from kster.model import BaseModel

    directions: dict[str, Direction] = {}
    for given in request.model:
        model = BaseModel.load(given, device="cpu")
        direction = languages_of(model)
        if direction in directions.values():
            raise KsterError(
                f"--model {given}: there is another model for {' → '.join(direction)}, and results are kept "
                "by direction. Run one after the other, each with its own --out"
            )
        directions[given] = direction
        _require_place(request.out, model, direction, names, quick=request.scale.name != FULL.name)
        _require_text(request, direction, names)
    for option, directory in (("--out", request.out), ("--cache", request.cache_directory)):
        _require_writable(option, directory)
    return directions


def _require_place(
    out: Path, model: BaseModel, direction: Direction, names: Sequence[str], *, quick: bool
) -> None:
    for path in sorted(out.glob(f"*/{'-'.join(direction)}.run.json")):
        known = read_json(path).get("origin", {}).get("fingerprint", model.fingerprint)
        if known != model.fingerprint:
            raise KsterError(
                f"{path}: made with another model ({known[:8]}; {model.name} is {model.fingerprint[:8]}). "
                "Give another --out, so that one report has one model"
            )
    for name in names:
        path = result_file(out, name, "-".join(direction))
        if quick and path.is_file() and read_json(path)["scale"] == FULL.name:
            raise KsterError(f"{path}: a full result, which --quick would replace. Give another --out")


def _require_text(request: Request, direction: Direction, names: Sequence[str]) -> None:
    """All that the run itself reads is there, whole and aligned; preparations, next, read their own."""
    corpora, unseen = Corpora(request.data, direction), tuple(request.unseen)
    needed = {original(slice) for name in names for slice in needed_data(name, request.scale, unseen)}
    slices = sorted((slice for slice in needed if slice.corpus != EXAMPLE), key=str)
    files = {slice: [corpora.file(slice.corpus, slice.split, side) for side in direction] for slice in slices}
    for slice in slices:
        if not corpora.pairs(slice):
            lines = f"lines from {slice.first + 1:,} on" if slice.first else "lines"
            raise KsterError(f"{files[slice][0]}: no {lines} in it; the experiment needs some")


def _require_writable(option: str, directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise KsterError(
            f"{option} {directory}: cannot be written to ({error.strerror}); accepted: a directory that can, "
            "or the name of one to be made"
        ) from None
