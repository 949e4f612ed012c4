"""Log-odds of each class against all others, exact where probabilities round to 0 or 1."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from acumen import blocks
from acumen.arrays import Column, Matrix
from acumen.recalibration.rows import Kind, Rows


class Odds(NamedTuple):
    """What the log-odds of any class follow from: one number per row each.

    `best` is the largest entry's column, `top` the entry, `rest` the sum of the others
    (relative to it, for logits), and `log_odds` those of the best class.
    """

    best: NDArray[np.intp]
    top: Column
    rest: Column
    log_odds: Column

    def part(self, part: slice) -> Odds:
        """The same of some rows."""
        return Odds(
            self.best[part], self.top[part], self.rest[part], self.log_odds[part]
        )


def fitted_columns(k: int) -> NDArray[np.intp]:
    """Classes with a map of their own: of two, class 0 is what class 1 is not."""
    return np.arange(1, 2) if k == 2 else np.arange(k)


def read_odds(rows: Rows, part: slice) -> Odds:
    """Read some rows."""
    block = rows.block(part).astype(np.float64)
    others = np.empty_like(block)
    with np.errstate(all="ignore"):  # rows.block has checked; log 0 is meant
        if rows.kind == "logits":
            sums = blocks.sums_of_logits(block, others)
        else:
            sums = blocks.sums_of_probs(block, others, inf)
    return Odds(sums.best, sums.top, sums.rest, sums.log_odds)


def log_odds(
    scores: Matrix, kind: Kind, odds: Odds, columns: NDArray[np.intp]
) -> NDArray[np.float64]:
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


def log_sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithm of 1 / (1 + e^-x).

    Examples
    --------
    >>> log_sigmoid(np.array([-1000.0, 0.0, 1000.0])).round(4).tolist()
    [-1000.0, -0.6931, 0.0]
    """
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))
