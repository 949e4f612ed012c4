"""The two sides of the diagonal, and what the rows of each add to d_CAL."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from acumen.analysis import adaptive_error, analyse, find_cells
from acumen.arrays import Column
from acumen.bregman import BRIER, LOG, Divergence
from acumen.columns import Columns
from acumen.estimators import local_error, platt
from acumen.estimators.adaptive import neighbourhood, terms_of_pairs
from acumen.estimators.neighbours import Cells
from acumen.estimators.regression import NODES_PER_BANDWIDTH
from acumen.grid import coarsen, node_places, node_weights
from acumen.kernels import GAUSSIAN, sums_at_nodes
from acumen.records import Estimate
from acumen.settings import Settings
from acumen.sums import Sums

Mask = NDArray[np.bool_]


class Sides(NamedTuple):
    """d_CAL, its two parts (round-off apart), and gap and share of the over-confident."""

    calibration: Estimate
    over: float
    under: float
    gap: float
    share: float


# -- the adaptive curve ------------------------------------------------------------


def adaptive_sides(columns: Columns, sketch: Sums, settings: Settings) -> Sides:
    cells, local = find_cells(columns, sketch)
    main, level = settings.main, settings.level
    curve = local_error.choose_curve(local, LOG)
    seen = cells if main is BRIER else local
    over = curve.at(seen.z, curve.shift) < 0
    error = adaptive_error(seen, sketch, main.name, level)
    parts = _brier_parts(cells, over) if main is BRIER else _parts(local, main, over)
    return Sides(
        Estimate(error.value, error.interval, error.method),
        over=parts[0],
        under=parts[1],
        gap=-float(seen.r1[over].sum() / seen.n),
        share=float(seen.weight[over].sum() / seen.n),
    )


def _brier_parts(cells: Cells, over: Mask) -> tuple[float, float]:
    each = brier_contributions(cells)
    return float(each[over].sum()), float(each[~over].sum())


def brier_contributions(cells: Cells) -> Column:
    """What each cell adds to the debiased estimate of `acumen.estimators.adaptive`."""
    near = neighbourhood(cells, 2 / sqrt(cells.n))
    agreement, size, noise = terms_of_pairs(cells, near)
    return (2 * agreement - size + noise) / cells.n


def _parts(cells: Cells, divergence: Divergence, over: Mask) -> tuple[float, float]:
    """Both sides from the larger one: few rows alone have no local estimate."""
    fitted = platt.fit(
        cells, local_error.fixed_width(cells.n), platt.choose_nodes(cells)
    )
    larger = over if cells.weight[over].sum() >= 0.5 * cells.n else ~over
    side = _take(cells, larger)
    whole = local_error.local_error(cells, divergence, fitted=fitted).value
    part = local_error.local_error(side, divergence, fitted=fitted).value
    part *= side.n / cells.n
    return (part, whole - part) if larger is over else (whole - part, part)


def _take(cells: Cells, some: Mask) -> Cells:
    columns = {name: getattr(cells, name)[some] for name in Cells.__slots__[:-1]}
    return replace(cells, **columns, losses={})


# -- the paper's kernel ------------------------------------------------------------


def published_sides(columns: Columns, sketch: Sums, settings: Settings) -> Sides:
    main, h = settings.main, columns.confidence
    analysis = analyse(columns, sketch, settings, 1.0)
    m = _accuracy_at(h, sketch, float(settings.bandwidth))
    over = m < h
    moved = replace(columns, hit=m, losses={})
    d = moved.unit_loss(main)
    return Sides(
        analysis.decompositions[main.name].calibration,
        over=columns.mean(np.where(over, d, 0.0)),
        under=columns.mean(np.where(over, 0.0, d)),
        gap=columns.mean(np.where(over, h - columns.hit, 0.0)),
        share=columns.mean(over.astype(np.float64)),
    )


def _accuracy_at(h: Column, sketch: Sums, bandwidth: float) -> Column:
    """The paper's curve at rows, interpolated between nodes 96 to a bandwidth."""
    moments = coarsen(sketch.moments[:2], NODES_PER_BANDWIDTH / bandwidth)
    mass, hits = sums_at_nodes(node_weights(moments), GAUSSIAN, bandwidth)
    near = mass > 1e-9 * sketch.weight
    places = node_places(moments.shape[2])[near]
    return np.clip(np.interp(h, places, hits[near] / mass[near]), 0.0, 1.0)
