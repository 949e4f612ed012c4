"""How much each row moves each number: what paired comparisons rest on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._base.evaluation import Evaluation
from calibrant._inputs.arrays import Column
from calibrant._inputs.divergences import BRIER, LOG, find_divergence
from calibrant._rows.columns import Columns, sigmoid, softplus
from calibrant._sketch.kernels import GAUSSIAN
from calibrant._sketch.ordered import Ordered, order
from calibrant._stats import bins as binning
from calibrant._stats import platt, platt_error
from calibrant._stats.bins import isotonic
from calibrant._stats.close_pairs import LEAST_ROWS
from calibrant._stats.neighbours import cells_of_rows, kernel_sums, thin

# ----------------------------------------------------------------------------
# How much each row moves the calibration error d_CAL.


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

    The mean is what recalibration would gain on new rows; see `calibrant._stats.close_pairs`.
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
    cells = thin(cells_of_rows(columns, {"log": LOG}), platt_error.CHOOSING_CELLS)
    width = platt_error.fixed_width(cells.n)
    fitted = platt.fit(cells, width, platt.choose_nodes(cells))
    a, z = columns.hit, np.clip(columns.log_odds, -REACH, REACH)
    eta = fitted.log_odds(z)
    m = sigmoid(eta)
    leverage = fitted.at(z, fitted.leverage)
    change = leverage * (a - m) / (1 - np.minimum(leverage * m * (1 - m), 0.9))
    most = platt_error.LARGEST_CHANGE
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


# ----------------------------------------------------------------------------
# One number per row whose mean is the measure: exactly, or to first order.
#
# Every column of a table is a mean over rows, or a smooth function of such means. Its
# influence function says how much each row moves it, so that the difference of two models
# on the same rows is the mean of row differences, and has the interval of a mean.


FINE = 2048
"""Cells in which SmoothECE is smoothed again."""


@dataclass(frozen=True, eq=False)
class ModelRows:
    """A model's rows, how it was evaluated, and influences known so far."""

    columns: Columns
    evaluation: Evaluation

    known: dict[str, Column | None] = field(default_factory=dict)

    @cached_property
    def h(self) -> Column:
        """Confidence, without a negative zero."""
        return np.abs(self.columns.confidence)

    @cached_property
    def residual(self) -> Column:
        """A - h of each row."""
        return self.columns.hit - self.h

    @cached_property
    def weight(self) -> Column:
        """Weight of each row."""
        w = self.columns.weight
        return np.ones(len(self.h)) if w is None else w

    @property
    def n(self) -> float:
        """Total weight."""
        return self.columns.total_weight

    @property
    def clusters(self) -> NDArray[np.intp] | None:
        """Number of the cluster of each row, if rows depend on each other."""
        return self.evaluation.clusters

    @cached_property
    def values(self) -> Ordered:
        """Distinct confidences in order."""
        return order(self.columns).without_twins()

    @cached_property
    def value_of_row(self) -> NDArray[np.intp]:
        """Which of the distinct confidences each row has."""
        return np.searchsorted(self.values.confidence, self.h, side="right") - 1

    @property
    def settings(self) -> Mapping[str, Any]:
        """Options of the evaluation."""
        return self.evaluation.settings

    def sums(self, cell: NDArray[np.intp], value: Column) -> Column:
        """Weighted sum over cells of one number per row."""
        total = np.bincount(cell, self.weight * value)
        return total.astype(np.float64, copy=False)


def row_values(rows: ModelRows, key: str) -> Column | None:
    """Influence of each row on a measure, plus a constant; None if it has none here."""
    if key not in rows.known:
        rows.known[key] = _row_values(rows, key)
    return rows.known[key]


def _row_values(rows: ModelRows, key: str) -> Column | None:
    if rows.evaluation.target == "class-wise" and key not in OF_THE_MODEL:
        return None
    value = INFLUENCE[key](rows) if key in INFLUENCE else None
    return value if value is not None and np.isfinite(value).all() else None


# -- means ------------------------------------------------------------------------


def correct(rows: ModelRows) -> Column:
    """Whether the prediction was right; for a positive class, p >= 1/2 against it."""
    hit = rows.columns.hit
    if rows.evaluation.target == "positive":
        return np.where(rows.h >= 0.5, hit, 1 - hit)
    return hit


def _total(rows: ModelRows) -> Column:
    name, sketch = rows.evaluation.divergence, rows.evaluation.sketch
    known = {} if sketch is None else sketch.divergences
    return rows.columns.loss(known.get(name) or find_divergence(name))


def _calibration(rows: ModelRows) -> Column | None:
    return calibration_values(rows.columns, rows.evaluation)


def _gap(rows: ModelRows) -> Column | None:
    error = row_values(rows, "calibration")
    return None if error is None else _total(rows) - error


# -- bins -------------------------------------------------------------------------


def width_cells(h: Column, bins: int, closed: str) -> NDArray[np.intp]:
    """Number of the equal-width bin of each confidence.

    Examples
    --------
    >>> width_cells(np.array([0.0, 0.5, 1.0]), 2, "right")
    array([0, 0, 1])
    """
    inner = np.arange(1, bins) / bins
    return np.searchsorted(inner, h, side="left" if closed == "right" else "right")


def _width_cells(rows: ModelRows) -> NDArray[np.intp]:
    return width_cells(rows.h, int(rows.settings["bins"]), rows.settings["closed"])


def _mass_cells(rows: ModelRows, count: int) -> NDArray[np.intp]:
    lower = binning.mass_bins(rows.values, count).lower
    return np.searchsorted(lower, rows.h, side="right") - 1


def signed(rows: ModelRows, cell: NDArray[np.intp]) -> Column:
    """Of the sum over cells of |sum of residuals|: a row has its cell's sign."""
    return np.sign(rows.sums(cell, rows.residual))[cell] * rows.residual


def _gaps(rows: ModelRows, cell: NDArray[np.intp]) -> tuple[Column, Column]:
    """Mean residual of each cell, and its share of the weight; 0 where empty."""
    count = rows.sums(cell, np.ones_like(rows.h))
    gap = rows.sums(cell, rows.residual) / np.where(count > 0, count, 1.0)
    return gap, count / rows.n


def _average(rows: ModelRows) -> Column:
    cell = _width_cells(rows)
    gap, share = _gaps(rows, cell)
    moved = np.sign(gap)[cell] * (rows.residual - gap[cell]) / share[cell]
    return moved / np.count_nonzero(share)


def _equal_mass(rows: ModelRows) -> Column:
    return signed(rows, _mass_cells(rows, int(rows.settings["bins"])))


def _debiased(rows: ModelRows) -> Column | None:
    value = float(rows.evaluation.metrics["ece_debiased"])
    if not value > 0:
        return None  # a root has no first order at 0
    cell = _mass_cells(rows, binning.count_bins("cube-root", rows.n))
    gap = _gaps(rows, cell)[0][cell]
    return (2 * gap * rows.residual - gap**2) / (2 * value)


def _within_classes(rows: ModelRows) -> Column | None:
    predicted = rows.columns.predicted
    if predicted is None:
        return None
    return signed(rows, predicted * int(rows.settings["bins"]) + _width_cells(rows))


# -- no bins ----------------------------------------------------------------------


def _smooth(rows: ModelRows) -> Column:
    """The sign of the smoothed residual, smoothed again, since that is its adjoint.

    The bandwidth equals the error, so it moves too: by 1 / (1 - slope).
    """
    from scipy.fft import dct, idct

    cell = np.minimum((rows.h * FINE).astype(np.intp), FINE - 1)
    residual = np.bincount(cell, rows.weight * rows.residual, FINE) / rows.n
    frequency = np.pi * np.arange(FINE)

    def smooth(x: Column, bandwidth: float) -> Column:
        return idct(dct(x) * np.exp(-0.5 * (frequency * bandwidth) ** 2))

    at = rows.evaluation.smooth.bandwidth
    errors = [np.abs(smooth(residual, at * x)).sum() for x in (0.95, 1.05)]
    slope = min((errors[1] - errors[0]) / (0.1 * at), 0.0)
    sign = smooth(np.sign(smooth(residual, at)), at)
    return sign[cell] * rows.residual / (1 - slope)


def _ks(rows: ModelRows) -> Column:
    walk = np.cumsum(rows.values.residual)
    far = int(np.argmax(np.abs(walk)))
    return np.where(rows.value_of_row <= far, np.sign(walk[far]) * rows.residual, 0.0)


def _recalibrated(rows: ModelRows) -> Column:
    """Squared loss after isotonic recalibration, which is at its least there."""
    level = isotonic(rows.values)[rows.value_of_row]
    return (rows.columns.hit - level) ** 2


def _miscalibration(rows: ModelRows) -> Column:
    return rows.residual**2 - _recalibrated(rows)


def _discrimination(rows: ModelRows) -> Column:
    hit = rows.columns.hit
    return (hit - rows.columns.mean(hit)) ** 2 - _recalibrated(rows)


def _auroc(rows: ModelRows) -> Column | None:
    """Share of misses below a hit, of hits above a miss: placement values."""
    hits, misses = rows.values.hits, rows.values.weight - rows.values.hits
    if not (hits.sum() > 0 and misses.sum() > 0):
        return None
    area = float(rows.evaluation.metrics["auroc"])
    below = (np.cumsum(misses) - 0.5 * misses) / misses.sum()
    above = 1 - (np.cumsum(hits) - 0.5 * hits) / hits.sum()
    a, at = rows.columns.hit, rows.value_of_row
    share = hits.sum() / rows.n
    return a * (below[at] - area) / share + (1 - a) * (above[at] - area) / (1 - share)


OF_THE_MODEL = ("accuracy", "brier", "nll")
"""What a class-wise evaluation says of the model, not of its classes."""

INFLUENCE: dict[str, Callable[[ModelRows], Column | None]] = {
    "accuracy": correct,
    "ece": lambda rows: signed(rows, _width_cells(rows)),
    "ace": _average,
    "smooth_ece": _smooth,
    "nll": lambda rows: rows.columns.loss(LOG),
    "brier": lambda rows: rows.columns.loss(BRIER),
    "calibration": _calibration,
    "sharpness_gap": _gap,
    "total": _total,
    "ece_mass": _equal_mass,
    "ece_debiased": _debiased,
    "ks_error": _ks,
    "top_label_ece": _within_classes,
    "mcb": _miscalibration,
    "dsc": _discrimination,
    "auroc": _auroc,
    "confidence_gap": lambda rows: -rows.residual,
}
"""By name of the measure; exact for accuracy, losses and the confidence gap. The largest
of bins (MCE) has none: it jumps from bin to bin, and no first order follows it."""
