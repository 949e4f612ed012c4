"""Calibration error and curve of any divergence, by local Platt scaling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import hypot, inf, nan, sqrt

import numpy as np

from calibrant._inputs.arrays import Column, Table, cross_entropy, sigmoid
from calibrant._inputs.divergences import Divergence
from calibrant._rows import compiled, engines
from calibrant._stats import close_pairs, platt
from calibrant._stats.close_pairs import DebiasedError
from calibrant._stats.closed_forms import CALIBRATED_SHARE, quantile
from calibrant._stats.ladder import (
    HALF_BELIEVED,
    Ladder,
    Level,
    at_level,
    believed,
    rises_of,
)
from calibrant._stats.neighbours import Groups, Neighbours
from calibrant._stats.platt import LARGEST_VARIANCE, LocalPlatt

LeaveOut = Callable[[Column, Column, Column], Column]
"""From log-odds, leverage and hit to log-odds of the fit without the row."""

LARGEST_CHANGE = 6.0

STEPS = 6
"""Of Newton, to leave out a row."""


def fixed_width(n: float) -> float:
    """Width in rank of the fit behind the number: n^(-1/4) / 2."""
    return 0.5 * n**-0.25


def local_error(
    cells: Neighbours,
    divergence: Divergence,
    model_loss: float | None = None,
    level: float = 0.95,
    fitted: LocalPlatt | None = None,
    engine: str = "auto",
    *,
    local: Neighbours | None = None,
    ladder: Ladder | None = None,
    loss: float = inf,
) -> DebiasedError:
    r"""Debiased estimate of the mean of :math:`d_\varphi(m(h), h)`, by local Platt scaling.

    It is the loss the recalibration would save on rows it has not seen, plus half the
    variance it pays for, plus what pairs of close rows show that it leaves. `model_loss`
    is the mean of d(a, h) - phi(a) over all rows, exactly, and may be infinite; None takes
    it from the cells, with log-odds cut at +-20. `loss` is the mean of d(a, h), above which
    no calibration error can be. `fitted` is a fit to use; by default one of width
    :math:`n^{-1/4} / 2` in rank to `local`, fewer cells of the same rows, if given.

    Notes
    -----
    The error is what the fit :math:`m_w` saves plus :math:`E\,d(m, m_w)`, its own
    calibration error, exactly. The latter is small unless a defect is narrower than the
    fit; it is believed as rungs of a ladder are.

    The interval is that of a noncentral chi-square, as for Brier. It begins at 0 unless
    calibrated models look better; else where the most careful of three accounts has it:
    rows left out by one step, by more than one (which a rare miss asks for), and the noise
    of models that are s times as far off.
    """
    if cells.effective < close_pairs.LEAST_ROWS:
        return DebiasedError(nan)
    local = cells if local is None else local
    fitted = fitted or fit_for_error(local, engine)
    gains = _gains(local, divergence, fitted)
    model_loss = gains.model_loss if model_loss is None else model_loss
    smooth = min(gains.error(model_loss), loss)
    if not np.isfinite(smooth):
        return DebiasedError(smooth, gains.se, (inf, inf) if smooth == inf else None)
    ladder = Ladder.of(cells) if ladder is None else ladder
    rest = remainder(ladder, divergence, fitted)
    value = min(smooth + rest.value, loss)
    high = _upper_end(smooth, gains, rest, level)
    plain = gains.upper_end(smooth, level)
    low = 0.0
    if value > 0 and ladder.joint_test.rejects(level):
        careful = _gains(local, divergence, fitted, left_out)
        low = _family_end(local, divergence, fitted, gains, smooth, level)
        for x in (gains, careful):
            low = min(low, x.lower_end(x.error(model_loss), level))
        low += max(rest.value - quantile(level) * rest.belief * rest.sd, 0.0)
    off = close_pairs.furthest_mean(cells, divergence, level)
    most = max(loss, off)
    ends = min(low, max(value, 0.0)), min(max(high, off, value, 0.0), most)
    narrow = rest.sure >= HALF_BELIEVED and high - plain > WORTH_WIDENING * (
        plain - smooth
    )
    width = fitted.width if rest.width is None else rest.width
    about = min(2 * width, 1.0), ladder.joint_test.p_value
    levels = np.concatenate([[[smooth, 0.0]], np.add(rest.levels, [smooth, 0.0])])
    return DebiasedError(value, gains.se, ends, *about, narrow, levels)


WORTH_WIDENING = 0.2
"""A remainder that moves the upper end by less, relative to its distance from the
estimate, is not worth a word: even smooth curves leave one if there are enough rows."""


def fit_for_error(cells: Neighbours, engine: str = "auto") -> LocalPlatt:
    """The fit behind the number."""
    width = fixed_width(cells.effective)
    return platt.fit(cells, width, platt.choose_nodes(cells), engine=engine)


def smooth_error(
    cells: Neighbours, divergence: Divergence, fitted: LocalPlatt
) -> float:
    """What a fit saves, debiased; it need not be one to these cells alone."""
    gains = _gains(cells, divergence, fitted)
    return gains.error(gains.model_loss)


def _upper_end(smooth: float, gains: _Gains, rest: Rest, level: float) -> float:
    """Of the smooth part and the rest, whose errors add in squares.

    What finer rungs show of the rest moves the end even where it is not believed.
    """
    base = max(smooth, -sqrt(gains.chance))
    half, z = max(gains.upper_end(smooth, level) - base, 0.0), quantile(level)
    high = base + rest.value + hypot(half, rest.belief * z * rest.sd)
    reach = hypot(half, z * rest.sd)
    high += rest.above_chance * max(base + rest.full + reach - high, 0.0)
    return max(high, base + rest.finest + reach)


def _family_end(
    cells: Neighbours,
    divergence: Divergence,
    fitted: LocalPlatt,
    gains: _Gains,
    smooth: float,
    level: float,
) -> float:
    """Least error among models s times as far from calibrated that is not contradicted.

    A model that is less far off has its own noise, of more or fewer misses.
    """
    if not smooth > 0:
        return 0.0
    shift, n = fitted.at(cells.z, fitted.shift), cells.n
    m = sigmoid(cells.z + shift)
    whole = float(cells.weight @ _between(divergence, cells.z + shift, m, cells)) / n
    dispersion = cells.dispersion(m)
    lever = _lever(divergence, cells.z + shift, cells)

    def possible(s: float) -> tuple[float, bool]:
        eta = cells.z + s * shift
        p = sigmoid(eta)
        error = float(cells.weight @ _between(divergence, eta, p, cells)) / n
        error *= smooth / max(whole, 1e-300)
        slope = 0.5 * (lever + _lever(divergence, eta, cells))
        variance = dispersion * float(cells.w2 @ (slope**2 * p * (1 - p))) / n**2
        reach = quantile(level) * sqrt(variance + gains.chance)
        return error, abs(smooth - error) <= reach

    if possible(0.0)[1]:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if possible(middle)[1] else (middle, high)
    return possible(high)[0]


HALVINGS = 10


def _lever(divergence: Divergence, eta: Column, cells: Neighbours) -> Column:
    """How much d(m, h) grows with m, at m = sigmoid(eta)."""
    if divergence.logit_slope:
        return eta - cells.z
    return divergence.derivative_1d(sigmoid(eta)) - divergence.derivative_1d(cells.h)


# -- what a local fit leaves: defects narrower than its kernel ---------------------


@dataclass(frozen=True, slots=True)
class Rest:
    """Calibration error of the fit itself: what is believed of it, and all rises of it.

    `finest` is what the finest level says, `sd` its standard deviation; `size` is the
    largest rise in standard deviations of its own, `sure` of those that may be believed, of
    which `belief` is the believed share; `width` is that of the finest believed level.
    `levels` are what those that may be believed say, and their variances.
    """

    value: float
    full: float
    finest: float
    sd: float
    size: float
    sure: float
    belief: float
    width: float | None
    levels: Table

    @property
    def above_chance(self) -> float:
        """From 0 to 1 while the size goes from half to one standard deviation."""
        return close_pairs.above_chance(np.array([self.size]))


def remainder(ladder: Ladder, divergence: Divergence, fitted: LocalPlatt) -> Rest:
    """Calibration error of the fit itself, from pairs of rows much closer than its width.

    A square in place of the divergence, by its curvature; where a neighbourhood expects
    less than one miss, with the curvature at which it would expect one.
    """
    cells = ladder.cells
    m = sigmoid(fitted.log_odds(cells.z))
    left = cells.about(m)
    if cells.groups is not None:
        left = replace(left, groups=cells.groups.about(cells.h - m))
    seen = [*ladder.levels[1:], *([] if ladder.finest is None else [ladder.finest])]
    found = np.array([_left(left, m, divergence, fitted, level) for level in seen])
    values, variances = found.T
    rises, sizes = rises_of(values, variances)
    known = len(ladder.levels) - 1
    belief, whole = believed(sizes[:known]), float(rises[:known].sum())
    value, full = float(belief @ rises[:known]), float(rises.sum())
    sure = np.flatnonzero(belief >= 0.5)
    return Rest(
        value,
        full,
        finest=float(values[-1]),
        sd=sqrt(variances[-1] + 2 * full / cells.effective),
        size=float(sizes.max()),
        sure=float(sizes[:known].max()),
        belief=value / whole if whole > 0 else 0.0,
        width=seen[int(sure[-1])].width if sure.size else None,
        levels=found[:known],
    )


def _left(
    cells: Neighbours,
    m: Column,
    divergence: Divergence,
    fitted: LocalPlatt,
    level: Level,
) -> tuple[float, float]:
    """What is left about the fitted accuracy m, and its variance if nothing is."""
    v = m * (1 - m)
    importance = 0.5 * divergence.curvature(m, v) / np.maximum(v, 1 / level.near)
    if cells.groups is not None:
        return at_level(cells, level, importance, v)
    dispersion = cells.dispersion(m)
    value, variance = at_level(cells, level, importance, dispersion * v)
    return value + dispersion * _absorbed(cells, fitted, m, importance), variance


def _absorbed(
    cells: Neighbours, fitted: LocalPlatt, m: Column, importance: Column
) -> float:
    """Each row pulled the fit towards itself and its neighbours: that agreement."""
    v = m * (1 - m)
    lever = fitted.at(cells.z, fitted.leverage) * cells.w2 / cells.weight
    pull = np.minimum(lever * v, 1.0)
    spread = np.minimum(fitted.at(cells.z, fitted.variance), LARGEST_VARIANCE) * v
    agreement = v * (2 * pull - spread)
    return float((cells.weight * importance * agreement).sum() / cells.n)


# -- what recalibration saves ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Gains:
    model_loss: float
    held_out_loss: float
    plugin: float
    noise: float
    se: float
    rows: float

    def error(self, model_loss: float) -> float:
        """The debiased error, given the model's own loss."""
        return model_loss - self.held_out_loss + self.noise

    @property
    def size(self) -> float:
        """Of the fitted error, which is noise and more."""
        return max(self.plugin, 0.25 * self.noise, 1e-300)

    @property
    def chance(self) -> float:
        """Variance of the error of a calibrated model."""
        return CALIBRATED_SHARE * self.se**2 * self.noise / self.size

    @property
    def unit(self) -> float:
        """Variance per four times the error, never quite 0."""
        return max(self.se**2 / (4 * self.size), 1e-3 / self.rows)

    def upper_end(self, value: float, level: float) -> float:
        """Of the smooth part alone."""
        value = max(value, -sqrt(self.chance))
        return close_pairs.upper_end(value, self.unit, self.chance, level)

    def lower_end(self, value: float, level: float) -> float:
        """The same."""
        value = max(value, 0.0)
        return close_pairs.lower_end(value, self.unit, self.chance, level)


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
    if engines.wanted():
        given = (np.broadcast_to(x, eta.shape) for x in (eta, leverage, a))
        rules = prior, platt.LONGEST_STEP, LARGEST_CHANGE, STEPS
        return compiled.filled("left_out", eta.shape, *rules, *given)
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
    found = (
        _left_out_losses(cells, divergence, fitted, leave_out)
        if cells.groups is None
        else _losses_without_groups(cells, cells.groups, divergence, fitted)
    )
    spread = np.minimum(fitted.at(z, fitted.variance), LARGEST_VARIANCE)
    curvature = divergence.curvature(m, m * (1 - m)) * m * (1 - m)
    noise = 0.5 * float((N * curvature * spread).sum() / n)
    if fitted.pull is None:
        noise *= cells.dispersion(m)
    plugin = float((N * _between(divergence, eta, m, cells)).sum() / n)
    model_loss, loss, se = found
    return _Gains(model_loss, loss, plugin, noise, se, cells.effective)


def _left_out_losses(
    cells: Neighbours, divergence: Divergence, fitted: LocalPlatt, leave_out: LeaveOut
) -> tuple[float, float, float]:
    """Mean loss before and after, each row left out, and the error of the difference."""
    n, N, z = cells.n, cells.weight, cells.z
    eta = fitted.log_odds(z)
    leverage = fitted.at(z, fitted.leverage)
    if cells.w2 is not cells.weight:
        leverage = leverage * (cells.w2 / cells.weight)
    loss, model_loss, powers = 0.0, 0.0, np.zeros(3)
    for share, a in cells.two_values:
        without = leave_out(eta, leverage, a)
        before, after = (_cross_loss(divergence, x, a) for x in (z, without))
        loss += float((N * share * after).sum() / n)
        model_loss += float((N * share * before).sum() / n)
        saved, w2 = before - after, cells.w2 * share
        powers += [w2.sum(), w2 @ saved, w2 @ saved**2]
    gain = model_loss - loss
    squares = powers[2] - 2 * gain * powers[1] + gain**2 * powers[0]
    return model_loss, loss, sqrt(max(squares, 0.0)) / n


def _losses_without_groups(
    cells: Neighbours, groups: Groups, divergence: Divergence, fitted: LocalPlatt
) -> tuple[float, float, float]:
    """The same, leaving out the whole group of a row."""
    N = groups.weight
    A, eta = groups.residual + N * cells.h, fitted.log_odds(cells.z)
    pull = np.clip(fitted.pulled(cells.z).T, -LARGEST_CHANGE, LARGEST_CHANGE)
    one, none = np.ones_like(pull), np.zeros_like(pull)
    z = np.broadcast_to(cells.z, pull.shape)
    after, before = (
        A * _cross_loss(divergence, x, one) + (N - A) * _cross_loss(divergence, x, none)
        for x in (eta - pull, z)
    )
    gains = (before - after).sum(axis=1)
    se = sqrt(close_pairs.variance_of_groups(gains, groups, cells.n))
    return float(before.sum() / cells.n), float(after.sum() / cells.n), se


def _cross_loss(divergence: Divergence, eta: Column, a: Column) -> Column:
    """d(a, p) - phi(a) at p = sigmoid(eta): linear in a, and what rows can score."""
    if divergence.logit_slope:
        return cross_entropy(a, eta)
    p = sigmoid(eta)
    return -divergence.phi_1d(p) - divergence.derivative_1d(p) * (a - p)


def _between(
    divergence: Divergence, eta: Column, m: Column, cells: Neighbours
) -> Column:
    """d(m, h) in each cell, at m = sigmoid(eta)."""
    if divergence.logit_slope:
        return cross_entropy(m, cells.z) - cross_entropy(m, eta)
    return divergence.on_unit(m, cells.h)
