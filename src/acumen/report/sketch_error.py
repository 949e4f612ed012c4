"""How far the numbers of a page lie from those of the full sketch, measured."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from acumen.estimators.regression import NODES_FOR_CURVE, calibration_error, regress
from acumen.grid import coarsen, node_weights
from acumen.kernels import KERNELS, sums_at
from acumen.report.coarse import SCORES, Coarse, estimate
from acumen.sums import Sums

PLACES = 64
ENOUGH_ROWS = 20.0
MEASURED_AT = (("gaussian", 0.05), ("gaussian", 0.01))
"""Where the error is measured. With the Epanechnikov kernel the full sketch itself
is not exact enough to measure against."""


@dataclass(frozen=True, slots=True)
class SketchError:
    """Largest differences, in the curve and in the calibration errors."""

    kernel: str
    bandwidth: float
    curve: float
    calibration: float


def sketch_error(
    sketch: Sums, sums: Coarse, kernel: str = "gaussian", bandwidth: float = 0.05
) -> SketchError:
    """Compare coarse sums with the full sketch at 64 places that rows support."""
    live = {score: estimate(sums, bandwidth, kernel, score) for score in SCORES}
    chosen = np.unique(np.linspace(0, sums.nodes - 1, PLACES).round().astype(int))
    moments = coarsen(sketch.moments[:2], NODES_FOR_CURVE / bandwidth)
    mass, hits = sums_at(
        sums.places[chosen],
        node_weights(moments),
        KERNELS[kernel],
        bandwidth,
        sums.boundary,
    )
    seen = live["brier"].rows[chosen] >= ENOUGH_ROWS
    shown = live["brier"].accuracy[chosen][seen]
    curve = float(np.abs(hits[seen] / mass[seen] - shown).max(initial=0.0))
    exact = regress(sketch, KERNELS[kernel], bandwidth, sums.boundary)
    apart = [
        _distance(
            calibration_error(exact, sketch, score, sums.estimator)
            * (sums.factor if score == "brier" else 1.0),
            live[score].calibration,
        )
        for score in SCORES
    ]
    return SketchError(kernel, bandwidth, curve, max(apart))


def _distance(a: float, b: float) -> float:
    return abs(a - b) if isfinite(a) or isfinite(b) else 0.0
