"""The adaptive curve: local Platt scaling with ribbon, loss and density at its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from acumen import intervals, local_error
from acumen.arrays import Column
from acumen.bregman import LOG
from acumen.columns import sigmoid
from acumen.grid import coarsen, node_weights
from acumen.kernels import GAUSSIAN, sums_at
from acumen.neighbours import Cells
from acumen.regression import LEAST_SUPPORT, NODES_FOR_CURVE
from acumen.settings import PAPER_BANDWIDTH
from acumen.sketch import Sketch


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The adaptive curve at its nodes."""

    at: Column
    accuracy: Column
    losses: Mapping[str, Column]
    density: Column
    support: Column
    low: Column
    high: Column


def adaptive_places(cells: Cells, sketch: Sketch, level: float) -> Places:
    """Local Platt scaling with its Wilson ribbon, loss and density.

    The ribbon belongs to a narrow fit, of width 1 / sqrt(n) in (rank + h) / 2, so it is
    wider and rougher than the curve but covers. A place with no row near has no curve.
    """
    n = cells.n
    fitted = local_error.choose_curve(cells, LOG)
    z = fitted.nodes
    at = np.interp(z, cells.z, cells.h) if len(z) == len(cells.z) else sigmoid(z)
    rank = np.interp(z, cells.z, cells.rank)
    x = 0.5 * (rank + at)
    K = GAUSSIAN.profile((x[:, None] - cells.coordinate) * sqrt(n))
    support = K @ cells.weight
    whole = np.maximum(support, 1e-300)
    share = np.clip(K @ cells.hits / whole, 0, 1)
    effective = support**2 / np.maximum((K * K) @ cells.weight, 1e-300)
    low, high = intervals.wilson(share, np.maximum(effective, 1e-9), level)
    # Move the interval from the mean confidence nearby to the place itself.
    shift = at - (K @ (cells.hits - cells.r1)) / whole
    empty = support < LEAST_SUPPORT
    width = local_error.fixed_width(n)
    local = GAUSSIAN.profile((rank[:, None] - cells.rank) / width)
    mass = local @ cells.weight
    losses = {
        name: _hide(empty, _with_infinity(sketch, name, at, local @ sums / mass))
        for name, sums in cells.losses.items()
    }
    return Places(
        at,
        _hide(empty, sigmoid(z + fitted.shift)),
        losses,
        _density(at, sketch),
        support,
        _hide(empty, np.clip(low + shift, 0, 1)),
        _hide(empty, np.clip(high + shift, 0, 1)),
    )


def _hide(empty: NDArray[np.bool_], values: Column) -> Column:
    return np.where(empty, np.nan, values)


def _with_infinity(sketch: Sketch, name: str, at: Column, loss: Column) -> Column:
    """Infinite loss where a row of infinite loss lies within 3 bandwidths (0.05)."""
    counts = sketch.infinite[list(sketch.divergences).index(name)]
    if not counts.any():
        return loss
    centres = (np.flatnonzero(counts) + 0.5) / sketch.cells
    near = np.abs(at[:, None] - centres).min(axis=1) <= 3 * PAPER_BANDWIDTH
    return np.where(near, inf, loss)


def _density(at: Column, sketch: Sketch) -> Column:
    """Density of confidences, reflected at 0 and 1, with Silverman's width or less."""
    centres = (np.arange(sketch.cells) + 0.5) / sketch.cells
    share = sketch.moments[0, 0] / sketch.weight
    mean = float(share @ centres)
    spread = sqrt(max(float(share @ centres**2) - mean * mean, 0.0))
    width = 1.06 * spread * sketch.weight**-0.2
    bandwidth = min(max(width, 48 / sketch.cells), PAPER_BANDWIDTH)
    moments = coarsen(sketch.moments[:1], NODES_FOR_CURVE / bandwidth)
    weights = node_weights(moments)
    order = np.argsort(at)
    sums = np.empty_like(at)
    sums[order] = sums_at(at[order], weights, GAUSSIAN, bandwidth, "reflect")[0]
    return np.maximum(sums, 0) / (GAUSSIAN.mass * bandwidth * sketch.weight)
