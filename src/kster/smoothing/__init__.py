"""Smoothing: kernels, bandwidth and mixing weight (section 3 of the paper); kNN-MT as the fixed case."""

from kster.smoothing.defaults import SAFE_KNN, ResolvedSmoother, resolve_smoother, smoother_problems
from kster.smoothing.fitting.fit import fit
from kster.smoothing.fitting.report import FitReport, TuneReport
from kster.smoothing.fitting.settings import FitSettings
from kster.smoothing.fitting.tune import tune
from kster.smoothing.mixing import mix
from kster.smoothing.settings import SmootherSettings
from kster.smoothing.smoother import Smoother, Smoothing

__all__ = [
    "SAFE_KNN",
    "FitReport",
    "FitSettings",
    "ResolvedSmoother",
    "Smoother",
    "SmootherSettings",
    "Smoothing",
    "TuneReport",
    "fit",
    "mix",
    "resolve_smoother",
    "smoother_problems",
    "tune",
]
