"""Calibration error and curve of any divergence, by local Platt scaling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, nan, sqrt

import numpy as np

from calibrant._inputs.arrays import Column, sigmoid, softplus
from calibrant._inputs.divergences import Divergence
from calibrant._stats import close_pairs, closed_forms, platt
from calibrant._stats.close_pairs import DebiasedError
from calibrant._stats.closed_forms import Interval
from calibrant._stats.neighbours import Neighbours
from calibrant._stats.platt import LARGEST_VARIANCE, LocalPlatt

LeaveOut = Callable[[Column, Column, Column], Column]
"""From log-odds, leverage and hit to log-odds of the fit without the row."""

LARGEST_CHANGE = 6.0

CHOOSING_CELLS = 512
"""Cells enough to say what each row moves."""

NARROWEST = 0.5 / platt.RANK_NODES
"""Width in rank below which fits would pass over rows between their nodes."""

STEPS = 6
"""Of Newton, to leave out a row."""


def fixed_width(n: float) -> float:
    """Width in rank of the fit behind the number: n^(-1/4) / 2."""
    return 0.5 * n**-0.25


def narrow_width(n: float) -> float:
    r"""Width in rank of the fit that may raise the interval: :math:`2 / \sqrt n`."""
    return min(max(2 / sqrt(n), NARROWEST), fixed_width(n))


def local_error(
    cells: Neighbours,
    divergence: Divergence,
    model_loss: float | None = None,
    level: float = 0.95,
    fitted: LocalPlatt | None = None,
    engine: str = "auto",
) -> DebiasedError:
    r"""Debiased estimate of the mean of :math:`d_\varphi(m(h), h)`, by local Platt scaling.

    It is the loss the recalibration would save on rows it has not seen, plus half the
    variance it pays for. `model_loss` is the mean of d(a, h) - phi(a) over all rows,
    exactly, and may be infinite; None takes it from the cells, with log-odds cut at +-20.
    `fitted` is a fit to use, for the interval too; by default one of width
    :math:`n^{-1/4} / 2` in rank, and a narrower one for the interval.

    Notes
    -----
    The interval is careful at both ends. At the lower one, rows are left out by more than
    a linear step, which underrates how far a rare miss had moved the fit. At the upper one
    a narrower fit has a say too, since the fit behind the number smooths narrow defects
    away. The error is what the fit :math:`m_w` saves plus :math:`E d(m, m_w)`, its own
    calibration error, exactly: if pairs of close rows show that to be above 0 for sure,
    the upper end includes it.
    """
    n = cells.n
    if n < close_pairs.LEAST_ROWS:
        return DebiasedError(nan, nan, nan, nan, None, nan)
    fitted, narrow = (fitted, fitted) if fitted else _fit_twice(cells, engine)
    gains = _gains(cells, divergence, fitted)
    if model_loss is None:
        model_loss = gains.model_loss
    value = gains.error(model_loss)
    held_out, ends = model_loss - gains.held_out_loss, (inf, inf)
    sizes = gains.plugin, gains.se
    error = DebiasedError(value, held_out, *sizes, ends, fitted.width)
    if not np.isfinite(value):
        return error if value == inf else replace(error, interval=None)
    careful = _gains(cells, divergence, fitted, left_out).interval(model_loss, level)
    fine = _gains(cells, divergence, narrow).interval(model_loss, level)
    plain = gains.interval(model_loss, level)
    ends = min(plain[0], careful[0]), max(plain[1], fine[1])
    error = replace(error, interval=cells.careful(ends, divergence, level))
    if cells.noise_is_hidden or close_pairs.reach_of_pairs(n) > fitted.width:
        return error
    rest = close_pairs.remainder(cells, divergence, fitted, level)
    return close_pairs.widened(error, plain, rest)


def _fit_twice(cells: Neighbours, engine: str) -> tuple[LocalPlatt, LocalPlatt]:
    """The fit behind the number, and a narrower one for its interval."""
    nodes, n = platt.choose_nodes(cells), cells.n
    fitted = platt.fit(cells, fixed_width(n), nodes, engine=engine)
    return fitted, platt.fit(cells, narrow_width(n), nodes, fitted, engine=engine)


@dataclass(frozen=True, slots=True)
class _Gains:
    model_loss: float
    held_out_loss: float
    plugin: float
    noise: float
    se: float

    def error(self, model_loss: float) -> float:
        """The debiased error, given the model's own loss."""
        return model_loss - self.held_out_loss + self.noise

    def interval(self, model_loss: float, level: float) -> Interval:
        """Score interval around it."""
        sizes = self.se, self.plugin, self.noise
        return closed_forms.score(self.error(model_loss), *sizes, level)


def left_out_by_one_step(eta: Column, leverage: Column, a: Column) -> Column:
    """One Newton step from the fit with the row, which is linear in its hit."""
    m = sigmoid(eta)
    change = leverage * (a - m) / (1 - np.minimum(leverage * m * (1 - m), 0.9))
    return eta - np.clip(change, -LARGEST_CHANGE, LARGEST_CHANGE)


def left_out(
    eta: Column, leverage: Column, a: Column, prior_sd: float = platt.PRIOR_SD
) -> Column:
    r"""Newton steps to where the others' score is 0, taking them to be at one place.

    As :math:`1 / l = w m (1 - m) + \pi` with the prior's precision :math:`\pi`, a row is
    one of w, and without it the shift d solves
    :math:`w (m - s) - (a - s) = \pi d, s = \sigma(\eta + d)`.

    Examples
    --------
    One miss in a hundred rows: without it the others leave no doubt but the prior's.

    >>> eta, leverage = np.array([4.595]), np.array([0.95])
    >>> left_out(eta, leverage, np.zeros(1)).round(1)
    array([6.6])
    >>> left_out_by_one_step(eta, leverage, np.zeros(1)).round(1)
    array([5.5])
    """
    m, prior = sigmoid(eta), 1 / prior_sd**2
    w = np.maximum((1 / leverage - prior) / np.maximum(m * (1 - m), 1e-300), 1.0)
    shift = np.zeros_like(eta)
    for _ in range(STEPS):
        s = sigmoid(eta + shift)
        score = w * (m - s) - (a - s) - prior * shift
        step = score / ((w - 1) * s * (1 - s) + prior)
        shift += np.clip(step, -platt.LONGEST_STEP, platt.LONGEST_STEP)
        np.clip(shift, -LARGEST_CHANGE, LARGEST_CHANGE, out=shift)
    return eta + shift


def _gains(
    cells: Neighbours,
    divergence: Divergence,
    fitted: LocalPlatt,
    leave_out: LeaveOut = left_out_by_one_step,
) -> _Gains:
    """Losses with and without recalibration, each row left out of its own fit."""
    n, N, z = cells.n, cells.weight, cells.z
    eta = fitted.log_odds(z)
    m = sigmoid(eta)
    v = m * (1 - m)
    leverage = fitted.at(z, fitted.leverage)
    loss, gain2, model_loss = 0.0, 0.0, 0.0
    for share, a in cells.two_values():
        without = leave_out(eta, leverage, a)
        before, after = (_cross_loss(divergence, x, a) for x in (z, without))
        loss += float((N * share * after).sum() / n)
        model_loss += float((N * share * before).sum() / n)
        gain2 += float((N * share * (before - after) ** 2).sum() / n)
    gain = model_loss - loss
    spread = np.minimum(fitted.at(z, fitted.variance), LARGEST_VARIANCE)
    curvature = divergence.curvature(m, v) * v
    noise = 0.5 * float((N * curvature * spread).sum() / n) * cells.dispersion(m)
    plugin = float((N * _between(divergence, eta, cells)).sum() / n)
    se = sqrt(max(gain2 - gain * gain, 0.0) / n)
    return _Gains(model_loss, loss, plugin, noise, se)


def _cross_loss(divergence: Divergence, eta: Column, a: Column) -> Column:
    """d(a, p) - phi(a) at p = sigmoid(eta): linear in a, and what rows can score."""
    if divergence.logit_slope:
        return a * softplus(-eta) + (1 - a) * softplus(eta)
    p = sigmoid(eta)
    return -divergence.phi_1d(p) - divergence.derivative_1d(p) * (a - p)


def _between(divergence: Divergence, eta: Column, cells: Neighbours) -> Column:
    """d(m, h) in each cell, at m = sigmoid(eta)."""
    m = sigmoid(eta)
    if divergence.logit_slope:
        yes = softplus(-cells.z) - softplus(-eta)
        no = softplus(cells.z) - softplus(eta)
        return m * yes + (1 - m) * no
    return divergence.on_unit(m, cells.h)
