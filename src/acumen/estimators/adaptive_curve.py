"""The adaptive curve: local Platt scaling with ribbon, loss and density at its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from acumen import intervals
from acumen.arrays import Column
from acumen.bregman import LOG
from acumen.columns import sigmoid
from acumen.estimators import local_error
from acumen.estimators.neighbours import Cells
from acumen.estimators.regression import LEAST_SUPPORT, NODES_FOR_CURVE
from acumen.grid import coarsen, node_weights
from acumen.kernels import GAUSSIAN, sums_at
from acumen.settings import PAPER_BANDWIDTH
from acumen.sums import Sums

WIDE_GAP = 0.05
"""Between nodes further apart than this in confidence, the middle is looked at too."""


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


def adaptive_places(
    cells: Cells, sketch: Sums, level: float, engine: str = "auto"
) -> Places:
    """Local Platt scaling with its ribbon, loss and density.

    A place with no row near has no curve; places between distant nodes are added so
    that it shows.
    """
    fitted = local_error.choose_curve(cells, LOG, engine)
    at, z = _spread_out(cells, fitted.nodes)
    rank = np.interp(z, cells.z, cells.rank)
    support, low, high = _ribbon(cells, at, rank, level)
    empty = support < LEAST_SUPPORT
    width = local_error.fixed_width(cells.n)
    K = GAUSSIAN.profile((rank[:, None] - cells.rank) / width)
    mass = np.maximum(K @ cells.weight, 1e-300)
    losses = {
        name: _hide(empty, _with_infinity(sketch, name, at, K @ sums / mass))
        for name, sums in cells.losses.items()
    }
    return Places(
        at,
        _hide(empty, sigmoid(fitted.log_odds(z))),
        losses,
        _density(at, sketch),
        support,
        _hide(empty, low),
        _hide(empty, high),
    )


def _spread_out(cells: Cells, nodes: Column) -> tuple[Column, Column]:
    """Confidence and log-odds of the nodes, and of midpoints of wide gaps."""
    at = (
        np.interp(nodes, cells.z, cells.h)
        if len(nodes) == len(cells.z)
        else sigmoid(nodes)
    )
    wide = np.flatnonzero(np.diff(at) > WIDE_GAP)
    middle = 0.5 * (at[wide] + at[wide + 1])
    z = np.insert(nodes, wide + 1, np.log(middle) - np.log1p(-middle))
    return np.insert(at, wide + 1, middle), z


def _ribbon(
    cells: Cells, at: Column, rank: Column, level: float
) -> tuple[Column, Column, Column]:
    """Weight of rows nearby, and a Wilson interval for the accuracy there.

    It belongs to a narrow fit, of width 1 / sqrt(n) in (rank + h) / 2, so it is wider
    and rougher than the curve, but covers.
    """
    x = 0.5 * (rank + at)
    K = GAUSSIAN.profile((x[:, None] - cells.coordinate) * sqrt(cells.n))
    support = K @ cells.weight
    whole = np.maximum(support, 1e-300)
    share = np.clip(K @ cells.hits / whole, 0, 1)
    effective = np.maximum(
        support**2 / np.maximum((K * K) @ cells.weight, 1e-300), 1e-9
    )
    # Move the interval from the mean confidence nearby to the place itself.
    shift = at - (K @ (cells.hits - cells.r1)) / whole
    low, high = intervals.wilson(share, effective, level)
    return support, np.clip(low + shift, 0, 1), np.clip(high + shift, 0, 1)


def _hide(empty: NDArray[np.bool_], values: Column) -> Column:
    return np.where(empty, np.nan, values)


def _with_infinity(sketch: Sums, name: str, at: Column, loss: Column) -> Column:
    """Infinite loss where a row of infinite loss lies within 3 bandwidths (0.05)."""
    counts = sketch.infinite[list(sketch.divergences).index(name)]
    if not counts.any():
        return loss
    centres = (np.flatnonzero(counts) + 0.5) / sketch.cells
    near = np.abs(at[:, None] - centres).min(axis=1) <= 3 * PAPER_BANDWIDTH
    return np.where(near, inf, loss)


def _density(at: Column, sketch: Sums) -> Column:
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
