"""The curve behind SmoothECE: accuracy smoothed at the bandwidth that is its error."""

from __future__ import annotations

import numpy as np

from acumen.estimators.regression import LEAST_SUPPORT, NODES_FOR_CURVE, PLACES
from acumen.estimators.smoothing import smooth_error_of_sketch
from acumen.grid import coarsen, node_weights
from acumen.kernels import GAUSSIAN, sums_at
from acumen.results import SmoothCurve
from acumen.sums import Sums

LEAST_WIDTH = float(PLACES[1])
"""A narrower curve would vary between the places at which it is drawn."""


def smooth_curve(sketch: Sums) -> SmoothCurve:
    """Accuracy and density with the reflected Gaussian of SmoothECE."""
    bandwidth = min(max(smooth_error_of_sketch(sketch), LEAST_WIDTH), 1.0)
    moments = coarsen(sketch.moments[:2], NODES_FOR_CURVE / bandwidth)
    mass, hits = sums_at(PLACES, node_weights(moments), GAUSSIAN, bandwidth, "reflect")
    empty = mass < LEAST_SUPPORT
    accuracy = np.where(empty, np.nan, np.clip(hits / np.where(empty, 1, mass), 0, 1))
    density = np.maximum(mass, 0) / (GAUSSIAN.mass * bandwidth * sketch.weight)
    return SmoothCurve(bandwidth, PLACES, accuracy, density)
