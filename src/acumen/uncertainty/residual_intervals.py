"""Intervals for every calibration error that is a norm of the residual.

ECE over bins of any kind, ACE, MCE, SmoothECE and the KS error all measure one thing,
the residual a - h by confidence, in different norms. One set of resamples serves them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.estimators.smoothing import SmoothedResidual, smooth_error_of_sketch
from acumen.grid import CELLS, cell_of
from acumen.intervals import Interval
from acumen.kernels import GAUSSIAN
from acumen.results import Bins
from acumen.sums import Sums
from acumen.uncertainty import inversion
from acumen.uncertainty.inversion import Family, Norm, largest_size, size_of, total_size
from acumen.uncertainty.resampling import (
    Pieces,
    Table,
    cut,
    resample,
    resample_clusters,
    spread_of,
    sums,
)
from acumen.uncertainty.residual_shape import denoised, shrunk
from acumen.uncertainty.standard_errors import Index, Rows

NARROWEST, WIDEST = 1 / 512, 1 / 64
"""Width of cells in confidence: half the bandwidth of SmoothECE, within these."""

MOST_DRAWS, LEAST_RESAMPLES = 200_000, 200
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
        self,
        through: Callable[[Table], Table],
        norm: Norm,
        rule: Callable[..., Interval] = inversion.interval,
    ) -> Interval:
        """Interval of the norm of what the residuals become `through` a linear map."""
        observed, shape = through(self.observed[None])[0], through(self.shape[None])[0]
        family = Family(shape, through(self.noise), norm)
        return rule(family, size_of(observed, norm), self.level, most=1.0)


def residual_intervals(
    rows: Rows,
    sketch: Sums,
    bins: tuple[Bins, Bins],
    level: float,
    resamples: int,
    rng: np.random.Generator,
) -> dict[str, Interval]:
    """Intervals of ECE, ACE, MCE, equal-mass ECE, SmoothECE and the KS error.

    `bins` are the equal-width and the equal-mass ones.
    """
    bandwidth = smooth_error_of_sketch(sketch)
    width = min(max(bandwidth / 2, NARROWEST), WIDEST)
    pieces = cut(rows.ordered, bins, width)
    noise = noise_of(rows, pieces, resamples, rng)
    observed = pieces.residual / pieces.total
    shape = denoised(pieces, observed, noise)
    found = Resampled(pieces, observed, shape, noise, level)
    in_bins, in_mass_bins = (partial(_sum, edges) for edges in pieces.edges)
    walk = partial(np.cumsum, axis=1)
    share = bins[0].count[bins[0].count > 0] / bins[0].count.sum()

    def gaps(x: Table) -> Table:
        return in_bins(x) / share

    return {
        "ece": found.interval(in_bins, total_size),
        "ace": found.interval(lambda x: gaps(x) / len(share), total_size),
        "mce": found.interval(gaps, largest_size),
        "ece_mass": found.interval(in_mass_bins, total_size),
        "ks_error": found.interval(walk, largest_size, inversion.band),
        "smooth_ece": _smooth_interval(found, bandwidth),
    }


def _sum(edges: Index, x: Table) -> Table:
    return np.add.reduceat(x, edges, axis=1)


def noise_of(
    rows: Rows, pieces: Pieces, resamples: int, rng: np.random.Generator
) -> Table:
    """Resampled noise of each cell, by row or by cluster."""
    if rows.clusters is None:
        return resample(pieces, resamples, rng)
    first = rows.ordered.confidence[pieces.start]
    h = np.abs(rows.columns.confidence)
    cell = np.searchsorted(first, h, side="right") - 1
    return resample_clusters(rows.columns, cell, rows.clusters, resamples, rng)


# -- SmoothECE ---------------------------------------------------------------------


def _smooth_interval(found: Resampled, bandwidth: float) -> Interval:
    """Test at the observed fixed point; the ends are fixed points of the scaled shape.

    The error falls as the bandwidth grows, so a resample's own fixed point exceeds the
    observed one just if its error at the observed bandwidth does: no search needed.
    """
    K = _reflected_kernel(found.pieces.confidence, max(bandwidth, 2 * NARROWEST))
    family = Family(found.shape @ K, found.noise @ K, total_size)
    value = size_of(found.observed @ K, total_size)
    low, high = inversion.scales(family, value, found.level)
    return min(_fixed_point(found, low), 1.0), min(_fixed_point(found, high), 1.0)


def _fixed_point(found: Resampled, scale: float) -> float:
    """SmoothECE of a model whose residual is `scale` times the shape."""
    place = cell_of(found.pieces.confidence, CELLS)
    smoothed = SmoothedResidual(sums(place, scale * found.shape, CELLS), 1.0)
    return smoothed.error(smoothed.fixed_point())


def _reflected_kernel(h: Column, bandwidth: float) -> NDArray[np.float64]:
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


# -- groups ------------------------------------------------------------------------


def grouped_interval(
    rows: Rows, group: Index, level: float, resamples: int, rng: np.random.Generator
) -> Interval:
    """Interval for the sum over groups of rows of the size of their residual.

    Groups may be many and small, and are then resampled less often.
    """
    columns = rows.columns
    names, group = np.unique(group, return_inverse=True)
    w = np.ones(len(columns)) if columns.weight is None else columns.weight
    a = w * columns.hit
    weight, claimed, hits, hits2 = (
        sums(group, x, len(names))
        for x in (w, w * columns.confidence, a, a * columns.hit)
    )
    h, residual = claimed / weight, hits - claimed
    chance = h + residual / (weight + GROUP_SHRINKAGE)
    spread = spread_of(weight, hits, hits2, chance)
    pieces = Pieces(names, h, weight, residual, chance, spread, ())
    resamples = max(min(resamples, MOST_DRAWS // len(names)), LEAST_RESAMPLES)
    if rows.clusters is None:
        noise = resample(pieces, resamples, rng)
    else:
        noise = resample_clusters(columns, group, rows.clusters, resamples, rng)
    observed, share = pieces.residual / pieces.total, weight / pieces.total
    common = share * observed.sum()
    shape = common + shrunk(observed - common, noise, share)
    value = size_of(observed, total_size)
    return inversion.interval(Family(shape, noise, total_size), value, level, 1.0)
