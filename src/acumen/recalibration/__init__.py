"""Recalibration: learn on held-out rows how to turn scores into better probabilities."""

from __future__ import annotations

from acumen.recalibration.estimator import FitWarning, Recalibrator
from acumen.recalibration.temperature import TemperatureScaling
from acumen.recalibration.trivial import Identity, MeanReplacement

__all__ = [
    "FitWarning",
    "Identity",
    "MeanReplacement",
    "Recalibrator",
    "TemperatureScaling",
    "load",
]

load = Recalibrator.load
