"""Scores and labels as they are given, checked block by block while they are used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import RowError
from calibrant._inputs.arrays import (
    ROW_SUM_TOLERANCE,
    Column,
    Index,
    Mask,
    Matrix,
    as_scores,
    row_tolerance,
    to_numpy,
)
from calibrant._inputs.predictions import Predictions
from calibrant._rows import compiled, engines
from calibrant._rows.engines import PARTS, over_ranges
from calibrant._rows.reduce import BLOCK_BYTES, raise_for_offenders


def read_scores(scores: Any) -> Matrix:
    """Read scores; some messages begin with the words that scikit-learn's checks know."""
    if hasattr(scores, "toarray"):  # NumPy would read it as a single object
        raise TypeError(
            "scores is a sparse matrix; a score per class is needed: pass .toarray()."
        )
    array = to_numpy(scores, "scores")
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: scores has dtype {array.dtype}.")
    if array.dtype == object:
        array = _numbers_in(array)
    given = as_scores(array, "scores")
    if given.ndim not in (1, 2):
        raise ValueError(f"scores must be 1-D or 2-D, got shape {given.shape}.")
    if given.ndim == 2 and given.shape[1] == 0:
        raise ValueError(
            f"scores has 0 feature(s) (shape={given.shape}) while a minimum of 1 is "
            "required: one score per class."
        )
    return given


def _numbers_in(array: NDArray[Any]) -> Column:
    """Numbers that came as objects, or one error that says which entry is none."""
    try:
        return array.astype(np.float64)
    except Exception as error:  # an object of the user may raise anything
        raise TypeError(f"scores must hold real numbers: {error}.") from error


def flat_if_single(given: Matrix) -> Matrix:
    """One column is the positive class of a binary problem."""
    return given[:, 0] if given.ndim == 2 and given.shape[1] == 1 else given


def width(given: Matrix) -> int:
    return 1 if given.ndim == 1 else given.shape[1]


def names_as_array(names: tuple[Hashable, ...]) -> NDArray[Any]:
    """Class names as an array: of numbers or text if they all are, else of objects."""
    kinds = {type(name) for name in names}
    if len(kinds) == 1 and kinds <= {int, float, bool, str}:
        return np.array(names)
    array = np.empty(len(names), object)
    array[:] = names
    return array


def column_names(scores: Any) -> NDArray[Any] | None:
    """Column names of a data frame, if all are text."""
    names = list(getattr(scores, "columns", ()))
    if names and all(isinstance(name, str) for name in names):
        return np.array(names, object)
    return None


def as_given(p: Matrix, scores: Any, classes: NDArray[Any]) -> Any:
    """Probabilities in the kind of array that scores came in; frames keep their names."""
    library = type(scores).__module__.partition(".")[0]
    if library == "torch":
        return sys.modules["torch"].from_numpy(p).to(scores.device)
    if library in ("jax", "jaxlib"):
        return sys.modules["jax"].numpy.asarray(p)
    if library not in ("pandas", "polars"):
        return p
    given = list(getattr(scores, "columns", ()))
    names = given if len(given) == p.shape[1] else [str(name) for name in classes]
    if library == "polars":
        return sys.modules["polars"].DataFrame(p, schema=names)
    return sys.modules["pandas"].DataFrame(p, scores.index, names)


def check_order(scores: Any, y: Any) -> None:
    """Raise one clear error if scores and labels were swapped, as far as dtypes tell."""
    given, labels = (to_numpy(x, n) for x, n in ((scores, "scores"), (y, "y")))
    if given.ndim != 1 or given.dtype.kind == "f" or labels.dtype.kind != "f":
        return
    if labels.ndim == 2 or bool((labels != np.floor(labels)).any()):
        raise TypeError(
            f"scores hold {given.dtype} and y holds {labels.dtype}: it looks as if labels "
            "and scores were swapped. Scores come first: fit(scores, y)."
        )


def read_labels(y: Any) -> NDArray[Any]:
    """Labels as an array; numbers that came as objects are numbers."""
    labels = to_numpy(y, "y")
    if labels.dtype == object and all(isinstance(x, Real) for x in labels.flat):
        return np.array(labels.tolist())
    return labels


def class_names(
    labels: NDArray[Any], k: int, classes: Sequence[Hashable] | None
) -> Sequence[Hashable] | None:
    """Names of the k columns, or None if labels are column numbers.

    Given names are taken as they are. Otherwise labels 0..k-1 are column numbers, of
    which some may be missing. Any other labels must be exactly k distinct ones, which
    then name the columns in sorted order, as in scikit-learn's ``classes_``.
    """
    if classes is not None:
        return classes
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(
            f"y must be 1-D for fitting, got shape {labels.shape}. To fit on soft labels, "
            "repeat each row once per class with its share as sample_weight."
        )
    if labels.dtype.kind in "iubf":
        inside = (labels >= 0) & (labels < k)  # NaN is not
        if inside.all() and (labels == np.floor(labels)).all():
            return None
    return _sorted_names(labels, k) if labels.size else None


def _sorted_names(labels: NDArray[Any], k: int) -> list[Hashable]:
    if labels.dtype.kind == "f":
        _check_labels_are_classes(labels)
    try:
        distinct = np.unique(labels)
    except Exception as error:  # an object of the user may raise anything
        raise TypeError(
            "Unknown label type: y holds labels that cannot be sorted; pass "
            "classes=[...], the names of the classes in column order."
        ) from error
    if len(distinct) != k:
        some = ", ".join(repr(label) for label in distinct[:3].tolist())
        raise ValueError(
            f"y holds {len(distinct)} distinct labels ({some}, ...), and scores has {k} "
            "classes. Labels are column numbers 0..k-1, or exactly one name per column; "
            "otherwise pass classes=[...], the names in column order."
        )
    return distinct.tolist()


def _check_labels_are_classes(labels: NDArray[Any]) -> None:
    """Refuse labels that are not classes at all, in words scikit-learn users know."""
    if not np.isfinite(labels).all():
        row = int(np.argmin(np.isfinite(labels)))
        raise RowError("y contains NaN or infinity:", row, f"is {labels[row]}")
    whole = labels == np.floor(labels)
    if not whole.all():
        row = int(np.argmin(whole))
        rule = "Unknown label type: y must hold classes;"
        what = f"is {labels[row]}, and classes are whole numbers or names"
        raise RowError(rule, row, what)


def effective_weight(predictions: Predictions) -> Column | None:
    """Weights of rows that add up to their effective number; counts as they are."""
    weight, squared = predictions.weight, predictions.squared
    if weight is None or squared is None:
        return weight
    return weight * (weight.sum() / squared.sum())


Kind = Literal["logits", "probs"]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """An n x k matrix of scores, with labels and weights when fitting.

    `labels` are column numbers, or None when there is nothing to fit. No row has
    weight 0. A recalibrator sees the matrix only through blocks that fit in cache, which
    are checked when they are read: that costs no pass of its own.
    """

    scores: Matrix
    kind: Kind
    labels: Index | None = None
    weight: Column | None = None

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def k(self) -> int:
        """Number of classes."""
        return self.scores.shape[1]

    @property
    def work_type(self) -> np.dtype[Any]:
        """The precision to compute in, and of what comes out: float32 or float64."""
        return np.dtype(np.float64 if self.scores.dtype == np.float64 else np.float32)

    @property
    def y(self) -> Index:
        """Labels of rows that have them."""
        assert self.labels is not None
        return self.labels

    @property
    def weight_of_each(self) -> Column:
        """One weight per row."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def total_weight(self) -> float:
        """Number of rows; where weights differ, the effective one."""
        return float(len(self) if self.weight is None else self.weight.sum())

    def weights(self, part: slice) -> Column | float:
        """Weights of some rows; 1 if all rows count the same."""
        return 1.0 if self.weight is None else self.weight[part]

    def parts(
        self, start: int = 0, stop: int | None = None, rows: int = 0
    ) -> Iterator[slice]:
        """Slices of consecutive rows: so many, or as many as fit in cache."""
        stop = len(self) if stop is None else stop
        rows = rows or max(1, BLOCK_BYTES // (self.k * self.work_type.itemsize))
        for first in range(start, stop, rows):
            yield slice(first, min(first + rows, stop))

    def block(self, part: slice) -> Matrix:
        """Scores of some rows in the working precision, checked. Do not write to it."""
        block = compiled.ready(self.scores[part], self.work_type)
        if self.offends(block).any():
            self.check()
        return block

    def probabilities(self, part: slice) -> Matrix:
        """Probabilities of some rows, in an array of their own."""
        block = np.array(self.block(part))
        return block if self.kind == "probs" else softmax(block)

    def each(self, work: Callable[[slice], object], rows: int = 0) -> None:
        """Call ``work(part)`` for blocks of all rows, on every core."""

        def run(start: int, stop: int) -> None:
            for part in self.parts(start, stop, rows):
                work(part)

        over_ranges(run, len(self), self.scores.size)

    def filled(
        self, work: Callable[[slice, Matrix], object], dtype: Any = None, rows: int = 0
    ) -> Matrix:
        """A new matrix as large as the scores; ``work(part, out)`` fills some rows."""
        out = np.empty(self.scores.shape, dtype or self.work_type)
        self.each(lambda part: work(part, out[part]), rows)
        return out

    def add_up(self, work: Callable[[slice], Any]) -> Any:
        """Sum of ``work(part)`` over blocks of all rows, on every core."""

        def run(start: int, stop: int) -> Any:
            return sum(work(part) for part in self.parts(start, stop))

        return sum(over_ranges(run, len(self), self.scores.size, PARTS))

    def select(self, chosen: Any) -> Rows:
        """Some of the rows."""
        labels = None if self.labels is None else self.labels[chosen]
        weight = None if self.weight is None else self.weight[chosen]
        return Rows(self.scores[chosen], self.kind, labels, weight)

    def compact(self) -> Rows:
        """The same rows, side by side in memory."""
        return Rows(
            np.ascontiguousarray(self.scores), self.kind, self.labels, self.weight
        )

    def check(self) -> None:
        """Raise one error for all rows that break a rule, if there are any."""
        bad = [self.offends(self.scores[part]) for part in self.parts()]
        y, classes = np.zeros(len(self), np.intp), tuple(range(self.k))
        checked = Predictions(self.scores, self.kind, y, None, "top-label", classes)
        raise_for_offenders(checked, np.flatnonzero(np.concatenate(bad)))

    @np.errstate(over="ignore", invalid="ignore")
    def offends(self, block: Matrix) -> Mask:
        """Which rows break a rule."""
        if self.kind == "logits":
            return ~np.isfinite(block.max(axis=1))
        sums, wrong = _row_sums(block)
        off = np.abs(sums - 1)
        offends = ~(off <= ROW_SUM_TOLERANCE[self.scores.dtype.name])
        if self.scores.dtype == np.float32 and offends.any():
            offends = ~(off <= row_tolerance(self.scores))
        if wrong:
            offends |= ~(block >= 0).all(axis=1)
        return offends


def _row_sums(block: Matrix) -> tuple[Column, bool]:
    """Sums of rows, and whether any entry is negative or NaN."""
    ready = block.flags.c_contiguous and block.flags.aligned
    if not engines.wanted(plain=ready and block.dtype in (np.float32, np.float64)):
        return block.sum(axis=1, dtype=np.float64), not block.min() >= 0
    sums = np.empty(len(block))
    return sums, compiled.loops.add_up(block.shape[1], block, sums)


def inside(share: float, n: float) -> float:
    """A share of n rows, as if half a row more had gone each way if it is 0 or 1.

    >>> inside(1.0, 4), inside(0.0, 4), inside(0.25, 4)
    (0.9, 0.1, 0.25)
    """
    return share if 0 < share < 1 else (share * n + 0.5) / (n + 1)


def softmax(z: Matrix) -> Matrix:
    """Turn rows of logits into probabilities, in place.

    By hand, for the sums are double precision and a saved method is applied without SciPy.

    >>> softmax(np.array([[0.0, 0.0], [1e4, 0.0]])).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    z -= z.max(axis=1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=1, keepdims=True, dtype=np.float64).astype(z.dtype)
    return z
