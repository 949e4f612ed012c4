"""`calibration_bracket`: d_CAL between a lower bound and the in-sample value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, Unpack

import numpy as np

from calibrant._base.checks import check_number
from calibrant._base.records import Estimate, Loss, Positive, Range, Record, Target
from calibrant._base.views import Printed
from calibrant._inputs.arrays import Column, Index, sigmoid
from calibrant._inputs.divergences import Divergence
from calibrant._inputs.options import Scores, Settings, takes_scores, target_of
from calibrant._inputs.predictions import read_clusters
from calibrant._rows.columns import Columns
from calibrant._rows.reduce import read
from calibrant._sketch.cells import Cells
from calibrant._sketch.grid import LOG_ODDS_REACH
from calibrant._sketch.ordered import order, pooled
from calibrant._stats import closed_forms, decomposition, platt
from calibrant._stats.bins import Isotonic, corp_of, debiased_bins
from calibrant._stats.closed_forms import Mean
from calibrant._stats.intervals import squared_error
from calibrant._stats.neighbours import Neighbours, cells_of_sketch, thin
from calibrant._stats.platt_error import fixed_width
from calibrant._stats.standard_errors import (
    Rows,
    degrees_of_freedom,
    error_of_mean,
)
from calibrant._verbs.features import check_rows

FOLDS, LEAST_FOLDS = 5, 3
"""One fold at least is to test on, and two are to choose a method by."""

# A recalibration is fitted on the cells of some rows, so that it costs the same for any
# number of them, and may be asked about any other row.
Map = Callable[[Column], Column]
"""From log-odds to recalibrated log-odds; both finite."""

EVERYWHERE = 1e6
"""A width in rank at which the kernel sees all rows alike."""


def fit_platt(cells: Neighbours) -> Map:
    """Platt scaling: the log-odds stretched and shifted, with a weak prior."""
    centre = float(cells.z @ cells.weight / cells.n)
    fitted = platt.fit(cells, EVERYWHERE, np.array([centre]))
    shift, slope = float(fitted.shift[0]), float(fitted.slope[0])
    return lambda z: z + shift + slope * (z - centre)


def fit_isotonic(cells: Neighbours) -> Map:
    """Isotonic regression, interpolated; half a hit and half a miss join each level.

    Without them a level of hits alone would be certain, and a single miss among other
    rows infinitely dear.
    """
    first, hits, weight = pooled(cells.hits, cells.weight)
    size = np.diff(first, append=len(cells.hits))
    misses = np.maximum(weight - hits, 0.0)
    level = np.repeat(np.log(hits + 0.5) - np.log(misses + 0.5), size)
    return lambda z: np.interp(z, cells.z, level)


def fit_kernel(cells: Neighbours) -> Map:
    """Local Platt scaling, of the width behind the headline of the log divergence."""
    few = thin(cells, decomposition.LOCAL_CELLS)
    return platt.fit(few, fixed_width(few.n), platt.choose_nodes(few)).log_odds


NONE = "none"

METHODS: Mapping[str, Callable[[Neighbours], Map]] = {
    "platt": fit_platt,
    "isotonic": fit_isotonic,
    "kernel": fit_kernel,
    NONE: lambda cells: lambda z: z,
}
"""By name; the last leaves the confidence alone, and gains nothing."""


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
    """Number of the fold of each row; the rows of a cluster share one."""
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

    For every map g of the confidence, d_CAL is at least the mean of S(h) - S(g(h)). If
    g and the choice among maps come from other rows, the mean gain is a lower bound of
    d_CAL on average, whatever the maps are worth. Fits read sums over cells of
    log-odds, one set for each fold. For each fold the best method is chosen by
    cross-validation among the others.
    """
    sums = [Cells({}).update(columns.take(fold == f)) for f in range(folds)]
    chosen = choose_methods(sums, divergence)
    gains = {name: np.empty(len(columns)) for name in METHODS}
    best = np.empty(len(columns))
    for f in range(folds):
        rows = np.flatnonzero(fold == f)
        part, cells = columns.take(rows), _cells_without(sums, {f})
        before = part.unit_loss(divergence)
        z = np.clip(part.log_odds, -LOG_ODDS_REACH, LOG_ODDS_REACH)
        for name, fit in METHODS.items():
            eta = fit(cells)(z)
            after = divergence.unit_loss(part.hit, sigmoid(eta), eta)
            gains[name][rows] = before - after if name != NONE else 0.0
        best[rows] = gains[chosen[f]][rows]
    del gains[NONE]
    return HeldOut(gains, best, chosen)


def choose_methods(sums: list[Cells], divergence: Divergence) -> tuple[str, ...]:
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


def _cells_without(sums: list[Cells], left_out: set[int]) -> Neighbours:
    kept = [part for f, part in enumerate(sums) if f not in left_out]
    return cells_of_sketch(sum(kept[1:], start=kept[0]))


def _loss(cells: Neighbours, divergence: Divergence, recalibrate: Map) -> float:
    """Sum of d(a, g) over the rows of some cells, but for what is equal for all g."""
    rate = np.clip(cells.hits / cells.weight, 0.0, 1.0)
    eta = recalibrate(cells.z)
    loss = divergence.unit_loss(rate, sigmoid(eta), eta)
    return float((cells.weight * loss).sum())


@dataclass(frozen=True, slots=True)
class Bracket(Printed, Record):
    """Three values of one calibration error, and a second opinion.

    Attributes
    ----------
    divergence, target, n : str, str, float
        Whose calibration error, what was asked of each row, and how many there are.
    lower : Estimate
        Held-out gain of the recalibration chosen among the other rows: on average not
        above d_CAL. Its interval is that of the mean gain.
    debiased : Estimate
        The headline of `calibrant.evaluate`.
    plugin : float
        In-sample gain of isotonic recalibration, the miscalibration of `calibrant.corp`: on
        average not below d_CAL, if accuracy increases with confidence.
    second_opinion : float or None
        Brier: the debiased squared error over equal-mass bins, the square of
        ``metrics["ece_debiased"]`` where positive. None for log.
    gains : dict of str to Estimate
        Held-out gain of each recalibration: a lower bound each.
    standard_errors : dict of str to float
        Of `gains`, and of ``"lower"``.
    chosen : tuple of str
        The recalibration behind `lower`, by fold; ``"none"`` leaves rows as they are.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.calibration_bracket([1, 1, 0, 1] * 25, confidence=[0.9] * 100)
    >>> round(found.debiased, 4), round(found.plugin, 4)  # 0.15 squared is 0.0225
    (0.0208, 0.0225)
    """

    divergence: str
    target: Target
    n: Positive
    lower: Annotated[Estimate, Range(infinite=True)]
    debiased: Estimate
    plugin: Loss
    second_opinion: Annotated[float, Range(-1, 1)] | None
    gains: Mapping[str, Annotated[Estimate, Range(infinite=True)]]
    standard_errors: Mapping[str, Loss]
    chosen: tuple[str, ...]

    def _disagreement(self) -> str | None:
        known = {*self.gains, "none"}
        if {*self.standard_errors} != {*self.gains, "lower"}:
            return "must have standard errors of 'lower' and of each of its gains"
        strange = [name for name in self.chosen if name not in known]
        return (
            f"has chosen {strange[0]!r}, whose gain is not known" if strange else None
        )

    def __str__(self) -> str:
        rows: dict[str, float | None] = {
            "lower bound": self.lower,
            "debiased": self.debiased,
            "in-sample": self.plugin,
            "debiased bins": self.second_opinion,
            **{f"gain of {name}": gain for name, gain in self.gains.items()},
        }
        lines = [f"d_CAL, {self.divergence}, {self.target}, {self.n:,.10g} examples"]
        for name, value in rows.items():
            if value is not None:
                ends = getattr(value, "interval", None)
                shown = f"  [{ends[0]:.5f}, {ends[1]:.5f}]" if ends else ""
                lines.append(f"  {name:<17} {value:9.5f}{shown}")
        return "\n".join(lines)


@takes_scores
def calibration_bracket(
    y: Any,
    *,
    divergence: Any = "brier",
    folds: int = FOLDS,
    cluster: Any = None,
    level: float = 0.95,
    rng: Any = 0,
    **given: Unpack[Scores],
) -> Bracket:
    r"""Bracket d_CAL between a cross-fitted lower bound and the in-sample value.

    Parameters
    ----------
    divergence : str or Divergence
        Whose calibration error.
    folds : int
        Parts of the rows, each held out once; 3 or more. No row is in two of them.
    cluster : array_like, optional
        The cluster of each row, if rows depend on each other. The rows of a cluster
        stay in one fold, and standard errors are as large as clusters ask for.
    level : float
        Coverage of the intervals.
    rng : int or numpy.random.Generator
        Seed of the folds.

    Returns
    -------
    Bracket
        The three values, the gain of each recalibration, and debiased bins beside them.

    Notes
    -----
    Recalibrating by any map g changes the mean score by at most d_CAL, which the true
    accuracy attains [1]_:

    .. math:: d_{CAL} \ge E\,[d_\varphi(a, h) - d_\varphi(a, g(h))] .

    Platt scaling, isotonic regression and local Platt scaling are fitted without one
    fold and tested on it. `lower` takes for each fold the one that does best when the
    other folds predict each other, or none; so nothing tested had a say in the choice.

    The isotonic fit on all rows gains, on the same rows, at least as much as any other
    increasing map, so at least as much as the true accuracy if that increases. All three
    values are estimates: on few rows their order may differ.

    References
    ----------
    .. [1] E. Berta, D. Holzmüller, M. I. Jordan and F. Bach, *Rethinking early
       stopping: refine, then calibrate*, 2025.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> h = rng.uniform(0.5, 1, 4000)
    >>> hit = rng.random(4000) < 0.5 + 0.5 * (h - 0.5)  # d_CAL = 1/48 = 0.0208
    >>> found = cal.calibration_bracket(hit, confidence=h)
    >>> found.lower < found.debiased < found.plugin
    True
    """
    settings = Settings(divergence=divergence, level=level, rng=rng).checked()
    check_number(folds, "folds", LEAST_FOLDS, kind="a whole number")
    predictions, columns = read(y, given)
    check_rows(y, given, cluster=cluster)
    clusters, groups = read_clusters(cluster, predictions)
    main = settings.main
    seed = np.random.default_rng(settings.rng)
    fold = assign_folds(len(columns), clusters, folds, seed)
    found = held_out_gains(columns, main, fold, folds)
    every = {"lower": found.best, **found.gains}
    means = {n: mean_gain(columns, x, clusters, level) for n, x in every.items()}
    sums, ordered = decomposition.cells_of_columns(columns, settings), order(columns)
    cells, local = decomposition.find_cells(columns, sums, groups)
    headline = decomposition.adaptive_error(cells, local, sums, main.name, level)
    values = ordered.without_twins()
    binned = squared_error(
        Rows(columns, values, clusters), debiased_bins(values), level
    )
    return Bracket(
        divergence=main.name,
        target=target_of(predictions),
        n=columns.count,
        lower=means["lower"][0],
        debiased=Estimate(headline.value, headline.interval, headline.method),
        plugin=corp_of(Isotonic.of(ordered), sums, main.name).miscalibration,
        second_opinion=binned.value if main.by_pairs else None,
        gains={name: means[name][0] for name in found.gains},
        standard_errors={name: error for name, (_, error) in means.items()},
        chosen=found.chosen,
    )


def mean_gain(
    columns: Columns, gains: Column, clusters: Index | None, level: float
) -> tuple[Estimate, float]:
    """The mean with its interval, and its standard error."""
    value, error = columns.mean(gains), np.inf
    if np.isfinite(gains).all():
        error = error_of_mean(gains, columns.weight, clusters, columns.squared)
    if not np.isfinite(value):
        return Estimate(value), error
    mean = Mean(value, error, degrees_of_freedom(columns, clusters))
    interval = closed_forms.mean_interval(mean, level)
    return Estimate(value, interval, "normal, held out"), error
