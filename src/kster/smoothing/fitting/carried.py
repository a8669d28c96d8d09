"""`python -m kster.smoothing.fitting.carried RECIPE --model DIR`: the smoother that a model carries.

The recipe that trained the model says which text its memories are made of: `smoother.domains` are like
customers, `smoother.general` is what a memory should leave alone. None of it should be in the training data,
where the model is surer of itself than it will be in use. Tests held out from training are left out here too.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from kster.errors import KsterError
from kster.model import BaseModel
from kster.smoothing.defaults import SMOOTHER_DIRECTORY
from kster.smoothing.fitting.default_fit import (
    DefaultFitResult,
    DefaultFitSettings,
    Pairs,
    Training,
    fit_default,
)
from kster.smoothing.fitting.settings import FitSettings
from kster.training.cleaning import Cleaner, CleaningReport
from kster.training.corpus import read_lines, read_parallel
from kster.training.recipe import load_settings
from kster.training.settings import DomainSettings, TrainSettings

_QUERIES = 400  # pairs of a domain that are looked up in its memories; a quarter of a small one
_DEV_QUERIES = 100


def fit_carried(
    settings: TrainSettings,
    directory: Path,
    *,
    device: str = "auto",
    say: Callable[[str], None] = lambda line: None,
    workers: int = 1,
) -> list[DefaultFitResult]:
    """Fit the smoother of the model in `directory` on the recipe's text, and save it in it.

    workers: processes that look the domains up. Returns how it does on memories of every size;
    `report.json` beside the smoother has the same.
    """
    if not settings.smoother.domains:
        raise KsterError(
            "smoother.domains: the recipe names no text to fit a smoother on; nothing was written"
        )
    model = BaseModel.load(directory, device=device)
    domains = {domain.label: _text(settings, [domain]) for domain in settings.smoother.domains}
    general = _text(settings, settings.smoother.general)
    smallest = min(map(len, (*domains.values(), general)))
    fitting = FitSettings(
        start="tuned",
        seed=settings.seed,
        steps=settings.smoother.steps,
        batch_tokens=16_384 if model.device.type == "cuda" else 4_096,
        evaluate_every=max(1, settings.smoother.steps // 30),
        patience=8,
    )
    wanted = DefaultFitSettings(
        queries=min(_QUERIES, smallest // 4), dev_queries=min(_DEV_QUERIES, smallest // 8), fit=fitting
    )
    out = directory / SMOOTHER_DIRECTORY
    scratch = Path(tempfile.mkdtemp(prefix="kster-smoother-"))
    try:
        results = fit_default(
            Training(model, domains, general),
            out,
            scratch=scratch,
            settings=wanted,
            say=say,
            on_point=lambda point: say(f"step {point.step}: {point.dev_nll:.4f} nats a token"),
            workers=workers,
        )
    finally:
        shutil.rmtree(scratch)
    report = {
        "domains": {label: len(pairs) for label, pairs in domains.items()},
        "general": len(general),
        "seed": settings.seed,
        "results": [asdict(result) for result in results],
    }
    (out / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return results


def _text(settings: TrainSettings, domains: Iterable[DomainSettings]) -> Pairs:
    """The lines of these domains, as the model translates them, without held-out tests of other text."""
    pairs: list[tuple[str, str]] = []
    for domain in domains:
        files = (domain.source, domain.target)
        tests = (settings.corpus_path(name) for name in settings.cleaning.held_out if name not in files)
        cleaner = Cleaner(settings.cleaning, None, (line for path in tests for line in read_lines(path)))
        lines = read_parallel(*map(settings.corpus_path, files))
        run = islice(lines, domain.first, domain.first + domain.lines)
        pairs += cleaner.clean(run, CleaningReport())
    return [(target, source) for source, target in pairs] if settings.direction == "swap" else pairs


def table(results: list[DefaultFitResult]) -> str:
    """Nats a token on held-out text, base → with the smoother, a memory a line."""
    lines = ["domain         segments   in-domain        general"]
    losses = {(r.domain, r.size, r.text): f"{r.base:.3f} → {r.kster:.3f}" for r in results}
    for domain, size, text in losses:
        if text == "domain":
            general = losses[domain, size, "general"]
            lines.append(f"{domain:14} {size:8,}   {losses[domain, size, text]}   {general}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kster.smoothing.fitting.carried", description=__doc__)
    parser.add_argument("config", help="the recipe that trained the model")
    parser.add_argument("--model", type=Path, help="the model (default: the one that the recipe made)")
    parser.add_argument("--steps", type=int, help="of the fit (default: the recipe's smoother.steps)")
    parser.add_argument(
        "--workers", type=int, default=1, help="processes that look the domains up (default: 1)"
    )
    options = parser.parse_args(arguments)
    try:
        settings = load_settings(options.config, {"smoother.steps": options.steps} if options.steps else None)
        directory = options.model or settings.output_directory / "model"
        results = fit_carried(
            settings,
            directory,
            device=settings.device,
            say=lambda line: print(line, file=sys.stderr, flush=True),
            workers=options.workers,
        )
    except KsterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
