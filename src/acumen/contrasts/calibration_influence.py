"""How much each row moves the calibration error d_CAL."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.bregman import LOG
from acumen.columns import Columns, sigmoid, softplus
from acumen.estimators import local_error, platt
from acumen.estimators.adaptive import LEAST_ROWS
from acumen.estimators.neighbours import cells_of_rows, kernel_sums, thin
from acumen.kernels import GAUSSIAN
from acumen.results import Evaluation

CELLS_PER_LOG_ODDS, REACH = 50, 20.0
MOST_VALUES = 2000
PLACES = 480


def calibration_values(columns: Columns, ev: Evaluation) -> Column | None:
    """Influence of each row on d_CAL of the headline; None where it is not known."""
    parts = ev.decomposition
    adaptive = parts.bandwidth is None
    if ev.divergence == "brier":
        tight = ev.settings["counterpart"] == "tight"
        factor = ev.k / (ev.k - 1) if tight else 1.0
        if adaptive:
            return factor * pair_values(columns)
        if (parts.kernel, parts.boundary, parts.estimator) == _PUBLISHED:
            assert parts.bandwidth is not None
            return factor * kernel_values(columns, parts.bandwidth)
    if ev.divergence == "log" and adaptive and ev.n >= LEAST_ROWS:
        return platt_values(columns)
    return None


_PUBLISHED = ("gaussian", "none", "direct")


def pair_values(columns: Columns) -> Column:
    """2 g r - g^2 with g the mean residual of a row's neighbours, itself left out.

    The mean is what recalibration would gain on new rows; see `acumen.estimators.adaptive`.
    """
    cell, w = _cells(columns), _weight(columns)
    h, r = columns.confidence, columns.hit - columns.confidence
    sums = np.stack([np.bincount(cell, w * x) for x in (1.0, r, r * r, h)])
    rows, r1, r2, claimed = sums.astype(np.float64, copy=False)
    n = float(rows.sum())
    rank = (np.cumsum(rows) - 0.5 * rows) / n
    x = 0.5 * (rank + np.maximum.accumulate(claimed / rows))
    near, _ = kernel_sums(x, 2 / sqrt(n), np.stack([rows, r1], axis=1), r2[:, None])
    share = 1 / np.maximum(near[:, 0], 1.0)
    g = (near[:, 1] * share)[cell] - share[cell] * r
    return 2 * g * r - g * g


def kernel_values(columns: Columns, bandwidth: float) -> Column:
    """Of the published estimate: mean (m - h)^2, m a Gaussian kernel mean of hits.

    A row enters twice: as one of those averaged, and as a neighbour of others.
    """
    w, h, a = _weight(columns), columns.confidence, columns.hit
    cell = np.minimum((h * PLACES).astype(np.intp), PLACES - 1)
    at = (np.arange(PLACES) + 0.5) / PLACES
    rows, hits, claimed = (np.bincount(cell, w * x, PLACES) for x in (1.0, a, h))
    place = np.where(rows > 0, claimed / np.maximum(rows, 1e-300), at)
    K = GAUSSIAN.profile((place[:, None] - place) / bandwidth)
    near = np.maximum(K @ rows, 1e-300)
    m = (K @ hits) / near
    pull = rows * (m - place) / near
    return (m - place)[cell] ** 2 + 2 * (a * (K @ pull)[cell] - (K @ (pull * m))[cell])


def platt_values(columns: Columns) -> Column:
    """Log loss saved by local Platt scaling, each row left out of its own fit."""
    cells = thin(cells_of_rows(columns, {"log": LOG}), local_error.CHOOSING_CELLS)
    width = local_error.fixed_width(cells.n)
    fitted = platt.fit(cells, width, platt.choose_nodes(cells))
    a, z = columns.hit, np.clip(columns.log_odds, -REACH, REACH)
    eta = fitted.log_odds(z)
    m = sigmoid(eta)
    leverage = fitted.at(z, fitted.leverage)
    change = leverage * (a - m) / (1 - np.minimum(leverage * m * (1 - m), 0.9))
    most = local_error.LARGEST_CHANGE
    eta = eta - np.clip(change, -most, most)
    after = a * softplus(-eta) + (1 - a) * softplus(eta)
    return columns.unit_loss(LOG) - LOG.phi_1d(a) - after


def _weight(columns: Columns) -> Column:
    return np.ones(len(columns)) if columns.weight is None else columns.weight


def _cells(columns: Columns) -> NDArray[np.intp]:
    """Cell of each row: its own confidence, or a small step of log-odds if many."""
    values, cell = np.unique(np.abs(columns.confidence), return_inverse=True)
    if len(values) > MOST_VALUES:
        z = np.clip(columns.log_odds, -REACH, REACH)
        cell = np.unique(np.floor(z * CELLS_PER_LOG_ODDS), return_inverse=True)[1]
    return cell
