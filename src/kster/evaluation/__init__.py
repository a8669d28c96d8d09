"""Evaluation: BLEU and chrF as sacreBLEU computes them, with signatures and paired significance.

report = evaluate({"base": base_lines, "kster": kster_lines}, reference_lines)
print(report.to_markdown())
"""

from kster.evaluation.report import EvaluationReport, MetricResult, SystemResult
from kster.evaluation.scoring import evaluate

__all__ = ["EvaluationReport", "MetricResult", "SystemResult", "evaluate"]
