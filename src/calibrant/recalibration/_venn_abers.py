"""Venn-Abers: two probabilities for every score, one of which is right."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from calibrant._base.records import Range, Shares
from calibrant._inputs.arrays import Column, Index, Mask, Matrix
from calibrant.recalibration import _modes as modes
from calibrant.recalibration._estimator import (
    Places,
    Progress,
    Recalibrator,
    wrong_shape,
)
from calibrant.recalibration._isotonic import LARGEST_SUM, differs
from calibrant.recalibration._rows import Kind, Rows

Corner = tuple[float, float]  # of a cumulative sum diagram: weight and hits so far


class Steps(NamedTuple):
    """p0 and p1 as functions of the score: `low` from each knot on, `high` up to it."""

    knots: Column
    low: Column
    high: Column


class Interval(NamedTuple):
    """p0 and p1, the ends of what Venn-Abers gives."""

    low: Column
    high: Column


def levels_with_a_hit(weight: Column, hits: Column) -> Column:
    """Isotonic values at each of ordered scores, if one more row there were a hit.

    The cumulative sum diagram has a corner per score. The new row shifts those before it
    by (-1, -1), and the value is the slope of the greatest convex minorant above the row.
    As the row moves on, one corner at a time is shifted. The minorant to the left of the
    row is never asked for again, so every corner comes and goes once (Vovk et al. 2015).

    >>> levels_with_a_hit(np.array([2.0, 1.0]), np.array([1.0, 1.0])).round(3).tolist()
    [0.667, 1.0]
    """
    total = np.cumsum(weight).tolist(), np.cumsum(hits).tolist()
    corners: list[Corner] = [(-1.0, -1.0), (0.0, 0.0), *zip(*total, strict=True)]
    minorant: list[Corner] = []
    for corner in reversed(corners):
        _push(minorant, corner)
    found = np.empty(len(weight))
    for i, (w, h) in enumerate(corners[2:]):
        found[i] = _slope(minorant[-1], minorant[-2])
        shifted = w - 1, h - 1
        if _slope(minorant[-1], shifted) < found[i]:
            minorant.pop()
            _push(minorant, shifted)
    return np.clip(found, 0.0, 1.0)


def _push(minorant: list[Corner], corner: Corner) -> None:
    """Put a corner in front of a minorant, whose corners it may cover."""
    while len(minorant) > 1 and _slope(corner, minorant[-1]) >= _slope(
        *minorant[:-3:-1]
    ):
        minorant.pop()
    minorant.append(corner)


def _slope(one: Corner, two: Corner) -> float:
    return (two[1] - one[1]) / (two[0] - one[0])


def steps_of(p: Matrix, hit: Mask, weight: Column) -> Steps:
    """p0 and p1 at the distinct scores of one class, without knots at which none moves.

    Between two scores a row that is a hit has the value it would have at the upper one,
    and a row that is none that at the lower one.
    """
    order = np.argsort(p, kind="stable")
    x = p[order].astype(np.float64)
    first = np.flatnonzero(differs(x))
    mass = np.add.reduceat(weight[order], first)
    hits = np.add.reduceat((weight * hit)[order], first)
    high = levels_with_a_hit(mass, hits)
    low = 1 - levels_with_a_hit(mass[::-1], (mass - hits)[::-1])[::-1]
    moves = (np.append(high[1:], 1.0) > high) | (low > np.append(0.0, low[:-1]))
    return Steps(x[first][moves], low[moves], high[moves])


def look_up(steps: Steps, p: Column) -> Interval:
    """p0 and p1 at any scores."""
    below = np.searchsorted(steps.knots, p, "right")
    above = np.searchsorted(steps.knots, p, "left")
    low, high = np.append(0.0, steps.low)[below], np.append(steps.high, 1.0)[above]
    return Interval(low, high)


def merged(ends: Interval) -> Column:
    """The one probability that loses least whichever of the two is right (log loss).

    >>> float(merged(Interval(np.array([0.4]), np.array([0.6])))[0])
    0.5
    """
    return ends.high / (1 - ends.low + ends.high)


@dataclass(eq=False, repr=False)
class VennAbers(Recalibrator):
    """Give two probabilities, p0 and p1, of which one is calibrated whatever the law.

    Isotonic regression is fitted twice with the new row among the others: once as if it
    were no hit (p0), once as if it were a hit (p1). If rows are exchangeable, the one that
    belongs to what it turns out to be is perfectly calibrated, for any number of rows.
    `predict_interval` gives both. They are close where there are many rows and far apart
    where there are few, so their distance says how far to trust the score.
    `predict_proba` gives p1 / (1 - p0 + p1), which is never 0 or 1.

    With two classes the positive one is mapped. With more, and ``mode="one-vs-rest"``, each
    class is mapped against all others and rows are divided by their sum; with
    ``mode="top-label"`` only the confidence is, and the other classes share the rest as in
    `HistogramBinning`. What is guaranteed holds of each class on its own, or of the
    confidence: not of rows after the division.

    Parameters
    ----------
    scores, classes
        As in `Recalibrator`.
    mode : {"one-vs-rest", "top-label"}
        Recalibrate all classes, or the confidence only.

    Attributes
    ----------
    knots_, low_, high_ : ndarray
        The curves of all classes, one after the other: probabilities, p0 from there on,
        and p1 up to there.
    starts_ : ndarray
        Curve c has the knots ``starts_[c]`` to ``starts_[c + 1]``. There is one curve for
        two classes, and for top-label.

    References
    ----------
    V. Vovk, I. Petej, V. Fedorova, *Large-scale probabilistic predictors with and without
    guarantees of validity*, NeurIPS 2015.

    Examples
    --------
    >>> from calibrant.recalibration import VennAbers
    >>> p = [0.1, 0.2, 0.3, 0.4, 0.7, 0.8, 0.9, 0.9]
    >>> venn = VennAbers(scores="probs").fit(p, [0, 0, 1, 0, 1, 0, 1, 1])
    >>> low, high = venn.predict_interval([0.05, 0.5, 0.95])
    >>> low[:, 1].round(3).tolist(), high[:, 1].round(3).tolist()
    ([0.0, 0.333, 0.667], [0.333, 0.667, 1.0])
    >>> venn.predict_proba([0.5]).round(3).tolist()
    [[0.5, 0.5]]
    """

    learned: ClassVar[Mapping[str, Any]] = {
        "knots_": Annotated[Column, Range(0, 1 + LARGEST_SUM)],
        "low_": Shares,
        "high_": Shares,
        "starts_": Places,
    }

    scores: str = "logits"
    mode: str = "one-vs-rest"
    classes: Sequence[Hashable] | None = None

    def predict_interval(self, scores: Any) -> Interval:
        """The two probabilities p0 and p1 of every class, n x k each.

        With ``mode="top-label"``, those of the predicted class: n each.
        """
        rows = self._read_to_apply(scores)
        parts = [self._ends(rows, part) for part in rows.parts()]
        return Interval(*(np.concatenate(ends) for ends in zip(*parts, strict=True)))

    def _learn(self, rows: Rows, progress: Progress) -> None:
        weight, curves = rows.weight_of_each, []
        if self.mode == "top-label":
            curves = [steps_of(*modes.confidences(rows), weight)]
        for c, p in modes.columns(rows) if self.mode != "top-label" else ():
            if rows.k > 2 or c == 1:
                curves.append(steps_of(np.minimum(p, 1), rows.y == c, weight))
            progress(c / rows.k, "curves")
        self.knots_, self.low_, self.high_ = map(
            np.concatenate, zip(*curves, strict=True)
        )
        self.starts_ = np.cumsum([0, *(len(x.knots) for x in curves)], dtype=np.intp)
        progress(1.0, "curves")

    def _disagreement(self, k: int) -> str | None:
        n, curves = len(self.knots_), 1 if self.mode == "top-label" or k == 2 else k
        shapes = {"starts_": (curves + 1,), "low_": (n,), "high_": (n,), "knots_": (n,)}
        own = ((name, getattr(self, name), shape) for name, shape in shapes.items())
        said = next(filter(None, (wrong_shape(*one) for one in own)), None)
        starts = self.starts_
        if said or starts[0] != 0 or starts[-1] != n or (np.diff(starts) < 0).any():
            return said or f"must have starts_ that go from 0 to {n}, and never fall"
        if (self.low_ > self.high_).any():
            return "must have low_ that are not above high_"
        rises = [
            all((np.diff(x) >= 0).all() for x in steps) for steps in self._curves()
        ]
        return None if all(rises) else "must have curves that do not fall"

    def _curves(self) -> list[Steps]:
        both = pairwise(self.starts_)
        return [
            Steps(self.knots_[a:b], self.low_[a:b], self.high_[a:b]) for a, b in both
        ]

    def _ends(self, rows: Rows, part: slice) -> Interval:
        """p0 and p1 of some rows."""
        curves = self._curves()
        if self.mode == "top-label":
            return look_up(curves[0], modes.find_top(rows, part)[2])
        probs = modes.probabilities(rows, part).astype(np.float64)
        if rows.k == 2:
            low, high = look_up(curves[0], probs[:, 1])
            return Interval(
                *(np.stack(x, 1) for x in ((1 - high, low), (1 - low, high)))
            )
        ends = [look_up(curve, p) for curve, p in zip(curves, probs.T, strict=True)]
        return Interval(*(np.stack(x, axis=1) for x in zip(*ends, strict=True)))

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        none: Index = np.empty(0, np.intp)

        def work(part: slice, out: Matrix) -> None:
            value = merged(self._ends(rows, part))
            if self.mode == "top-label":
                probs, best, _ = modes.find_top(rows, part)
                modes.give(probs, best, value, 1 - value)
                out[...] = probs
            else:
                out[...] = value
                modes.divide(out, out, none)

        return "probs", rows.filled(work)
