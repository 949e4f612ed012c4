"""Rows as neighbours of each other: their gains, at a width that other rows chose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from acumen.canonical.gains import Gain, Gains
from acumen.canonical.neighbourhoods import sums_around
from acumen.canonical.start import Start
from acumen.canonical.vectors import Vectors

Index = NDArray[np.intp]

SQUARES = tuple(0.5 / 2**j for j in range(9))
"""Squares of the widths tried, each half the one before: from 0.71 to 0.044."""

CHOOSING_ROWS = 1000
"""Rows of each half at which widths are compared, with all rows as neighbours."""

LEAST_NEIGHBOURS = 1.0
"""A width is too narrow if half the rows have less kernel weight of others."""

BLOCK = 256


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Rows, where their recalibration starts, and what it gains."""

    vectors: Vectors
    start: Start
    gain: Gain

    def cross_fitted_gains(
        self, rng: np.random.Generator
    ) -> tuple[Gains, tuple[float, float]]:
        """Gains of all rows, each half at the width the other chose; and the widths."""
        n = len(self.vectors)
        order = rng.permutation(n)
        first, second = order[: n // 2], order[n // 2 :]
        squares = self.choose_square(second), self.choose_square(first)
        parts = [
            self.gains(half, [square])[0]
            for half, square in zip((first, second), squares, strict=True)
        ]
        back = np.argsort(order)
        joined = Gains(*(np.concatenate(x)[back] for x in zip(*parts, strict=True)))
        return joined, (sqrt(squares[0]), sqrt(squares[1]))

    def choose_square(self, rows: Index) -> float:
        """The squared width of the greatest gain on some of these rows, left out."""
        rows = rows[:CHOOSING_ROWS]
        chosen, most = SQUARES[0], -inf
        if not rows.size:
            return chosen
        for square, found in zip(SQUARES, self.gains(rows, SQUARES), strict=True):
            total = float(self.vectors.weight[rows] @ found.held_out)
            crowded = np.median(found.neighbours) >= LEAST_NEIGHBOURS
            if crowded and total > most:
                chosen, most = square, total
        return chosen

    def gains(self, rows: Index, squares: Sequence[float]) -> list[Gains]:
        """Gains of some rows at widths whose squares halve from one to the next."""
        every, root = self.vectors, np.exp(0.5 * self.vectors.log_probs)
        q, parts = np.exp(self.start.log_probs), []
        for first in range(0, max(len(rows), 1), BLOCK):
            at = rows[first : first + BLOCK]
            near = sums_around(
                root[at], root, every.labels, q, every.weight, squares[0]
            )
            known = every.take(at), self.start.take(at)
            parts.append([self.gain(*known, x) for x in islice(near, len(squares))])
        return [
            Gains(*(np.concatenate(x) for x in zip(*one, strict=True)))
            for one in zip(*parts, strict=True)
        ]
