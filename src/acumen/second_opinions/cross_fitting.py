"""Cross-fitting: what a recalibration saves on rows that it was not fitted on.

For every map g of the confidence, d_CAL is at least the mean of S(h) - S(g(h)). If g
and the choice among maps come from other rows, the mean gain is a lower bound of d_CAL
on average, whatever the maps are worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.bregman import Divergence
from acumen.columns import Columns, sigmoid
from acumen.estimators.neighbours import Cells, cells_of_sketch
from acumen.second_opinions.recalibrations import METHODS, NONE, Map
from acumen.sums import LOG_ODDS_REACH, Sums

Index = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Gains of each row, held out.

    `gains` are by method, `best` is that of the method chosen for the row's fold, whose
    names are in `chosen`.
    """

    gains: Mapping[str, Column]
    best: Column
    chosen: tuple[str, ...]


def assign_folds(
    rows: int, clusters: Index | None, folds: int, rng: np.random.Generator
) -> Index:
    """Number of the fold of each row; the rows of a cluster share one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> np.bincount(assign_folds(7, None, 3, rng)).tolist()
    [3, 2, 2]
    """
    units = rows if clusters is None else int(clusters.max()) + 1
    if units < folds:
        what = "rows" if clusters is None else "clusters"
        raise ValueError(
            f"folds must be at most the number of {what}, {units}; got {folds}."
        )
    fold = np.empty(units, np.intp)
    fold[rng.permutation(units)] = np.arange(units) % folds
    return fold if clusters is None else fold[clusters]


def held_out_gains(
    columns: Columns, divergence: Divergence, fold: Index, folds: int
) -> HeldOut:
    """What each recalibration saves on rows of folds it has not seen.

    Fits read sums over cells of log-odds, one set for each fold. For each fold the
    best method is chosen by cross-validation among the others.
    """
    sums = [Sums({}).update(columns.take(fold == f)) for f in range(folds)]
    chosen = choose_methods(sums, divergence)
    gains = {name: np.empty(len(columns)) for name in METHODS}
    best = np.empty(len(columns))
    for f in range(folds):
        rows = np.flatnonzero(fold == f)
        part, cells = columns.take(rows), _cells_without(sums, {f})
        before = part.unit_loss(divergence)
        for name, fit in METHODS.items():
            after = recalibrated(part, fit(cells)).unit_loss(divergence)
            gains[name][rows] = before - after if name != NONE else 0.0
        best[rows] = gains[chosen[f]][rows]
    del gains[NONE]
    return HeldOut(gains, best, chosen)


def recalibrated(columns: Columns, recalibrate: Map) -> Columns:
    """The same hits at other confidences; log-odds are cut at +-20 first."""
    eta = recalibrate(np.clip(columns.log_odds, -LOG_ODDS_REACH, LOG_ODDS_REACH))
    return Columns(sigmoid(eta), eta, columns.hit, weight=columns.weight)


def choose_methods(sums: list[Sums], divergence: Divergence) -> tuple[str, ...]:
    """For each fold, the method that loses least when the others predict each other."""
    folds = range(len(sums))
    seen = [cells_of_sketch(part) for part in sums]
    loss = {name: np.zeros(len(sums)) for name in METHODS}
    for pair in combinations(folds, 2):
        cells = _cells_without(sums, set(pair))
        for name, fit in METHODS.items():
            recalibrate = fit(cells)
            for f, other in (pair, pair[::-1]):
                loss[name][f] += _loss(seen[other], divergence, recalibrate)
    return tuple(min(METHODS, key=lambda name: loss[name][f]) for f in folds)


def _cells_without(sums: list[Sums], left_out: set[int]) -> Cells:
    kept = [part for f, part in enumerate(sums) if f not in left_out]
    return cells_of_sketch(sum(kept[1:], start=kept[0]))


def _loss(cells: Cells, divergence: Divergence, recalibrate: Map) -> float:
    """Sum of d(a, g) over the rows of some cells, but for what is equal for all g."""
    rate = np.clip(cells.hits / cells.weight, 0.0, 1.0)
    eta = recalibrate(cells.z)
    loss = Columns(sigmoid(eta), eta, rate).unit_loss(divergence)
    return float((cells.weight * loss).sum())
