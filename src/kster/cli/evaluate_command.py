"""`kster evaluate`: the methods side by side on text with a reference."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kster.cli.lines import paired_lines
from kster.cli.loading import open_translator
from kster.cli.options import (
    BatchSentences,
    Beam,
    Device,
    Json,
    LengthPenalty,
    Memories,
    Methods,
    Model,
    Precision,
    SourceLang,
    TargetLang,
    chosen_methods,
)
from kster.cli.output import emit, emit_json, on_terminal, table
from kster.cli.progress import progress_bar
from kster.errors import KsterError

if TYPE_CHECKING:
    from kster.evaluation import EvaluationReport
    from kster.translation import Translator


@dataclass(frozen=True, slots=True)
class _Decoding:
    beam: int
    length_penalty: float | None
    batch_sentences: int | None


def evaluate(
    source: Annotated[
        Path, typer.Option(metavar="FILE", help="Source texts, one a line.", show_default=False)
    ],
    reference: Annotated[Path, typer.Option(metavar="FILE", help="Their translations.", show_default=False)],
    memory: Memories = None,
    model: Model = None,
    methods: Methods = None,
    beam: Beam = 4,
    length_penalty: LengthPenalty = None,
    batch_sentences: BatchSentences = None,
    resamples: Annotated[int, typer.Option(min=1, help="Of the paired bootstrap.")] = 1_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the paired bootstrap.")] = 12345,
    tokenize: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="BLEU's tokenizer.", show_default="13a, or the language's"),
    ] = None,
    output_dir: Annotated[
        Path | None, typer.Option("--output-dir", metavar="DIR", help="Keep the translations there.")
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
        if not file.is_file():
            raise KsterError(f"{file}: no such file")
    chosen = chosen_methods(methods, with_memory=bool(memory))
    pairs = list(paired_lines(source, reference))
    sources, references = [one for one, _ in pairs], [other for _, other in pairs]
    translator = open_translator(memory or [], model, device, source_lang, target_lang, precision)
    decoding = _Decoding(beam, length_penalty, batch_sentences)
    hypotheses = {method: _translate(translator, sources, method, decoding) for method in chosen}
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


def _translate(translator: Translator, sources: list[str], method: str, decoding: _Decoding) -> list[str]:
    with progress_bar(f"translating with {method}", "sentences", len(sources)) as show:
        translations = translator.translate(  # type: ignore[call-overload]
            sources,
            method=method,
            beam=decoding.beam,
            length_penalty=decoding.length_penalty,
            batch_sentences=decoding.batch_sentences,
            progress=lambda sentences: show(min(sentences, len(sources))),  # of which a line may have several
        )
    return [translation.text for translation in translations]


def _smoothers(translator: Translator, methods: list[str]) -> dict[str, Any]:
    """Where the smoother of each method came from: its memory, its model, or nowhere (safe kNN-MT)."""
    found = {method: translator.resolve(method) for method in methods}  # type: ignore[arg-type]
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
