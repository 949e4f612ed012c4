"""The debiased calibration error of any divergence, by local Platt scaling.

It is the loss the recalibration would save on rows it has not seen, plus half the
variance it pays for. For the log divergence the model's own loss enters exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np

from acumen import intervals
from acumen.arrays import Column
from acumen.bregman import Divergence
from acumen.columns import sigmoid, softplus
from acumen.estimators import platt
from acumen.estimators.adaptive import LEAST_ROWS, DebiasedError
from acumen.estimators.neighbours import Cells, thin
from acumen.estimators.platt import LocalPlatt

LARGEST_CHANGE = 6.0
LARGEST_VARIANCE = 4.0
CHOOSING_TOLERANCE, CHOOSING_CELLS = 1e-2, 512
"""Enough to compare widths: what Newton leaves undone is about its square."""


def fixed_width(n: float) -> float:
    """Width in rank of the fit behind the number: n^(-1/4) / 2."""
    return 0.5 * n**-0.25


def local_error(
    cells: Cells,
    divergence: Divergence,
    model_loss: float | None = None,
    level: float = 0.95,
    fitted: LocalPlatt | None = None,
    engine: str = "auto",
) -> DebiasedError:
    r"""Debiased estimate of the mean of :math:`d_\varphi(m(h), h)`.

    Parameters
    ----------
    cells : Cells
        The rows, gathered.
    divergence : Divergence
        Log, or the user's own.
    model_loss : float or None
        Mean of d(a, h) - phi(a) over all rows, computed exactly; may be infinite. None
        takes it from the cells, with log-odds cut at +-20.
    fitted : LocalPlatt or None
        A fit to use; by default one of width :math:`n^{-1/4} / 2` in rank.
    """
    n = cells.n
    if n < LEAST_ROWS:
        return DebiasedError(nan, nan, nan, nan, None, nan)
    if fitted is None:
        nodes = platt.choose_nodes(cells)
        fitted = platt.fit(cells, fixed_width(n), nodes, engine=engine)
    gains = _gains(cells, divergence, fitted)
    if model_loss is None:
        model_loss = gains.model_loss
    held_out = model_loss - gains.held_out_loss
    value = held_out + gains.noise
    interval = (inf, inf) if value == inf else None
    if np.isfinite(value):
        interval = intervals.score(value, gains.se, gains.plugin, gains.noise, level)
    return DebiasedError(
        value, held_out, gains.plugin, gains.se, interval, fitted.width
    )


def choose_curve(
    cells: Cells, divergence: Divergence, engine: str = "auto"
) -> LocalPlatt:
    """The fit that saves most held-out loss, among widths from wide to narrow."""
    nodes = platt.choose_nodes(cells)
    few = thin(cells, CHOOSING_CELLS)
    fitted = best = None
    least = inf
    for width in platt.WIDTHS:
        rough = fitted, CHOOSING_TOLERANCE, engine
        fitted = platt.fit(few, float(width), nodes, *rough)
        loss = _gains(few, divergence, fitted).held_out_loss
        if best is None or loss < least:
            best, least = fitted, loss
    assert best is not None
    return platt.fit(cells, best.width, nodes, best, engine=engine)


@dataclass(frozen=True, slots=True)
class _Gains:
    model_loss: float
    held_out_loss: float
    plugin: float
    noise: float
    se: float


def _gains(cells: Cells, divergence: Divergence, fitted: LocalPlatt) -> _Gains:
    """Losses with and without recalibration, each row left out of its own fit.

    A cell's hits enter as two values with their mean and variance: 1 and 0 for hard
    labels, where this is exact.
    """
    n, N, z = cells.n, cells.weight, cells.z
    eta = fitted.log_odds(z)
    m = sigmoid(eta)
    v = m * (1 - m)
    leverage = fitted.at(z, fitted.leverage)
    loss, gain, gain2, model_loss = 0.0, 0.0, 0.0, 0.0
    for share, a in _two_values(cells):
        change = leverage * (a - m) / (1 - np.minimum(leverage * v, 0.9))
        left_out = eta - np.clip(change, -LARGEST_CHANGE, LARGEST_CHANGE)
        before, after = (_cross_loss(divergence, x, a) for x in (z, left_out))
        loss += float((N * share * after).sum() / n)
        model_loss += float((N * share * before).sum() / n)
        gain2 += float((N * share * (before - after) ** 2).sum() / n)
    gain = model_loss - loss
    spread = np.minimum(fitted.at(z, fitted.variance), LARGEST_VARIANCE)
    curvature = v if divergence.name == "log" else divergence.curvature_1d(m) * v * v
    noise = 0.5 * float((N * curvature * spread).sum() / n) * _dispersion(cells, m, v)
    plugin = float((N * _between(divergence, m, eta, cells)).sum() / n)
    se = sqrt(max(gain2 - gain * gain, 0.0) / n)
    return _Gains(model_loss, loss, plugin, noise, se)


def _two_values(cells: Cells) -> list[tuple[Column, Column]]:
    """Two hit values per cell, with their shares."""
    mean = np.clip(cells.hits / cells.weight, 0.0, 1.0)
    variance = np.maximum(cells.hits2 / cells.weight - mean**2, 0.0)
    variance = np.minimum(variance, mean * (1 - mean))
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = mean / (1 - mean)
        up = np.where(mean > 0, np.sqrt(variance / odds), 0.0)
        down = np.where(mean < 1, np.sqrt(variance * odds), 0.0)
    return [
        (mean, np.minimum(mean + up, 1.0)),
        (1 - mean, np.maximum(mean - down, 0.0)),
    ]


def _dispersion(cells: Cells, m: Column, v: Column) -> float:
    """Variance of soft hits relative to that of hard ones; 1 for hard labels."""
    hits, hits2 = cells.hits, cells.hits2
    if hits2.sum() >= hits.sum() * (1 - 1e-12):
        return 1.0
    observed = (hits2 - 2 * m * hits + m * m * cells.weight).sum()
    return float(observed / max((cells.weight * v).sum(), 1e-300))


def _cross_loss(divergence: Divergence, eta: Column, a: Column) -> Column:
    """d(a, p) - phi(a) at p = sigmoid(eta): linear in a, and what rows can score."""
    if divergence.name == "log":
        return a * softplus(-eta) + (1 - a) * softplus(eta)
    p = sigmoid(eta)
    return -divergence.phi_1d(p) - divergence.derivative_1d(p) * (a - p)


def _between(divergence: Divergence, m: Column, eta: Column, cells: Cells) -> Column:
    """d(m, h) in each cell."""
    if divergence.name == "log":
        yes = softplus(-cells.z) - softplus(-eta)
        no = softplus(cells.z) - softplus(eta)
        return m * yes + (1 - m) * no
    return divergence.on_unit(m, cells.h)
