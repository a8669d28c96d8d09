"""Smoothing: kernels, bandwidth and mixing weight (section 3 of the paper); kNN-MT as the fixed case."""

from kster.smoothing.defaults import SAFE_KNN, ResolvedSmoother, resolve_smoother, smoother_problems
from kster.smoothing.fit import fit
from kster.smoothing.fit_settings import FitSettings
from kster.smoothing.mixing import mix
from kster.smoothing.report import FitReport, TuneReport
from kster.smoothing.settings import SmootherSettings
from kster.smoothing.smoother import Smoother, Smoothing
from kster.smoothing.tune import tune

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
