"""The numba twin of `Cells.update`: every sum of a row added in one go."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.columns import Columns
from acumen.compiled.math_numba import exact, kernel
from acumen.grid import CELLS, ORDER

FLUSH = 1 << 18
"""Rows after which partial sums join the total: sums of sums have less round-off."""


class Block:
    """Partial sums of rows by cell, to be added to the table of a sketch."""

    def __init__(
        self, table: NDArray[np.float64], low: Column, high: Column, reach: float
    ) -> None:
        self.table, self.low, self.high, self.reach = table, low, high, reach
        self._block = np.zeros_like(table)
        self._rows = 0

    def add(
        self,
        cell: NDArray[np.intp],
        columns: Columns,
        values: list[Column],
        lost: list[Column],
    ) -> None:
        """Add rows, given the number of their cell.

        `values` are columns whose moments are summed, weights included: hit, then loss
        and slope of each divergence; `lost` is 1 where a loss is infinite.
        """
        h, rest = columns.confidence, (np.stack(values), np.stack(lost), columns.weight)
        rows = cell, h, columns.hit, columns.log_odds, *rest, self.reach
        _add_rows(self._block, self.low, self.high, *rows)
        self._rows += len(h)
        if self._rows >= FLUSH:
            self.flush()

    def flush(self) -> None:
        """Join the total."""
        self.table += self._block
        self._block[:] = 0.0
        self._rows = 0


@kernel
def _add_rows(table, low, high, cell, h, hit, log_odds, values, lost, weight, reach):
    columns = 1 + len(values)
    for i in range(len(h)):
        sums = table[cell[i]]
        w = 1.0 if weight is None else weight[i]
        t = _place(h[i])
        power = w
        for j in range(ORDER):
            sums[j] += power
            power *= t
        for c in range(len(values)):
            power = values[c, i]
            for j in range(ORDER):
                sums[(c + 1) * ORDER + j] += power
                power *= t
        a, z = hit[i], log_odds[i]
        r = a - h[i]
        at = columns * ORDER
        sums[at] += w * (a * a)
        sums[at + 1] += w * r
        sums[at + 2] += w * (r * r)
        sums[at + 3] += w * (r * r * r)
        sums[at + 4] += w * (r * r * (r * r))
        sums[at + 5] += w * h[i]
        sums[at + 6] += w * min(max(z, -reach), reach)
        if np.isfinite(z):
            sums[at + 7] += w * z
        for d in range(len(lost)):
            sums[at + 8 + d] += w * lost[d, i]
        low[cell[i]] = min(low[cell[i]], h[i])
        high[cell[i]] = max(high[cell[i]], h[i])


@exact
def _place(h):
    """As `sketches.cells.place_in_cell`."""
    cell = int(np.ceil(h * CELLS)) - 1
    cell -= h <= cell / CELLS
    cell += h > (cell + 1) / CELLS
    return h * CELLS - max(cell, 0) - 0.5
