"""Recalibration: learn on held-out rows how to turn scores into better probabilities.

Every method has the contract of a scikit-learn classifier: ``fit(scores, y)``, then
``predict_proba(scores)``. `save` writes JSON, and `load` reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acumen.recalibration.affine import (
    DirichletCalibration,
    MatrixScaling,
    VectorScaling,
)
from acumen.recalibration.ensemble import EnsembleTemperatureScaling
from acumen.recalibration.estimator import FitWarning, Recalibrator, load
from acumen.recalibration.histogram import HistogramBinning
from acumen.recalibration.isotonic import IsotonicCalibration
from acumen.recalibration.logistic import BetaCalibration, PlattScaling
from acumen.recalibration.temperature import TemperatureScaling
from acumen.recalibration.trivial import Identity, MeanReplacement

if TYPE_CHECKING:
    from acumen.recalibration.classifier import RecalibratedClassifier

__all__ = [
    "BetaCalibration",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "FitWarning",
    "HistogramBinning",
    "Identity",
    "IsotonicCalibration",
    "MatrixScaling",
    "MeanReplacement",
    "PlattScaling",
    "RecalibratedClassifier",
    "Recalibrator",
    "TemperatureScaling",
    "VectorScaling",
    "load",
]


def __getattr__(name: str) -> Any:
    """Load the one class that needs scikit-learn when it is asked for."""
    if name == "RecalibratedClassifier":
        from acumen.recalibration.classifier import RecalibratedClassifier

        return RecalibratedClassifier
    raise AttributeError(f"module 'acumen.recalibration' has no attribute {name!r}")
