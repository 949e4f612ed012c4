"""Decompositions and curves: the paper's kernel estimates, and the adaptive ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from calibrant._base.records import Curve, Decomposition, Estimate
from calibrant._inputs.arrays import Column
from calibrant._inputs.divergences import Divergence
from calibrant._inputs.options import PAPER_BANDWIDTH, Settings
from calibrant._rows import engines
from calibrant._rows.columns import Columns
from calibrant._sketch.cells import Cells
from calibrant._sketch.kernels import GAUSSIAN, KERNELS
from calibrant._stats import closed_forms, neighbours, platt_error
from calibrant._stats.close_pairs import DebiasedError, brier_error
from calibrant._stats.neighbours import Neighbours
from calibrant._stats.platt_error import adaptive_places
from calibrant._stats.published import (
    PLACES,
    Regression,
    calibration_error,
    cells_for,
    regress,
    regress_rows,
)

EXACT_CELLS = 2000
"""Up to this many distinct confidences the adaptive estimates see them all."""

LOCAL_CELLS = 600
"""Cells of a grid that local fits see; more would change them by far less than noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """Decompositions and curves by divergence."""

    decompositions: Mapping[str, Decomposition]
    curves: Mapping[str, Curve]


def total_loss(sketch: Cells, name: str, level: float) -> Estimate:
    """Mean full loss; infinite if a single row's is."""
    totals, n = sketch.totals[name], sketch.weight
    if sketch.infinite_weight(name):
        return Estimate(inf)
    value = totals.loss / n
    interval = closed_forms.mean(value, totals.loss2 / n, n, level) if n > 1 else None
    return Estimate(value, interval, "normal")


def analyse(
    columns: Columns | None, sketch: Cells, settings: Settings, factor: float
) -> Analysis:
    """Headline analysis at the bandwidth asked for.

    `columns` are the rows, if had: few distinct confidences and the Epanechnikov
    kernel are then treated exactly. `factor` scales the Brier calibration error.
    """
    factors = {n: factor if d.by_pairs else 1.0 for n, d in sketch.divergences.items()}
    if settings.adaptive:
        return _adaptive(columns, sketch, settings, factors)
    kernel, bandwidth = KERNELS[settings.kernel], float(settings.bandwidth)
    if kernel is not GAUSSIAN and columns is not None:
        regression = regress_rows(columns, sketch, bandwidth, settings.boundary)
    else:
        regression = regress(sketch, kernel, bandwidth, settings.boundary)
    return _as_published(
        regression, sketch, settings.estimator, settings.level, factors
    )


def analyse_as_paper(sketch: Cells, level: float) -> Analysis:
    """The paper's own estimate: Gaussian kernel of bandwidth 0.05, direct."""
    regression = regress(sketch, GAUSSIAN, PAPER_BANDWIDTH)
    return _as_published(
        regression, sketch, "direct", level, dict.fromkeys(sketch.divergences, 1.0)
    )


def _as_published(
    regression: Regression,
    sketch: Cells,
    estimator: str,
    level: float,
    factors: Mapping[str, float],
) -> Analysis:
    decompositions, curves = {}, {}
    for name, divergence in sketch.divergences.items():
        error = calibration_error(regression, sketch, name, estimator)
        decompositions[name] = Decomposition(
            name,
            total_loss(sketch, name, level),
            Estimate(factors[name] * error),
            estimator,
            regression.kernel.name,
            regression.boundary,
            regression.bandwidth,
        )
        curves[name] = _curve(
            PLACES,
            regression.accuracy,
            regression.losses[name],
            regression.density,
            regression.support,
            divergence,
            factors[name],
        )
    return Analysis(decompositions, curves)


def _curve(
    at: Column,
    accuracy: Column,
    loss: Column,
    density: Column,
    support: Column,
    divergence: Divergence,
    factor: float,
    band: tuple[Column, Column] | None = None,
) -> Curve:
    with np.errstate(invalid="ignore"):
        gap = loss - factor * divergence.on_unit(accuracy, at)  # rho(p)
    nothing = np.full_like(at, np.nan)
    low, high = (nothing, nothing) if band is None else band
    return Curve(at, accuracy, gap, loss, density, support, low, high)


def find_cells(columns: Columns | None, sketch: Cells) -> tuple[Neighbours, Neighbours]:
    """Cells for pairs of rows and for local fits.

    Every distinct confidence if there are few, else the cells of the sketch, of which
    local fits get by with fewer.
    """
    if columns is not None and _has_few_values(columns.confidence):
        cells = neighbours.cells_of_rows(columns, sketch.divergences)
        return cells, cells
    cells = neighbours.cells_of_sketch(sketch)
    return cells, neighbours.thin(cells, LOCAL_CELLS)


def _has_few_values(confidence: Column) -> bool:
    if len(np.unique(confidence[: 2 * EXACT_CELLS])) > EXACT_CELLS:
        return False
    return len(np.unique(confidence)) <= EXACT_CELLS


def adaptive_error(
    cells: Neighbours, sketch: Cells, name: str, level: float, engine: str = "auto"
) -> DebiasedError:
    """Debiased calibration error: pairs for Brier, local Platt scaling otherwise."""
    divergence = sketch.divergences[name]
    if divergence.by_pairs:
        return brier_error(cells, level)
    totals = sketch.totals[name]
    model_loss = (totals.unit_loss - totals.phi_hit) / sketch.weight
    return platt_error.local_error(cells, divergence, model_loss, level, engine=engine)


def calibration_of_rows(columns: Columns, settings: Settings) -> Estimate:
    """d_CAL alone, with every distinct confidence a cell of its own."""
    sketch, name = cells_of_columns(columns, settings), settings.main.name
    if not settings.adaptive:
        found = analyse(columns, sketch, settings, 1.0)
        return found.decompositions[name].calibration
    cells = neighbours.cells_of_rows(columns, settings.divergences)
    return _scaled(adaptive_error(cells, sketch, name, settings.level), 1.0)


def cells_of_columns(columns: Columns, settings: Settings) -> Cells:
    """The sums of rows, fine enough for the bandwidth asked for."""
    finest = PAPER_BANDWIDTH
    if not settings.adaptive:
        finest = min(finest, float(settings.bandwidth))
    sketch = Cells(settings.divergences, cells_for(finest))
    # For fewer rows the compiled sums save nothing and need grids of their own.
    few = len(columns) < engines.WORTH_CALLING_ROWS
    return sketch.update(columns, "numpy" if few else settings.engine)


def _adaptive(
    columns: Columns | None,
    sketch: Cells,
    settings: Settings,
    factors: Mapping[str, float],
) -> Analysis:
    level, engine = settings.level, settings.engine
    cells, local = find_cells(columns, sketch)
    places = adaptive_places(local, sketch, level, engine)
    decompositions, curves = {}, {}
    for name, divergence in sketch.divergences.items():
        seen = cells if divergence.by_pairs else local
        error = adaptive_error(seen, sketch, name, level, engine)
        decompositions[name] = Decomposition(
            name,
            total_loss(sketch, name, level),
            _scaled(error, factors[name]),
            "pairs" if divergence.by_pairs else "local Platt",
            "gaussian",
            "none",
            None,
        )
        curves[name] = _curve(
            places.at,
            places.accuracy,
            places.losses[name],
            places.density,
            places.support,
            divergence,
            factors[name],
            (places.low, places.high),
        )
    return Analysis(decompositions, curves)


def _scaled(error: DebiasedError, factor: float) -> Estimate:
    interval = error.interval
    if interval is not None:
        interval = (factor * interval[0], factor * interval[1])
    return Estimate(factor * error.value, interval, error.method)
