"""Decompositions and curves: the paper's kernel estimates, and the adaptive ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from calibrant._base.records import Curve, Decomposition, Estimate
from calibrant._inputs.arrays import Column, Index
from calibrant._inputs.options import PAPER_BANDWIDTH, Settings
from calibrant._rows import engines
from calibrant._rows.columns import Columns
from calibrant._sketch.cells import Cells
from calibrant._sketch.kernels import GAUSSIAN, KERNELS
from calibrant._stats import closed_forms, neighbours, platt_error, published
from calibrant._stats.close_pairs import DebiasedError, brier_error
from calibrant._stats.curve import Recalibration, adaptive_places
from calibrant._stats.neighbours import Neighbours

EXACT_CELLS = 2000
"""Up to this many distinct confidences the adaptive estimates see them all."""

LOCAL_CELLS = 600
"""Cells of a grid that local fits see; more would change them by far less than noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """Decompositions and curves by divergence, and the fit behind adaptive curves."""

    decompositions: Mapping[str, Decomposition]
    curves: Mapping[str, Curve]
    fit: Recalibration | None = None


def total_loss(cells: Cells, name: str, level: float) -> Estimate:
    """Mean full loss; infinite if a single row's is."""
    totals, n = cells.totals[name], cells.weight
    if cells.infinite_weight(name):
        return Estimate(inf)
    value = totals.loss / n
    interval = closed_forms.mean(value, totals.loss2 / n, n, level) if n > 1 else None
    return Estimate(value, interval, "normal")


def analyse(
    columns: Columns | None,
    cells: Cells,
    settings: Settings,
    factor: float,
    cluster_groups: Index | None = None,
) -> Analysis:
    """Headline analysis at the bandwidth asked for.

    `columns` are the rows, if had: few distinct confidences and the Epanechnikov
    kernel are then treated exactly. `factor` scales the Brier calibration error.
    `cluster_groups` numbers the group of clusters of each row.
    """
    factors = {n: factor if d.by_pairs else 1.0 for n, d in cells.divergences.items()}
    if settings.adaptive:
        return _adaptive(columns, cells, settings, factors, cluster_groups)
    kernel, bandwidth = KERNELS[settings.kernel], float(settings.bandwidth)
    if kernel is not GAUSSIAN and columns is not None:
        regression = published.regress_rows(
            columns, cells, bandwidth, settings.boundary
        )
    else:
        regression = published.regress(cells, kernel, bandwidth, settings.boundary)
    how = settings.estimator, settings.level
    return _as_published(regression, cells, *how, factors)


def analyse_as_paper(cells: Cells, level: float) -> Analysis:
    """The paper's own estimate: Gaussian kernel of bandwidth 0.05, direct."""
    regression = published.regress(cells, GAUSSIAN, PAPER_BANDWIDTH)
    factors = dict.fromkeys(cells.divergences, 1.0)
    return _as_published(regression, cells, "direct", level, factors)


def _as_published(
    regression: published.Regression,
    cells: Cells,
    estimator: str,
    level: float,
    factors: Mapping[str, float],
) -> Analysis:
    how = estimator, regression.kernel.name, regression.boundary, regression.bandwidth
    decompositions = {}
    for name, factor in factors.items():
        error = published.calibration_error(regression, cells, name, estimator)
        total = total_loss(cells, name, level)
        decompositions[name] = Decomposition(
            name, total, Estimate(factor * error), *how
        )
    curves = regression.places.curves(cells.divergences, factors)
    return Analysis(decompositions, curves)


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


def _has_few_values(confidence: Column) -> bool:
    parts = confidence[: 2 * EXACT_CELLS], confidence  # the first tells most
    return all(len(np.unique(part)) <= EXACT_CELLS for part in parts)


def adaptive_error(
    cells: Neighbours, sums: Cells, name: str, level: float, engine: str = "auto"
) -> DebiasedError:
    """Debiased calibration error: pairs for Brier, local Platt scaling otherwise."""
    divergence = sums.divergences[name]
    if divergence.by_pairs:
        return brier_error(cells, level)
    totals = sums.totals[name]
    model_loss = (totals.unit_loss - totals.phi_hit) / sums.weight
    return platt_error.local_error(cells, divergence, model_loss, level, engine=engine)


def calibration_of_rows(columns: Columns, settings: Settings) -> Estimate:
    """d_CAL alone, with every distinct confidence a cell of its own."""
    sums, name = cells_of_columns(columns, settings), settings.main.name
    if not settings.adaptive:
        found = analyse(columns, sums, settings, 1.0)
        return found.decompositions[name].calibration
    cells = neighbours.cells_of_rows(columns, settings.divergences)
    return _scaled(adaptive_error(cells, sums, name, settings.level), 1.0)


def cells_of_columns(columns: Columns, settings: Settings) -> Cells:
    """The sums of rows, fine enough for the bandwidth asked for."""
    finest = PAPER_BANDWIDTH
    if not settings.adaptive:
        finest = min(finest, float(settings.bandwidth))
    cells = Cells(settings.divergences, published.cells_for(finest), ends=False)
    # For fewer rows the compiled sums save nothing and need grids of their own.
    few = len(columns) < engines.WORTH_CALLING_ROWS
    return cells.update(columns, "numpy" if few else settings.engine)


def _adaptive(
    columns: Columns | None,
    sums: Cells,
    settings: Settings,
    factors: Mapping[str, float],
    cluster_groups: Index | None,
) -> Analysis:
    level, engine = settings.level, settings.engine
    cells, local = find_cells(columns, sums, cluster_groups)
    every = settings.interval is not None
    places, fit = adaptive_places(cells, sums, level, engine, simultaneous=every)
    decompositions = {}
    for name, divergence in sums.divergences.items():
        pairs = divergence.by_pairs
        error = adaptive_error(cells if pairs else local, sums, name, level, engine)
        how = "pairs" if pairs else "local Platt"
        terms = total_loss(sums, name, level), _scaled(error, factors[name])
        decompositions[name] = Decomposition(
            name, *terms, how, "gaussian", "none", None
        )
    return Analysis(decompositions, places.curves(sums.divergences, factors), fit)


def _scaled(error: DebiasedError, factor: float) -> Estimate:
    interval = error.interval
    if interval is not None:
        interval = (factor * interval[0], factor * interval[1])
    return Estimate(factor * error.value, interval, error.method)
