"""Intervals of the terms of d_TOT = d_CAL + gap, where closed forms need the rows.

The gap is a mean over rows: the full loss, less the loss of the confidence alone, plus
what that would be after recalibration by the curve. Total and calibration error are
correlated, which their two intervals do not show, and this one does.
"""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

import numpy as np

from acumen import intervals
from acumen.arrays import Column
from acumen.bregman import LOG, Divergence
from acumen.columns import Columns, sigmoid, softplus
from acumen.results import Curve, Decomposition, Estimate
from acumen.uncertainty.standard_errors import Index, clustered_error, error_of_mean


def gap_interval(
    parts: Decomposition,
    curve: Curve,
    columns: Columns,
    divergence: Divergence,
    level: float,
    clusters: Index | None = None,
) -> Estimate:
    """The sharpness gap with its interval; none if the calibration error has none."""
    gap = float(parts.sharpness_gap)
    if parts.calibration.interval is None or not isfinite(gap):
        return Estimate(gap)
    values = columns.loss(divergence) - _savings(curve, columns, divergence)
    se = error_of_mean(values, columns.weight, clusters)
    low, high = (max(end, 0.0) for end in intervals.normal(gap, se, level))
    return Estimate(gap, (low, high), _named("normal", clusters))


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
        se = clustered_error(losses, columns.weight, clusters)
        low, high = intervals.normal(float(total), se, level)
        total = Estimate(total, (max(low, 0.0), high), _named("normal", clusters))
    if calibration.interval is not None and isfinite(calibration):
        saved = _savings(curve, columns, divergence)
        stretch = clustered_error(saved, columns.weight, clusters)
        stretch /= max(error_of_mean(saved, columns.weight), 1e-300)
        value = max(float(calibration), 0.0)
        ends = _stretched(value, calibration.interval, max(stretch, 1.0))
        method = intervals.named("score", ends)  # rows of a cluster look like a defect
        calibration = Estimate(calibration, ends, _named(method, clusters))
    return replace(parts, total=total, calibration=calibration)


def _stretched(
    value: float, ends: intervals.Interval, factor: float
) -> intervals.Interval:
    low, high = (value + factor * (end - value) for end in ends)
    return max(low, 0.0), max(high, 0.0)


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
    return columns.unit_loss(divergence) - _unit_loss(columns.hit, after, divergence)


def _unit_loss(a: Column, log_odds: Column, divergence: Divergence) -> Column:
    """d(a, p) at p = sigmoid(log_odds)."""
    if divergence.name != LOG.name:
        return divergence.on_unit(a, sigmoid(log_odds))
    with np.errstate(invalid="ignore"):
        yes = np.where(a > 0, a * softplus(-log_odds), 0.0)
        no = np.where(a < 1, (1 - a) * softplus(log_odds), 0.0)
    return yes + no + divergence.phi_1d(a)


def _named(method: str, clusters: Index | None) -> str:
    return method if clusters is None else f"{method}, clusters"
