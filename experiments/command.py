"""What both command lines do with a request."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.blocks import mixed_setting
from experiments.data import LANGUAGES, Corpora, Slice, pack
from experiments.place import Direction, directions_of
from experiments.preparation import PREPARATIONS, PREPARED_FROM, original
from experiments.run import experiment_names, needed_data, parts, run
from experiments.same_text import remember_text
from experiments.scale import FULL, QUICK, Scale
from experiments.stages import Clock, OutOfTime
from experiments.tables import UNSEEN
from experiments.workers import Share, share_out
from kster.errors import KsterError

if TYPE_CHECKING:
    from experiments.pipeline import Pipeline


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
    list_data: bool = False
    pack: Path | None = None

    @property
    def names(self) -> list[str]:
        known = experiment_names()
        if self.name not in (*known, "all"):
            raise KsterError(f"experiment {self.name!r} is unknown; accepted: {', '.join(known)}, all")
        return known if self.name == "all" else [self.name]

    @property
    def scale(self) -> Scale:
        return QUICK if self.quick else FULL

    @property
    def cache_directory(self) -> Path:
        return self.cache or self.out / "cache"

    @property
    def made(self) -> Path:
        """Where text made before a run is kept; a quick run's must not pass for a full one's."""
        return self.cache_directory / f"data-{self.scale.name}"

    def pipeline(self, model: str, clock: Clock) -> Pipeline:
        from experiments.pipeline import Pipeline

        return Pipeline(
            model,
            self.data,
            self.out,
            self.cache_directory,
            made=self.made,
            device=self.device,
            clock=clock,
        )


def carry_out(request: Request) -> bool:
    """False when the time was over before everything was done; the same request continues."""
    names = request.names
    _require_unseen(request, names)
    if request.list_data:
        _list(request, names)
    elif request.pack is not None:
        _pack(request, names, request.pack)
    else:
        if request.stage in ("run", "both") and not _run(request, names):
            return False
        if request.stage in ("report", "both"):
            _report(request, names)
    return True


def _require_unseen(request: Request, names: list[str]) -> None:
    if request.unseen and "unseen" not in names:
        raise KsterError(f"--unseen is for the experiments unseen and all; {request.name} does not use it")
    seen = {slice.corpus for slice in mixed_setting(request.scale).memory.slices}
    for corpus in request.unseen:
        if corpus in seen:
            raise KsterError(f"--unseen {corpus}: is not unseen, the memory has text of it")
        if corpus in UNSEEN or request.unseen.count(corpus) > 1:
            raise KsterError(f"--unseen {corpus}: is among the unseen domains already")


def _run(request: Request, names: list[str]) -> bool:
    if not request.model:
        raise KsterError(
            "--model is missing: the base model to experiment with; repeat it for both directions"
        )
    if request.workers < 1:
        raise KsterError(f"--workers is {request.workers}; accepted: at least 1")
    clock = Clock(request.max_seconds)
    directions = directions_of(request, names)
    _remember_text(request, names, made=False)
    _prepare(request, names, directions)
    _remember_text(request, names, made=True)
    if request.workers > 1 and not _share(request, names, clock):
        return _out_of_time()
    try:
        for model in request.model:
            pipeline = request.pipeline(model, clock)
            for name in names:
                run(name, pipeline, request.scale, tuple(request.unseen))
            pipeline.close()
    except OutOfTime:
        return _out_of_time()
    return True


def _out_of_time() -> bool:
    print("out of time; what is finished is kept, the same command continues", file=sys.stderr)
    return False


def _remember_text(request: Request, names: list[str], *, made: bool) -> None:
    """Refuses text other than before. made: what preparations make, after them; or all else, before."""
    corpora = Corpora(request.data, LANGUAGES, made=request.made)
    slices = {slice for name in names for slice in _slices(request, name)}
    noisy = {slice for slice in slices if slice != original(slice)}
    if not made:
        slices = {original(slice) for slice in slices}
        for name in set(names) & PREPARED_FROM.keys():
            read = PREPARED_FROM[name](request.scale)
            if all(corpora.has(slice) for slice in read):  # it is not packed
                slices |= set(read)
    remember_text(corpora, noisy if made else slices, request.out, request.cache_directory)


def _prepare(request: Request, names: list[str], directions: dict[str, Direction]) -> None:
    """Before anything else: it may find that something is missing, and several processes may need it."""
    for direction in directions.values():
        corpora = Corpora(request.data, direction, made=request.made)
        for name in names:
            if name in PREPARATIONS:
                PREPARATIONS[name](corpora, request.scale)


def _share(request: Request, names: list[str], clock: Clock) -> bool:
    """All that can be done side by side; False when the time was over."""
    shares: list[tuple[int, Share]] = []
    for model in request.model:
        for name in names:
            for number, part in enumerate(parts(name, request.scale, tuple(request.unseen))):
                shares.append((part.size, Share(name, number, model)))
    longest_first = [share for _, share in sorted(shares, key=lambda sized: -sized[0])]
    return not longest_first or share_out(longest_first, request, clock)


def _report(request: Request, names: list[str]) -> None:
    from experiments.report import finished, report

    wanted = [name for name in names if name in finished(request.out)] if request.name == "all" else names
    if not wanted:
        raise KsterError(f"{request.out}: no results here; run the experiments first (--stage run)")
    print(report(wanted, request.data, request.out))


def _list(request: Request, names: list[str]) -> None:
    """The files the experiments read, one a line."""
    corpora = Corpora(request.data, LANGUAGES)
    slices = {original(slice) for name in names for slice in _slices(request, name)}
    for name in set(names) & PREPARED_FROM.keys():
        slices |= set(PREPARED_FROM[name](request.scale))
    for path in sorted({path for slice in slices for path in corpora.files(slice)}):
        print(path)


def _pack(request: Request, names: list[str], destination: Path) -> None:
    """What the experiments read, in both directions, text made for them included."""
    slices = dict.fromkeys(slice for name in names for slice in _slices(request, name))
    for direction in (LANGUAGES, (LANGUAGES[1], LANGUAGES[0])):
        corpora = Corpora(request.data, direction, made=request.made)
        for name in names:
            for path in PREPARATIONS[name](corpora, request.scale) if name in PREPARATIONS else ():
                copy = destination / path.parent.name / path.name
                copy.parent.mkdir(parents=True, exist_ok=True)
                print(shutil.copyfile(path, copy))
    for path in pack(corpora, slices, destination):
        print(path)


def _slices(request: Request, name: str) -> list[Slice]:
    return needed_data(name, request.scale, tuple(request.unseen))
