"""Isotonic calibration: the increasing curves that are closest to the labels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np

from calibrant._base.records import Positive, Range, Shares
from calibrant._inputs.arrays import Column, Index, Mask, Matrix, Table
from calibrant._rows import compiled, engines
from calibrant.recalibration import _modes as modes
from calibrant.recalibration._estimator import Places, wrong_shape
from calibrant.recalibration._marks import gather
from calibrant.recalibration._rows import Kind, Rows

LARGEST_SUM = 0.01
"""How far a probability may be above 1 where those of a row need not sum to 1 exactly."""

CLOSE = 1e-15  # scores closer than this are one to scikit-learn, and so to netcal
STEEPEST = np.finfo(np.float64).max

Curve = tuple[Column, Column]  # probabilities and values at the knots of one class
Begins = Callable[[Column], Mask]  # which of sorted ones are a new value


@dataclass(eq=False, repr=False)
class Curves:
    """Increasing curves, one per class, linear between knots and constant beyond them.

    Class c has the knots from ``starts[c]`` to ``starts[c + 1]``; without any, it
    gives 0.
    """

    knots: Column
    values: Column
    starts: Index

    @classmethod
    def of(cls, curves: Sequence[Curve]) -> Curves:
        """Put the curves of all classes together."""
        knots, values = (np.concatenate(part) for part in zip(*curves, strict=True))
        starts = np.cumsum([0, *(len(x) for x, _ in curves)], dtype=np.intp)
        return cls(knots, values, starts)

    @cached_property
    def segments(self) -> Table:
        """From each knot on: the knot, its value, the slope, and the value at the end."""
        last = self.starts[1:][np.diff(self.starts) > 0] - 1
        end = np.append(self.values[1:], 0.0)
        width = np.append(np.diff(self.knots), 1.0)
        end[last], width[last] = self.values[last], 1.0
        with np.errstate(over="ignore"):
            slope = np.minimum((end - self.values) / width, STEEPEST)
        return np.stack([self.knots, self.values, slope, end], axis=1)

    @cached_property
    def least(self) -> Column:
        """The least value of each class."""
        there = np.diff(self.starts) > 0
        least = np.zeros(len(there))
        least[there] = self.values[self.starts[:-1][there]]
        return least

    def flat(self, dtype: np.dtype[Any]) -> Matrix:
        """Up to where each class has its least value, in numbers of a type."""
        there = np.diff(self.starts) > 0
        at = self.starts[:-1][there]
        at += self.segments[at, 3] == self.values[at]  # its first level is that wide
        at = np.minimum(at, self.starts[1:][there] - 1)
        flat = np.full(len(there), np.inf)
        flat[there] = self.knots[at]
        return modes.rounded_down(flat, dtype)

    def evaluate(self, probs: Matrix, out: Matrix) -> None:
        """Values at probabilities, one column per class."""
        for c, (a, b) in enumerate(pairwise(self.starts)):
            out[:, c] = _on(self.segments[a:b], probs[:, c]) if b > a else 0

    def in_one_loop(self, dtype: np.dtype[Any]) -> Callable[[Matrix, Matrix], None]:
        """`evaluate` for numbers of a type, in one loop over the rows."""
        starts, k = compiled.ready(self.starts, np.int64), len(self.starts) - 1
        known = starts, self.segments, self.least.astype(dtype), self.flat(dtype)
        return partial(compiled.loops.follow, k, *known)


def _on(segments: Table, p: Matrix) -> Column:
    knot, value, slope, end = segments.T
    x = np.maximum(p.astype(np.float64), knot[0])
    on = np.searchsorted(knot, x, side="right") - 1
    return np.minimum(slope[on] * (x - knot[on]) + value[on], end[on])


def pool(
    low: Matrix, high: Matrix, hits: Column, weight: Column, curve: Index
) -> tuple[Column, Column, Index]:
    """Pool adjacent violators of all curves at once; knots are the two ends of each level.

    It is given the least and greatest probability, hits, weight and curve of groups, which
    are ordered. Knots come with their values and their curves.
    """
    from scipy.optimize import isotonic_regression

    apart = hits / weight + 2.0 * curve  # so that no level of two curves is pooled
    first = isotonic_regression(apart, weights=weight).blocks[:-1]
    while True:  # more than once only if levels differ by round-off
        value = np.add.reduceat(hits, first) / np.add.reduceat(weight, first)
        rises = (np.diff(value, prepend=-1.0) > 0) | differs(curve[first])
        if rises.all():
            break
        first = first[rises]
    last = np.concatenate([first[1:], [len(hits)]]) - 1
    knots = np.stack([low[first], high[last]], axis=1).ravel().astype(np.float64)
    of = np.repeat(curve[first], 2)
    chosen = differs(knots) | differs(of)  # a level may be a single point
    return knots[chosen], np.repeat(value, 2)[chosen], of[chosen]


def differs(x: Column) -> Mask:
    """Which of sorted numbers are not equal to the one before."""
    return np.concatenate([[True], x[1:] != x[:-1]])


def differs_as_sklearn(x: Column) -> Mask:
    """Which of sorted numbers are not close to the first of the group before them."""
    begins = np.concatenate([[True], np.diff(x) >= CLOSE])
    while True:
        group = np.maximum.accumulate(np.where(begins, np.arange(len(x)), 0))
        far = x - x[group] >= CLOSE
        if not far.any():
            return begins
        begins[1:] |= far[1:] & ~far[:-1]  # the first that is far begins a group


def fit_column(p: Matrix, hit: Mask, weight: Column, begins: Begins) -> Curve:
    """The curve of one class."""
    order = np.argsort(p)
    x = p[order].astype(np.float64)
    first = np.flatnonzero(begins(x))
    hits, weights = (np.add.reduceat(x[order], first) for x in (weight * hit, weight))
    one = np.zeros(len(first), np.intp)
    return pool(x[first], x[first], hits, weights, one)[:2]


NOTHING = (np.empty(0), np.empty(0))


def fit_columns(rows: Rows, begins: Begins, report: modes.Report) -> Curves:
    """The curves of all classes, each by sorting its column; absent ones have none."""
    weight, curves = rows.weight_of_each, []
    for c, p in modes.columns(rows):
        hit = rows.y == c
        curves.append(fit_column(p, hit, weight, begins) if hit.any() else NOTHING)
        report(c / rows.k)
    return Curves.of(curves)


def fit_compiled(rows: Rows) -> Curves:
    """The same without sorting, for equal probabilities being tied."""
    (weight, low, high), hits, starts = gather(rows)
    groups = np.diff(starts)
    curve = np.repeat(np.arange(len(groups)), groups)
    there = (low <= high) & (groups > 1)[curve]  # a class without a row has one group
    known = low[there], high[there], hits[there], weight[there]
    knots, values, of = pool(*known, curve[there])
    ends = np.cumsum(np.bincount(of, minlength=len(groups)))
    return Curves(knots, values, np.append(0, ends).astype(np.intp))


MANY_CLASSES = 100  # from so many on, it is faster not to sort the rows for each


@dataclass(eq=False, repr=False)
class IsotonicCalibration(modes.ByMode):
    """Replace probabilities by the closest increasing function of them.

    With ``mode="one-vs-rest"`` each class has its own curve, and rows are divided by
    their sum. The order of the classes of a row, and so the accuracy, may change.

    With ``mode="top-label"`` there is one curve, from confidence to accuracy v, of which
    classes get shares as in `HistogramBinning`. The prediction changes only if v <= 1/k,
    and of two rows the more confident never becomes the less confident one.

    A curve has a constant level wherever accuracy would decrease (pool adjacent
    violators). It is linear between levels and constant beyond the scores of the fit, as
    in scikit-learn. Only equal scores are tied; scikit-learn takes single-precision
    scores within 1e-6 as tied, which most of a thousand probabilities are.

    - A class without any row to fit on keeps its own probability; a note counts them.
    - A row whose new values are all 0 keeps its probabilities.
    - The lowest level often is exactly 0, which makes the log loss infinite where it is
      wrong: a note tells, and `smoothing` prevents that.

    Parameters
    ----------
    scores, classes, engine
        As in `Recalibrator`.
    mode : {"one-vs-rest", "top-label"}
        Recalibrate all classes, or the confidence only.
    smoothing : float
        With s > 0 and n rows in the fit, f(p) becomes (n f(p) + s p) / (n + s), as if s
        further rows agreed with the scores. It then increases everywhere, so there are
        no new ties, and no zeros but where p is 0.
    compat : {None, "netcal"}
        ``"netcal"`` gives what netcal 1.4.0 does, always in double precision: as in
        `HistogramBinning`, and scores closer than 1e-15 are tied.

    Attributes
    ----------
    knots_, values_ : ndarray
        The curves of all classes, one after the other: probabilities and new values.
    starts_ : ndarray
        Class c has the knots ``starts_[c]`` to ``starts_[c + 1]``; for top-label there
        is one curve.
    absent_ : ndarray
        Column numbers of classes without a row, one-vs-rest; they have no knots.
    weight_ : float
        Number of rows of the fit; where weights differ, the effective one.

    Examples
    --------
    >>> from calibrant.recalibration import IsotonicCalibration
    >>> p = [0.1, 0.1, 0.3, 0.4, 0.9, 0.9]  # of the second class
    >>> curve = IsotonicCalibration(scores="probs").fit(p, [0, 1, 0, 1, 1, 0])
    >>> curve.predict_proba([0.2, 0.35, 0.8])[:, 1].round(3).tolist()
    [0.333, 0.5, 0.667]
    """

    learned: ClassVar[Mapping[str, Any]] = {
        "knots_": Annotated[Column, Range(0, 1 + LARGEST_SUM)],
        "values_": Shares,
        "starts_": Places,
        "absent_": Places,
        "weight_": Positive,
    }
    fits = "curves"

    scores: str = "logits"
    mode: str = "one-vs-rest"
    smoothing: float = 0.0
    compat: str | None = None
    classes: Sequence[Hashable] | None = None
    engine: str = "auto"

    def _disagreement(self, k: int) -> str | None:
        knots, values, starts = self.knots_, self.values_, self.starts_
        curves = 1 if self.mode == "top-label" else k
        if said := wrong_shape("starts_", starts, (curves + 1,)):
            return said
        said = wrong_shape("values_", values, (len(knots),))
        if said or knots.ndim != 1:
            return said or "must have knots_ in one row"
        if starts[0] != 0 or starts[-1] != len(knots) or (np.diff(starts) < 0).any():
            return f"must have starts_ that go from 0 to {len(knots)}, and never fall"
        within = np.ones(max(len(knots) - 1, 0), bool)
        within[starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < len(knots))] - 1] = (
            False
        )
        if (np.diff(knots)[within] <= 0).any() or (np.diff(values)[within] < 0).any():
            return "must have knots_ that rise, and values_ that do not fall"
        return self._strangely_absent(k) or self._missing_curve()

    def _missing_curve(self) -> str | None:
        """What is wrong where a class has knots and should not, or has none."""
        none = np.flatnonzero(np.diff(self.starts_) == 0)
        of_two = self.compat == "netcal" and len(self.starts_) == 3
        if of_two or np.array_equal(none, self.absent_):
            return None
        return "must have a curve for each class but the absent_ ones"

    def _fit(self, rows: Rows, report: modes.Report) -> None:
        self.weight_ = rows.total_weight
        asked = self.engine == "compiled" or rows.k >= MANY_CLASSES
        if self.mode == "top-label":
            h, hit = modes.confidences(rows)
            curves = Curves.of([fit_column(h, hit, rows.weight_of_each, differs)])
        elif self.compat == "netcal":
            curves = fit_columns(rows, differs_as_sklearn, report)
        elif engines.wanted(self.engine, plain=asked):
            curves = fit_compiled(rows)
        else:
            curves = fit_columns(rows, differs, report)
        self.knots_, self.values_ = curves.knots, curves.values
        self.starts_ = curves.starts

    def _certainties(self) -> str | None:
        if self.mode == "top-label":
            certain = np.isin(self.values_, (0, 1)).any()
            return "the curve ends at accuracy 0 or 1" if certain else None
        begins = self.starts_[:-1][np.diff(self.starts_) > 0]
        zeros = int(np.sum(self.values_[begins] == 0))
        return f"{zeros} of {len(begins)} curves begin at exactly 0" if zeros else None

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        dtype = np.dtype(np.float64) if self.compat else rows.work_type
        curves = Curves(self.knots_, self.values_, self.starts_)
        if self.mode == "top-label":
            return "probs", rows.filled(partial(self._give, rows, curves), dtype)
        if engines.wanted(self.engine, plain=dtype == rows.work_type):
            evaluate = curves.in_one_loop(dtype)
            return "probs", rows.filled(partial(self._evaluate, rows, evaluate), dtype)
        work = partial(self._evaluate, rows, curves.evaluate)
        tall = max(1, len(rows) // (2 * modes.GROUPS))  # a column is worth a call
        return "probs", rows.filled(work, dtype, tall)

    def _give(self, rows: Rows, curves: Curves, part: slice, out: Matrix) -> None:
        probs, best, h = modes.find_top(rows, part)
        value = _on(curves.segments, h)
        rest, others = 1 - value, modes.others_of(probs, best)
        whole = h + others
        self._smooth(value, h / whole)
        self._smooth(rest, others / whole)
        modes.give(probs, best, value, rest)
        out[...] = probs

    def _evaluate(
        self, rows: Rows, on: Callable[..., None], part: slice, out: Matrix
    ) -> None:
        probs = modes.probabilities(rows, part)
        on(probs, out)
        self._smooth(out, probs)
        self._divide(out, probs)

    def _smooth(self, value: Matrix, p: Matrix) -> None:
        """Blend new values with old ones, in place."""
        if self.smoothing > 0:
            whole = self.weight_ + self.smoothing
            value *= self.weight_ / whole
            value += p * (self.smoothing / whole)
