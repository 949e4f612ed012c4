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
from ._inputs.targets import Target
from ._sketch.frames import sketch_frame
from ._sketch.sketch import Sketch
from ._verbs.calibration_bracket import Bracket, calibration_bracket
from ._verbs.calibration_test import CalibrationTest, calibration_test
from ._verbs.canonical_calibration_error import (
    CanonicalError,
    canonical_calibration_error,
)
from ._verbs.choose_bandwidth import BandwidthChoice, choose_bandwidth
from ._verbs.compare import Contrast, compare
from ._verbs.confidence_split import ConfidenceSplit, confidence_split
from ._verbs.dirichlet_ece import dirichlet_ece
from ._verbs.evaluate import evaluate, evaluate_pairs
from ._verbs.kernel_calibration_error import (
    KernelError,
    kernel_calibration_error,
    mmce,
)
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
from ._verbs.selection import Selection
from ._verbs.smooth_calibration_error import smooth_calibration_error
from ._verbs.study import Study, study
from ._verbs.t_cal import TCal, t_cal

__version__: str
__all__ = [
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
    "Estimate",
    "Evaluation",
    "Finding",
    "KernelError",
    "PaperSpread",
    "Scorer",
    "Selection",
    "Sketch",
    "SmoothCurve",
    "Study",
    "TCal",
    "Target",
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
    "confidence_gap",
    "confidence_split",
    "corp",
    "dirichlet_ece",
    "ece",
    "evaluate",
    "evaluate_pairs",
    "files",
    "full_vector_ece",
    "kernel_calibration_error",
    "ks_error",
    "logit_smoothed_ece",
    "mce",
    "mmce",
    "nll",
    "paper_spread",
    "plot",
    "recalibration",
    "register_divergence",
    "report",
    "scorers",
    "sketch_frame",
    "smooth_calibration_error",
    "smooth_ece",
    "study",
    "t_cal",
    "table",
    "terminal",
    "top_label_ece",
]
