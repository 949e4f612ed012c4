"""Which interval each number gets, and how it is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, inf, isnan

import numpy as np

from calibrant._base.records import Bins
from calibrant._inputs.arrays import Column, Index, Mask, Table
from calibrant._inputs.divergences import BRIER
from calibrant._rows import compiled, engines
from calibrant._sketch.grid import CELLS, cell_of
from calibrant._sketch.kernels import GAUSSIAN
from calibrant._sketch.ordered import Ordered
from calibrant._stats import closed_forms, resampling, standard_errors
from calibrant._stats.bins import (
    debiased_square,
    effective_counts,
    mass_bins,
    place_of_values,
)
from calibrant._stats.closed_forms import Interval, Mean, Surprises, quantile_of
from calibrant._stats.resampling import TINY, Pieces, Rng, sums
from calibrant._stats.smooth_ece import SmoothedResidual
from calibrant._stats.standard_errors import Influence, Rows

# -- norms of the residual, such as ECE: tests are inverted ------------------------
#
# Noise makes a norm larger, hardly ever smaller: a calibrated model has an ECE above 0.
# So the question is turned round. If the true residual had the shape that was found, but
# were s times as large, how large would the norm of residual plus noise be? The interval
# holds the sizes for which the observed norm is not unusual, neither large nor small, and
# is never shorter than what such data can tell from 0.

Norm = Callable[[Table, Column], tuple[Column, Column]]
"""From residuals, one row per resample, and a direction to sizes and their growth."""

Map = Callable[[Table], Table]
"""Linear, of residuals by row."""

STEPS, CLOSE, AT_ONCE = 8, 1e-6, 1 << 16
"""Of Newton, on functions that are convex and nearly straight; how near they come; numbers
at a time."""


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
        """The last factor at which each resample's norm is a bound; 0 if it is always more.

        The norm is convex in the factor, so Newton's steps go there from above without
        passing it.
        """
        scale, rows = (bound + null) / self.size, max(AT_ONCE // len(self.shape), 1)
        if self.norm is total_size and engines.wanted():
            shape, noise = map(compiled.ready, (self.shape, self.noise))
            compiled.loops.crossings(STEPS, bound, shape, noise, scale)
        else:
            for first in range(0, len(null), rows):  # parts that stay in cache
                part = slice(first, first + rows)
                scale[part] = self._descend(self.noise[part], scale[part], bound)
        more = np.flatnonzero(null >= bound)  # the shape may lessen it at first
        x = scale[more, None] * self.shape + self.noise[more]
        scale[more[self.norm(x, self.shape)[0] > bound * (1 + CLOSE)]] = 0.0
        return scale

    def _descend(self, noise: Table, scale: Column, bound: float) -> Column:
        for _ in range(STEPS):
            x = scale[:, None] * self.shape
            x += noise
            size, growth = self.norm(x, self.shape)
            step = (size - bound) / np.where(growth > 0, growth, inf)
            before, scale = scale, np.maximum(scale - step, 0.0)
            if np.all(np.abs(scale - before) <= 1e-12 * before):
                break
        return scale


def size_of(residual: Column, norm: Norm) -> float:
    """The norm of one residual."""
    return float(norm(residual[None], residual)[0][0])


def invert(family: Family, value: float, level: float, most: float = inf) -> Interval:
    """Interval for a norm that is at most `most`, given its observed value."""
    size = family.size
    if not size > 0:  # a shape may vanish in a norm, as that of bins
        return 0.0, max(value, float(np.quantile(family.null, 0.5 + level / 2)))
    low, high = scales(family, value, level)
    return min(low * size, most), min(high * size, most)


def scales(family: Family, value: float, level: float) -> Interval:
    """Factors of the shape, whose size is not 0, that the value does not contradict."""
    tail, null = (1 - level) / 2, family.null
    unusual = quantile_of(null, 1 - tail)
    detectable = quantile_of(family.crossings(unusual, null), 0.5)
    last = family.crossings(value, null)
    low = quantile_of(np.where(null >= value, 0.0, last), tail)
    return low, max(detectable, quantile_of(last, 1 - tail))


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

    @property
    def share(self) -> Column:
        """Share of the weight in each cell."""
        return self.pieces.weight / self.pieces.total

    def interval(self, through: Map, stretch: Column | float = 1.0) -> Interval:
        """Interval of the sum of sizes of what residuals become `through` a linear map.

        The noise is stretched where it may be larger than it looks.
        """
        rows = np.stack([self.observed, self.shape, self.share])
        observed, shape, share = through(rows)
        noise = stretch * through(self.noise)
        kept = 1 - noise.var(axis=0) / np.maximum(observed**2, TINY)
        flat = np.where(observed < 0, -share, share)
        shapes = shape, observed, observed * np.maximum(kept, 0.0), flat
        value = size_of(observed, total_size)
        each = (Family(x, noise, total_size) for x in shapes)
        return widest([invert(x, value, self.level, most=1.0) for x in each])

    def largest(self, through: Map, stretch: Column) -> Interval:
        """Interval of the largest size, each being known as well as its noise allows.

        All are held at once, as often as `level` says, by what they are plus and minus so
        many standard deviations each; then so is the largest, by the largest of the ends.
        """
        noise, size = through(self.noise), np.abs(through(self.observed[None])[0])
        spread = np.maximum(noise.std(axis=0), TINY)
        furthest = np.abs(noise / spread).max(axis=1)
        reach = float(np.quantile(furthest, self.level)) * spread * stretch
        low, high = float((size - reach).max()), float((size + reach).max())
        return max(low, 0.0), min(high, 1.0)

    def walk(self) -> Interval:
        """Interval of the largest distance of the cumulative residuals from 0."""
        cumulate = partial(np.cumsum, axis=1)
        walk = cumulate(self.observed[None])[0]
        family = Family(walk, cumulate(self.noise), largest_size)
        return band(family, size_of(walk, largest_size), self.level, most=1.0)


def widest(intervals: Sequence[Interval]) -> Interval:
    """From the least lower end to the largest upper end of several shapes.

    Noise adds most to the size of a residual that is large in few places, and least to
    one that is alike everywhere. The denoised shape has both at their likeliest, the raw
    one is not smoothed, one may keep large places only; the last, alike everywhere, has an
    upper end only.
    """
    return min(low for low, _ in intervals[:-1]), max(high for _, high in intervals)


def resampled(
    rows: Rows,
    bandwidth: float,
    bins: tuple[Bins, Bins],
    level: float,
    resamples: int,
    rng: Rng,
) -> Resampled:
    """The residual in cells that bins and a kernel of this width can be made of."""
    width = min(max(bandwidth / 2, NARROWEST), WIDEST)
    pieces = resampling.cut(rows.ordered, bins, width)
    noise = _noise_of(rows, pieces, resamples, rng)
    observed = pieces.residual / pieces.total
    return Resampled(pieces, observed, denoised(pieces, observed, noise), noise, level)


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
    found = resampled(rows, bandwidth, bins, level, resamples, rng)
    pieces, noise = found.pieces, found.noise
    in_bins, in_mass_bins = (
        partial(np.add.reduceat, indices=edges, axis=1) for edges in pieces.edges
    )
    share = bins[0].count[bins[0].count > 0] / bins[0].count.sum()
    few = _stretch(_independent(rows, pieces), pieces, bins[0], in_bins(noise) / share)
    return {
        "ece": found.interval(in_bins),
        "ace": found.interval(lambda x: in_bins(x) / share / len(share), few),
        "mce": found.largest(lambda x: in_bins(x) / share, few),
        "ece_mass": found.interval(in_mass_bins),
        "ks_error": found.walk(),
        "smooth_ece": _smooth_interval(found, bandwidth),
    }


def _stretch(rows: Column, pieces: Pieces, bins: Bins, noise: Table) -> Column:
    """How much noisier the gaps of bins that hold few `rows` may be than they look.

    Beside its own rows, a bin is given one as good as claimed and one of even chances.
    """
    full = bins.count > 0
    hits = rows * bins.accuracy[full] + bins.confidence[full]
    careful = (hits + 0.5) / (rows + 2)
    variance = pieces.spread**2 * careful * (1 - careful) / rows
    return np.sqrt(np.maximum(variance / np.maximum(noise.var(axis=0), TINY), 1.0))


def _independent(rows: Rows, pieces: Pieces) -> Column:
    """Number of rows, or of clusters, in each of the first bins that would vary as much.

    Rows of a cluster in the same bin may all be alike.
    """
    first = pieces.edges[0]
    if rows.clusters is None:
        squares = np.add.reduceat(pieces.worth * pieces.weight, first)
        return np.add.reduceat(pieces.weight, first) ** 2 / squares
    cell, w, count = cells_of(rows, pieces), rows.columns.weights, len(first)
    place = np.searchsorted(first, cell, side="right") - 1
    size = (int(rows.clusters.max()) + 1) * count
    sums = np.bincount(rows.clusters * count + place, w, size).reshape(-1, count)
    return sums.sum(axis=0) ** 2 / np.maximum((sums**2).sum(axis=0), TINY)


def cells_of(rows: Rows, pieces: Pieces) -> Index:
    """The cell of each row; of a sketch, known confidences are means, and rows beside them."""
    known, h = rows.ordered.confidence, np.abs(rows.columns.confidence)
    before, first = known[pieces.start[1:] - 1], known[pieces.start[1:]]
    bounds = np.maximum((before + first) / 2, np.nextafter(before, 1))
    return np.searchsorted(bounds, h, side="right")


def _noise_of(
    rows: Rows, pieces: Pieces, resamples: int, rng: Rng, cell: Index | None = None
) -> Table:
    """Resampled noise of each cell, by row or by cluster; `cell` is known for groups."""
    if rows.clusters is None:
        return np.ascontiguousarray(resampling.resample(pieces, resamples, rng))
    cell = cells_of(rows, pieces) if cell is None else cell
    known = rows.columns, cell, len(pieces.weight), rows.clusters
    return resampling.resample_clusters(*known, resamples, rng)


def _smooth_interval(found: Resampled, bandwidth: float) -> Interval:
    """Test at the observed fixed point; the ends are fixed points of the scaled shape.

    The error falls as the bandwidth grows, so a resample's own fixed point exceeds the
    observed one just if its error at the observed bandwidth does: no search needed.
    """
    K = _reflected_kernel(found.pieces.confidence, max(bandwidth, 2 * NARROWEST))
    smooth, noise = found.observed @ K, found.noise @ K
    value, ends = size_of(smooth, total_size), []
    flat = np.where(K @ smooth < 0, -found.share, found.share)
    for shape in (found.shape, found.observed, flat):
        family = Family(shape @ K, noise, total_size)
        low, high = (
            scales(family, value, found.level) if family.size > 0 else (0.0, 0.0)
        )
        least, most = (min(_fixed_point(found, x * shape), 1.0) for x in (low, high))
        ends.append((least, most))
    return widest(ends)


def _fixed_point(found: Resampled, residual: Column) -> float:
    """SmoothECE of a model of this residual in each cell."""
    place = cell_of(found.pieces.confidence, CELLS)
    smoothed = SmoothedResidual(sums(place, residual, CELLS), 1.0)
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
    worth = np.ones_like(weight)
    if columns.squared is not None:
        worth = sums(group, columns.squared, len(names)) / weight
    chance = h + residual / (weight + GROUP_SHRINKAGE * worth)
    spread = resampling.spread_of(weight, hits, hits2, chance)
    pieces = Pieces(names, h, weight, residual, chance, spread, (), worth)
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
    full, ordered = bins.count > 0, rows.ordered
    count, gap = bins.count[full], (bins.accuracy - bins.confidence)[full]
    place = place_of_values(ordered, bins)
    se = rows.standard_error(standard_errors.of_squared_error(ordered, gap[place]))
    n, size = float(count.sum()), float((count * gap**2).sum() / count.sum())
    if rows.clusters is None:
        value, some = debiased_square(bins, ordered), effective_counts(bins, ordered)
        squares = (count * bins.variance[full] / some[full])[some[full] > 1]
        noise = float(squares.sum() / n)
    else:
        noise = _clustered_noise(rows, gap, place, len(count)) / n
        value = size - noise
    share = closed_forms.CALIBRATED_BINS
    ends = closed_forms.score(value, se, size, noise, level, share)
    mean = ordered.hits.sum() / n
    every = np.ones(len(ordered.confidence), bool)
    worth = rows.effective(mean, standard_errors.of_right(every)) / n
    seen = worth * ordered.weight, ordered.confidence, worth * ordered.hits
    ends = closed_forms.with_few_misses(ends, *seen, BRIER.on_unit, level)
    return SquaredError(value, ends, gap[place])


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
    rows: Rows,
    error: SquaredError,
    score: float,
    uncertainty: float,
    level: float,
    *,
    sketched: bool,
) -> Interval:
    """Interval for DSC = score less calibration error, subtracted from uncertainty.

    It is centred at the debiased value; the isotonic one is too high by the noise that
    the fit took for signal. It is at most what the uncertainty may be, which few events
    of a kind leave open, and a sketch of soft labels does not know.
    """
    found = of_uncertainty(rows, uncertainty, level, sketched=sketched)
    most = 0.25 if found is None else found[0][1]
    influence = standard_errors.of_discrimination(rows.ordered, error.gap)
    if _events_behind(rows, influence) < FEW_EVENTS:
        return 0.0, most
    value = uncertainty - score + error.value
    se = rows.standard_error(influence)
    low, high = closed_forms.mean_interval(Mean(value, se, rows.df), level)
    return max(low, 0.0), max(min(high, most), 0.0)


# -- which interval each metric gets, and what it is called ------------------------
#
# Averages, AUROC and discrimination move smoothly with the data: closed forms. Debiased
# squares have a score interval. Plain calibration errors are norms of the residual, which
# noise inflates: tests are inverted, on resampled noise. The largest value of a walk has a
# band, by how far that noise reaches.

INVERSION, BAND, SCORE = "simulated noise", "band", "score"

Found = tuple[Interval, str]
"""An interval and its method."""


def share(rows: Rows, p: float, right_if_hit: Mask, level: float) -> Interval:
    """Interval of a share of rows, counting those that are independent."""
    n = rows.effective(p, standard_errors.of_right(right_if_hit))
    if rows.clusters is not None or rows.columns.squared is not None:
        n *= (closed_forms.quantile(level) / closed_forms.student(level, rows.df)) ** 2
    return closed_forms.of_share(p, n, level)


def of_gap(rows: Rows, value: float, level: float) -> Found:
    """Of mean confidence minus accuracy."""
    se = rows.standard_error(standard_errors.of_confidence_gap(rows.ordered))
    misses, hits = _surprises(rows.ordered)
    mean = Mean(value, se, rows.df, misses, hits, rows.per_cluster)
    low, high = closed_forms.mean_interval(mean, level)
    return (max(low, -1.0), min(high, 1.0)), mean.method.removesuffix(", clusters")


def _surprises(ordered: Ordered) -> tuple[Surprises, Surprises]:
    """Misses where hits are likely, and hits where they are not, at a cost of 1 each."""
    likely = (ordered.confidence >= 0.5).astype(np.float64)
    return surprised_at(ordered, likely), surprised_at(ordered, 1 - likely)


def surprised_at(ordered: Ordered, cost: Column) -> Surprises:
    """What turned out against the odds, at these costs."""
    h, weight, squared = ordered.confidence, ordered.weight, ordered.squared
    seen = np.where(h >= 0.5, weight - ordered.hits, ordered.hits)
    rows = np.minimum(h, 1 - h), weight, squared, seen, seen * (squared / weight)
    return Surprises.of(*rows, cost, ordered.total)


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
    mean = Mean(value, rows.error_of(squares), rows.df)
    low, high = closed_forms.mean_interval(mean, level)
    return (max(low, 0.0), min(high, 0.25)), "normal"


FEW_EVENTS = 20
"""Fewer hits, or fewer misses, are few."""


def rare_events(rows: Rows) -> float:
    """Number of hits, or of misses if they are fewer, that would vary as much."""
    w, hit = rows.columns.weights, rows.columns.hit
    return min(rows.independent(x) for x in (w * hit, w * (1 - hit)))


def _events_behind(rows: Rows, influence: Influence) -> float:
    """Number of events of the rarer kind, fewer as far as clusters vary more than rows.

    There are at least as many as clusters that hold some.
    """
    alone, least = Rows(rows.columns, rows.ordered), 1e-12
    ratio = alone.standard_error(influence) / max(rows.standard_error(influence), least)
    return max(rare_events(alone) * min(ratio**2, 1.0), rare_events(rows))


def of_auroc(rows: Rows, value: float, level: float) -> Found | None:
    """On the log-odds, or as a share of the rarer kind; none if it is undefined.

    A perfect order is known as well as a share of so many rows, or clusters, since that
    many pairs in a row are right; few events of a kind tell no more than that.
    """
    if isnan(value):
        return None
    if not 0 < value < 1:
        return closed_forms.wilson_of(value, rare_events(rows), level), "Wilson"
    influence = standard_errors.of_auroc(rows.ordered, value)
    se, events = rows.standard_error(influence), _events_behind(rows, influence)
    if rows.clusters is not None:
        se *= closed_forms.student(level, rows.df) / closed_forms.quantile(level)
    low, high = closed_forms.on_log_odds(value, se, level)
    if events < FEW_EVENTS:
        as_share = closed_forms.wilson_of(value, events, level)
        return (min(low, as_share[0]), max(high, as_share[1])), "Wilson"
    return (low, high), "DeLong"
