"""`kster fit` and `kster tune`: how much to believe a memory's examples, learned from text."""

from __future__ import annotations

import json as json_module
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kster.cli.loading import open_with_model
from kster.cli.options import Device, Directory, Json, Model
from kster.cli.output import emit_result, facts, if_interrupted, note
from kster.cli.progress import progress_bar, progress_bars
from kster.errors import KsterError
from kster.limits import LARGEST_K
from kster.typed_settings import read_dataclass

if TYPE_CHECKING:
    from kster.formats import Pair
    from kster.model import BaseModel
    from kster.smoothing import FitReport
    from kster.smoothing.fitting.report import Calibration, DevResult, Distribution

DevSource = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Development text that decides when to stop, one text per line, with …"
    ),
]
DevTarget = Annotated[Path | None, typer.Option(metavar="FILE", help="… its translations.")]
FIT_PHASES = {
    "keys": "segments",
    "caching": "words",
    "fitting": "steps",
    "measuring": "steps",
    "translating": "sentences",
    "judging": "sentences",
}


def fit(
    directory: Directory,
    kernel: Annotated[
        str | None, typer.Option(metavar="KERNEL", help="laplacian or gaussian.", show_default="laplacian")
    ] = None,
    dev_source: DevSource = None,
    dev_target: DevTarget = None,
    general_source: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="General text, from which a fit learns when to leave the memory aside, with …",
            show_default="text that ships for English and German",
        ),
    ] = None,
    general_target: Annotated[Path | None, typer.Option(metavar="FILE", help="… its translations.")] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="Use the paper's recipe, with its 30,000 steps, as the defaults.")
    ] = False,
    k: Annotated[
        int | None,
        typer.Option(
            min=1, max=LARGEST_K, help="How many examples to look up for each word.", show_default="16"
        ),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="At most this many steps.", show_default="400")] = None,
    metric: Annotated[
        int | None,
        typer.Option(
            help="Also learn a distance with a matrix of this many rows (such as 128); kept if it helps.",
            show_default="0, none",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(show_default="1")] = None,
    set: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="Any other field of `FitSettings` (keep_rate=0.2); repeatable."
        ),
    ] = None,
    model: Model = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Learn how much to believe a memory's examples: its bandwidth and mixing weight (KSTER).

    What is learned is the memory's smoother: two small networks that say for each word how far an example
    may be away and still count (bandwidth σ), and how much the examples weigh beside the model (mixing
    weight λ).
    Without a fit the model's own smoother is used. Fit when a memory has a few hundred segments or more, and
    again when it has doubled. Losses are in nats a word: minus the natural logarithm of its probability.

    An earlier fit stays in use until this one is done. Without development text, some of the memory's own
    segments are held out to decide when to stop.
    """
    from kster.smoothing import FitSettings
    from kster.smoothing import fit as fit_smoother

    named = {"kernel": kernel, "k": k, "steps": steps, "metric": metric, "seed": seed}
    given = {name: value for name, value in named.items() if value is not None} | _settings(set or [])
    recipe = asdict(FitSettings.paper() if paper else FitSettings())
    settings = read_dataclass(FitSettings, recipe | given, file="--set")
    dev = _pairs("dev", dev_source, dev_target)
    general = _pairs("general", general_source, general_target)
    with (
        _unless_interrupted(),
        open_with_model(directory, model, device) as memory,
        progress_bars(FIT_PHASES) as show,
    ):
        report = fit_smoother(
            memory.model,
            memory,
            settings,
            _readable(memory.model, dev, dev_source),
            general=_readable(memory.model, general, general_source),
            progress=show,
        )
    emit_result(report, _fit_summary(directory, report), json=json)


def tune(
    directory: Directory,
    dev_source: DevSource = None,
    dev_target: DevTarget = None,
    kernel: Annotated[str, typer.Option(metavar="KERNEL", help="gaussian or laplacian.")] = "gaussian",
    model: Model = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Choose kNN-MT's number of neighbours, temperature and weight on development text.

    kNN-MT is the older method: how much the nearest examples count is the same for every word, while KSTER
    (`kster fit`) learns it for each word.

    Without development text the memory's own segments are used, each as if it were not in the memory.
    """
    from kster.smoothing import tune as tune_knn

    dev = _pairs("dev", dev_source, dev_target)
    with (
        _unless_interrupted(),
        open_with_model(directory, model, device) as memory,
        progress_bar("caching", "words") as show,
    ):
        readable = _readable(memory.model, dev, dev_source)
        report = tune_knn(memory.model, memory, readable, kernel=kernel, progress=show)  # type: ignore[arg-type]
    best = report.best
    shown = {
        "best of": f"{len(report.trials):,} combinations on {report.tokens:,} words ({report.dev_origin})",
        "k": f"{best.k}",
        "temperature": f"{best.bandwidth:.4g} ({report.kernel} kernel)",
        "weight": f"{best.mixing_weight:.2f}",
        "loss a word": f"base {report.base_nll:.3f}, kNN-MT {best.nll:.3f}",
        "saved in": _saved_in(directory, "knn"),
    }
    emit_result(report, facts(shown), json=json)


def _settings(items: list[str]) -> dict[str, Any]:
    """["steps=100", "dropout=none"] → {"steps": 100, "dropout": "none"}."""
    found: dict[str, Any] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise KsterError(f"--set {item}: expected KEY=VALUE")
        try:
            found[key] = json_module.loads(value)
        except ValueError:
            found[key] = value  # text
    return found


def _unless_interrupted() -> AbstractContextManager[None]:
    return if_interrupted("nothing was saved; the memory is as it was, with its earlier fit if it has one")


def _pairs(name: str, source: Path | None, target: Path | None) -> list[Pair] | None:
    """The usable pairs of --NAME-source and --NAME-target."""
    from kster.formats import Pair, read_moses

    if source is None and target is None:
        return None
    if source is None or target is None:
        raise KsterError(f"--{name}-source and --{name}-target belong together")
    items = list(read_moses(source, target))
    pairs = [item for item in items if isinstance(item, Pair)]
    if not pairs:
        raise KsterError(f"{source}: has no usable pairs")
    if left_out := len(items) - len(pairs):
        note(f"{source}: {left_out:,} of {len(items):,} lines are empty or unusable and left out")
    return pairs


def _readable(
    model: BaseModel, pairs: list[Pair] | None, source: Path | None
) -> list[tuple[str, str]] | None:
    """The pairs that are not too long for the model, by the rule of an import."""
    from kster.memory.adding import too_long

    if pairs is None:
        return None
    texts = [(pair.source, pair.target) for pair in pairs]
    reasons = too_long(model, texts)
    kept = [text for text, reason in zip(texts, reasons, strict=True) if reason is None]
    for pair, reason in zip(pairs, reasons, strict=True):
        if reason is not None:
            note(f"{source}, line {pair.line}: left out, {reason}")
    if not kept:
        raise KsterError(f"{source}: every line is too long for the model, or its translation is")
    return kept


def _distance(report: FitReport) -> str:
    if report.metric:
        return f"learned ({report.metric} rows)"
    return "plain; a learned one was not clearly better on the development text"


def _length(report: FitReport) -> str:
    tried = ", ".join(f"{ratio:.2f} with {penalty}" for penalty, ratio in report.lengths.items())
    return f"{report.length_penalty} (translations have {tried} of the references' length)"


def _calibration(found: Calibration) -> str:
    return (
        f"mean {found.believed:.2f} where {found.right:.2f} of {found.sentences} sentences are right; odds "
        f"shifted by {found.shift:+.2f}"
    )


def _fit_summary(directory: Path, report: FitReport) -> str:
    learned = f"{report.train_tokens:,} words of {report.train_segments:,} segments"
    if report.general_tokens:
        learned += f" and {report.general_tokens:,} of general text"
    shown = {"learned from": learned, "loss a word, dev": _losses(report.dev, f", {report.dev_origin}")}
    if report.general:
        shown["loss a word, general"] = _losses(report.general)
    if report.settings.get("metric"):
        shown["distance"] = _distance(report)
    shown["mixing weight λ"] = _mean_and_middle(report.mixing_weight)
    shown["bandwidth σ"] = _mean_and_middle(report.bandwidth)
    if report.length_penalty is not None:
        shown["length penalty"] = _length(report)
    if report.calibration is not None:
        shown["confidence"] = _calibration(report.calibration)
    shown["took"] = f"{report.seconds.get('total', 0.0):.0f} s"
    if not report.model_smoother_stays:
        shown["saved in"] = _saved_in(directory, "kster")
    return facts(shown)


def _losses(result: DevResult, origin: str = "") -> str:
    return (
        f"base {result.base:.3f}, tuned kNN-MT {result.knn:.3f}, KSTER {result.kster:.3f} "
        f"({result.tokens:,} words{origin})"
    )


def _saved_in(directory: Path, method: str) -> str:
    return f"{directory / 'smoother'}, used by --method {method}"


def _mean_and_middle(values: Distribution) -> str:
    quantiles = values.quantiles
    return f"mean {values.mean:.3g}, middle half {quantiles['0.25']:.3g} … {quantiles['0.75']:.3g}"
