"""Rows of scores, checked block by block while they are used.

A recalibrator sees the matrix only through blocks that fit in cache. A block is checked
when it is read, so checking costs no pass of its own and every path is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column, Matrix
from acumen.blocks import ROW_SUM_TOLERANCE
from acumen.compiled.threads import over_ranges
from acumen.predictions import Predictions
from acumen.reduction import BLOCK_BYTES, raise_for_offenders

Kind = Literal["logits", "probs"]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """An n x k matrix of scores, with labels and weights when fitting.

    `labels` are column numbers, or None when there is nothing to fit. No row has
    weight 0.
    """

    scores: Matrix
    kind: Kind
    labels: NDArray[np.intp] | None = None
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
    def y(self) -> NDArray[np.intp]:
        """Labels of rows that have them."""
        assert self.labels is not None
        return self.labels

    @property
    def total_weight(self) -> float:
        """Number of rows, or the sum of their weights."""
        return float(len(self) if self.weight is None else self.weight.sum())

    def weights(self, part: slice) -> Column | float:
        """Weights of some rows; 1 if all rows count the same."""
        return 1.0 if self.weight is None else self.weight[part]

    def parts(self, start: int = 0, stop: int | None = None) -> Iterator[slice]:
        """Slices of consecutive rows that fit in cache."""
        stop = len(self) if stop is None else stop
        rows = max(1, BLOCK_BYTES // (self.k * self.work_type.itemsize))
        for first in range(start, stop, rows):
            yield slice(first, min(first + rows, stop))

    def block(self, part: slice) -> Matrix:
        """Scores of some rows in the working precision, checked. Do not write to it."""
        block = np.ascontiguousarray(self.scores[part], dtype=self.work_type)
        if _offends(block, self.kind, self._tolerance).any():
            self.check()
        return block

    def probabilities(self, part: slice) -> Matrix:
        """Probabilities of some rows, in an array of their own."""
        block = self.block(part)
        if self.kind == "probs":
            return np.array(block)
        return softmax(np.array(block))

    def log_probabilities(self, part: slice) -> Column:
        """Logarithms of the probabilities of some rows, in double precision."""
        block = self.block(part).astype(np.float64)
        if self.kind == "probs":
            with np.errstate(divide="ignore"):
                return np.log(block, out=block)
        block -= block.max(axis=1, keepdims=True)
        block -= np.log(np.exp(block).sum(axis=1, keepdims=True))
        return block

    def each(self, work: Callable[[slice], None]) -> None:
        """Call ``work(part)`` for blocks of all rows, on every core."""

        def run(start: int, stop: int) -> None:
            for part in self.parts(start, stop):
                work(part)

        over_ranges(run, len(self), self.scores.size)

    def add_up(self, work: Callable[[slice], Any]) -> Any:
        """Sum of ``work(part)`` over blocks of all rows, on every core."""

        def run(start: int, stop: int) -> Any:
            return sum(work(part) for part in self.parts(start, stop))

        return sum(over_ranges(run, len(self), self.scores.size))

    def select(self, chosen: Any) -> Rows:
        """Some of the rows."""
        labels = None if self.labels is None else self.labels[chosen]
        weight = None if self.weight is None else self.weight[chosen]
        return Rows(self.scores[chosen], self.kind, labels, weight)

    def check(self) -> None:
        """Raise one error for all rows that break a rule, if there are any."""
        bad = [
            part.start
            + np.flatnonzero(_offends(self.scores[part], self.kind, self._tolerance))
            for part in self.parts()
        ]
        raise_for_offenders(
            Predictions(
                self.scores,
                self.kind,
                np.zeros(len(self), np.intp),
                None,
                "top-label",
                tuple(range(self.k)),
            ),
            np.concatenate(bad),
        )

    @property
    def _tolerance(self) -> float:
        return ROW_SUM_TOLERANCE[self.scores.dtype.name]


def _offends(block: Matrix, kind: Kind, tolerance: float) -> NDArray[np.bool_]:
    """Which rows break a rule."""
    if kind == "logits":
        return ~np.isfinite(block.max(axis=1))
    off = np.abs(block.sum(axis=1, dtype=np.float64) - 1)
    offends = ~(off <= tolerance)
    if not block.min() >= 0:
        offends |= ~(block >= 0).all(axis=1)
    return offends


def softmax(z: Matrix) -> Matrix:
    """Turn rows of logits into probabilities, in place.

    Examples
    --------
    >>> softmax(np.array([[0.0, 0.0], [1e4, 0.0]])).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    z -= z.max(axis=1, keepdims=True)
    np.exp(z, out=z)
    return normalise(z)


def normalise(p: Matrix) -> Matrix:
    """Divide rows by their sum, in place."""
    p /= p.sum(axis=1, keepdims=True, dtype=np.float64).astype(p.dtype)
    return p
