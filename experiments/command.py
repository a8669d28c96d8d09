"""What is done about a request: translating, scoring, packing text for another machine."""

from __future__ import annotations

import shutil
from pathlib import Path

from experiments.data import LANGUAGES, Corpora, Slice, pack
from experiments.pipeline import say
from experiments.report import finished, report
from experiments.request import Direction, Request, check_run, check_unseen
from experiments.stages import Clock, OutOfTime
from experiments.text_checksums import remember_text
from experiments.workers import Share, share_out
from kster.errors import KsterError


def carry_out(request: Request) -> bool:
    """False when the time was over before everything was done; the same request continues."""
    check_unseen(request)
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
    directions = check_run(request)
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
    return not longest_first or share_out(longest_first, request, clock)


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
