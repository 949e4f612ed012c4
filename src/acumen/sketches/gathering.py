"""Rows gathered by confidence as they pass by: ties, ranks and bins without the rows.

Up to `MOST_VALUES` distinct confidences are kept, each with its sums: nothing is lost.
Beyond that they share cells, so narrow in probability and in odds that ranks hardly
notice, and none of which straddles 1/2 or an edge of a bin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.columns import Columns
from acumen.estimators.bins import count_bins
from acumen.settings import Settings
from acumen.sums import LOG_ODDS_REACH, PART

MOST_VALUES = 1 << 17
"""Distinct confidences up to which every one is kept."""

DIGITS, DEPTH = 11, 53
"""Cells divide each of 53 halvings of the distance to 0 or 1 into 2**11 parts."""

Keys = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Sums of rows by key, in increasing order; `low`..`high` are their confidences."""

    keys: Keys
    low: Column
    high: Column
    sums: NDArray[np.float64]

    @classmethod
    def of(
        cls, keys: Keys, low: Column, high: Column, sums: NDArray[np.float64]
    ) -> Table:
        """Entries of equal key put together.

        Examples
        --------
        >>> h = np.array([0.3, 0.1, 0.3])
        >>> table = Table.of(np.array([7, 2, 7]), h, h, np.ones((1, 3)))
        >>> table.keys, table.high, table.sums
        (array([2, 7]), array([0.1, 0.3]), array([[1., 2.]]))
        """
        index = np.argsort(keys, kind="stable")
        keys = keys[index]
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        return cls(
            keys[first],
            np.minimum.reduceat(low[index], first),
            np.maximum.reduceat(high[index], first),
            np.add.reduceat(sums[:, index], first, axis=1),
        )

    def __add__(self, other: Table) -> Table:
        return Table.of(
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
            np.concatenate([self.sums, other.sums], axis=1),
        )


class Gathered:
    """Weighted rows that stand for all rows seen.

    `exact` says whether every distinct confidence still has an entry of its own.
    """

    def __init__(self, settings: Settings) -> None:
        count = count_bins(settings.bins, 1)
        self.settings, self.exact = settings, True
        self._inner_edges = np.arange(1, count) / count
        self._table: Table | None = None

    @property
    def bins(self) -> int:
        """Number of equal-width bins."""
        return len(self._inner_edges) + 1

    def bin_of(self, h: Column) -> NDArray[np.intp]:
        """Number of the equal-width bin that holds each confidence."""
        side = "left" if self.settings.closed == "right" else "right"
        return np.searchsorted(self._inner_edges, h, side=side)  # type: ignore[call-overload]

    def add(self, columns: Columns) -> None:
        """Add rows, in parts that need little memory."""
        for start in range(0, len(columns), PART):
            self._add_part(columns.take(slice(start, start + PART)))

    def _add_part(self, columns: Columns) -> None:
        h = np.abs(columns.confidence)  # -0.0 is 0
        new = Table.of(self._keys(h), h, h, self._values(columns))
        self._table = table = new if self._table is None else self._table + new
        if self.exact and len(table.keys) > MOST_VALUES:
            self.exact = False
            keys = self._keys(table.low)
            self._table = Table.of(keys, table.low, table.high, table.sums)

    def _keys(self, h: Column) -> Keys:
        if self.exact:
            return h.view(np.int64)  # doubles in [0, 1] sort like their bits
        return cell_number(h) + self.bin_of(h)  # both increase: no two cells share one

    def _values(self, columns: Columns) -> NDArray[np.float64]:
        h, a, z = columns.confidence, columns.hit, columns.log_odds
        # What estimates read: the adaptive ones cut log-odds, the others skip infinity.
        if self.settings.adaptive:
            z = np.clip(z, -LOG_ODDS_REACH, LOG_ODDS_REACH)
        losses = [columns.loss(d) for d in self.settings.divergences.values()]
        finite = [np.where(np.isfinite(x), x, 0.0) for x in (z, *losses)]
        values = np.stack([np.ones_like(h), a, a * a, h, *finite])
        return values if columns.weight is None else values * columns.weight

    def columns(self) -> Columns:
        """At most two rows for each entry, of the same weight, hits and squared hits.

        One missed; the other hit, or under soft labels hit in part. Losses are means of
        the finite ones, and the same for both, since nothing tells them apart.
        """
        assert self._table is not None
        low, high, sums = self._table.low, self._table.high, self._table.sums
        weight, hits, hits2, claimed = sums[:4]
        h = np.clip(claimed / weight, low, high)  # round-off must not leave the bin
        yes = np.zeros_like(hits)
        np.divide(hits, hits2, out=yes, where=hits2 > 0)
        yes = np.minimum(hits * yes, weight)
        share = np.minimum(
            np.divide(hits, yes, out=np.zeros_like(hits), where=yes > 0), 1
        )
        z, *losses = (np.tile(x / weight, 2) for x in sums[4:])
        return Columns(
            np.tile(h, 2),
            z,
            np.concatenate([np.zeros_like(share), share]),
            dict(zip(self.settings.divergences, losses, strict=True)),
            np.concatenate([weight - yes, yes]),
        ).without_zero_weights()


def cell_number(h: Column) -> Keys:
    """Number of the cell of each confidence, increasing with it.

    A cell is at most 2**-11 as wide as its distance from 0 or 1; both of these and 1/2
    have cells of their own, that of 0 up to 2**-53.

    Examples
    --------
    >>> cells = cell_number(np.array([0.0, 0.3, 0.30001, 0.301, 0.5, 1.0]))
    >>> np.diff(cells) > 0
    array([ True, False,  True,  True,  True])
    """
    ends = np.array([0.5**DEPTH, 0.5])
    least, middle = (ends.view(np.int64) >> (52 - DIGITS)).tolist()
    # The leading bits of a double are its logarithm, linear between powers of two.
    distance = np.minimum(h, 1 - h).view(np.int64) >> (52 - DIGITS)
    steps = np.maximum(distance - least + 1, 0)
    return np.where(h <= 0.5, steps, 2 * (middle - least + 1) - steps)
