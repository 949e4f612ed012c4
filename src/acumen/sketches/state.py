"""What a sketch keeps of one set of rows, and the rows that stand for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.bregman import Divergence
from acumen.columns import Columns
from acumen.grid import cell_of
from acumen.sketches.cells import Cells
from acumen.sketches.values import Values

CLASS_BINS = 300
"""Bins by which residuals of each predicted class are kept: 10, 15, 20, 25, 30, 50, 60,
75, 100, 150 and 300 bins are whole ones of them."""

MOST_CLASS_BINS = 1 << 20
"""Classes times bins up to which they are kept."""


@dataclass(slots=True, eq=False)
class State:
    """Additive sums: by cell, by distinct confidence if few, by predicted class.

    `values` is None once there were too many distinct confidences, `within` where no
    class is predicted or there are too many.
    """

    cells: Cells
    values: Values | None
    within: NDArray[np.float64] | None = None

    @classmethod
    def empty(cls, divergences: Mapping[str, Divergence], classes: int = 0) -> State:
        """No rows yet; `classes` is the number of classes that may be predicted."""
        within = None
        if 0 < classes * CLASS_BINS <= MOST_CLASS_BINS:
            within = np.zeros((classes, CLASS_BINS))
        return cls(Cells(divergences), Values(divergences), within)

    def add(self, columns: Columns, engine: str = "auto") -> None:
        """Add rows of positive weight."""
        self.cells.update(columns, engine)
        if self.values is not None:
            self.values.add(columns)
            self._forget_if_full()
        if columns.predicted is None:
            self.within = None
        if self.within is not None and columns.predicted is not None:
            place = columns.predicted.astype(np.intp) * CLASS_BINS
            place += cell_of(columns.confidence, CLASS_BINS)
            residual = columns.hit - columns.confidence
            if columns.weight is not None:
                residual *= columns.weight
            count = self.within.size
            self.within += np.bincount(place, residual, count).reshape(
                self.within.shape
            )

    def __add__(self, other: State) -> State:
        values = within = None
        if self.values is not None and other.values is not None:
            values = self.values + other.values
        if self.within is not None and other.within is not None:
            within = self.within + other.within
        both = State(self.cells + other.cells, values, within)
        both._forget_if_full()
        return both

    def _forget_if_full(self) -> None:
        if self.values is not None and self.values.full:
            self.values = None

    @property
    def exact(self) -> bool:
        """Whether every distinct confidence is known."""
        return self.values is not None and not self.values.settled().full

    def columns(self, *, cut: bool) -> Columns:
        """At most two rows for each confidence or cell, with the same sums.

        One missed; the other hit, or under soft labels hit in part. Losses are means of
        the finite ones, and the same for both, since nothing tells them apart. `cut`
        asks for log-odds as the adaptive estimates read them.
        """
        divergences = self.cells.divergences
        found = None if self.values is None else self.values.settled()
        if found is not None and not found.full:
            h = found["h"]
            weight, hits, hits2 = found["weight"], found["hit"], found["hit2"]
            losses = {name: found[f"{name}_loss"] for name in divergences}
            z = found["z" if cut else "finite_z"]
        else:
            cells = self.cells
            some = cells["weight_0"] > 0
            weight, hits, hits2 = (
                cells[x][some] for x in ("weight_0", "hit_0", "hit2")
            )
            # Round-off must not leave the cell.
            h = np.clip(cells["h"][some] / weight, cells.low[some], cells.high[some])
            losses = {name: cells[f"{name}_loss_0"][some] for name in divergences}
            z = cells["z" if cut else "finite_z"][some]
        return _two_rows_each(h, weight, hits, hits2, z, losses)


def _two_rows_each(
    h: Column,
    weight: Column,
    hits: Column,
    hits2: Column,
    z: Column,
    losses: Mapping[str, Column],
) -> Columns:
    yes = np.zeros_like(hits)
    np.divide(hits, hits2, out=yes, where=hits2 > 0)
    yes = np.minimum(hits * yes, weight)
    share = np.minimum(np.divide(hits, yes, out=np.zeros_like(hits), where=yes > 0), 1)
    return Columns(
        np.tile(h, 2),
        np.tile(z / weight, 2),
        np.concatenate([np.zeros_like(share), share]),
        {name: np.tile(loss / weight, 2) for name, loss in losses.items()},
        np.concatenate([weight - yes, yes]),
    ).without_zero_weights()
