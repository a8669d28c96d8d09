"""What is looked at before anything is done: the models, the text, and where the results go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kster.errors import KsterError
from kster.experiments.data import Corpora
from kster.experiments.example import EXAMPLE
from kster.experiments.preparation import original
from kster.experiments.run import needed_data, result_file
from kster.experiments.scale import FULL
from kster.experiments.stages import read_json

if TYPE_CHECKING:
    from kster.experiments.command import Request
    from kster.model import BaseModel

Direction = tuple[str, str]


def directions_of(request: Request, names: Sequence[str]) -> dict[str, Direction]:
    """Each model's direction; refuses what would fail hours later, or replace what took hours."""
    from kster.experiments.pipeline import languages_of
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
    """All files that are read by the run itself; a preparation, which comes first, looks for its own."""
    corpora = Corpora(request.data, direction)
    for name in names:
        for slice in needed_data(name, request.scale, tuple(request.unseen)):
            for language in direction if slice.corpus != EXAMPLE else ():
                corpora.file(original(slice).corpus, slice.split, language)
