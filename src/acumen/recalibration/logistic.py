"""Logistic calibration of each class against the rest: Platt's and the beta family.

Each reads one number per row and class, the log-odds of the class against all others.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from math import inf
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column, Matrix, as_number
from acumen.recalibration.estimator import Progress, Recalibrator
from acumen.recalibration.newton import Hits, Regressions, Solution
from acumen.recalibration.odds import (
    Odds,
    fitted_columns,
    log_odds,
    log_sigmoid,
    read_odds,
)
from acumen.recalibration.rows import Kind, Rows

GROUPS = 32
"""Classes are fitted in about this many groups, one after the other, to spare memory."""


class _OneVsRest(Recalibrator):
    """A logistic regression for each class against the rest, rows divided by their sum."""

    smoothing: float
    reach_: float
    converged_: bool

    coefficients: ClassVar[tuple[str, ...]]
    """Names of what is learned of a class: a slope per feature, then the shift."""

    @abstractmethod
    def _features(self, s: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Write the features of log-odds s."""

    @abstractmethod
    def _solve(self, regressions: Regressions) -> Solution:
        """Fit a group of classes."""

    def _check_options(self) -> None:
        super()._check_options()
        if not 0 <= as_number(self.smoothing) < inf:
            raise ValueError(
                f"smoothing must be a number, 0 or more; got {self.smoothing!r}."
            )

    # -- fitting -----------------------------------------------------------------

    def _learn(self, rows: Rows, progress: Progress) -> None:
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
            found = self._solve(self._regressions(rows, odds, group, counts))
            learned[:, np.searchsorted(columns, group)] = found.coefficients
            self.converged_ &= bool(found.converged.all())
            progress((first + len(group)) / len(fitted), "classes")
        for name, values in zip(self.coefficients, learned, strict=True):
            setattr(self, name, values)
        self._tell(columns, fitted)

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
        self, rows: Rows, odds: Odds, group: NDArray[np.intp], counts: Column
    ) -> Regressions:
        features = np.empty((len(self.coefficients) - 1, len(rows), len(group)))

        def work(part: slice) -> None:
            s = log_odds(rows.scores[part], rows.kind, odds.part(part), group)
            self._features(self._within_reach(s), features[:, part])

        rows.each(work)
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        yes, c = counts[group], self.smoothing
        no = counts.sum() - yes
        hits = Hits(rows.y, group, c / (no + 2 * c), (yes + c) / (yes + 2 * c))
        return Regressions.of(features, hits, weight / rows.total_weight)

    def _within_reach(self, s: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(np.isinf(s), np.copysign(self.reach_, s), s)

    def _tell(self, columns: NDArray[np.intp], fitted: NDArray[np.intp]) -> None:
        """Note what one should know about the fit."""
        if left := np.setdiff1d(columns, fitted).tolist():
            self._note(
                f"{len(left)} of {len(columns)} classes ({self._names(left)}) are the "
                "label of no row, or of every row; their odds are left as they are."
            )
        if not self.converged_:
            self._note("for some class the search did not end at the optimum.")

    def _names(self, columns: Sequence[int]) -> str:
        names = [str(self.classes_[j]) for j in columns[:3]]
        return ", ".join(names) + (", ..." if len(columns) > 3 else "")

    # -- applying ----------------------------------------------------------------

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        out = np.zeros(rows.scores.shape, rows.work_type)
        columns = fitted_columns(rows.k)
        learned = np.stack([getattr(self, name) for name in self.coefficients])

        def work(part: slice) -> None:
            s = log_odds(rows.block(part), rows.kind, read_odds(rows, part), columns)
            x = np.empty((len(learned) - 1, *s.shape))
            self._features(self._within_reach(s), x)
            eta = np.einsum("fij,fj->ij", x, learned[:-1]) + learned[-1]
            # Of two, class 0 has logit 0. The softmax of log-probabilities divides them
            # by their sum, which it never takes for 0.
            out[part, columns] = eta if rows.k == 2 else log_sigmoid(eta)

        rows.each(work)
        return "logits", out


class PlattScaling(_OneVsRest):
    """Platt scaling: sigmoid(slope * s + intercept) of the log-odds s of a class.

    With two classes the positive one is mapped, and the other gets the rest. With more,
    each class is mapped on its own, against all others, and rows are divided by their
    sum. Log-odds are exact also where the probability rounds to 0 or 1. Infinite ones
    (a probability of exactly 0 or 1, a logit of -inf) count as `reach_`. It takes some
    tens of rows of each class: with fewer, several classes are better served by
    `TemperatureScaling` or `VectorScaling`.

    Parameters
    ----------
    scores : {"logits", "probs"}
        What the scores are.
    smoothing : float
        At 1, Platt's targets: (N + 1) / (N + 2) instead of 1 for the N rows of the
        class, and 1 / (N' + 2) instead of 0 for the others. Then data that are
        separable have an optimum too. 0 is the plain likelihood, and c is c times 1.
    classes : sequence, optional
        Names of the classes in column order, if labels are neither column numbers nor
        names in sorted order.

    Attributes
    ----------
    slope_, intercept_ : ndarray of shape (k,), or (1,) for two classes
        The map of each class, 1 and 0 (no change) for a class that is the label of no
        row or of every row.
    reach_ : float
        The most extreme finite log-odds of the fit.
    converged_ : bool
        Whether the optimum was found for all classes.

    References
    ----------
    J. Platt, *Probabilistic outputs for support vector machines*, 1999.

    Examples
    --------
    >>> from acumen.recalibration import PlattScaling
    >>> log_odds = [-2.0, -2.0, -2.0, -2.0, 2.0, 2.0, 2.0, 2.0]
    >>> platt = PlattScaling(smoothing=0).fit(log_odds, [0, 0, 0, 1, 0, 1, 1, 1])
    >>> platt.predict_proba([2.0]).round(4).tolist()  # 3 of 4 were right
    [[0.25, 0.75]]
    """

    coefficients: ClassVar[tuple[str, ...]] = ("slope_", "intercept_")
    learned: ClassVar[tuple[str, ...]] = (*coefficients, "reach_", "converged_")
    slope_: Column
    intercept_: Column

    def __init__(
        self,
        scores: str = "logits",
        smoothing: float = 1.0,
        classes: Sequence[Hashable] | None = None,
    ) -> None:
        self.scores = scores
        self.smoothing = smoothing
        self.classes = classes

    def _features(self, s: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        out[0] = s

    def _solve(self, regressions: Regressions) -> Solution:
        return regressions.solve()

    def _tell(self, columns: NDArray[np.intp], fitted: NDArray[np.intp]) -> None:
        super()._tell(columns, fitted)
        if negative := columns[self.slope_ < 0].tolist():
            self._note(
                f"the slope of {len(negative)} of {len(columns)} classes "
                f"({self._names(negative)}) is negative: there the scores are worse than "
                "chance, and are turned around."
            )


class BetaCalibration(_OneVsRest):
    """Beta calibration: sigmoid(a ln h - b ln(1 - h) + c) of the probability h of a class.

    With a, b >= 0 the map never falls, and a = b = 1, c = 0 changes nothing. It bends as
    Platt scaling cannot. Several classes, log-odds and `smoothing` are as in
    `PlattScaling`.

    Parameters
    ----------
    scores : {"logits", "probs"}
        What the scores are.
    smoothing : float
        At 1, Platt's targets, as in `PlattScaling`; 0 is the plain likelihood.
    classes : sequence, optional
        Names of the classes in column order, if labels are neither column numbers nor
        names in sorted order.

    Attributes
    ----------
    a_, b_, c_ : ndarray of shape (k,), or (1,) for two classes
        The map of each class, 1, 1 and 0 (no change) for a class that is the label of no
        row or of every row.
    reach_ : float
        The most extreme finite log-odds of the fit.
    converged_ : bool
        Whether the optimum was found for all classes.

    References
    ----------
    M. Kull, T. Silva Filho, P. Flach, *Beta calibration*, AISTATS 2017.

    Examples
    --------
    >>> from acumen.recalibration import BetaCalibration
    >>> h = [0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.9]
    >>> beta = BetaCalibration("probs", smoothing=0).fit(h, [0, 0, 0, 1, 0, 0, 1, 1])
    >>> beta.predict_proba([0.1, 0.9]).round(4).tolist()  # 1 of 4, and 2 of 4
    [[0.75, 0.25], [0.5, 0.5]]
    """

    coefficients: ClassVar[tuple[str, ...]] = ("a_", "b_", "c_")
    learned: ClassVar[tuple[str, ...]] = (*coefficients, "reach_", "converged_")
    a_: Column
    b_: Column
    c_: Column

    def __init__(
        self,
        scores: str = "logits",
        smoothing: float = 1.0,
        classes: Sequence[Hashable] | None = None,
    ) -> None:
        self.scores = scores
        self.smoothing = smoothing
        self.classes = classes

    def _features(self, s: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        out[0], out[1] = log_sigmoid(s), -log_sigmoid(-s)

    def _solve(self, regressions: Regressions) -> Solution:
        return regressions.solve_rising()
