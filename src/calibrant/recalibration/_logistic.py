"""Logistic calibration of each class against the rest: Platt's and the beta family."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import inf
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from calibrant._base.records import Amounts, Positive, Share
from calibrant._inputs.arrays import Column, Index, Mask, Matrix, Table
from calibrant._rows import losses as row_losses
from calibrant._rows.engines import over_ranges
from calibrant._rows.reduce import BLOCK_BYTES
from calibrant.recalibration import _temperature as temperature
from calibrant.recalibration._estimator import (
    Numbers,
    Progress,
    Recalibrator,
    wrong_shape,
)
from calibrant.recalibration._rows import Kind, Rows

# Many small logistic regressions are solved side by side: column j of each feature belongs
# to regression j. All are convex, with two or three coefficients each, and one pass over
# the rows gives values, gradients and Hessians.

RIDGE = 1e-8  # pull towards the identity map, where the data leave a coefficient open
CLOSE = 1e-12  # gain a last Newton step promises; the error left is its square
ENOUGH = 1e-4  # share of the promised gain that a step must bring, or it is halved
MOST_PASSES, SHORTEST, ROUNDING = 200, 1e-9, 1e-15

Coefficients: TypeAlias = Table
"""One row per feature and one for the intercept, one column per regression."""


class Hits(NamedTuple):
    """What is to be predicted: `high` where column j is the label, `low` elsewhere."""

    labels: Index
    columns: Index
    low: Column
    high: Column

    def block(self, part: slice, chosen: Index) -> Table:
        """Targets of some rows and some regressions."""
        hit = self.labels[part, None] == self.columns[chosen]
        return np.where(hit, self.high[chosen], self.low[chosen])


class Solution(NamedTuple):
    """Coefficients, and which of the regressions converged."""

    coefficients: Coefficients
    converged: Mask


class At(NamedTuple):
    """Mean loss with ridge, gradient (d x g) and Hessian (g x d x d)."""

    value: Column
    gradient: Table
    hessian: Table


@dataclass(frozen=True, slots=True, eq=False)
class Regressions:
    """Regressions of hits on features (f x n x g), which are changed in place.

    They are centred and scaled, for then the coefficients hardly depend on each other,
    and scores of any size are alike. `share` is each row's part of the total weight.
    """

    features: Table
    hits: Hits
    share: Column
    centre: Coefficients
    scale: Coefficients

    @classmethod
    def of(cls, features: Table, hits: Hits, share: Column) -> Regressions:
        """Centre and scale the features."""
        centre, scale = np.zeros((2, *features.shape[::2]))
        for f, x in enumerate(features):
            centre[f], scale[f] = _standardise(x, share)
        return cls(features, hits, share, centre, scale)

    def solve(self, *, rising: bool = False) -> Solution:
        """Coefficients of the features as they were before they were scaled.

        If they are `rising`, none of a feature is negative.
        """
        every = np.arange(self.scale.shape[1])
        place, converged = self._descend((True,) * len(self.features), every)
        if rising:
            place, converged = self._without_negative(place, converged)
        slopes = place[:-1] / self.scale
        shift = place[-1] - (slopes * self.centre).sum(axis=0)
        return Solution(np.concatenate([slopes, shift[None]]), converged)

    def _without_negative(self, best: Coefficients, done: Mask) -> Solution:
        """The optimum without a negative coefficient, from that of any sign.

        It is that of one of the problems in which some features are left out and the
        others are free: the best of those without a negative coefficient.
        """
        wrong = (best[:-1] < 0).any(axis=0)
        value, every = np.where(wrong, np.inf, -np.inf), np.arange(best.shape[1])
        subsets = list(product([True, False], repeat=len(self.features)))
        for free in subsets[1:] if wrong.any() else []:
            found, converged = self._descend(free, np.flatnonzero(wrong))
            loss = self.at(found, every).value
            better = (loss < value) & ~(found[:-1] < 0).any(axis=0)
            value = np.where(better, loss, value)
            best = np.where(better, found, best)
            done = np.where(better, converged, done)
        return Solution(best, done)

    def _start(self) -> Coefficients:
        """No slope, and the overall share of hits."""
        f, n, g = self.features.shape
        hits, every = self.hits.block, np.arange(g)
        mean = _add_up(lambda part: _mean(hits(part, every), self.share[part]), n, g)
        start = np.zeros((f + 1, g))
        start[-1] = np.log(mean) - np.log1p(-mean)
        return start

    def _descend(self, free: tuple[bool, ...], active: Index) -> Solution:
        """Newton steps for the active regressions, as long as they move.

        A step that brings too little is halved, so each pass either accepts a step or
        shortens it.
        """
        place = self._start()
        g = place.shape[1]
        value, length = np.full(g, np.inf), np.zeros(g)
        step, gain = np.zeros_like(place), np.zeros(g)
        converged = np.zeros(g, bool)
        for _ in range(MOST_PASSES):
            trial = place[:, active] - length[active] * step[:, active]
            at = self.at(trial, active)
            bound = value[active] - ENOUGH * length[active] * gain[active]
            good = at.value <= bound + ROUNDING * np.abs(at.value)
            taken, short = active[good], active[~good]
            place[:, taken], value[taken] = trial[:, good], at.value[good]
            step[:, taken], gain[taken] = _newton(at, good, free)
            length[taken] = 1.0
            length[short] /= 2
            last = taken[gain[taken] <= CLOSE]
            place[:, last] -= step[:, last]
            converged[last] = True
            active = active[~converged[active] & (length[active] > SHORTEST)]
            if not active.size:
                break
        return Solution(place, converged)

    def at(self, place: Coefficients, chosen: Index) -> At:
        """Value, gradient and Hessian of chosen regressions."""
        n, g = self.features.shape[1:]
        x = self.features if len(chosen) == g else self.features[:, :, chosen]
        d, g = len(place), len(chosen)
        sums = _add_up(lambda part: self._block(place, x[:, part], chosen, part), n, g)
        # The pull is measured by the identity map itself where that is large, so that
        # scores of any size are pulled alike.
        centre, scale = self.centre[:, chosen], self.scale[:, chosen]
        identity = np.concatenate([scale, centre.sum(axis=0, keepdims=True)])
        ridge = RIDGE / np.maximum(1, identity * identity)
        off = place - identity
        hessian = sums[1 + d :].T.reshape(-1, d, d).copy()
        hessian[:, np.arange(d), np.arange(d)] += ridge.T
        value = sums[0] + 0.5 * (ridge * off * off).sum(axis=0)
        return At(value, sums[1 : 1 + d] + ridge * off, hessian)

    def _block(
        self, place: Coefficients, x: Table, chosen: Index, part: slice
    ) -> Table:
        """Sums over some rows: loss, gradient, and Hessian row by row."""
        target, share = self.hits.block(part, chosen), self.share[part]
        eta = np.einsum("fij,fj->ij", x, place[:-1])
        eta += place[-1]
        e = np.exp(-np.abs(eta))
        loss = _mean(np.log1p(e) + np.maximum(eta, 0) - target * eta, share)
        residual = np.where(eta >= 0, 1.0, e) / (1 + e) - target
        residual *= share[:, None]
        curvature = e / (1 + e) ** 2
        curvature *= share[:, None]
        columns, dot = [*x, np.ones_like(eta)], partial(np.einsum, "ij,ij->j")
        bent = [curvature * column for column in columns]
        gradient = [dot(residual, column) for column in columns]
        hessian = [dot(b, column) for b in bent for column in columns]
        return np.stack([loss, *gradient, *hessian])


def log_sigmoid(x: Table) -> Table:
    """Logarithm of 1 / (1 + e^-x); NumPy's, for applying a map loads no SciPy."""
    return -np.logaddexp(0, -x)


def _standardise(x: Table, share: Column) -> tuple[Column, Column]:
    """Centre and scale columns in place; their mean and spread."""
    centre = _mean(x, share)
    x -= centre
    spread = np.sqrt(_add_up(lambda p: _mean(x[p] ** 2, share[p]), *x.shape))
    # A constant feature is 0 but for rounding; its coefficient is left alone.
    flat = spread <= 1e-12 * np.abs(centre)
    x[:, flat] = 0
    spread[flat] = 1
    x /= spread
    return centre, spread


def _mean(x: Table, share: Column) -> Column:
    """Part of the weighted mean of each column."""
    return np.einsum("i,ij->j", share, x)


def _newton(at: At, good: Mask, free: tuple[bool, ...]) -> tuple[Table, Column]:
    """Newton steps in the free coefficients, and the gain each promises."""
    moves = np.flatnonzero([*free, True])
    gradient = at.gradient[np.ix_(moves, np.flatnonzero(good))]
    hessian = at.hessian[np.ix_(np.flatnonzero(good), moves, moves)]
    step = np.zeros((len(free) + 1, gradient.shape[1]))
    step[moves] = np.linalg.solve(hessian, gradient.T[:, :, None])[:, :, 0].T
    return step, (gradient * step[moves]).sum(axis=0)


def _add_up(work: Callable[[slice], Table], n: int, g: int) -> Table:
    """Sum of ``work(part)`` over blocks of rows of g columns that fit in cache."""
    rows = max(1, BLOCK_BYTES // (8 * g))

    def run(start: int, stop: int) -> Table:
        cuts = range(start, stop, rows)
        return np.sum([work(slice(a, min(a + rows, stop))) for a in cuts], axis=0)

    return np.sum(over_ranges(run, n, n * g), axis=0)


GROUPS = 32
"""Classes are fitted in about this many groups, one after the other, to spare memory."""


LEARNED = {"reach_": Positive, "lapse_": Share, "converged_": bool}
"""What is learned besides the coefficients."""


class _OneVsRest(Recalibrator):
    """A logistic regression for each class against the rest, rows divided by their sum.

    It reads one number per row and class, the log-odds of the class against all others.
    """

    smoothing: float
    reach_: float
    converged_: bool
    lapse_ = 0.0  # of files of 0.1.0, too

    coefficients: ClassVar[tuple[str, ...]]  # of a class: slopes, then the shift
    rising: ClassVar[bool] = False  # whether no slope may be negative

    @abstractmethod
    def _features(self, s: Table, out: Table) -> None:
        """Write the features of log-odds s."""

    def _check_options(self) -> None:
        super()._check_options()
        self._check_not_negative("smoothing")

    def _disagreement(self, k: int) -> str | None:
        own = {name: getattr(self, name) for name in self.coefficients}
        maps = (len(fitted_columns(k)),)
        wrong = (wrong_shape(name, values, maps) for name, values in own.items())
        return next(filter(None, wrong), None)

    def _learn(self, rows: Rows, progress: Progress) -> None:
        rows = self._lifted(rows)
        odds = self._read(rows)
        columns = fitted_columns(rows.k)
        counts = np.bincount(rows.y, rows.weight, rows.k).astype(np.float64)
        fitted = columns[(counts[columns] > 0) & (counts[columns] < counts.sum())]
        learned = np.ones((len(self.coefficients), len(columns)))
        learned[-1] = 0  # slope 1 and shift 0: no change
        self.converged_ = True
        size = max(1, rows.k // (GROUPS * (len(learned) - 1)))
        for first in range(0, len(fitted), size):
            group = fitted[first : first + size]
            problem = self._regressions(rows, odds, group, counts)
            found = problem.solve(rising=self.rising)
            learned[:, np.searchsorted(columns, group)] = found.coefficients
            self.converged_ &= bool(found.converged.all())
            progress((first + len(group)) / len(fitted), "classes")
        for name, values in zip(self.coefficients, learned, strict=True):
            setattr(self, name, values)
        self._tell(columns, fitted)

    def _lifted(self, rows: Rows) -> Rows:
        """The rows with the lapse rate that they need."""
        self.lapse_ = temperature.learn_lapse(rows, floor=True)
        if self.lapse_:
            impossible = temperature.impossible_labels(rows)
            self._note(temperature.lapse_note(impossible, self.lapse_))
        return temperature.lifted(rows, self.lapse_)

    def _read(self, rows: Rows) -> Odds:
        """Read all rows, and find how far their finite log-odds reach."""
        n, columns = len(rows), fitted_columns(rows.k)
        odds = Odds(np.empty(n, np.intp), *np.empty((3, n)))
        reach, infinite = np.zeros(n), np.zeros(n, np.intp)

        def work(part: slice) -> None:
            read = read_odds(rows, part)
            for whole, piece in zip(odds, read, strict=True):
                whole[part] = piece
            s = np.abs(log_odds(rows.block(part), rows.kind, read, columns))
            there = np.isfinite(s)
            reach[part] = s.max(axis=1, where=there, initial=0.0)
            infinite[part] = s.shape[1] - there.sum(axis=1)

        rows.each(work)
        # Where none is finite but 0, the least step away from certainty.
        self.reach_ = float(reach.max()) or -float(np.log(np.finfo(rows.work_type).eps))
        if infinite.any():
            self._note(
                f"{int(infinite.sum())} log-odds are infinite (a probability of exactly 0 "
                f"or 1); they count as {self.reach_:.6g}, the most extreme finite one."
            )
        return odds

    def _regressions(
        self, rows: Rows, odds: Odds, group: Index, counts: Column
    ) -> Regressions:
        features = np.empty((len(self.coefficients) - 1, len(rows), len(group)))

        def work(part: slice) -> None:
            s = log_odds(rows.scores[part], rows.kind, odds.part(part), group)
            self._features(self._within_reach(s), features[:, part])

        rows.each(work)
        yes, c = counts[group], self.smoothing
        no = counts.sum() - yes
        hits = Hits(rows.y, group, c / (no + 2 * c), (yes + c) / (yes + 2 * c))
        return Regressions.of(features, hits, rows.weight_of_each / rows.total_weight)

    def _within_reach(self, s: Table) -> Table:
        return np.where(np.isinf(s), np.copysign(self.reach_, s), s)

    def _tell(self, columns: Index, fitted: Index) -> None:
        """Note what one should know about the fit."""
        if left := np.setdiff1d(columns, fitted).tolist():
            self._note(
                f"{len(left)} of {len(columns)} classes ({self._names(left)}) are the "
                "label of no row, or of every row; their odds are left as they are."
            )
        if not self.converged_:
            self._note("for some class the search did not end at the optimum.")
        slope = getattr(self, self.coefficients[0])
        if negative := columns[slope < 0].tolist():
            self._note(
                f"the slope of {len(negative)} of {len(columns)} classes "
                f"({self._names(negative)}) is negative: there the scores are worse than "
                "chance, and are turned around."
            )

    def _names(self, columns: Sequence[int]) -> str:
        names = [str(self.classes_[j]) for j in columns[:3]]
        return ", ".join(names) + (", ..." if len(columns) > 3 else "")

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        rows, columns = temperature.lifted(rows, self.lapse_), fitted_columns(rows.k)
        learned = np.stack([getattr(self, name) for name in self.coefficients])

        def work(part: slice, out: Matrix) -> None:
            s = log_odds(rows.block(part), rows.kind, read_odds(rows, part), columns)
            x = np.empty((len(learned) - 1, *s.shape))
            self._features(self._within_reach(s), x)
            eta = np.einsum("fij,fj->ij", x, learned[:-1]) + learned[-1]
            # Of two, class 0 has logit 0. The softmax of log-probabilities divides them
            # by their sum, which it never takes for 0.
            out[:, 0] = 0
            out[:, columns] = eta if rows.k == 2 else log_sigmoid(eta)

        return "logits", rows.filled(work)


@dataclass(eq=False, repr=False)
class PlattScaling(_OneVsRest):
    """Platt scaling: sigmoid(slope * s + intercept) of the log-odds s of a class.

    With two classes the positive one is mapped, and the other gets the rest. With more,
    each class is mapped on its own, against all others, and rows are divided by their
    sum. Log-odds are exact also where the probability rounds to 0 or 1. Infinite ones
    (a probability of exactly 0 or 1, a logit of -inf) count as `reach_`. Where labels were
    impossible, or next to it, a lapse rate may be mixed in first, as in `VectorScaling`.
    It takes some tens of rows of each class: with fewer, several classes are better served
    by `TemperatureScaling` or `VectorScaling`.

    Parameters
    ----------
    scores, classes
        As in `Recalibrator`.
    smoothing : float
        At 1, Platt's targets: (N + 1) / (N + 2) instead of 1 for the N rows of the
        class, and 1 / (N' + 2) instead of 0 for the others. Then data that are
        separable have an optimum too. 0 is the plain likelihood, and c is c times 1.

    Attributes
    ----------
    slope_, intercept_ : ndarray of shape (k,), or (1,) for two classes
        The map of each class, 1 and 0 (no change) for a class that is the label of no
        row or of every row.
    reach_ : float
        The most extreme finite log-odds of the fit.
    lapse_ : float
        The lapse rate, nearly always 0. A `FitWarning` tells of any other.
    converged_ : bool
        Whether the optimum was found for all classes.

    References
    ----------
    J. Platt, *Probabilistic outputs for support vector machines*, 1999.

    Examples
    --------
    >>> from calibrant.recalibration import PlattScaling
    >>> log_odds = [-2.0, -2.0, -2.0, -2.0, 2.0, 2.0, 2.0, 2.0]
    >>> platt = PlattScaling(smoothing=0).fit(log_odds, [0, 0, 0, 1, 0, 1, 1, 1])
    >>> platt.predict_proba([2.0]).round(4).tolist()  # 3 of 4 were right
    [[0.25, 0.75]]
    """

    coefficients = ("slope_", "intercept_")
    learned: ClassVar[Mapping[str, Any]] = {
        **dict.fromkeys(coefficients, Numbers),
        **LEARNED,
    }

    scores: str = "logits"
    smoothing: float = 1.0
    classes: Sequence[Hashable] | None = None

    def _features(self, s: Table, out: Table) -> None:
        out[0] = s


@dataclass(eq=False, repr=False)
class BetaCalibration(_OneVsRest):
    """Beta calibration: sigmoid(a ln h - b ln(1 - h) + c) of the probability h of a class.

    With a, b >= 0 the map never falls, and a = b = 1, c = 0 changes nothing. It bends as
    Platt scaling cannot. Several classes, log-odds and `smoothing` are as in
    `PlattScaling`.

    Parameters
    ----------
    scores, classes
        As in `Recalibrator`.
    smoothing : float
        As in `PlattScaling`: Platt's targets at 1, the plain likelihood at 0.

    Attributes
    ----------
    a_, b_, c_ : ndarray of shape (k,), or (1,) for two classes
        The map of each class, 1, 1 and 0 (no change) for a class that is the label of no
        row or of every row.
    reach_, lapse_, converged_
        As in `PlattScaling`.

    References
    ----------
    M. Kull, T. Silva Filho, P. Flach, *Beta calibration*, AISTATS 2017.

    Examples
    --------
    >>> from calibrant.recalibration import BetaCalibration
    >>> h = [0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.9]
    >>> beta = BetaCalibration("probs", smoothing=0).fit(h, [0, 0, 0, 1, 0, 0, 1, 1])
    >>> beta.predict_proba([0.1, 0.9]).round(4).tolist()  # 1 of 4, and 2 of 4
    [[0.75, 0.25], [0.5, 0.5]]
    """

    coefficients = ("a_", "b_", "c_")
    learned: ClassVar[Mapping[str, Any]] = {
        "a_": Amounts,
        "b_": Amounts,
        "c_": Numbers,
        **LEARNED,
    }
    rising = True

    scores: str = "logits"
    smoothing: float = 1.0
    classes: Sequence[Hashable] | None = None

    def _features(self, s: Table, out: Table) -> None:
        out[0], out[1] = log_sigmoid(s), -log_sigmoid(-s)


class Odds(NamedTuple):
    """What the log-odds of any class follow from, exact where probabilities round to 0.

    `best` is the largest entry's column, `top` the entry, `rest` the sum of the others
    (relative to it, for logits), and `log_odds` those of the best class.
    """

    best: Index
    top: Column
    rest: Column
    log_odds: Column

    def part(self, part: slice) -> Odds:
        """The same of some rows."""
        return Odds._make(each[part] for each in self)


def fitted_columns(k: int) -> Index:
    """Classes with a map of their own: of two, class 0 is what class 1 is not."""
    return np.arange(1, 2) if k == 2 else np.arange(k)


def read_odds(rows: Rows, part: slice) -> Odds:
    """Read some rows."""
    block = rows.block(part).astype(np.float64)
    others = np.empty_like(block)
    with np.errstate(all="ignore"):  # rows.block has checked; log 0 is meant
        if rows.kind == "logits":
            sums = row_losses.sums_of_logits(block, others)
        else:
            sums = row_losses.sums_of_probs(block, others, inf)
    return Odds(sums.best, sums.top, sums.rest, sums.log_odds)


def log_odds(scores: Matrix, kind: Kind, odds: Odds, columns: Index) -> Table:
    """Log-odds of some classes against all others; they may be infinite.

    The sum of the others is never a difference of near numbers: for the best class it is
    known, and for any other it holds the best class.
    """
    z = scores[:, columns].astype(np.float64)
    with np.errstate(divide="ignore"):
        if kind == "logits":
            z -= odds.top[:, None]
            others = odds.rest[:, None] - np.exp(z)
            z -= np.log1p(np.maximum(others, 0, out=others), out=others)
        else:
            others = (odds.top + odds.rest)[:, None] - z
            z = np.log(z) - np.log(others)
    return np.where(odds.best[:, None] == columns, odds.log_odds[:, None], z)
