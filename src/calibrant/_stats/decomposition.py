"""Decompositions and curves: the paper's kernel estimates, and the adaptive ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, sqrt

import numpy as np

from calibrant._base.later import Later
from calibrant._base.records import Curve, Decomposition, Estimate
from calibrant._inputs.arrays import Column, Index, Table, distinct
from calibrant._inputs.divergences import Divergence
from calibrant._inputs.options import PAPER_BANDWIDTH, Settings
from calibrant._rows.columns import Columns
from calibrant._sketch.cells import CELL_SUMS, Cells
from calibrant._sketch.clusters import cell_of_log_odds
from calibrant._sketch.kernels import GAUSSIAN, KERNELS
from calibrant._stats import (
    close_pairs,
    closed_forms,
    neighbours,
    platt_error,
    published,
)
from calibrant._stats.close_pairs import DebiasedError
from calibrant._stats.closed_forms import Mean, Surprises
from calibrant._stats.curve import Outline
from calibrant._stats.ladder import Ladder
from calibrant._stats.neighbours import Neighbours
from calibrant._stats.standard_errors import Rows

EXACT_CELLS = 2000
"""Up to this many distinct confidences the adaptive estimates see them all."""

LOCAL_CELLS = 600
"""Cells of a grid that local fits see; more would change them by far less than noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """Decompositions and curves by divergence, and what adaptive curves are drawn from."""

    decompositions: Mapping[str, Decomposition]
    curves: Mapping[str, Curve]
    outline: Outline | None = None


@dataclass(frozen=True, eq=False)
class Shared:
    """What several estimates ask of the same sums, computed once when first asked for.

    `columns` are the rows, if had: few distinct confidences and the Epanechnikov
    kernel are then treated exactly. `cluster_groups` numbers the group of clusters of
    each row, `worst` is the Brier loss of a row that is certain and wrong. `errors` are the
    debiased calibration errors found so far.
    """

    columns: Columns | None
    sums: Cells
    level: float
    cluster_groups: Index | None = None
    worst: float = 2.0
    errors: dict[str, DebiasedError] = field(default_factory=dict)

    @cached_property
    def cells(self) -> tuple[Neighbours, Neighbours]:
        """For pairs of rows, and for local fits."""
        return find_cells(self.columns, self.sums, self.cluster_groups)

    @cached_property
    def ladder(self) -> Ladder:
        """That of the cells, which serves all divergences."""
        return Ladder.of(self.cells[0])

    def levels(self, name: str) -> Table | None:
        """What each level says of the error and its variance by chance, coarse ones first.

        They add up over samples, unlike what is believed of each. None where not known.
        """
        if (error := self.errors.get(name)) is None:
            return None
        by_pairs = self.sums.divergences[name].by_pairs
        return self.ladder.alone if by_pairs else error.levels

    @cached_property
    def totals(self) -> dict[str, Estimate]:
        """Mean full loss by divergence, rows being independent."""
        names, known = self.sums.divergences, (self.level, None, self.worst)
        return {name: total_loss(self.sums, name, *known) for name in names}


def total_loss(
    cells: Cells, name: str, level: float, rows: Rows | None = None, worst: float = 2.0
) -> Estimate:
    """Mean full loss with its interval; infinite if a single row's is.

    `rows` are those of the cells, if they are in clusters. Where all rows are certain and
    right, an error costs the `worst` Brier loss; of the log loss it has no bound.
    """
    if cells.infinite_weight(name):
        return Estimate(inf)
    totals, n, divergence = cells.totals[name], cells.weight, cells.divergences[name]
    value = totals.loss / n
    squares, df, whole = n**2 / cells.effective, cells.effective - 1, 0.0
    spread = totals.w2_loss2 - 2 * value * totals.w2_loss + value**2 * squares
    se = alone = sqrt(max(spread, 0.0)) / n * _undone(cells)
    if rows is not None:
        df, whole = rows.df, rows.per_cluster
        se = rows.error_of(rows.columns.loss(divergence))
    if not df > 0:
        return Estimate(value, None, "normal")
    if not value > 0 and np.isinf(divergence.on_unit(np.zeros(1), np.ones(1))).any():
        return Estimate(value)
    scale = totals.loss / totals.unit_loss if 0 < totals.unit_loss < inf else worst
    costs = _costs(cells, divergence, scale), closed_forms.NOTHING
    mean = Mean(value, se, df, *costs, whole, alone)
    low, high = closed_forms.mean_interval(mean, level)
    most = worst if divergence.by_pairs else inf
    return Estimate(value, (max(low, 0.0), min(high, most)), mean.method)


def _undone(cells: Cells) -> float:
    """How much weights hide of a standard error: rows of large weight pull the mean."""
    if cells.squares is None:
        return 1.0
    squares, cubes = (float(x.sum()) for x in cells.squares[2:])
    share = cubes / max(squares, 1e-300) / cells.weight
    return sqrt(max(1 - 1 / cells.effective, 0.0)) / max(1 - share, 0.5)


def _costs(cells: Cells, divergence: Divergence, scale: float) -> Surprises:
    """What rows lose more by turning out against the odds of their confidence.

    Full losses are taken to be `scale` times those of the confidence alone. Of a predicted
    class that is unlikely itself, a hit is no loss to them.
    """
    some = cells.log_odds_sums[0] > 0
    weight, hits, *_, claimed, z = cells.log_odds_sums[: len(CELL_SUMS), some]
    h, z = np.clip(claimed / weight, 0.0, 1.0), z / weight
    squared, hits2, noise = weight, hits, cells.squares_by_log_odds
    if noise is not None:
        squared, moved = noise[:2, some]
        hits2 = moved + squared * h
    one = np.ones_like(h)
    cost = np.abs(divergence.unit_loss(one, h, z) - divergence.unit_loss(0 * one, h, z))
    cost = np.where(np.isfinite(cost), scale * cost, 0.0)
    likely = h >= 0.5
    if abs(scale - 1) > 1e-9:
        cost = np.where(likely, cost, 0.0)
    seen = np.where(likely, weight - hits, hits)
    seen2 = np.where(likely, squared - hits2, hits2)
    rows = np.minimum(h, 1 - h), weight, squared, seen, seen2
    return Surprises.of(*rows, cost, cells.weight)


def analyse(
    columns: Columns | None,
    cells: Cells,
    settings: Settings,
    factor: float,
    cluster_groups: Index | None = None,
) -> Analysis:
    """Headline analysis of sums, and of the rows behind them if they are had."""
    shared = Shared(columns, cells, settings.level, cluster_groups)
    return analyse_shared(shared, settings, factor)


def analyse_shared(shared: Shared, settings: Settings, factor: float) -> Analysis:
    """Headline analysis at the bandwidth asked for.

    `factor` scales the Brier calibration error.
    """
    columns, cells, factors = shared.columns, shared.sums, _factors(shared, factor)
    if settings.adaptive:
        outline = _outline_of(shared, settings)
        curves = Later(factors, lambda: outline.curves(factors))
        return Analysis(_adaptive(shared, settings, factors), curves, outline)
    kernel, bandwidth = KERNELS[settings.kernel], float(settings.bandwidth)
    if kernel is not GAUSSIAN and columns is not None:
        regression = published.regress_rows(
            columns, cells, bandwidth, settings.boundary
        )
    else:
        regression = published.regress(cells, kernel, bandwidth, settings.boundary)
    return _as_published(regression, shared, settings.estimator, factors)


def decompose(
    shared: Shared, settings: Settings, factor: float
) -> Mapping[str, Decomposition]:
    """The decompositions of the same analysis, without a curve."""
    if settings.adaptive:
        return _adaptive(shared, settings, _factors(shared, factor))
    return analyse_shared(shared, settings, factor).decompositions


def curves_of(shared: Shared, settings: Settings) -> Mapping[str, Curve]:
    """The curves of the same analysis, without a decomposition."""
    if not settings.adaptive:
        return analyse_shared(shared, settings, 1.0).curves
    outline, names = _outline_of(shared, settings), _factors(shared, 1.0)
    return Later(names, lambda: outline.curves(names))


def _outline_of(shared: Shared, settings: Settings) -> Outline:
    """What adaptive curves are drawn from."""
    how = settings.level, settings.engine, settings.interval is not None
    return Outline.of(shared.cells[0], shared.sums, *how)


def _factors(shared: Shared, factor: float) -> dict[str, float]:
    """Of the calibration error, by divergence."""
    known = shared.sums.divergences.items()
    return {name: factor if d.by_pairs else 1.0 for name, d in known}


def analyse_as_paper(shared: Shared) -> Analysis:
    """The paper's own estimate: Gaussian kernel of bandwidth 0.05, direct."""
    regression = published.regress(shared.sums, GAUSSIAN, PAPER_BANDWIDTH)
    factors = dict.fromkeys(shared.sums.divergences, 1.0)
    return _as_published(regression, shared, "direct", factors)


def _as_published(
    regression: published.Regression,
    shared: Shared,
    estimator: str,
    factors: Mapping[str, float],
) -> Analysis:
    how = estimator, regression.kernel.name, regression.boundary, regression.bandwidth
    decompositions, cells = {}, shared.sums
    for name, factor in factors.items():
        error = published.calibration_error(regression, cells, name, estimator)
        own = Estimate(factor * error)
        decompositions[name] = Decomposition(name, shared.totals[name], own, *how)
    known = dict(cells.divergences), factors
    return Analysis(
        decompositions, Later(factors, lambda: regression.places.curves(*known))
    )


def find_cells(
    columns: Columns | None, sums: Cells, cluster_groups: Index | None = None
) -> tuple[Neighbours, Neighbours]:
    """Cells for pairs of rows and for local fits.

    Every distinct confidence if there are few, else the cells of the sketch, of which
    local fits get by with fewer. Sketches know clusters by cell only.
    """
    groups = None
    if sums.clusters is not None:
        groups = neighbours.groups_of_clusters(sums.clusters)
    elif columns is not None and _has_few_values(columns.confidence):
        cells = neighbours.cells_of_rows(columns, sums.divergences, cluster_groups)
        return cells, cells
    elif columns is not None and cluster_groups is not None:
        groups = neighbours.groups_of_rows(columns, cluster_groups)
    cells = neighbours.cells_of_sketch(sums, groups)
    return cells, neighbours.thin(cells, LOCAL_CELLS)


def cell_of_rows(columns: Columns, sums: Cells) -> Index:
    """Which of the first cells of `find_cells` each row is in."""
    if _has_few_values(columns.confidence):
        return neighbours.distinct_confidence(columns)
    used = np.cumsum(sums.log_odds_sums[0] > 0) - 1
    return used[cell_of_log_odds(columns.confidence)]


def _has_few_values(confidence: Column) -> bool:
    parts = confidence[: 2 * EXACT_CELLS], confidence  # the first tells most
    return all(len(distinct(part)) <= EXACT_CELLS for part in parts)


def adaptive_error(
    cells: Neighbours,
    local: Neighbours,
    sums: Cells,
    name: str,
    level: float,
    engine: str = "auto",
    ladder: Ladder | None = None,
) -> DebiasedError:
    """Debiased calibration error: pairs for Brier, local Platt scaling otherwise.

    `cells` and `local` are those of `find_cells`. The `ladder` of the cells serves all
    divergences.
    """
    divergence, totals = sums.divergences[name], sums.totals[name]
    if divergence.by_pairs:
        return close_pairs.brier_error(cells, level, ladder)
    n = sums.weight
    model_loss, loss = (totals.unit_loss - totals.phi_hit) / n, totals.unit_loss / n
    return platt_error.local_error(
        cells,
        divergence,
        model_loss,
        level,
        engine=engine,
        local=local,
        ladder=ladder,
        loss=loss,
    )


def calibration_of_rows(columns: Columns, settings: Settings) -> Estimate:
    """d_CAL alone, the same as in the headline analysis."""
    sums, name = cells_of_columns(columns, settings), settings.main.name
    if not settings.adaptive:
        found = analyse(columns, sums, settings, 1.0)
        return found.decompositions[name].calibration
    cells, local = find_cells(columns, sums)
    how = settings.level, settings.engine
    return _scaled(adaptive_error(cells, local, sums, name, *how), 1.0)


def cells_of_columns(columns: Columns, settings: Settings) -> Cells:
    """The sums of rows, fine enough for the bandwidth asked for."""
    finest = PAPER_BANDWIDTH
    if not settings.adaptive:
        finest = min(finest, float(settings.bandwidth))
    cells = Cells(settings.divergences, published.cells_for(finest), ends=False)
    return cells.update(columns, settings.engine)


def _adaptive(
    shared: Shared, settings: Settings, factors: Mapping[str, float]
) -> dict[str, Decomposition]:
    level, engine, sums = settings.level, settings.engine, shared.sums
    (cells, local), decompositions = shared.cells, {}
    for name, divergence in sums.divergences.items():
        known = level, engine, shared.ladder
        error = shared.errors[name] = adaptive_error(cells, local, sums, name, *known)
        how = "pairs" if divergence.by_pairs else "local Platt", "gaussian", "none"
        terms = shared.totals[name], _scaled(error, factors[name])
        plain = Decomposition(name, *terms, *how, None)
        decompositions[name] = replace(
            plain, resolution=error.resolution, p_value=error.p_value
        )
    return decompositions


def _scaled(error: DebiasedError, factor: float) -> Estimate:
    interval = error.interval
    if interval is not None:
        interval = (factor * interval[0], factor * interval[1])
    return Estimate(factor * error.value, interval, error.method)
