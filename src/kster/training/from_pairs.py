"""A model from a file of pairs alone: the text is divided, and a recipe is written that suits its size.

What is written can be looked at, changed and used with `kster train` like any other recipe.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from kster.errors import KsterError
from kster.files import write_atomically
from kster.formats import Pair, read_pairs
from kster.training.recipe import load_settings

RECIPE = "recipe.yaml"
FEWEST = 100  # pairs; fewer teach nothing, and leave nothing to judge by
_RUNS = 4  # runs of neighbouring lines held out for the smoother: like four customers
_RUN_SHARE = 0.01  # of all pairs, in each run
_LONGEST_RUN = 5_000
_SHORTEST_RUN = 60  # below, there is no text to spare for a smoother
_CHARACTERS = 4  # a token has, roughly


def recipe_from_pairs(
    files: Sequence[Path], source_lang: str, target_lang: str, output: Path, *, seed: int = 1
) -> Path:
    """Write `output`/recipe.yaml, and the text it trains on beside it; an earlier one is used as it is.

    files: TMX, XLIFF, PO, TSV, CSV, or for line-aligned text what comes before `.LANG` in both names.
    """
    recipe = output / RECIPE
    if recipe.is_file():
        languages = load_settings(recipe).languages
        if languages != (source_lang, target_lang):
            raise KsterError(
                f"{recipe} is for {' → '.join(languages)}; it was left untouched: choose another output"
            )
        return recipe
    pairs = list(dict.fromkeys(_read(files, source_lang, target_lang)))
    if len(pairs) < FEWEST:
        names = ", ".join(map(str, files))
        raise KsterError(
            f"{names}: {len(pairs)} pairs of {source_lang} and {target_lang}; a model needs at least {FEWEST}"
        )
    runs, rest = _without_runs(pairs)
    dice = random.Random(seed)
    held_out = set(dice.sample(range(len(rest)), min(1_000, len(rest) // 20)))
    parts = {
        "train": [pair for i, pair in enumerate(rest) if i not in held_out],
        "dev": [rest[i] for i in sorted(held_out)],
        **{f"domain{i}": run for i, run in enumerate(runs)},
    }
    for name, part in parts.items():
        for side, language in enumerate((source_lang, target_lang)):
            path = output / "text" / f"{name}.{language}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{pair[side]}\n" for pair in part), encoding="utf-8")

    def files_of(name: str) -> dict[str, Any]:
        return {"name": name, "source": f"{name}.{source_lang}", "target": f"{name}.{target_lang}"}

    content: dict[str, Any] = {
        "source_lang": source_lang,
        "target_lang": target_lang,
        "data": str(output / "text"),
        "prepared": str(output / "prepared"),
        "output": str(output),
        "corpora": [files_of("train")],
        "dev": files_of("dev"),
        "seed": seed,
        **scaled(parts["train"]),
    }
    if runs:
        domains = [files_of(name) for name in parts if name.startswith("domain")]
        content["smoother"] = {"domains": domains, "general": [files_of("dev")], "steps": 400}
    text = f"# Written for {', '.join(map(str, files))}; every key is explained in recipes/example.yaml.\n"
    text += yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    write_atomically(recipe, text.encode())
    return recipe


def scaled(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The keys of a recipe that depend on how much text there is: little text, a small network for long."""
    count = len(pairs)
    tokens = sum(max(map(len, pair)) for pair in pairs) // _CHARACTERS
    batch = min(40_000, max(2_000, tokens // 60))
    steps = min(20_000, max(300, 30 * tokens // batch))
    wide = count >= 50_000
    return {
        "vocabulary": {"size": min(16_000, max(1_000, count // 1_000 * 100))},
        "network": {
            "preset": "small",
            "dimension": 512 if wide else 256,
            "feed_forward": 2048 if wide else 1024,
            "heads": 8 if wide else 4,
        },
        "training": {
            "steps": steps,
            "batch_tokens": batch,
            "warmup_steps": min(1_500, steps // 6),
            "dropout": 0.1 if count >= 500_000 else 0.2 if wide else 0.3,
            "average_decay": 0.9995 if steps >= 5_000 else 0.99,
            "compile": "auto",
        },
        "report": {"dev_every": min(1_000, max(50, steps // 10)), "dev_pairs": 1_000},
    }


def _read(files: Iterable[Path], source_lang: str, target_lang: str) -> Iterator[tuple[str, str]]:
    for path in files:
        line_aligned = None if path.exists() else "moses"
        for found in read_pairs(path, source_lang, target_lang, format=line_aligned):
            if isinstance(found, Pair):
                source, target = (" ".join(text.splitlines()) for text in (found.source, found.target))
                yield source, target


def _without_runs(
    pairs: list[tuple[str, str]],
) -> tuple[list[list[tuple[str, str]]], list[tuple[str, str]]]:
    """Runs of neighbouring pairs from all over the text, and what is left; no runs of a short text."""
    length = min(_LONGEST_RUN, max(_SHORTEST_RUN, int(_RUN_SHARE * len(pairs))))
    if len(pairs) < 20 * length:
        return [], pairs
    starts = [i * len(pairs) // _RUNS for i in range(_RUNS)]
    runs = [pairs[start : start + length] for start in starts]
    taken = {i for start in starts for i in range(start, start + length)}
    return runs, [pair for i, pair in enumerate(pairs) if i not in taken]
