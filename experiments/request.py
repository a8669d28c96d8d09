"""What somebody asks for, and what is looked at before anything is done about it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryFile

from experiments.budget import FULL, QUICK, Budget
from experiments.catalogue import EXPERIMENTS
from experiments.data import EXAMPLE, Corpora
from experiments.domains import mixed_setting
from experiments.experiment import Experiment, result_file
from experiments.pipeline import Pipeline, languages_of
from experiments.scoring import require_sacrebleu
from experiments.stages import Clock, read_json
from kster.errors import KsterError
from kster.model import BaseModel

Direction = tuple[str, str]


@dataclass(slots=True)
class Request:
    """name: an experiment or "all"; model: one base model for each direction; the rest as the options say."""

    name: str
    data: Path
    model: list[str]
    out: Path
    cache: Path | None = None
    stage: str = "both"
    quick: bool = False
    device: str = "auto"
    max_seconds: float | None = None
    workers: int = 1
    unseen: list[str] = field(default_factory=list)
    pack: Path | None = None

    @property
    def experiments(self) -> list[Experiment]:
        if self.name not in (*EXPERIMENTS, "all"):
            names = ", ".join(EXPERIMENTS)
            raise KsterError(f"experiment {self.name!r} is unknown; accepted: {names}, all")
        return list(EXPERIMENTS.values()) if self.name == "all" else [EXPERIMENTS[self.name]]

    @property
    def budget(self) -> Budget:
        usual = QUICK if self.quick else FULL
        return replace(usual, unseen=(*usual.unseen, *self.unseen))

    @property
    def cache_directory(self) -> Path:
        return self.cache or self.out / "cache"

    @property
    def made(self) -> Path:
        """Where text made before a run is kept; a quick run's must not pass for a full one's."""
        return self.cache_directory / f"data-{self.budget.name}"

    def pipeline(self, model: str, clock: Clock) -> Pipeline:
        places = (self.data, self.out, self.cache_directory)
        return Pipeline(model, *places, made=self.made, device=self.device, clock=clock)


def check_unseen(request: Request) -> None:
    if request.unseen and request.name not in ("unseen", "all"):
        raise KsterError(f"--unseen is for the experiments unseen and all; {request.name} does not use it")
    seen = {slice.corpus for slice in mixed_setting(request.budget).memory.slices}
    for corpus in request.unseen:
        if corpus in seen:
            raise KsterError(f"--unseen {corpus}: is not unseen, the memory has text of it")
        if request.budget.unseen.count(corpus) > 1:
            raise KsterError(f"--unseen {corpus}: is among the unseen domains already")


def check_run(request: Request) -> dict[str, Direction]:
    """Each model's direction; refuses what would fail hours later, or replace what took hours."""
    if not request.model:
        raise KsterError(
            "--model is missing: the base model to experiment with; repeat it for both directions"
        )
    if request.workers < 1:
        raise KsterError(f"--workers is {request.workers}; accepted: at least 1")
    require_sacrebleu()
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
        _check_results(request, model, direction)
        _check_text(request, direction)
    for option, directory in (("--out", request.out), ("--cache", request.cache_directory)):
        _check_writable(option, directory)
    return directions


def _check_results(request: Request, model: BaseModel, direction: Direction) -> None:
    """One report has one model, and a quick look replaces no full result."""
    for path in sorted(request.out.glob(f"*/{'-'.join(direction)}.run.json")):
        known = read_json(path).get("origin", {}).get("fingerprint", model.fingerprint)
        if known != model.fingerprint:
            raise KsterError(
                f"{path}: made with another model ({known[:8]}; {model.name} is {model.fingerprint[:8]}). "
                "Give another --out, so that one report has one model"
            )
    for experiment in request.experiments:
        path = result_file(request.out, experiment.name, "-".join(direction))
        if request.quick and path.is_file() and read_json(path)["scale"] == FULL.name:
            raise KsterError(f"{path}: a full result, which --quick would replace. Give another --out")


def _check_text(request: Request, direction: Direction) -> None:
    """All that the run itself reads is there, whole and aligned; preparations, next, read their own."""
    corpora = Corpora(request.data, direction)
    needed = {slice.undisturbed for e in request.experiments for slice in e.reads(request.budget)}
    slices = sorted((slice for slice in needed if slice.corpus != EXAMPLE), key=str)
    files = {slice: [corpora.file(slice.corpus, slice.split, side) for side in direction] for slice in slices}
    for slice in slices:
        if not corpora.pairs(slice):
            lines = f"lines from {slice.first + 1:,} on" if slice.first else "lines"
            raise KsterError(f"{files[slice][0]}: no {lines} in it; the experiment needs some")


def _check_writable(option: str, directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise KsterError(
            f"{option} {directory}: cannot be written to ({error.strerror}); accepted: a directory that can, "
            "or the name of one to be made"
        ) from None
