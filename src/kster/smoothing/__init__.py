"""Smoothing: kernels, bandwidth and mixing weight (section 3 of the paper); kNN-MT as the fixed case."""

from kster.smoothing.defaults import SAFE_KNN, ResolvedSmoother, resolve_smoother
from kster.smoothing.mixing import mix
from kster.smoothing.settings import SmootherSettings
from kster.smoothing.smoother import Smoother, Smoothing

__all__ = [
    "SAFE_KNN",
    "ResolvedSmoother",
    "Smoother",
    "SmootherSettings",
    "Smoothing",
    "mix",
    "resolve_smoother",
]
