"""Figures of evaluations, for matplotlib; each function draws and returns Axes.

Figures are drawn from the record alone, so their cost does not depend on the number of
rows. Without ``ax=`` a figure of its own is made, which pyplot does not know of: save it
with ``ax.figure.savefig``. No rcParam is changed, and nothing is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_MODULE_OF = {
    "CalibrationSharpnessDisplay": "display",
    "bandwidth_sweep": "sweep",
    "calibration_sharpness": "row",
    "classwise_grid": "classes",
    "compare_methods": "methods",
    "corp": "pooled",
    "reliability": "binned",
    "residual": "residuals",
    "score_map": "trade_off",
    "smooth_reliability": "smoothed",
}

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

if TYPE_CHECKING:
    from acumen.plot.binned import reliability as reliability
    from acumen.plot.classes import classwise_grid as classwise_grid
    from acumen.plot.display import (
        CalibrationSharpnessDisplay as CalibrationSharpnessDisplay,
    )
    from acumen.plot.methods import compare_methods as compare_methods
    from acumen.plot.pooled import corp as corp
    from acumen.plot.residuals import residual as residual
    from acumen.plot.row import calibration_sharpness as calibration_sharpness
    from acumen.plot.smoothed import smooth_reliability as smooth_reliability
    from acumen.plot.sweep import bandwidth_sweep as bandwidth_sweep
    from acumen.plot.trade_off import score_map as score_map


def __getattr__(name: str) -> Any:
    """Load matplotlib and a figure when it is first asked for."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'acumen.plot' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"acumen.plot.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
