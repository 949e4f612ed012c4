from ._affine import DirichletCalibration, MatrixScaling, VectorScaling
from ._classifier import RecalibratedClassifier
from ._estimator import FitWarning, Recalibrator, load
from ._histogram import HistogramBinning
from ._isotonic import IsotonicCalibration
from ._logistic import BetaCalibration, PlattScaling
from ._temperature import EnsembleTemperatureScaling, TemperatureScaling
from ._trivial import Identity, MeanReplacement

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
