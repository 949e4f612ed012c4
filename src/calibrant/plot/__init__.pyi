from ._bandwidth_sweep import bandwidth_sweep
from ._calibration_sharpness import CalibrationSharpnessDisplay, calibration_sharpness
from ._one_model import classwise_grid, corp, reliability, residual, smooth_reliability
from ._several_models import compare_methods, score_map

__all__ = [
    "CalibrationSharpnessDisplay",
    "bandwidth_sweep",
    "calibration_sharpness",
    "classwise_grid",
    "compare_methods",
    "corp",
    "reliability",
    "residual",
    "score_map",
    "smooth_reliability",
]
