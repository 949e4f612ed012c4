"""Sums by cluster: what intervals need where rows depend on each other, mergeable.

A cluster is known by a number (`hash_clusters`), so parts of the rows that were read
elsewhere meet again. While there are few clusters each is kept; of more, 128 groups are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibrant._inputs.arrays import Index, Table
from calibrant._inputs.divergences import Divergence
from calibrant._inputs.predictions import MOST_CLUSTER_GROUPS, groups_of_clusters
from calibrant._rows.columns import Columns, log_odds_of
from calibrant._sketch import grid

Hashes = NDArray[np.uint64]

FIELDS = ("weight", "hit", "residual", "h", "w2")
"""Sums of each cluster in each log-odds cell, before the loss of each divergence."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterSums:
    """Sums (`FIELDS`, then losses) of each pair of a cluster and a log-odds cell.

    Pairs are in order. `cluster` is the number of a cluster, or once there were more than
    128 of them and they are `folded` that of their group.
    """

    cluster: Hashes
    cell: Index
    sums: Table
    folded: bool = False

    @classmethod
    def none(cls, divergences: Mapping[str, Divergence]) -> ClusterSums:
        """No rows yet."""
        empty = np.empty((len(FIELDS) + len(divergences), 0))
        return cls(np.empty(0, np.uint64), np.empty(0, np.intp), empty)

    def plus(
        self, clusters: Hashes, columns: Columns, divergences: Mapping[str, Divergence]
    ) -> ClusterSums:
        """With more rows, of these clusters."""
        h, a, w = columns.confidence, columns.hit, columns.weights
        losses = (columns.loss(divergence) for divergence in divergences.values())
        finite = (np.where(np.isfinite(x), x, 0.0) for x in losses)
        terms = w, w * a, w * (a - h), w * h, columns.squares, *(w * x for x in finite)
        if self.folded:
            clusters = _group_of(clusters)
        rows = clusters, cell_of_log_odds(h), np.stack(terms)
        return self + _gathered(*rows, folded=self.folded)

    def __add__(self, other: ClusterSums) -> ClusterSums:
        one, two = self, other
        if one.folded or two.folded:
            one, two = one.fold(), two.fold()
        both = _gathered(
            np.concatenate([one.cluster, two.cluster]),
            np.concatenate([one.cell, two.cell]),
            np.concatenate([one.sums, two.sums], axis=1),
            folded=one.folded,
        )
        return both.fold() if both.count > MOST_CLUSTER_GROUPS else both

    def fold(self) -> ClusterSums:
        """Groups in place of clusters."""
        if self.folded:
            return self
        return _gathered(_group_of(self.cluster), self.cell, self.sums, folded=True)

    def times(self, factor: float) -> ClusterSums:
        """Of the same rows with all weights multiplied."""
        powers = np.where(np.arange(len(self.sums)) == FIELDS.index("w2"), 2, 1)
        return replace(self, sums=self.sums * factor ** powers[:, None])

    @property
    def count(self) -> int:
        """Number of clusters, or of groups if there are more."""
        return len(np.unique(self.cluster))

    @property
    def numbers(self) -> Index:
        """The clusters of the pairs, numbered from 0 as those of rows in hand."""
        found, number = np.unique(self.cluster, return_inverse=True)
        return number if self.folded else groups_of_clusters(found)[number]


def cell_of_log_odds(h: NDArray[np.float64]) -> Index:
    """Number of the log-odds cell of each confidence, from 0 to 1999."""
    cell = grid.log_odds_cell(log_odds_of(h)) - 1
    return np.clip(cell, 0, grid.LOG_ODDS_CELLS - 1)


def _gathered(
    cluster: Hashes, cell: Index, sums: Table, *, folded: bool = False
) -> ClusterSums:
    """Sums with equal pairs put together, in order."""
    if folded:
        return _gathered_groups(cluster, cell, sums)
    order = np.lexsort((cell, cluster))
    cluster, cell = cluster[order], cell[order]
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(cell) != 0) | (cluster[1:] != cluster[:-1])
    first = np.flatnonzero(new)
    sums = np.add.reduceat(sums[:, order], first, axis=1)
    return ClusterSums(cluster[first], cell[first], sums)


def _gathered_groups(group: Hashes, cell: Index, sums: Table) -> ClusterSums:
    """The same of groups, which are few enough to have a place for every pair."""
    size = MOST_CLUSTER_GROUPS * grid.LOG_ODDS_CELLS
    place = group.astype(np.intp) * grid.LOG_ODDS_CELLS + cell
    some = np.flatnonzero(np.bincount(place, minlength=size))
    table = np.array([np.bincount(place, row, size)[some] for row in sums], float)
    found, cells = np.divmod(some, grid.LOG_ODDS_CELLS)
    return ClusterSums(found.astype(np.uint64), cells, table, folded=True)


def _group_of(clusters: Hashes) -> Hashes:
    return clusters % np.uint64(MOST_CLUSTER_GROUPS)
