"""Fit the default smoother of a base model: `python -m experiments.default_smoother MODEL --data DIR`.

Writes `MODEL/smoother`, which every memory of that model uses until it has a fit of its own. Domains are
runs of neighbouring lines, which in these corpora come from one product or one statute: like customers.
Koran and TED are left out, as from all weights that ship; so is the example memory, to be a fair test.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.blocks import NEWS_TRAIN
from experiments.data import Corpora, Pairs, Slice
from experiments.pipeline import languages_of
from kster.errors import KsterError
from kster.model import BaseModel
from kster.smoothing import FitSettings
from kster.smoothing.defaults import SMOOTHER_DIRECTORY
from kster.smoothing.fitting.default_fit import DefaultFitResult, DefaultFitSettings, fit_default

RUN = 12_000  # lines
DOMAINS = {
    **{f"it-{i}": Slice("it", "train", RUN, i * 80_000) for i in range(6)},
    **{f"law-{i}": Slice("law", "train_nonEU", 4_000, i * 4_000) for i in range(3)},
    **{f"games-{i}": Slice("games_dialogue", "train", RUN, i * 16_000) for i in range(2)},
    "parliament": Slice("europarl", "dev"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="directory of a base model; the smoother is written into it")
    parser.add_argument("--data", type=Path, required=True, help="has <corpus>/<split>.<language>.xz")
    parser.add_argument("--out", type=Path, help="write the smoother there instead")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a small sample, minutes on a CPU")
    options = parser.parse_args()
    try:
        model = BaseModel.load(options.model)
        out = options.out or Path(options.model) / SMOOTHER_DIRECTORY
        results = fit(model, options.data, out, options.seed, options.quick)
    except KsterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(table(results))
    return 0


def fit(model: BaseModel, data: Path, out: Path, seed: int, quick: bool) -> list[DefaultFitResult]:
    corpora = Corpora(data, languages_of(model))
    settings = DefaultFitSettings(
        fit=FitSettings(
            start="tuned", seed=seed, steps=3_000, batch_tokens=16_384, evaluate_every=100, patience=8
        )
    )
    if quick:
        settings = DefaultFitSettings(
            sizes=(1, 20),
            queries=8,
            dev_queries=4,
            fit=FitSettings(start="tuned", seed=seed, steps=40, batch_tokens=1_024, evaluate_every=10),
        )
    size = 60 if quick else None
    domains: dict[str, Pairs] = {
        name: corpora.fitting_pairs(slice.at_most(size)) for name, slice in DOMAINS.items()
    }
    scratch = Path(tempfile.mkdtemp(prefix="kster-default-"))
    try:
        results = fit_default(
            model,
            domains,
            corpora.fitting_pairs(NEWS_TRAIN.at_most(size)),
            out,
            scratch=scratch,
            settings=settings,
            say=lambda line: print(line, file=sys.stderr, flush=True),
            on_point=lambda p: print(f"step {p.step}: {p.dev_nll:.4f}", file=sys.stderr, flush=True),
        )
    finally:
        shutil.rmtree(scratch)
    report: dict[str, Any] = {
        "domains": {name: str(slice) for name, slice in DOMAINS.items()},
        "general": str(NEWS_TRAIN),
        "seed": seed,
        "results": [asdict(result) for result in results],
    }
    (out / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return results


def table(results: list[DefaultFitResult]) -> str:
    """Nats a token on held-out text, base → with the smoother, a memory a line."""
    lines = ["domain         segments   in-domain        general"]
    losses = {(r.domain, r.size, r.text): f"{r.base:.3f} → {r.kster:.3f}" for r in results}
    for domain, size, text in losses:
        if text == "domain":
            general = losses[domain, size, "general"]
            lines.append(f"{domain:14} {size:8,}   {losses[domain, size, text]}   {general}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
