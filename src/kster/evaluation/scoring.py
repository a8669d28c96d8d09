"""From hypotheses and references to a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kster.errors import KsterError
from kster.evaluation.bootstrap import Sample, resampled_totals
from kster.evaluation.report import EvaluationReport, MetricResult, SystemResult

RESAMPLES = 1_000
SEED = 12345  # sacreBLEU's own default, so that its command line gives the same p-values

# Written without spaces between words: BLEU's default tokenizer would see a sentence as one word.
_TOKENIZERS = {
    "zh": "zh",
    "zho": "zh",
    "ja": "char",
    "jpn": "char",
    "ko": "char",
    "kor": "char",
    "th": "char",
}


def evaluate(
    hypotheses: Mapping[str, Sequence[str]],
    references: Sequence[str],
    *,
    target_lang: str | None = None,
    tokenize: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> EvaluationReport:
    """Score systems by BLEU and chrF, and compare each with the first by paired bootstrap resampling.

    hypotheses: a system's name → its translations, one for each reference.
    tokenize: BLEU's tokenizer; by default sacreBLEU's 13a, or one that suits target_lang.
    """
    _check(hypotheses, references, resamples)
    systems: dict[str, dict[str, MetricResult]] = {name: {} for name in hypotheses}
    signatures = {}
    for metric in _metrics(tokenize or _tokenizer(target_lang)):
        name, signature, results = _compare(metric, hypotheses, list(references), resamples, seed)
        signatures[name] = signature
        for system, result in results.items():
            systems[system][name] = result
    return EvaluationReport(
        systems=tuple(SystemResult(name, metrics) for name, metrics in systems.items()),
        signatures=signatures,
        sentences=len(references),
        resamples=resamples,
        seed=seed,
    )


def _check(hypotheses: Mapping[str, Sequence[str]], references: Sequence[str], resamples: int) -> None:
    if not hypotheses:
        raise KsterError("there is nothing to evaluate: no system was given")
    if not references:
        raise KsterError("there is nothing to evaluate: the reference is empty")
    for name, lines in hypotheses.items():
        if len(lines) != len(references):
            raise KsterError(
                f"{name} has {len(lines):,} translations but there are {len(references):,} references; "
                "they must pair up"
            )
    if resamples < 1:
        raise KsterError(f"resamples is {resamples}; accepted: at least 1")


def _tokenizer(target_lang: str | None) -> str:
    language = (target_lang or "").replace("_", "-").split("-")[0].lower()
    return _TOKENIZERS.get(language, "13a")


def _metrics(tokenize: str) -> tuple[Any, Any]:
    from sacrebleu.metrics import BLEU, CHRF
    from sacrebleu.metrics.bleu import _TOKENIZERS as known

    if tokenize not in known:
        raise KsterError(f"tokenize is {tokenize!r}; accepted: {', '.join(sorted(known))}")
    return BLEU(tokenize=tokenize), CHRF()


def _compare(
    metric: Any, hypotheses: Mapping[str, Sequence[str]], references: list[str], resamples: int, seed: int
) -> tuple[str, str, dict[str, MetricResult]]:
    """The metric's name, its signature, and every system's result."""
    baseline: Sample | None = None
    results = {}
    metric_name = ""
    for system, lines in hypotheses.items():
        # (sentences, statistics): counts that add up to those of the corpus
        statistics = metric._extract_corpus_statistics(list(lines), [references])
        whole = metric._aggregate_and_compute(statistics)
        metric_name = whole.name
        totals = resampled_totals(statistics, resamples, seed)
        sample = Sample(whole.score, [metric._compute_score_from_stats(row).score for row in totals])
        mean, confidence = sample.interval()
        p_value = None if baseline is None else sample.p_value(baseline)
        baseline = baseline or sample
        results[system] = MetricResult(whole.score, mean, confidence, p_value)
    signature = metric.get_signature()
    signature.update("bs", resamples)
    signature.update("seed", seed)
    return metric_name, str(signature), results
