"""acumen: how well calibrated a classifier's probabilities are, and how sharp.

Start with `evaluate` (or `evaluate_pairs`) and print what it returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "evaluation": ("evaluate", "evaluate_pairs"),
    "engines.frames": ("sketch_frame",),
    "sketches.sketch": ("Sketch",),
    "canonical.error": ("CanonicalError", "canonical_calibration_error"),
    "second_opinions.bandwidth_choice": ("BandwidthChoice", "choose_bandwidth"),
    "second_opinions.bracket": ("Bracket", "calibration_bracket"),
    "second_opinions.confidence_split": ("ConfidenceSplit", "confidence_split"),
    "studies.study": ("Study", "study"),
    "contrasts.comparing": ("Contrast", "compare"),
    "comparison": ("Comparison", "Effect"),
    "calibration_tests.tests": ("CalibrationTest", "calibration_test"),
    "findings": ("Finding",),
    "bregman": ("Divergence", "register_divergence"),
    "results": (
        "Bins",
        "Corp",
        "Curve",
        "Decomposition",
        "Estimate",
        "Evaluation",
        "SmoothCurve",
    ),
    "binned_metrics": (
        "ace",
        "classwise_ece",
        "ece",
        "full_vector_ece",
        "mce",
        "top_label_ece",
    ),
    "metrics": (
        "accuracy",
        "auroc",
        "brier",
        "calibration_error",
        "confidence_gap",
        "corp",
        "ks_error",
        "logit_smoothed_ece",
        "nll",
        "smooth_ece",
    ),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

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
    "Sketch",
    "SmoothCurve",
    "Study",
    "accuracy",
    "ace",
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
    "ece",
    "evaluate",
    "evaluate_pairs",
    "full_vector_ece",
    "ks_error",
    "logit_smoothed_ece",
    "mce",
    "nll",
    "register_divergence",
    "sketch_frame",
    "smooth_ece",
    "study",
    "top_label_ece",
]

if TYPE_CHECKING:
    from acumen.binned_metrics import ace as ace
    from acumen.binned_metrics import classwise_ece as classwise_ece
    from acumen.binned_metrics import ece as ece
    from acumen.binned_metrics import full_vector_ece as full_vector_ece
    from acumen.binned_metrics import mce as mce
    from acumen.binned_metrics import top_label_ece as top_label_ece
    from acumen.bregman import Divergence as Divergence
    from acumen.bregman import register_divergence as register_divergence
    from acumen.calibration_tests.tests import CalibrationTest as CalibrationTest
    from acumen.calibration_tests.tests import calibration_test as calibration_test
    from acumen.canonical.error import CanonicalError as CanonicalError
    from acumen.canonical.error import (
        canonical_calibration_error as canonical_calibration_error,
    )
    from acumen.comparison import Comparison as Comparison
    from acumen.comparison import Effect as Effect
    from acumen.contrasts.comparing import Contrast as Contrast
    from acumen.contrasts.comparing import compare as compare
    from acumen.engines.frames import sketch_frame as sketch_frame
    from acumen.evaluation import evaluate as evaluate
    from acumen.evaluation import evaluate_pairs as evaluate_pairs
    from acumen.findings import Finding as Finding
    from acumen.metrics import accuracy as accuracy
    from acumen.metrics import auroc as auroc
    from acumen.metrics import brier as brier
    from acumen.metrics import calibration_error as calibration_error
    from acumen.metrics import confidence_gap as confidence_gap
    from acumen.metrics import corp as corp
    from acumen.metrics import ks_error as ks_error
    from acumen.metrics import logit_smoothed_ece as logit_smoothed_ece
    from acumen.metrics import nll as nll
    from acumen.metrics import smooth_ece as smooth_ece
    from acumen.results import Bins as Bins
    from acumen.results import Corp as Corp
    from acumen.results import Curve as Curve
    from acumen.results import Decomposition as Decomposition
    from acumen.results import Estimate as Estimate
    from acumen.results import Evaluation as Evaluation
    from acumen.results import SmoothCurve as SmoothCurve
    from acumen.second_opinions.bandwidth_choice import (
        BandwidthChoice as BandwidthChoice,
    )
    from acumen.second_opinions.bandwidth_choice import (
        choose_bandwidth as choose_bandwidth,
    )
    from acumen.second_opinions.bracket import Bracket as Bracket
    from acumen.second_opinions.bracket import (
        calibration_bracket as calibration_bracket,
    )
    from acumen.second_opinions.confidence_split import (
        ConfidenceSplit as ConfidenceSplit,
    )
    from acumen.second_opinions.confidence_split import (
        confidence_split as confidence_split,
    )
    from acumen.sketches.sketch import Sketch as Sketch
    from acumen.studies.study import Study as Study
    from acumen.studies.study import study as study


def __getattr__(name: str) -> Any:
    """Load a public name, and what it needs, when it is first used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'acumen' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"acumen.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
