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
from ._verbs.alarm import Alarm
from ._verbs.answer_confidence import (
    p_true,
    self_consistency,
    sequence_probability,
)
from ._verbs.by_group import by_group, macro_average
from ._verbs.calibration_bracket import Bracket, calibration_bracket
from ._verbs.calibration_test import CalibrationTest, calibration_test
from ._verbs.canonical_calibration_error import (
    CanonicalError,
    canonical_calibration_error,
)
from ._verbs.choose_bandwidth import BandwidthChoice, choose_bandwidth
from ._verbs.clinical import Clinical, clinical, skill
from ._verbs.compare import Contrast, compare
from ._verbs.compare_groups import EqualityTest, Groups, compare_groups
from ._verbs.confidence_split import ConfidenceSplit, confidence_split
from ._verbs.cutoff_error import CutoffError, cutoff_error
from ._verbs.decisions import DecisionCurve, Murphy, decision_curve, murphy
from ._verbs.dirichlet_ece import dirichlet_ece
from ._verbs.evaluate import evaluate, evaluate_pairs
from ._verbs.find_slices import find_slices
from ._verbs.grouping_loss import LossParts, grouping_loss, loss_parts
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
    aurc,
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
from ._verbs.risk_coverage import RiskCoverage, risk_coverage
from ._verbs.selection import Selection
from ._verbs.smooth_calibration_error import smooth_calibration_error
from ._verbs.study import Study, study
from ._verbs.t_cal import TCal, t_cal

__version__: str
__all__ = [
    "Alarm",
    "BandwidthChoice",
    "Bins",
    "Bracket",
    "CalibrationTest",
    "CanonicalError",
    "Clinical",
    "Comparison",
    "ConfidenceSplit",
    "Contrast",
    "Corp",
    "Curve",
    "CutoffError",
    "DecisionCurve",
    "Decomposition",
    "Divergence",
    "Effect",
    "EqualityTest",
    "Estimate",
    "Evaluation",
    "Finding",
    "Groups",
    "KernelError",
    "LossParts",
    "Monitor",
    "Multicalibration",
    "Murphy",
    "PaperSpread",
    "RiskCoverage",
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
    "aurc",
    "auroc",
    "brier",
    "by_group",
    "calibration_bracket",
    "calibration_error",
    "calibration_test",
    "canonical_calibration_error",
    "choose_bandwidth",
    "classwise_ece",
    "clinical",
    "compare",
    "compare_groups",
    "confidence_gap",
    "confidence_split",
    "corp",
    "cutoff_error",
    "decision_curve",
    "dirichlet_ece",
    "ece",
    "evaluate",
    "evaluate_pairs",
    "files",
    "find_slices",
    "full_vector_ece",
    "grouping_loss",
    "kernel_calibration_error",
    "ks_error",
    "logit_smoothed_ece",
    "loss_parts",
    "macro_average",
    "mce",
    "mmce",
    "monitor",
    "multicalibration_error",
    "murphy",
    "nll",
    "p_true",
    "paper_spread",
    "plot",
    "recalibration",
    "register_divergence",
    "report",
    "risk_coverage",
    "scorers",
    "self_consistency",
    "sequence_probability",
    "sketch_frame",
    "skill",
    "smooth_calibration_error",
    "smooth_ece",
    "study",
    "t_cal",
    "table",
    "terminal",
    "top_label_ece",
]
