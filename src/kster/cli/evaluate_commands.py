"""`kster evaluate` and `kster score`: the methods side by side, on text whose translations are given."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kster.cli.lines import file_lines, paired_lines, require_file
from kster.cli.loading import open_translator
from kster.cli.options import (
    BatchSentences,
    Beam,
    Device,
    Json,
    LengthPenalty,
    Memories,
    Method,
    Methods,
    Model,
    Precision,
    SourceLang,
    TargetLang,
    chosen_methods,
)
from kster.cli.output import as_json, emit, emit_json, flush, on_terminal, table
from kster.cli.progress import is_watched, progress_bar
from kster.errors import KsterError

if TYPE_CHECKING:
    from kster.evaluation import EvaluationReport
    from kster.translation import Translator
    from kster.translation.translator import TranslateOptions

BLOCK = 1_024  # pairs scored at a time

SourceFile = Annotated[Path, typer.Option(metavar="FILE", help="Source texts, one per line.")]
TargetFile = Annotated[Path, typer.Option(metavar="FILE", help="Their translations.")]


def evaluate(
    source: SourceFile,
    reference: TargetFile,
    memory: Memories = None,
    model: Model = None,
    methods: Methods = None,
    beam: Beam = 4,
    length_penalty: LengthPenalty = None,
    batch_sentences: BatchSentences = None,
    resamples: Annotated[int, typer.Option(min=1, help="Samples of the paired bootstrap.")] = 1_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the paired bootstrap.")] = 12345,
    tokenize: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="BLEU's tokenizer.", show_default="13a, or the language's"),
    ] = None,
    output_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write the translations to this directory.")
    ] = None,
    device: Device = "auto",
    precision: Precision = "auto",
    source_lang: SourceLang = None,
    target_lang: TargetLang = None,
    json: Json = False,
) -> None:
    """Translate with each method and compare: BLEU and chrF by sacreBLEU, significance against the first.

    A table on a terminal, Markdown elsewhere.
    """
    from kster.evaluation import evaluate as evaluate_hypotheses

    for file in (source, reference):
        require_file(file)
    chosen = chosen_methods(methods, with_memory=bool(memory))
    pairs = list(paired_lines(source, reference))
    sources, references = [one for one, _ in pairs], [other for _, other in pairs]
    translator = open_translator(
        memory, model, device=device, precision=precision, source_lang=source_lang, target_lang=target_lang
    )
    options: TranslateOptions = {
        "beam": beam,
        "length_penalty": length_penalty,
        "batch_sentences": batch_sentences,
    }
    hypotheses: dict[str, list[str]] = {
        method: _translate(translator, sources, method, options) for method in chosen
    }
    report = evaluate_hypotheses(
        hypotheses,
        references,
        target_lang=translator.model.target_lang,
        tokenize=tokenize,
        resamples=resamples,
        seed=seed,
    )
    if output_dir is not None:
        _keep(output_dir, hypotheses, report)
    if json:
        emit_json({**report.to_json(), "smoothers": _smoothers(translator, chosen)})
    elif on_terminal():
        emit(table(report.rows()) + "\n\n" + "\n".join(report.notes()))
    else:
        emit(report.to_markdown(), end="")


def _translate(
    translator: Translator, sources: list[str], method: Method, options: TranslateOptions
) -> list[str]:
    with progress_bar(f"translating with {method}", "sentences", len(sources)) as show:
        options = {
            **options,
            "method": method,
            "progress": lambda sentences: show(min(sentences, len(sources))),  # a line may have several
        }
        return [translation.text for translation in translator.translate(sources, **options)]


def _smoothers(translator: Translator, methods: list[Method]) -> dict[str, Any]:
    """Where the smoother of each method came from: its memory, its model, or what ships with KSTER."""
    found = {method: translator.resolve(method) for method in methods}
    return {
        method: {"origin": resolved.origin, "path": str(resolved.path) if resolved.path else None}
        for method, resolved in found.items()
        if resolved is not None
    }


def _keep(directory: Path, hypotheses: dict[str, list[str]], report: EvaluationReport) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for method, lines in hypotheses.items():
        text = "".join(line.replace("\n", " ") + "\n" for line in lines)
        (directory / f"{method}.txt").write_text(text, encoding="utf-8", newline="\n")
    (directory / "report.md").write_text(report.to_markdown(), encoding="utf-8", newline="\n")


def score(
    source: SourceFile,
    target: TargetFile,
    memory: Memories = None,
    model: Model = None,
    methods: Methods = None,
    device: Device = "auto",
    precision: Precision = "auto",
    source_lang: SourceLang = None,
    target_lang: TargetLang = None,
    json: Annotated[bool, typer.Option("--json", help="Write one JSON object per line.")] = False,
) -> None:
    """Write the log-probability of each translation, end of sentence included.

    One line for each pair; with several methods one column for each, separated by tabs.
    """
    for file in (source, target):
        require_file(file)
    chosen = chosen_methods(methods, with_memory=bool(memory))
    translator = open_translator(
        memory, model, device=device, precision=precision, source_lang=source_lang, target_lang=target_lang
    )
    pairs = paired_lines(source, target)
    done = 0
    total = sum(1 for _ in file_lines(source)) if is_watched() else None
    with progress_bar("scoring", "pairs", total) as show:
        while block := list(islice(pairs, BLOCK)):
            sources, targets = [one for one, _ in block], [other for _, other in block]
            try:
                columns = [translator.score(sources, targets, method=method) for method in chosen]
            except KsterError as error:
                raise KsterError(f"{source}, from line {done + 1}: {error}") from error
            for one, other, *scores in zip(sources, targets, *columns, strict=True):
                if json:
                    named = dict(zip(chosen, scores, strict=True))
                    emit(as_json({"source": one, "target": other, "scores": named}))
                else:
                    emit("\t".join(f"{value:.6f}" for value in scores))
            flush()
            done += len(block)
            show(done)
