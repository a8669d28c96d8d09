"""`python -m kster.training CONFIG`: training on a machine where the full command line is not installed."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import yaml

from kster.errors import KsterError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kster.training", description=__doc__)
    parser.add_argument("config", help="YAML file; see recipes/example.yaml")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a key")
    parser.add_argument("--max-seconds", type=float, help="stop with a checkpoint after this many seconds")
    parser.add_argument("--prepare-only", action="store_true", help="prepare the data and stop")
    options = parser.parse_args(arguments)
    try:
        from kster.training import train
        from kster.training.distributed import is_first

        report = train(
            options.config,
            overrides=parse_overrides(options.set),
            prepare_only=options.prepare_only,
            max_seconds=options.max_seconds,
        )
    except KsterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if report.finished and is_first():
        print(f"finished in {report.seconds:.0f} s: {report.model}")
    return 128 + report.stopped_by if report.stopped_by else 0  # as shells report it


def parse_overrides(items: list[str]) -> dict[str, Any]:
    """["training.steps=100", …] → {"training.steps": 100, …}; values are read as YAML."""
    overrides = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise KsterError(f"--set {item}: expected KEY=VALUE")
        try:
            overrides[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise KsterError(f"--set {item}: {value!r} is not valid YAML") from error
    return overrides


if __name__ == "__main__":
    sys.exit(main())
