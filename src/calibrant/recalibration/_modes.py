"""What methods share that recalibrate each class against the rest, or the confidence.

One-vs-rest: every class has its own curve, then each row is divided by its sum.
Top-label: only the confidence is recalibrated, and the other classes share the rest.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import STRATEGIES
from calibrant._inputs.arrays import Column, Index, Mask, Matrix
from calibrant.recalibration._estimator import Progress, Recalibrator
from calibrant.recalibration._rows import Rows

GROUPS = 8
"""A column at a time would read the rows k times; this many parts of the columns are
read one after the other, so that the copy stays small beside the matrix."""

NETCAL: dict[str, Any] = {"strategy": "width", "mode": "one-vs-rest", "smoothing": 0}
"""The only values of these parameters that netcal knows."""


Report: TypeAlias = Callable[[float], None]  # of the share of the work that is done


class ByMode(Recalibrator):
    """A method with a curve for each class, or one for the confidence."""

    mode: str
    smoothing: float
    compat: str | None
    absent_: Index

    fits: ClassVar[str]  # what is fitted, in a word

    @abstractmethod
    def _fit(self, rows: Rows, report: Report) -> None:
        """Fit on rows of which the absent classes are known."""

    @abstractmethod
    def _certainties(self) -> str | None:
        """Where the fit makes a class impossible, in words, if it does anywhere."""

    def _check_options(self) -> None:
        super()._check_options()
        self._check_not_negative("smoothing")
        for name, only in NETCAL.items():
            given = getattr(self, name, only)
            if self.compat == "netcal" and STRATEGIES.get(given, given) != only:
                raise ValueError(
                    f"compat='netcal' needs {name}={only!r}, got "
                    f"{given!r}: netcal has nothing else."
                )

    def _learn(self, rows: Rows, progress: Progress) -> None:
        self.absent_ = np.flatnonzero(np.bincount(rows.y, minlength=rows.k) == 0)
        if self.mode == "top-label" or (self.compat == "netcal" and rows.k == 2):
            self.absent_ = np.empty(0, np.intp)  # not each class has its own curve
        self._fit(rows, lambda share: progress(share, self.fits))
        progress(1.0, self.fits)
        if self.absent_.size:
            kept = "keep their own probability"
            fate = "become impossible, as in netcal" if self.compat else kept
            absent = f"{self.absent_.size} of {rows.k} classes have no row to fit on"
            self._note(f"{absent}; they {fate}.")
        if self.smoothing or self.compat:
            return
        if certain := self._certainties():
            self._note(
                f"{certain}, so a class can get probability 0, and a new example an "
                "infinite log loss; smoothing=1 rules that out."
            )

    def _strangely_absent(self, k: int) -> str | None:
        """What is wrong with the numbers of the classes without a row."""
        absent, one = self.absent_, self.mode == "top-label"
        rises = absent.ndim == 1 and bool((np.diff(absent) > 0).all())
        if rises and (absent < k).all() and not (one and absent.size):
            return None
        return f"must have absent_ that are numbers of some of {k} classes, in order"

    def _divide(self, values: Matrix, probs: Matrix) -> None:
        """Turn new values of all classes into distributions, in place."""
        if self.compat == "netcal":
            divide_as_netcal(values)
        else:
            divide(values, probs, self.absent_)


def probabilities(rows: Rows, part: slice) -> Matrix:
    """Probabilities of some rows, not to be written to."""
    return rows.block(part) if rows.kind == "probs" else rows.probabilities(part)


def columns(rows: Rows) -> Iterator[tuple[int, Matrix]]:
    """Each class with its probabilities in all rows, which the next one overwrites."""
    width = -(-rows.k // GROUPS)
    buffer = np.empty((width, len(rows)), rows.work_type)
    for first in range(0, rows.k, width):
        chosen = slice(first, min(first + width, rows.k))

        def read(part: slice, chosen: slice = chosen) -> None:
            found = probabilities(rows, part)[:, chosen].T
            buffer[: len(found), part] = found

        rows.each(read)
        for c in range(chosen.start, chosen.stop):
            yield c, buffer[c - first]


def rounded_down(x: Column, dtype: np.dtype[Any]) -> Matrix:
    """The largest numbers of a type that are not above these, which are positive."""
    rounded = x.astype(dtype)
    return np.where(rounded > x, np.nextafter(rounded, dtype.type(0)), rounded)


def divide(values: Matrix, probs: Matrix, absent: Index) -> None:
    """Turn new values into distributions, in place.

    Absent classes get the probability they had, and so do rows whose values are all 0.
    """
    if absent.size:
        values[:, absent] = probs[:, absent]
    total = values.sum(axis=1, keepdims=True, dtype=np.float64)
    lost = total[:, 0] == 0
    if lost.any():
        values[lost] = probs[lost]
        total[lost] = values[lost].sum(axis=1, keepdims=True, dtype=np.float64)
    values /= total.astype(values.dtype)


def divide_as_netcal(values: Matrix) -> None:
    """The same as netcal does it; where it gives NaN, all classes become as likely.

    Of two classes it recalibrates the second alone.
    """
    if values.shape[1] == 2:
        np.subtract(1, values[:, 1], out=values[:, 0])
        return
    total = values.sum(axis=1, keepdims=True)
    lost = total[:, 0] == 0
    if lost.any():
        values[lost] = 1
        total[lost] = values.shape[1]
    values /= total
    values.clip(0, 1, out=values)


MARGIN = 1e-6  # how much less than the predicted class others get, relatively


def find_top(rows: Rows, part: slice) -> tuple[Matrix, Index, Column]:
    """Probabilities in an array of their own, predicted classes and confidences."""
    best = rows.block(part).argmax(axis=1)
    probs = rows.probabilities(part)
    h = probs[np.arange(len(probs)), best].astype(np.float64)
    return probs, best, np.minimum(h, 1.0)


def confidences(rows: Rows) -> tuple[Column, Mask]:
    """Confidence of every row, and whether its label is the predicted class."""
    h, hit = np.empty(len(rows)), np.empty(len(rows), np.bool_)

    def read(part: slice) -> None:
        _, best, h[part] = find_top(rows, part)
        hit[part] = best == rows.y[part]

    rows.each(read)
    return h, hit


def others_of(probs: Matrix, best: NDArray[Any]) -> Column:
    """What all but the predicted class have: 1 - h where that would round to 0."""
    others = np.array(probs)
    others[np.arange(len(probs)), best] = 0
    return others.sum(axis=1, dtype=np.float64)


def give(probs: Matrix, best: NDArray[Any], value: Column, rest: Column) -> None:
    """Give the predicted class its new probability and the others the rest, in place.

    They share it in proportion to what they had. If one of them would then come too
    close, shares are blended with equal ones, just as much as is needed.
    """
    at, others = np.arange(len(probs)), probs.shape[1] - 1
    _keep_others(probs, at, best)
    largest, even = probs.max(axis=1).astype(np.float64), 1 / others
    with np.errstate(divide="ignore", invalid="ignore"):
        allowed = value / rest * (1 - MARGIN)
        blend = ((largest - allowed) / (largest - even)).clip(0, 1)
    blend = np.where(largest > even, blend, 0.0)
    probs *= ((1 - blend) * rest)[:, None].astype(probs.dtype)
    if blend.any():
        probs += (blend * rest / others)[:, None].astype(probs.dtype)
    probs[at, best] = value


def _keep_others(probs: Matrix, at: NDArray[Any], best: NDArray[Any]) -> None:
    """Shares of the other classes in what they have together; equal ones of nothing."""
    probs[at, best] = 0
    rest = probs.sum(axis=1, dtype=np.float64)
    nothing = rest == 0
    if nothing.any():
        probs[nothing] = 1
        probs[at[nothing], best[nothing]] = 0
        rest[nothing] = probs.shape[1] - 1
    probs /= rest[:, None].astype(probs.dtype)
