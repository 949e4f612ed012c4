from . import audit, files, plot, recalibration, report, table, terminal
from ._base.comparison import Comparison, Effect
from ._base.evaluation import Evaluation
from ._base.records import (
    Bins,
    Corp,
    Curve,
    Decomposition,
    Estimate,
    Finding,
    SmoothCurve,
)
from ._inputs.divergences import Divergence, register_divergence
from ._sketch.frames import sketch_frame
from ._sketch.sketch import Sketch
from ._verbs.alarm import Alarm
from ._verbs.calibration_bracket import Bracket, calibration_bracket
from ._verbs.calibration_test import CalibrationTest, calibration_test
from ._verbs.canonical_calibration_error import (
    CanonicalError,
    canonical_calibration_error,
)
from ._verbs.choose_bandwidth import BandwidthChoice, choose_bandwidth
from ._verbs.compare import Contrast, compare
from ._verbs.compare_groups import EqualityTest, Groups, compare_groups
from ._verbs.confidence_split import ConfidenceSplit, confidence_split
from ._verbs.evaluate import evaluate, evaluate_pairs
from ._verbs.find_slices import find_slices
from ._verbs.grouping_loss import LossParts, grouping_loss, loss_parts
from ._verbs.metric_functions import (
    PaperSpread,
    Scorer,
    accuracy,
    ace,
    auroc,
    brier,
    calibration_error,
    classwise_ece,
    confidence_gap,
    corp,
    ece,
    full_vector_ece,
    ks_error,
    logit_smoothed_ece,
    mce,
    nll,
    paper_spread,
    scorers,
    smooth_ece,
    top_label_ece,
)
from ._verbs.monitor import Monitor, monitor
from ._verbs.multicalibration_error import Multicalibration, multicalibration_error
from ._verbs.study import Study, study

__version__: str
__all__ = [
    "Alarm",
    "BandwidthChoice",
    "Bins",
    "Bracket",
    "CalibrationTest",
    "CanonicalError",
    "Comparison",
    "ConfidenceSplit",
    "Contrast",
    "Corp",
    "Curve",
    "Decomposition",
    "Divergence",
    "Effect",
    "EqualityTest",
    "Estimate",
    "Evaluation",
    "Finding",
    "Groups",
    "LossParts",
    "Monitor",
    "Multicalibration",
    "PaperSpread",
    "Scorer",
    "Sketch",
    "SmoothCurve",
    "Study",
    "accuracy",
    "ace",
    "audit",
    "auroc",
    "brier",
    "calibration_bracket",
    "calibration_error",
    "calibration_test",
    "canonical_calibration_error",
    "choose_bandwidth",
    "classwise_ece",
    "compare",
    "compare_groups",
    "confidence_gap",
    "confidence_split",
    "corp",
    "ece",
    "evaluate",
    "evaluate_pairs",
    "files",
    "find_slices",
    "full_vector_ece",
    "grouping_loss",
    "ks_error",
    "logit_smoothed_ece",
    "loss_parts",
    "mce",
    "monitor",
    "multicalibration_error",
    "nll",
    "paper_spread",
    "plot",
    "recalibration",
    "register_divergence",
    "report",
    "scorers",
    "sketch_frame",
    "smooth_ece",
    "study",
    "table",
    "terminal",
    "top_label_ece",
]
