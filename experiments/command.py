"""What is asked for, what is refused before anything is done, and what is done about the rest."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryFile

from experiments.budget import FULL, QUICK, Budget
from experiments.catalogue import EXPERIMENTS
from experiments.data import EXAMPLE, LANGUAGES, Corpora, Slice, languages_of, pack
from experiments.domains import mixed_setting
from experiments.experiment import Experiment, result_file
from experiments.pipeline import Pipeline
from experiments.report import finished, report
from experiments.results import require_sacrebleu
from experiments.stages import Clock, OutOfTime, read_json, say
from experiments.text_checksums import remember_text
from experiments.workers import Share, share_out
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

    def __post_init__(self) -> None:
        if self.name not in (*EXPERIMENTS, "all"):
            names = ", ".join(EXPERIMENTS)
            raise KsterError(f"experiment {self.name!r} is unknown; accepted: {names}, all")

    @property
    def experiments(self) -> list[Experiment]:
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


def carry_out(request: Request) -> bool:
    """False when the time was over before everything was done; the same request continues."""
    _check_unseen(request)
    if request.pack is not None:
        _pack(request, request.pack)
        return True
    if request.stage in ("run", "both") and not _run(request):
        say("out of time; what is finished is kept, the same command continues")
        return False
    if request.stage in ("report", "both"):
        _report(request)
    return True


def _run(request: Request) -> bool:
    clock = Clock(request.max_seconds)
    directions = _check_run(request)
    _remember_text(request, made=False)
    _prepare(request, directions)
    _remember_text(request, made=True)
    if request.workers > 1 and not _share(request, clock):
        return False
    try:
        for model in request.model:
            pipeline = request.pipeline(model, clock)
            for experiment in request.experiments:
                experiment.run(pipeline, request.budget)
            pipeline.close()
    except OutOfTime:
        return False
    return True


def _remember_text(request: Request, *, made: bool) -> None:
    """Refuses text other than before. made: what preparations make, after them; or all else, before."""
    corpora = Corpora(request.data, LANGUAGES, made=request.made)
    slices = _reads(request)
    chosen = {slice for slice in slices if slice != slice.undisturbed}
    if not made:
        chosen = {slice.undisturbed for slice in slices}
        for experiment in request.experiments:
            read = experiment.prepared_from(request.budget)
            if all(corpora.has(slice) for slice in read):  # it is not packed
                chosen |= set(read)
    remember_text(corpora, chosen, request.out, request.cache_directory)


def _prepare(request: Request, directions: dict[str, Direction]) -> None:
    """Before anything else: it may find that something is missing, and several processes may need it."""
    for direction in directions.values():
        corpora = Corpora(request.data, direction, made=request.made)
        for experiment in request.experiments:
            experiment.prepare(corpora, request.budget)


def _share(request: Request, clock: Clock) -> bool:
    """All that can be done side by side; False when the time was over."""
    shares = [
        (part.size, Share(experiment.name, number, model))
        for model in request.model
        for experiment in request.experiments
        for number, part in enumerate(experiment.parts(request.budget))
    ]
    longest_first = [share for _, share in sorted(shares, key=lambda sized: -sized[0])]
    return not longest_first or share_out(
        longest_first, request.workers, request.pipeline, request.budget, clock
    )


def _report(request: Request) -> None:
    there = finished(request.out)
    wanted = [e for e in request.experiments if e in there] if request.name == "all" else request.experiments
    if not wanted:
        raise KsterError(f"{request.out}: no results here; run the experiments first (--stage run)")
    print(report(wanted, request.data, request.out))


def _pack(request: Request, destination: Path) -> None:
    """What the experiments read, in both directions, text made for them included."""
    for direction in (LANGUAGES, (LANGUAGES[1], LANGUAGES[0])):
        corpora = Corpora(request.data, direction, made=request.made)
        for experiment in request.experiments:
            for path in experiment.prepare(corpora, request.budget):
                copy = destination / path.parent.name / path.name
                copy.parent.mkdir(parents=True, exist_ok=True)
                print(shutil.copyfile(path, copy))
    for path in pack(corpora, _reads(request), destination):
        print(path)


def _reads(request: Request) -> list[Slice]:
    every = (slice for experiment in request.experiments for slice in experiment.reads(request.budget))
    return list(dict.fromkeys(every))


# What is refused before anything is done ------------------------------------------------------------


def _check_unseen(request: Request) -> None:
    if request.unseen and request.name not in ("unseen", "all"):
        raise KsterError(f"--unseen is for the experiments unseen and all; {request.name} does not use it")
    seen = {slice.corpus for slice in mixed_setting(request.budget).memory.slices}
    for corpus in request.unseen:
        if corpus in seen:
            raise KsterError(f"--unseen {corpus}: is not unseen, the memory has text of it")
        if request.budget.unseen.count(corpus) > 1:
            raise KsterError(f"--unseen {corpus}: is among the unseen domains already")


def _check_run(request: Request) -> dict[str, Direction]:
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
