"""How much each row moves each number: what paired comparisons rest on."""

from __future__ import annotations

import numpy as np

from calibrant._base.records import Bins
from calibrant._inputs.arrays import Column, Index, Table
from calibrant._inputs.divergences import BRIER, LOG, Divergence, find_divergence
from calibrant._rows.columns import Columns
from calibrant._sketch.cells import Cells
from calibrant._sketch.grid import LOG_ODDS_REACH
from calibrant._sketch.kernels import GAUSSIAN
from calibrant._stats import bins as binning
from calibrant._stats import platt_error
from calibrant._stats.close_pairs import LEAST_ROWS
from calibrant._stats.decomposition import Shared, cell_of_rows, find_cells
from calibrant._stats.sample import Sample
from calibrant._stats.smooth_ece import coefficients, series, width_of_curve

# Every column of a table is a mean over rows, or a smooth function of such means. Its
# influence function says how much each row moves it, so that the difference of two models
# on the same rows is the mean of row differences, and has the interval of a mean.

# -- the calibration error d_CAL ---------------------------------------------------

PLACES = 480
_PUBLISHED = ("gaussian", "none", "direct")


def calibration(sample: Sample) -> Column | None:
    """Influence of each row on d_CAL of the headline; None where it is not known."""
    if "calibration" not in sample.known:
        sample.known["calibration"] = _calibration(sample)
    return sample.known["calibration"]


def _calibration(sample: Sample) -> Column | None:
    columns, settings, main = sample.columns, sample.settings, sample.settings.main
    if not settings.adaptive:
        as_published = settings.kernel, settings.boundary, settings.estimator
        if not main.by_pairs or as_published != _PUBLISHED:
            return None
        return sample.factor * kernel_values(columns, float(settings.bandwidth))
    if main.by_pairs:
        return sample.factor * pair_values(columns, sample.shared)
    enough = columns.effective >= LEAST_ROWS
    return platt_values(columns, main) if enough else None


def pair_values(columns: Columns, shared: Shared | None = None) -> Column:
    """How each row moves d_CAL, with levels mixed as in the estimate.

    What is `shared` with it serves if these rows, one by one, are what it is about.
    """
    return values_by_level(columns, shared)[0]


def values_by_level(
    columns: Columns, shared: Shared | None = None
) -> tuple[Column, Table]:
    """The same, and how each row moves each level, as near as it looks: a row for each.

    That is 2 g r - g^2 with g the mean residual of a row's neighbours, itself left out; see
    `calibrant._stats.ladder`.
    """
    shared = _about_rows(columns, shared)
    ladder, cell = shared.ladder, cell_of_rows(columns, shared.sums)
    r = columns.hit - columns.confidence
    out = np.empty((len(ladder.levels), len(columns)))
    own = r if columns.squared is None else r * columns.squared / columns.weights
    for row, mean, level in zip(out, ladder.means, ladder.levels, strict=True):
        g = mean[cell] - own / level.near[cell]
        row[:] = 2 * g * r - g * g
    return (ladder.shares[:, cell] * out).sum(axis=0), out


def _about_rows(columns: Columns, shared: Shared | None) -> Shared:
    """The same sums if they are of rows one by one, else sums that are."""
    if shared is None or shared.columns is None or shared.cluster_groups is not None:
        sums = Cells({BRIER.name: BRIER}).update(columns)
        return Shared(columns, sums, 0.95)
    return shared


def kernel_values(columns: Columns, bandwidth: float) -> Column:
    """Of the published estimate: mean (m - h)^2, m a Gaussian kernel mean of hits.

    A row enters twice: as one of those averaged, and as a neighbour of others.
    """
    w, h, a = columns.weights, columns.confidence, columns.hit
    cell = np.minimum((h * PLACES).astype(np.intp), PLACES - 1)
    at = (np.arange(PLACES) + 0.5) / PLACES
    rows, hits, claimed = (np.bincount(cell, w * x, PLACES) for x in (1.0, a, h))
    place = np.where(rows > 0, claimed / np.maximum(rows, 1e-300), at)
    K = GAUSSIAN.profile((place[:, None] - place) / bandwidth)
    near = np.maximum(K @ rows, 1e-300)
    m = (K @ hits) / near
    pull = rows * (m - place) / near
    return (m - place)[cell] ** 2 + 2 * (a * (K @ pull)[cell] - (K @ (pull * m))[cell])


def platt_values(columns: Columns, divergence: Divergence) -> Column:
    """Loss saved by local Platt scaling, each row left out of its own fit."""
    _, cells = find_cells(columns, Cells({LOG.name: LOG}).update(columns))
    fitted = platt_error.fit_for_error(cells)
    a, z = columns.hit, np.clip(columns.log_odds, -LOG_ODDS_REACH, LOG_ODDS_REACH)
    leverage = fitted.at(z, fitted.leverage)
    if columns.squared is not None:
        leverage = leverage * columns.squared / columns.weights
    eta = platt_error.left_out_by_one_step(fitted.log_odds(z), leverage, a)
    return columns.unit_loss(divergence) - divergence.of_log_odds(a, eta)


def loss(sample: Sample, name: str) -> Column:
    """The full loss of each row, of which the score is the mean."""
    known = sample.cells.divergences
    return sample.columns.loss(known[name] if name in known else find_divergence(name))


def sharpness_gap(sample: Sample) -> Column | None:
    """The loss less what recalibration would save."""
    error = calibration(sample)
    return None if error is None else loss(sample, sample.settings.main.name) - error


# -- bins -------------------------------------------------------------------------


def _width_cells(sample: Sample) -> Index:
    settings = sample.settings
    return binning.place_in_width_bins(sample.h, settings.bins, settings.closed)


def _mass_cells(sample: Sample, bins: Bins) -> Index:
    return np.searchsorted(bins.lower, sample.h, side="right") - 1


def signed(sample: Sample, cell: Index) -> Column:
    """Of the sum over cells of |sum of residuals|: a row has its cell's sign."""
    return np.sign(sample.sums(cell, sample.residual))[cell] * sample.residual


def _gaps(sample: Sample, cell: Index) -> tuple[Column, Column]:
    """Mean residual of each cell, and its share of the weight; 0 where empty."""
    count = sample.sums(cell, np.ones_like(sample.h))
    gap = sample.sums(cell, sample.residual) / np.where(count > 0, count, 1.0)
    return gap, count / sample.n


def ece(sample: Sample) -> Column:
    """Of the error over equal-width bins."""
    return signed(sample, _width_cells(sample))


def ace(sample: Sample) -> Column:
    """Of the plain mean over equal-width bins."""
    cell = _width_cells(sample)
    gap, share = _gaps(sample, cell)
    moved = np.sign(gap)[cell] * (sample.residual - gap[cell]) / share[cell]
    return moved / np.count_nonzero(share)


def ece_mass(sample: Sample) -> Column:
    """Of the error over equal-mass bins."""
    return signed(sample, _mass_cells(sample, sample.mass_bins))


def ece_debiased(sample: Sample) -> Column | None:
    """Of the debiased root; None at 0."""
    value = binning.debiased_error(sample.debiased_bins, sample.values.ordered)
    if not value > 0:
        return None  # a root has no first order at 0
    cell = _mass_cells(sample, sample.debiased_bins)
    gap = _gaps(sample, cell)[0][cell]
    return (2 * gap * sample.residual - gap**2) / (2 * value)


def top_label_ece(sample: Sample) -> Column | None:
    """Of the error over bins within predicted classes."""
    cell = sample.bins_within_classes
    return None if cell is None else signed(sample, cell)


# -- no bins ----------------------------------------------------------------------

FINE = 2048
"""Cells in which SmoothECE is smoothed again."""


def smooth_ece(sample: Sample) -> Column:
    """The sign of the smoothed residual, smoothed again, since that is its adjoint.

    The bandwidth equals the error, so it moves too: by 1 / (1 - slope).
    """
    cell = np.minimum((sample.h * FINE).astype(np.intp), FINE - 1)
    residual = np.bincount(cell, sample.weight * sample.residual, FINE) / sample.n
    frequency = np.pi * np.arange(FINE)

    def smooth(x: Column, bandwidth: float) -> Column:
        damping = np.exp(-0.5 * (frequency * bandwidth) ** 2)
        return series(coefficients(x) * damping, FINE) / FINE

    at = width_of_curve(sample.smooth_error)
    errors = [np.abs(smooth(residual, at * x)).sum() for x in (0.95, 1.05)]
    slope = min((errors[1] - errors[0]) / (0.1 * at), 0.0)
    sign = smooth(np.sign(smooth(residual, at)), at)
    return sign[cell] * sample.residual / (1 - slope)


def ks_error(sample: Sample) -> Column:
    """Of the largest cumulative difference, up to where it is reached."""
    walk = np.cumsum(sample.values.ordered.residual)
    far = int(np.argmax(np.abs(walk)))
    signed = np.sign(walk[far]) * sample.residual
    return np.where(sample.values.place <= far, signed, 0.0)


def _recalibrated(sample: Sample) -> Column:
    """Squared loss after isotonic recalibration, which is at its least there."""
    level = sample.isotonic.level[sample.values.place]
    return (sample.columns.hit - level) ** 2


def miscalibration(sample: Sample) -> Column:
    """Of the MCB term."""
    return sample.residual**2 - _recalibrated(sample)


def discrimination(sample: Sample) -> Column:
    """Of the DSC term."""
    hit = sample.columns.hit
    return (hit - sample.columns.mean(hit)) ** 2 - _recalibrated(sample)


def risk_area(sample: Sample, key: str) -> Column:
    """Of an area under the risk by coverage."""
    rows, moved = sample.predictions, sample.steps.influence(key)
    return moved.constant[rows.place] + moved.slope[rows.place] * rows.columns.hit


def auroc(sample: Sample) -> Column | None:
    """Share of misses below a hit, of hits above a miss: placement values."""
    values, area = sample.values.ordered, sample.auroc
    hits, misses = values.hits, values.weight - values.hits
    if not (hits.sum() > 0 and misses.sum() > 0):
        return None
    below = (np.cumsum(misses) - 0.5 * misses) / misses.sum()
    above = 1 - (np.cumsum(hits) - 0.5 * hits) / hits.sum()
    a, at = sample.columns.hit, sample.values.place
    share = hits.sum() / sample.n
    return a * (below[at] - area) / share + (1 - a) * (above[at] - area) / (1 - share)
