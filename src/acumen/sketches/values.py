"""Distinct confidences with their sums, as long as there are few of them.

Up to `MOST_VALUES` every distinct confidence is kept, so ties, ranks and quantiles are
those of the rows. Rows wait until there are enough of them to be worth merging.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.bregman import Divergence
from acumen.columns import Columns
from acumen.sums import LOG_ODDS_REACH, PART, times

MOST_VALUES = 1 << 17
"""Distinct confidences up to which every one is kept."""

FIELDS = ("weight", "hit", "hit2", "z", "finite_z")
"""Sums kept of each confidence, before the loss of each divergence."""

Table = NDArray[np.float64]
"""The confidence in the first row, its sums below; one column per entry."""


class Values:
    """Additive sums of rows by distinct confidence; `full` once there are too many."""

    def __init__(self, divergences: Mapping[str, Divergence]) -> None:
        self.divergences = divergences
        self.table: Table = np.empty((1 + len(FIELDS) + len(divergences), 0))
        self.waiting: list[Table] = []

    @property
    def full(self) -> bool:
        """Whether there are more distinct confidences than are kept."""
        return self.table.shape[1] > MOST_VALUES

    def add(self, columns: Columns) -> None:
        """Add rows."""
        for start in range(0, len(columns), PART):
            if self.full:
                return
            self.waiting.append(
                self._table_of(columns.take(slice(start, start + PART)))
            )
            if sum(part.shape[1] for part in self.waiting) >= PART:
                self.table, self.waiting = self.settled().table, []

    def settled(self) -> Values:
        """The same with nothing waiting; a copy, so that looking changes no bit."""
        found = Values(self.divergences)
        found.table = _merged([self.table, *self.waiting])
        return found

    def __add__(self, other: Values) -> Values:
        both = Values(self.divergences)
        both.table = _merged([self.table, *self.waiting, other.table, *other.waiting])
        return both

    def __getitem__(self, name: str) -> Column:
        """The confidences (``"h"``), or the sums of that name, of the table."""
        losses = [f"{divergence}_loss" for divergence in self.divergences]
        return self.table[("h", *FIELDS, *losses).index(name)]

    def _table_of(self, columns: Columns) -> Table:
        w, a, z = columns.weight, columns.hit, columns.log_odds
        cut = np.clip(z, -LOG_ODDS_REACH, LOG_ODDS_REACH)
        losses = [columns.loss(d) for d in self.divergences.values()]
        finite = [np.where(np.isfinite(x), x, 0.0) for x in (z, *losses)]
        ones = np.ones_like(a)
        sums = [times(w, x) for x in (ones, a, a * a, cut, *finite)]
        return np.stack([np.abs(columns.confidence), *sums])  # -0.0 is 0


def _merged(parts: list[Table]) -> Table:
    """Entries of equal confidence put together, in increasing order."""
    table = np.concatenate(parts, axis=1)
    if not table.shape[1]:
        return table
    table = table[:, np.argsort(table[0], kind="stable")]
    first = np.flatnonzero(np.diff(table[0], prepend=-1.0))
    return np.vstack([table[:1, first], np.add.reduceat(table[1:], first, axis=1)])
