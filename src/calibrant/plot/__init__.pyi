from ._bandwidth_sweep import BandwidthSweep, bandwidth_sweep
from ._calibration_sharpness import CalibrationSharpnessDisplay, calibration_sharpness
from ._classwise_grid import classwise_grid
from ._compare_methods import compare_methods
from ._corp import corp
from ._cumulative_differences import cumulative_differences
from ._decisions import decision_curve, murphy, triptych
from ._groups import group_gaps, groups
from ._loss_parts import loss_parts
from ._reliability import reliability
from ._residual import residual
from ._risk_coverage import risk_coverage
from ._score_map import score_map
from ._smooth_reliability import smooth_reliability
from ._trend import trend

__all__ = [
    "BandwidthSweep",
    "CalibrationSharpnessDisplay",
    "bandwidth_sweep",
    "calibration_sharpness",
    "classwise_grid",
    "compare_methods",
    "corp",
    "cumulative_differences",
    "decision_curve",
    "group_gaps",
    "groups",
    "loss_parts",
    "murphy",
    "reliability",
    "residual",
    "risk_coverage",
    "score_map",
    "smooth_reliability",
    "trend",
    "triptych",
]
