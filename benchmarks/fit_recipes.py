"""Which way of fitting generalises best? One memory, several recipes, side by side.

    python benchmarks/fit_recipes.py MEMORY [--dev-source F --dev-target F]
                                            [--general-source F --general-target F]

Prints for each recipe the loss a token on held-out in-domain text (given, or a share of the memory's own
segments that is not fitted on) and on general-domain text translated with the same memory, which shows
whether the smoother knows when to leave the base model alone. Works on a copy: the memory stays as it is.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from kster import Memory, Smoother, Translator
from kster.smoothing import FitSettings, fit
from machine import describe

RECIPES: dict[str, FitSettings] = {
    "paper": FitSettings.paper(),
    "paper, label smoothing 0.1": FitSettings.paper(label_smoothing=0.1),
    "paper, provenance dropout": FitSettings.paper(dropout="provenance"),
    "paper, no dropout": FitSettings.paper(dropout="none"),
    "confidence, nearest dropout": FitSettings(dropout="nearest"),
    "confidence, provenance dropout (default)": FitSettings(),
    "default, label smoothing 0.1": FitSettings(label_smoothing=0.1),
    "default, keep rate 0": FitSettings(keep_rate=0.0),
    "default, Gaussian": FitSettings(kernel="gaussian"),
}


def pairs(source: Path | None, target: Path | None, limit: int) -> list[tuple[str, str]] | None:
    if source is None or target is None:
        return None
    sides = (path.read_text(encoding="utf-8").splitlines() for path in (source, target))
    return list(zip(*sides, strict=True))[:limit]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("memory", type=Path)
    for name in ("dev", "general"):
        parser.add_argument(f"--{name}-source", type=Path)
        parser.add_argument(f"--{name}-target", type=Path)
    parser.add_argument("--max-tokens", type=int, help="tokens of the memory to fit on")
    parser.add_argument("--pairs", type=int, default=500, help="pairs of dev and of general text at most")
    options = parser.parse_args()
    dev = pairs(options.dev_source, options.dev_target, options.pairs)
    general = pairs(options.general_source, options.general_target, options.pairs)
    print(describe(memory=options.memory.name, max_tokens=options.max_tokens, seed=FitSettings().seed))
    with tempfile.TemporaryDirectory() as scratch:
        copy = shutil.copytree(options.memory, Path(scratch) / "memory")
        with Memory.open(options.memory) as original:
            model = original.model  # a relative path to the model may not lead there from the copy
        compare(Memory.open(copy, model), dev, general, options.max_tokens, Path(scratch) / "caches")


def compare(
    memory: Memory,
    dev: list[tuple[str, str]] | None,
    general: list[tuple[str, str]] | None,
    max_tokens: int | None,
    caches: Path,
) -> None:
    translator = Translator(memory.model, memory)
    sources, targets = zip(*general or [("", "")], strict=True)
    tokens = sum(map(len, memory.model.tokenise_target(targets)))

    def general_loss(method: str, smoother: Smoother | None = None) -> str:
        if not general:
            return "–"
        scores = translator.score(sources, targets, method=method, smoother=smoother)  # type: ignore[arg-type]
        return f"{-sum(scores) / tokens:.4f}"

    print("\n| recipe | in-domain loss | general loss | λ in-domain | steps |\n|---|---:|---:|---:|---:|")
    for i, (name, settings) in enumerate(RECIPES.items()):
        report = fit(
            memory.model,
            memory,
            FitSettings(**(settings.to_json() | {"max_tokens": max_tokens})),
            dev,
            caches=caches,
        )
        if i == 0:
            print(f"| base | {report.dev.base:.4f} | {general_loss('base')} | 0 | |")
            print(f"| kNN-MT, tuned there | {report.dev.knn:.4f} | | {report.knn.mixing_weight:g} | |")
        print(
            f"| {name} | {report.dev.kster:.4f} | {general_loss('kster')} "
            f"| {report.mixing_weight.mean:.2f} | {report.curve[-1].step} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
