"""The adaptive calibration curve, its bands, and the interval of what it leaves.

The curve is local Platt scaling on few places, as wide as left-out rows allow. Its band
belongs to a narrower neighbourhood, so it is wider and rougher than the curve, but covers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite, nan, sqrt
from typing import Any

import numpy as np

from calibrant._base.records import Curve, Decomposition, Estimate
from calibrant._inputs.arrays import Column, Index, Mask, Table, cross_entropy, sigmoid
from calibrant._inputs.divergences import Divergence
from calibrant._inputs.options import PAPER_BANDWIDTH
from calibrant._rows.columns import Columns
from calibrant._sketch.cells import Cells
from calibrant._sketch.grid import LOG_ODDS_REACH, coarsen, node_weights
from calibrant._sketch.kernels import GAUSSIAN, sums_at
from calibrant._stats import closed_forms, platt
from calibrant._stats.closed_forms import Interval
from calibrant._stats.neighbours import Neighbours, merged
from calibrant._stats.platt import LocalPlatt
from calibrant._stats.platt_error import LARGEST_CHANGE, fixed_width, left_out
from calibrant._stats.published import LEAST_SUPPORT, NODES_FOR_CURVE, Places
from calibrant._stats.quantiles import gamma_quantile

LEAST_ROWS, ROWS_TO_BEND = 20.0, 50.0
"""Effective rows below which there is no curve, and below which it is straight."""

NEAR_IN_CONFIDENCE, NEAR_IN_LOG_ODDS = 0.02, 0.25
"""Confidences that share a cell of both sizes are one place of the curve."""

PRIORS = SHIFT_SD, SLOPE_SD = 2.0, 1.0
"""A shift of 2 is odds times 7: one early event of a rare kind does no more. A slope
of 1 doubles the log-odds or annuls them: near ties do no more."""

ROWS_IN_A_WIDTH = 10.0
CHOOSING_TOLERANCE = 1e-2
"""Enough to compare widths: what Newton leaves undone is about its square."""

DRAWS, SEED = 400, 0
"""Data sets behind the simultaneous band, the same for the same sums."""

WIDE_GAP = 0.05
"""Between places further apart than this in confidence, the middle is looked at too."""


# -- the fit -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Recalibration:
    """The places of a curve, and a local Platt scaling fitted at each of them."""

    cells: Neighbours
    fitted: LocalPlatt

    @property
    def log_odds(self) -> Column:
        """Of the accuracy at each place."""
        return self.cells.z + self.fitted.shift

    def without_a_row(self, hits: Table) -> Table:
        """Log-odds at each place without one row, a table of whose hits is given."""
        leverage = self.fitted.leverage * (self.cells.w2 / self.cells.weight)
        eta = np.broadcast_to(self.log_odds, hits.shape)
        return left_out(eta, leverage, hits, SHIFT_SD)

    def without_groups(self) -> Table:
        """Log-odds at each place without each group of clusters (groups x places)."""
        pull = np.clip(_pulls(self), -LARGEST_CHANGE, LARGEST_CHANGE)
        change: Table = self.log_odds - pull
        return change


def gather_places(cells: Neighbours) -> Neighbours:
    """Put near-tied confidences together, however many they are.

    Hundreds of confidences that hardly differ tell classes apart, not accuracies: drawn
    one by one they would show the noise of labels. Places further apart stay apart.
    """
    # The least bit more keeps 0.6 in its cell whichever way a mean of it is rounded.
    by_h = np.minimum(np.floor(cells.h / NEAR_IN_CONFIDENCE + 1e-9), 49)
    by_z = np.floor((cells.z + LOG_ODDS_REACH) / NEAR_IN_LOG_ODDS + 1e-9)
    return merged(cells, by_h + by_z)


def fit_places(places: Neighbours, engine: str = "auto") -> Recalibration:
    """The widest fit that loses at most a standard error to the best, left-out rows say.

    No width holds fewer than ten rows. Below 50 effective rows the curve is straight in
    log-odds: ordinary Platt scaling.
    """
    n = places.effective
    if n < ROWS_TO_BEND:
        return Recalibration(places, _straight(places, engine))
    fits: list[LocalPlatt] = []
    for width in platt.WIDTHS[n * platt.WIDTHS >= ROWS_IN_A_WIDTH]:
        rough = fits[-1] if fits else None, CHOOSING_TOLERANCE, engine, PRIORS
        fits.append(platt.fit(places, float(width), places.z, *rough))
    losses = [_left_out_losses(Recalibration(places, fit)) for fit in fits]
    best = fits[_widest(places, losses)]
    fine = best, platt.TOLERANCE, engine, PRIORS
    return Recalibration(places, platt.fit(places, best.width, places.z, *fine))


def _straight(places: Neighbours, engine: str) -> LocalPlatt:
    """One shift and slope for all rows; how sure it is of them is left open."""
    middle = np.array([places.weight @ places.z / places.n])
    one = platt.fit(places, inf, middle, None, platt.TOLERANCE, engine, PRIORS)
    slope, unknown = np.repeat(one.slope, len(places.z)), np.full_like(places.z, nan)
    shift = one.shift + slope * (places.z - middle)
    return LocalPlatt(inf, places.z, shift, slope, unknown, unknown)


def _widest(cells: Neighbours, losses: list[Table]) -> int:
    """Number of the first that is within a standard error of the best."""
    means = [float(_weights(cells, cells.weight, x).sum()) / cells.n for x in losses]
    best = int(np.argmin(means))
    for number in range(best):
        worse = means[number] - means[best]
        if worse <= _error_of_difference(cells, losses[number] - losses[best], worse):
            return number
    return best


def _left_out_losses(fit: Recalibration) -> Table:
    """Log loss of rows left out, by kind of row and place; or of groups, summed."""
    groups = fit.cells.groups
    if groups is None:
        a = np.stack([a for _, a in fit.cells.two_values])
        eta = fit.without_a_row(a)
        return cross_entropy(a, eta)
    eta = fit.without_groups()
    hits = groups.residual + groups.weight * fit.cells.h
    m = hits / np.maximum(groups.weight, 1e-300)
    return (groups.weight * cross_entropy(m, eta)).sum(axis=1)


def _weights(cells: Neighbours, weight: Column, losses: Table) -> Table:
    """Losses times the weight of the rows of either kind; those of groups have it."""
    if cells.groups is not None:
        return losses
    return weight * np.stack([share for share, _ in cells.two_values]) * losses


def _error_of_difference(cells: Neighbours, apart: Table, mean: float) -> float:
    """Standard error of the mean difference of two losses, rows being paired."""
    if cells.groups is None:
        squares = _weights(cells, cells.w2, (apart - mean) ** 2)
    else:
        squares = (apart - mean * cells.groups.weight.sum(axis=1)) ** 2
    return sqrt(float(squares.sum())) / cells.n


def _pulls(fit: Recalibration) -> Table:
    """How far each group of clusters moved the fit at each place (groups x places)."""
    cells, fitted, groups = fit.cells, fit.fitted, fit.cells.groups
    assert groups is not None
    rank, z = cells.rank, cells.z
    K = GAUSSIAN.profile((rank[:, None] - rank) / fitted.width)
    offset = z - z[:, None]
    m = sigmoid(z + fitted.shift[:, None] + fitted.slope[:, None] * offset)
    information = K * cells.weight * m * (1 - m)
    j00 = information.sum(axis=1) + 1 / SHIFT_SD**2
    j01 = (information * offset).sum(axis=1)
    j11 = (information * offset**2).sum(axis=1) + 1 / SLOPE_SD**2
    # Row 0 of the inverse of J, as weights of the scores of the two parameters.
    lens = K * (j11[:, None] - j01[:, None] * offset) / (j00 * j11 - j01**2)[:, None]
    hits = groups.residual + groups.weight * cells.h
    pulls: Table = hits @ lens.T - groups.weight @ (lens * m).T
    return pulls


# -- the curve and its bands -------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Outline:
    """What the adaptive curve is drawn from; it is fitted and drawn when first asked for.

    `density` are the bandwidth, the nodes and the total weight of its density, `infinite`
    the confidences of rows of infinite loss, by divergence.
    """

    cells: Neighbours
    divergences: Mapping[str, Divergence]
    density: tuple[float, Table, float]
    infinite: Mapping[str, Column]
    level: float
    engine: str = "auto"
    simultaneous: bool = True

    @classmethod
    def of(cls, cells: Neighbours, whole: Cells, *how: Any) -> Outline:
        """Of rows, by their neighbours and their sums; level, engine, simultaneous."""
        infinite = {
            name: (np.flatnonzero(counts) + 0.5) / whole.cells
            for name, counts in zip(whole.divergences, whole.infinite, strict=True)
        }
        known = dict(whole.divergences), _density_of(whole), infinite
        return cls(gather_places(cells), *known, *how)

    @cached_property
    def fit(self) -> Recalibration:
        """The local Platt scaling behind the curve."""
        return fit_places(self.cells, self.engine)

    def curves(self, factors: Mapping[str, float]) -> dict[str, Curve]:
        """By divergence, calibration errors multiplied by their factors."""
        return self.places.curves(self.divergences, factors)

    @property
    def places(self) -> Places:
        """Local Platt scaling with its bands, losses and density.

        A place with no row near has no curve; places between distant ones are added so
        that it shows. Below 20 effective rows there is no curve at all.
        """
        fit, places = self.fit, self.cells
        at, z = _spread_out(places)
        near = _look_around(places, at, z)
        empty = near.support < LEAST_SUPPORT
        if places.effective < LEAST_ROWS:
            empty[:] = True
        accuracy = sigmoid(z + np.interp(z, places.z, fit.fitted.shift))
        bands = self._bands(near, accuracy, empty)
        low, high, least, most, accuracy = np.where(empty, nan, [*bands, accuracy])
        losses, errors = self._near(at, z)
        losses = {name: np.where(empty, nan, loss) for name, loss in losses.items()}
        seen = losses, _density_at(at, *self.density), near.support
        return Places(at, accuracy, *seen, low, high, least, most, errors)

    def _bands(self, near: _Nearby, accuracy: Column, empty: Mask) -> list[Column]:
        """Ends of the band at each place, and of the one that holds at all at once."""
        everywhere = np.full((2, len(accuracy)), nan)
        if self.simultaneous and not empty.all():
            m = sigmoid(self.fit.log_odds)
            factor = _largest_deviation(self.cells, near, m, self.level, ~empty)
            everywhere[:] = near.band(accuracy, self.level, factor)
        return [*near.band(accuracy, self.level), *everywhere]

    def _near(self, at: Column, z: Column) -> tuple[dict[str, Column], ...]:
        """Mean losses and calibration errors of the rows near each place."""
        places, eta = self.cells, self.fit.log_odds
        rank = np.interp(z, places.z, places.rank)
        width = fixed_width(places.effective)
        K = GAUSSIAN.profile((rank[:, None] - places.rank) / width)
        K /= np.maximum(K @ places.weight, 1e-300)[:, None]
        losses, errors = {}, {}
        for name, divergence in self.divergences.items():
            losses[name] = K @ places.losses[name]
            if len(centres := self.infinite[name]):  # within 3 bandwidths
                near = np.abs(at[:, None] - centres).min(axis=1) <= 3 * PAPER_BANDWIDTH
                losses[name][near] = inf
            error = divergence.unit_loss(sigmoid(eta), sigmoid(places.z), places.z)
            errors[name] = K @ (places.weight * error)
        return losses, errors


def _spread_out(cells: Neighbours) -> tuple[Column, Column]:
    """Confidence and log-odds of the places, and of midpoints of wide gaps."""
    wide = np.flatnonzero(np.diff(cells.h) > WIDE_GAP)
    middle = 0.5 * (cells.h[wide] + cells.h[wide + 1])
    z = np.insert(cells.z, wide + 1, np.log(middle) - np.log1p(-middle))
    return np.insert(cells.h, wide + 1, middle), z


@dataclass(frozen=True, slots=True, eq=False)
class _Nearby:
    """Rows near each place, in (rank + h) / 2, and the accuracy they have.

    `K` holds their shares (places x cells), `effective` how many they are worth, and
    `claimed` their mean confidence. `deviations` are those of groups of clusters.
    """

    at: Column
    z: Column
    K: Table
    support: Column
    share: Column
    claimed: Column
    effective: Column
    deviations: Table | None

    def band(
        self, accuracy: Column, level: float, factor: float = 1.0
    ) -> tuple[Column, Column]:
        """Wilson intervals, `factor` times as many standard errors wide, at the places.

        They belong to the rows nearby, and are moved from their mean confidence to the
        place, by probability and by log-odds; the wider of both is taken, and stretched
        to hold the accuracy of the curve.
        """
        ends = closed_forms.wilson(self.share, self.effective / factor**2, level)
        flat = [end + self.at - self.claimed for end in ends]
        with np.errstate(divide="ignore"):
            shift = self.z - _log_odds(self.claimed)
            odds = [sigmoid(_logit(np.clip(end, 0, 1)) + shift) for end in ends]
        low = np.minimum.reduce([flat[0], odds[0], accuracy])
        high = np.maximum.reduce([flat[1], odds[1], accuracy])
        return np.maximum(low, 0.0), np.minimum(high, 1.0)


def _logit(p: Column) -> Column:
    return np.log(p) - np.log1p(-p)


def _log_odds(p: Column) -> Column:
    """Log-odds, cut where those of places are."""
    return np.clip(_logit(np.clip(p, 0, 1)), -LOG_ODDS_REACH, LOG_ODDS_REACH)


def _look_around(cells: Neighbours, at: Column, z: Column) -> _Nearby:
    """The rows near each place, within about 1 / sqrt(n)."""
    n = cells.effective
    x = 0.5 * (np.interp(z, cells.z, cells.rank) + at)
    K = GAUSSIAN.profile((x[:, None] - cells.coordinate) * sqrt(n))
    mass, squares = K @ cells.weight, K @ cells.w2
    support = mass**2 / np.maximum(squares, 1e-300)
    K /= np.maximum(mass, 1e-300)[:, None]
    share = np.clip(K @ cells.hits, 0, 1)
    effective = 1 / np.clip((K * K) @ cells.w2, 1e-300, 1e9)
    deviations = None
    if (groups := cells.groups) is not None:
        mean = K @ cells.r1
        deviations = K @ groups.residual.T - (K @ groups.weight.T) * mean[:, None]
        deviations *= sqrt(len(groups) / max(len(groups) - 1, 1))
        variance = np.maximum((deviations**2).sum(axis=1), 1e-12)
        alone = np.maximum(share * (1 - share), 1 / effective)
        effective = np.minimum(effective, alone / variance)
    claimed = K @ (cells.weight * cells.h)
    return _Nearby(at, z, K, support, share, claimed, effective, deviations)


def _largest_deviation(
    cells: Neighbours, near: _Nearby, accuracy: Column, level: float, seen: Mask
) -> float:
    """How much wider a band must be to hold at all places at once.

    That is the `level` point of the largest deviation over the places, in standard
    errors, of data sets drawn from the curve, or of groups of clusters with random
    signs, over that of one place.
    """
    rng = np.random.default_rng(SEED)
    if near.deviations is None:
        n = np.maximum(np.ceil(cells.weight**2 / cells.w2 - 1e-9), 1.0)
        hits = rng.binomial(n.astype(np.int64), accuracy, (DRAWS, len(n)))
        noise = (hits - n * accuracy) * np.sqrt(cells.w2 / n)
        deviation = noise @ near.K[seen].T
    else:
        groups = near.deviations.shape[1]
        signs = rng.choice([-1.0, 1.0], (DRAWS, groups))
        deviation = signs @ near.deviations[seen].T
    mean = near.K[seen] @ (cells.weight * accuracy)
    inside = np.clip(mean + deviation, 0, 1) - mean
    error = np.sqrt(np.maximum(mean * (1 - mean), 1e-12) / near.effective[seen])
    largest = (np.abs(inside) / error).max(axis=1)
    return max(float(np.quantile(largest, level)) / closed_forms.quantile(level), 1.0)


def _density_of(cells: Cells) -> tuple[float, Table, float]:
    """Silverman's width or less, nodes and total weight of the density of confidences."""
    centres = (np.arange(cells.cells) + 0.5) / cells.cells
    share = cells.moments[0, 0] / cells.weight
    mean = float(share @ centres)
    spread = sqrt(max(float(share @ centres**2) - mean * mean, 0.0))
    width = 1.06 * spread * cells.effective**-0.2
    bandwidth = min(max(width, 48 / cells.cells), PAPER_BANDWIDTH)
    weights = node_weights(coarsen(cells.moments[:1], NODES_FOR_CURVE / bandwidth))
    return bandwidth, weights, cells.weight


def _density_at(at: Column, bandwidth: float, weights: Table, total: float) -> Column:
    """Density of confidences, reflected at 0 and 1."""
    order = np.argsort(at)
    sums = np.empty_like(at)
    sums[order] = sums_at(at[order], weights, GAUSSIAN, bandwidth, "reflect")[0]
    return np.maximum(sums, 0) / (GAUSSIAN.mass * bandwidth * total)


# -- the interval of the sharpness gap ---------------------------------------------

SPENT = 16.0
"""Rows or clusters that curve and calibration error cost: the variance grows by as many
in all of them."""

FEW_SURPRISES = 40.0
MOST_STRETCH = 9.0

PART = 1 << 15
"""Rows at a time, so that what is made of them stays in cache."""


def gap_interval(
    parts: Decomposition,
    outline: Outline | None,
    columns: Columns,
    divergence: Divergence,
    level: float,
    clusters: Index | None = None,
) -> Estimate:
    """The sharpness gap with its interval; none if the calibration error has none.

    It is a mean over rows: the full loss, less the loss of the confidence alone, plus
    what that is after recalibration by a curve that has not seen the row. The interval of
    that mean is moved to the gap, total less calibration error, and a little wider. Few
    rows are surprises if confidences are extreme: see `_mean_interval`.
    """
    gap = float(parts.sharpness_gap)
    if parts.calibration.interval is None or not isfinite(gap) or outline is None:
        return Estimate(gap)
    n = columns.effective
    if n < ROWS_TO_BEND:
        return Estimate(gap)
    fit = outline.fit
    x1, x0 = _recalibrated_losses(fit, divergence)
    some = (columns.take(slice(i, i + PART)) for i in range(0, len(columns), PART))
    after = [_loss_after(rows, fit.cells, x1, x0, divergence) for rows in some]
    values = np.concatenate(after)
    spread = _spread_of_mean(values, columns, clusters)
    most = 1.0 if clusters is None and not columns.losses else MOST_STRETCH
    below, above = _mean_interval(fit.cells, np.abs(x1 - x0), spread, level, most)
    wider = sqrt(1 + SPENT / min(n, spread[1] + 1))
    ends = max(gap - wider * below, 0.0), max(gap + wider * above, 0.0)
    return Estimate(gap, ends, "Student" if clusters is None else "Student, clusters")


def _recalibrated_losses(
    fit: Recalibration, divergence: Divergence
) -> tuple[Column, Column]:
    """Loss of a hit and of a miss at each place, by the fit without the row.

    Without a group of clusters the fit differs from row to row: the common one serves.
    """
    a = np.repeat([[1.0], [0.0]], len(fit.cells.h), axis=1)
    eta = np.broadcast_to(fit.log_odds, a.shape)
    if fit.cells.groups is None:
        eta = fit.without_a_row(a)
    x1, x0 = (divergence.of_log_odds(*kind) for kind in zip(a, eta, strict=True))
    return x1, x0


def _loss_after(
    columns: Columns, cells: Neighbours, x1: Column, x0: Column, divergence: Divergence
) -> Column:
    """Each row's loss of the confidence replaced by that after recalibration."""
    z, hit = columns.log_odds, columns.hit
    after = np.zeros_like(z)
    for some, share, loss in ((hit > 0, hit, x1), (hit < 1, 1 - hit, x0)):
        after[some] += share[some] * np.interp(z[some], cells.z, loss)
    if not columns.losses:
        return after
    return columns.loss(divergence) - columns.unit_loss(divergence) + after


def _spread_of_mean(
    values: Column, columns: Columns, clusters: Index | None
) -> tuple[float, float]:
    """Variance of the mean of rows, and its degrees of freedom."""
    w, total = columns.weights, columns.total_weight
    off = values - float(w @ values) / total
    if clusters is None:
        free = max(columns.effective - 1, 1.0)
        return float(columns.squares @ off**2) / total**2, free
    sums = np.bincount(clusters, w * off)
    free = max(len(sums) - 1.0, 1.0)
    return float(sums @ sums) * (free + 1) / free / total**2, free


def _mean_interval(
    cells: Neighbours,
    cost: Column,
    spread: tuple[float, float],
    level: float,
    most: float,
) -> Interval:
    """How far an interval of a mean loss reaches down and up.

    A surprise is a miss above one half or a hit below it, and costs |x1 - x0|. Costs of
    few surprises add up to a weighted Poisson sum with a gamma interval (Fay and Feuer
    1997), its distances no longer than the rows vary. Of many, Student's is taken.
    """
    variance, free = spread
    half = closed_forms.student(level, free) * sqrt(variance)
    hits = np.clip(cells.hits / cells.weight, 0, 1)
    seen = np.where(cells.h < 0.5, hits, 1 - hits)
    total = float(cells.weight @ (seen * cost)) / cells.n
    square = float(cells.w2 @ (seen * cost**2)) / cells.n**2
    expected = np.minimum(cells.h, 1 - cells.h) * cost
    next_one = float(cells.w2 @ (expected * cost)) / max(
        float(cells.weight @ expected) * cells.n, 1e-300
    )
    low, high = _gamma_interval(total, square, next_one, level)
    some = square > 0
    stretch = min(sqrt(variance / square), most) if some else 1.0
    count = total**2 / square if some else 0.0
    few = 1 / (1 + (count / FEW_SURPRISES) ** 2)
    below, above = stretch * (total - low), stretch * (high - total)
    return few * below + (1 - few) * half, few * above + (1 - few) * half


def _gamma_interval(total: float, square: float, step: float, level: float) -> Interval:
    """Interval of a sum of Poisson counts times their costs; `step` is the next cost."""
    tail = (1 - level) / 2
    low = 0.0
    if total > 0 and square > 0:
        low = square / total * gamma_quantile(total**2 / square, tail)
    total, square = total + step, square + step**2
    if not square > 0:
        return low, low
    return low, square / total * gamma_quantile(total**2 / square, 1 - tail)
