"""Which interval each number gets, and how it is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, inf, isfinite, isnan

import numpy as np

from calibrant._base.records import Bins, Curve, Decomposition, Estimate
from calibrant._inputs.arrays import Column, Index, Mask, Table
from calibrant._inputs.divergences import BRIER, Divergence
from calibrant._rows.columns import Columns
from calibrant._sketch.grid import CELLS, cell_of
from calibrant._sketch.kernels import GAUSSIAN
from calibrant._stats import closed_forms, resampling, standard_errors
from calibrant._stats.bins import debiased_square, mass_bins
from calibrant._stats.closed_forms import Interval, normal
from calibrant._stats.resampling import Pieces, Rng, sums
from calibrant._stats.smooth_ece import SmoothedResidual
from calibrant._stats.standard_errors import Rows, error_of_mean

# -- norms of the residual, such as ECE: tests are inverted ------------------------
#
# Noise makes a norm larger, hardly ever smaller: a calibrated model has an ECE above 0.
# So the question is turned round. If the true residual had the shape that was found, but
# were s times as large, how large would the norm of residual plus noise be? The interval
# holds the sizes for which the observed norm is not unusual. Sizes too small to be told
# from 0 are tested on the upper side only: so the interval of a calibrated model holds 0
# as often as it says, and is never shorter than what such data can tell from 0.

Norm = Callable[[Table, Column], tuple[Column, Column]]
"""From residuals, one row per resample, and a direction to sizes and their growth."""

Map = Callable[[Table], Table]

STEPS = 8
"""Of Newton, on functions that are convex and nearly straight."""


def total_size(x: Table, direction: Column) -> tuple[Column, Column]:
    """Sum of absolute values."""
    sign = np.sign(x)
    return np.vecdot(sign, x), sign @ direction


def largest_size(x: Table, direction: Column) -> tuple[Column, Column]:
    """Largest absolute value."""
    at = np.abs(x).argmax(axis=1)
    largest = x[np.arange(len(x)), at]
    return np.abs(largest), np.sign(largest) * direction[at]


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Residuals s times a given shape, with each row of noise added."""

    shape: Column
    noise: Table
    norm: Norm

    @property
    def size(self) -> float:
        """The norm of the shape."""
        return size_of(self.shape, self.norm)

    @property
    def null(self) -> Column:
        """Norms of the noise alone."""
        return self.norm(self.noise, self.shape)[0]

    def crossings(self, bound: float, null: Column) -> Column:
        """The factor at which each resample's norm reaches a bound.

        It is 0 for those whose noise alone does. The norm is convex in the factor, so
        Newton's steps go to the crossing from above without passing it.
        """
        scale = (bound + null) / self.size
        for _ in range(STEPS):
            x = scale[:, None] * self.shape
            x += self.noise
            size, growth = self.norm(x, self.shape)
            step = (size - bound) / np.where(growth > 0, growth, inf)
            scale = np.maximum(scale - step, 0.0)
        return np.where(null >= bound, 0.0, scale)


def size_of(residual: Column, norm: Norm) -> float:
    """The norm of one residual."""
    return float(norm(residual[None], residual)[0][0])


def invert(family: Family, value: float, level: float, most: float = inf) -> Interval:
    """Interval for a norm that is at most `most`, given its observed value."""
    size = family.size
    if not size > 0:  # a shape may vanish in a norm, as that of bins
        return 0.0, max(value, float(np.quantile(family.null, level)))
    low, high = scales(family, value, level)
    return min(low * size, most), min(high * size, most)


def scales(family: Family, value: float, level: float) -> Interval:
    """Factors of the shape, whose size is not 0, that the value does not contradict."""
    alpha, null = 1 - level, family.null
    unusual = float(np.quantile(null, level))
    detectable = float(np.median(family.crossings(unusual, null)))
    crossings = family.crossings(value, null)
    two_sided, low, high = np.quantile(crossings, [alpha / 2, alpha, 1 - alpha / 2])
    if low >= detectable:
        low = max(detectable, two_sided)
    return float(low), max(detectable, float(high))


def band(family: Family, value: float, level: float, most: float = inf) -> Interval:
    """Interval for a largest value: as far as noise alone reaches on either side.

    Where two extremes compete, a scaled shape knows too little of the lesser one. This
    asks for no shape, and holds the truth at least as often as `level` says.
    """
    reach = float(np.quantile(family.null, level))
    return max(value - reach, 0.0), min(value + reach, most)


def denoised(pieces: Pieces, observed: Column, noise: Table) -> Column:
    """Residual of each cell with its noise taken out, as far as the data allow.

    An interval for the size of the residual needs to know its shape, in which noise
    would count twice. As many cosines of rank as reduce the expected error carry what is
    smooth; of the rest, the share that is more than noise is kept. `observed` is what
    `noise` is about: residuals as shares of all rows. If there is no residual at all,
    the shape is that of accuracy above confidence everywhere.
    """
    rank = (np.cumsum(pieces.weight) - 0.5 * pieces.weight) / pieces.total
    waves = np.cos(np.pi * rank[:, None] * np.arange(COSINES))
    waves[:, 1:] *= np.sqrt(2)
    coefficients, variance = observed @ waves, (noise @ waves).var(axis=0)
    gain = np.cumsum(coefficients**2 - 2 * variance)  # Mallows
    used = 1 + int(gain.argmax())
    share = pieces.weight / pieces.total
    smooth = share * (waves[:, :used] @ coefficients[:used])
    shape = smooth + shrunk(observed - smooth, noise, share)
    return shape if shape.any() else share


def shrunk(rest: Column, noise: Table, share: Column) -> Column:
    """The rest, times the share of its squared size that is not noise."""
    size = float((rest**2 / share).sum())
    expected = float((noise.var(axis=0) / share).sum())
    return rest * max(1 - expected / size, 0.0) if size > 0 else rest


NARROWEST, WIDEST = 1 / 512, 1 / 64
"""Width of cells in confidence: half the bandwidth of SmoothECE, within these."""

MOST_DRAWS, LEAST_RESAMPLES, COSINES = 200_000, 200, 12

GROUP_SHRINKAGE = 4.0
"""As many rows as good as claimed are added to a group, since most may hold a few."""

SHIFTS = (-4, -2, 0, 2, 4)


@dataclass(frozen=True, slots=True, eq=False)
class Resampled:
    """Residuals of cells, as shares of all rows: as observed, denoised, and noise."""

    pieces: Pieces
    observed: Column
    shape: Column
    noise: Table
    level: float

    def interval(
        self, through: Map, norm: Norm, rule: Callable[..., Interval] = invert
    ) -> Interval:
        """Interval of the norm of what the residuals become `through` a linear map."""
        observed, shape = through(self.observed[None])[0], through(self.shape[None])[0]
        family = Family(shape, through(self.noise), norm)
        return rule(family, size_of(observed, norm), self.level, most=1.0)


def residual_intervals(
    rows: Rows,
    bandwidth: float,
    bins: tuple[Bins, Bins],
    level: float,
    resamples: int,
    rng: Rng,
) -> dict[str, Interval]:
    """Intervals of ECE, ACE, MCE, equal-mass ECE, SmoothECE and the KS error.

    They all measure one thing, the residual a - h by confidence, in different norms, so
    one set of resamples serves them. `bandwidth` is that of SmoothECE, `bins` are the
    equal-width and the equal-mass ones.
    """
    width = min(max(bandwidth / 2, NARROWEST), WIDEST)
    pieces = resampling.cut(rows.ordered, bins, width)
    noise = _noise_of(rows, pieces, resamples, rng)
    observed = pieces.residual / pieces.total
    shape = denoised(pieces, observed, noise)
    found = Resampled(pieces, observed, shape, noise, level)
    in_bins, in_mass_bins = (
        partial(np.add.reduceat, indices=edges, axis=1) for edges in pieces.edges
    )
    share = bins[0].count[bins[0].count > 0] / bins[0].count.sum()
    return {
        "ece": found.interval(in_bins, total_size),
        "ace": found.interval(lambda x: in_bins(x) / share / len(share), total_size),
        "mce": found.interval(lambda x: in_bins(x) / share, largest_size),
        "ece_mass": found.interval(in_mass_bins, total_size),
        "ks_error": found.interval(partial(np.cumsum, axis=1), largest_size, band),
        "smooth_ece": _smooth_interval(found, bandwidth),
    }


def _noise_of(
    rows: Rows, pieces: Pieces, resamples: int, rng: Rng, cell: Index | None = None
) -> Table:
    """Resampled noise of each cell, by row or by cluster; `cell` is known for groups."""
    if rows.clusters is None:
        return resampling.resample(pieces, resamples, rng)
    if cell is None:
        first = rows.ordered.confidence[pieces.start]
        h = np.abs(rows.columns.confidence)
        cell = np.searchsorted(first, h, side="right") - 1
    known = rows.columns, cell, rows.clusters
    return resampling.resample_clusters(*known, resamples, rng)


def _smooth_interval(found: Resampled, bandwidth: float) -> Interval:
    """Test at the observed fixed point; the ends are fixed points of the scaled shape.

    The error falls as the bandwidth grows, so a resample's own fixed point exceeds the
    observed one just if its error at the observed bandwidth does: no search needed.
    """
    K = _reflected_kernel(found.pieces.confidence, max(bandwidth, 2 * NARROWEST))
    family = Family(found.shape @ K, found.noise @ K, total_size)
    value = size_of(found.observed @ K, total_size)
    low, high = scales(family, value, found.level)
    return min(_fixed_point(found, low), 1.0), min(_fixed_point(found, high), 1.0)


def _fixed_point(found: Resampled, scale: float) -> float:
    """SmoothECE of a model whose residual is `scale` times the shape."""
    place = cell_of(found.pieces.confidence, CELLS)
    smoothed = SmoothedResidual(sums(place, scale * found.shape, CELLS), 1.0)
    return smoothed.error(smoothed.fixed_point())


def _reflected_kernel(h: Column, bandwidth: float) -> Table:
    """Gaussian reflected at 0 and 1, from each cell to places that resolve it."""
    places = ceil(3 / bandwidth)
    at = (np.arange(places) + 0.5) / places
    reach = GAUSSIAN.reach * bandwidth
    K = np.zeros((len(h), places))
    for shift in SHIFTS:
        for image in (h + shift, shift - h):
            if image.min() < 1 + reach and image.max() > -reach:
                K += GAUSSIAN.profile((at - image[:, None]) / bandwidth)
    return K / (GAUSSIAN.mass * bandwidth * places)


def grouped_interval(
    rows: Rows, group: Index, level: float, resamples: int, rng: Rng
) -> Interval:
    """Interval for the sum over groups of rows of the size of their residual.

    Groups may be many and small, and are then resampled less often.
    """
    columns, w = rows.columns, rows.columns.weights
    names, group = np.unique(group, return_inverse=True)
    hit = w * columns.hit
    values = w, w * columns.confidence, hit, hit * columns.hit
    weight, claimed, hits, hits2 = (sums(group, x, len(names)) for x in values)
    h, residual = claimed / weight, hits - claimed
    chance = h + residual / (weight + GROUP_SHRINKAGE)
    spread = resampling.spread_of(weight, hits, hits2, chance)
    pieces = Pieces(names, h, weight, residual, chance, spread, ())
    resamples = max(min(resamples, MOST_DRAWS // len(names)), LEAST_RESAMPLES)
    noise = _noise_of(rows, pieces, resamples, rng, group)
    observed, share = pieces.residual / pieces.total, weight / pieces.total
    common = share * observed.sum()
    shape = common + shrunk(observed - common, noise, share)
    value = size_of(observed, total_size)
    return invert(Family(shape, noise, total_size), value, level, 1.0)


# -- the debiased squared error over equal-mass bins, and what rests on it ---------


@dataclass(frozen=True, slots=True, eq=False)
class SquaredError:
    """Mean squared gap between accuracy and confidence, debiased, with its interval.

    `gap` is accuracy minus confidence in the bin of each distinct confidence.
    """

    value: float
    interval: Interval
    gap: Column


def halved(rows: Rows, bins: Bins) -> Bins:
    """Equal-mass bins of distinct confidences, twice as many."""
    return mass_bins(rows.ordered, 2 * len(bins.count))


def between(coarse: SquaredError, fine: SquaredError) -> Interval:
    """From the lower end over the wider bins to the upper end over the narrower.

    Bins miss what varies within them, so the error over bins is at most the error: the
    lower end may do without it. Bins half as wide miss a quarter as much, and are noisier.
    """
    low = coarse.interval[0]
    return low, max(low, fine.interval[1])


def squared_error(rows: Rows, bins: Bins, level: float) -> SquaredError:
    r"""Debiased squared error over bins of distinct confidences, and its interval.

    Notes
    -----
    The variance of the estimate has two parts (Sun et al. 2024). One comes from the
    influence :math:`2 g r - g^2` of each row and grows with the error. The other
    remains for a calibrated model: in each bin the square of a mean, less its own
    expectation, has variance :math:`2 v^2`, half of what the first part makes of noise.
    The interval solves for the error, so it holds at 0 too.

    Where rows depend on each other, the noise to subtract from a bin's square is that
    of the sums of its clusters.
    """
    full = bins.count > 0
    count, gap = bins.count[full], (bins.accuracy - bins.confidence)[full]
    place = place_in_bins(rows, bins)
    se = rows.standard_error(standard_errors.of_squared_error(rows.ordered, gap[place]))
    n, size = float(count.sum()), float((count * gap**2).sum() / count.sum())
    if rows.clusters is None:
        value = debiased_square(bins)
        noise = float(bins.variance[full][count > 1].sum() / n)
    else:
        noise = _clustered_noise(rows, gap, place, len(count)) / n
        value = size - noise
    share, ordered = closed_forms.CALIBRATED_BINS, rows.ordered
    ends = closed_forms.score(value, se, size, noise, level, share)
    seen = ordered.weight, ordered.confidence, ordered.hits
    ends = closed_forms.with_few_misses(ends, *seen, BRIER.on_unit, level)
    return SquaredError(value, ends, gap[place])


def place_in_bins(rows: Rows, bins: Bins) -> Index:
    """Which of the bins that hold rows each distinct confidence belongs to."""
    count = bins.count[bins.count > 0]
    middle = np.cumsum(rows.ordered.weight)
    middle -= 0.5 * rows.ordered.weight  # half a row is more than round-off
    return np.searchsorted(np.cumsum(count)[:-1], middle)


def _clustered_noise(rows: Rows, gap: Column, place: Index, bins: int) -> float:
    """Sum over bins of the variance of their residual per row, clusters being units."""
    assert rows.clusters is not None
    columns, at, w = rows.columns, place[rows.place], rows.columns.weights
    deviation = w * (columns.hit - columns.confidence - gap[at])
    pair, inverse = np.unique(rows.clusters * bins + at, return_inverse=True)
    square = np.bincount(inverse, deviation) ** 2
    noise = np.bincount(pair % bins, square, bins) / np.bincount(at, w, bins)
    return float(noise.sum())


def discrimination(
    rows: Rows, error: SquaredError, score: float, uncertainty: float, level: float
) -> Interval:
    """Interval for DSC = score less calibration error, subtracted from uncertainty.

    It is centred at the debiased value; the isotonic one is too high by the noise that
    the fit took for signal.
    """
    value = uncertainty - score + error.value
    se = rows.standard_error(standard_errors.of_discrimination(rows.ordered, error.gap))
    low, high = normal(value, se, level)
    return max(low, 0.0), max(min(high, uncertainty), 0.0)


# -- the terms of d_TOT = d_CAL + gap, where closed forms need the rows ------------


def with_clusters(
    parts: Decomposition,
    curve: Curve,
    columns: Columns,
    divergence: Divergence,
    level: float,
    clusters: Index,
) -> Decomposition:
    """The same decomposition, its intervals as wide as clusters of rows ask for.

    That of the calibration error is stretched by what clusters do to the standard
    error of the loss that recalibration saves.
    """
    total, calibration = parts.total, parts.calibration
    if total.interval is not None:
        losses = columns.loss(divergence)
        se = error_of_mean(losses, columns.weight, clusters)
        low, high = normal(float(total), se, level)
        total = Estimate(total, (max(low, 0.0), high), _named("normal", clusters))
    if calibration.interval is not None and isfinite(calibration):
        saved = _savings(curve, columns, divergence)
        stretch = error_of_mean(saved, columns.weight, clusters)
        stretch /= max(error_of_mean(saved, columns.weight), 1e-300)
        value, stretch = max(float(calibration), 0.0), max(stretch, 1.0)
        low, high = (value + stretch * (end - value) for end in calibration.interval)
        ends = max(low, 0.0), max(high, 0.0)
        # Never called widened: rows of a cluster look like a defect.
        method = _named(closed_forms.named("score", ends), clusters)
        calibration = Estimate(calibration, ends, method)
    return replace(parts, total=total, calibration=calibration)


def _savings(curve: Curve, columns: Columns, divergence: Divergence) -> Column:
    """Loss of the confidence that recalibration by the curve saves, row by row."""
    known = np.isfinite(curve.accuracy)
    at, m = curve.confidence[known], curve.accuracy[known]
    with np.errstate(divide="ignore"):
        z, eta = (np.log(p) - np.log1p(-p) for p in (at, m))
    inside = np.isfinite(z) & np.isfinite(eta)
    if not inside.any():
        return np.zeros(len(columns))
    log_odds = columns.log_odds
    after = log_odds + np.interp(log_odds, z[inside], (eta - z)[inside])
    return columns.unit_loss(divergence) - divergence.of_log_odds(columns.hit, after)


def _named(method: str, clusters: Index | None) -> str:
    return method if clusters is None else f"{method}, clusters"


# -- which interval each metric gets, and what it is called ------------------------
#
# Averages, AUROC and discrimination move smoothly with the data: closed forms. Debiased
# squares have a score interval. Plain calibration errors are norms of the residual, which
# noise inflates: tests are inverted, on resampled noise. The largest value of a walk has a
# band, by how far that noise reaches.

INVERSION, BAND, SCORE = "test inversion", "band", "score"

Found = tuple[Interval, str]
"""An interval and its method."""


def share(rows: Rows, p: float, right_if_hit: Mask, level: float) -> Interval:
    """Wilson interval of a share of rows, counting those that are independent."""
    n = rows.effective(p, standard_errors.of_right(right_if_hit))
    return closed_forms.wilson_of(p, n, level)


def of_gap(rows: Rows, value: float, level: float) -> Found:
    """Of mean confidence minus accuracy."""
    se = rows.standard_error(standard_errors.of_confidence_gap(rows.ordered))
    return normal(value, se, level), "normal"


def of_uncertainty(
    rows: Rows, value: float, level: float, *, sketched: bool
) -> Found | None:
    """From the base rate if hits are 0 and 1, else as a mean of squares.

    A sketch of soft labels has none, since that needs fourth powers of the hits.
    """
    columns = rows.columns
    rate = columns.mean(columns.hit)
    if columns.hard:
        every = np.ones(len(rows.ordered.confidence), bool)
        low, high = share(rows, rate, every, level)
        ends = low * (1 - low), high * (1 - high)
        return (min(ends), 0.25 if low < 0.5 < high else max(ends)), "Wilson"
    if sketched:
        return None
    squares = (columns.hit - rate) ** 2
    se = error_of_mean(squares, columns.weight, rows.clusters)
    low, high = normal(value, se, level)
    return (max(low, 0.0), high), "normal"


def of_auroc(rows: Rows, value: float, level: float) -> Found | None:
    """On the log-odds, or for a perfect order as a share; none if it is undefined."""
    ordered = rows.ordered
    if isnan(value):
        return None
    if not 0 < value < 1:  # perfect: as many pairs in a row as the rarer side has rows
        rarer = min(ordered.hits.sum(), ordered.total - ordered.hits.sum())
        return closed_forms.wilson_of(value, rarer, level), "Wilson"
    se = rows.standard_error(standard_errors.of_auroc(ordered, value))
    return closed_forms.on_log_odds(value, se, level), "DeLong"
