from ._affine import DirichletCalibration, MatrixScaling, VectorScaling
from ._classifier import RecalibratedClassifier
from ._estimator import FitWarning, Recalibrator, load
from ._histogram import HistogramBinning
from ._isotonic import IsotonicCalibration
from ._logistic import BetaCalibration, PlattScaling
from ._mixture import AdaptiveTemperatureScaling, MixtureScaling
from ._prior import OffsetScaling, PriorShift
from ._temperature import EnsembleTemperatureScaling, TemperatureScaling
from ._top_label_binning import TopLabelBinning
from ._trivial import Identity, MeanReplacement
from ._venn_abers import VennAbers

__all__ = [
    "AdaptiveTemperatureScaling",
    "BetaCalibration",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "FitWarning",
    "HistogramBinning",
    "Identity",
    "IsotonicCalibration",
    "MatrixScaling",
    "MeanReplacement",
    "MixtureScaling",
    "OffsetScaling",
    "PlattScaling",
    "PriorShift",
    "RecalibratedClassifier",
    "Recalibrator",
    "TemperatureScaling",
    "TopLabelBinning",
    "VectorScaling",
    "VennAbers",
    "load",
]
