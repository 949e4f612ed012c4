"""Rows in memory, summed by cell and hit with numba: the query of engines, without one.

A sketch adds rows in general: soft labels, weights, groups, distinct confidences. What is
left once these are out of the question is quicker as one compiled loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen.engines.grouping import Grouped
from acumen.engines.terms import CERTAIN_NO, CERTAIN_YES
from acumen.grid import ORDER
from acumen.predictions import Predictions
from acumen.sketches.cells import STEPS
from acumen.sketches.contents import Kind
from acumen.sketches.state import CLASS_BINS, MOST_CLASS_BINS

FLUSH = 1 << 24
"""Rows after which partial sums join the total: sums of sums have less round-off."""


def _powers(name: str, first: int = 0) -> list[str]:
    return [f"{name}_{j}" for j in range(first, ORDER)]


_ALWAYS = [*_powers("t"), f"t_{ORDER}"]
WITH_BRIER = [*_ALWAYS, "brier_square", "z_0", *_powers("brier")]
WITH_LOG = [*_ALWAYS, "log_square", "z_0", *_powers("log"), "t_6", *_powers("z", 1)]
OF_TOP = [
    *WITH_BRIER,
    *_powers("log"),
    "log_square",
    "log_infinite",
    "unit_0",
    "certain",
    "z_cut",
    *_powers("z", 1),
]
"""Names of the sums in the order of the compiled loops."""


class Tally:
    """Sums of unweighted rows that are hits or misses, all of one kind.

    `names` is `WITH_BRIER` or `WITH_LOG` for pairs with and without Brier scores, or
    `OF_TOP`; `classes` is the number of classes that may be predicted.
    """

    def __init__(self, names: list[str], classes: int = 0) -> None:
        from acumen.compiled import tally_numba

        self._compiled, cells = tally_numba, 2 * (tally_numba.ABOVE + 1)
        width = -(-(len(names) + 2) // 8) * 8  # whole cache lines
        self._table, self._part = np.zeros((2, cells, width))
        for table in (self._table, self._part):
            table[:, -2:] = np.inf, -np.inf
        self._within = np.zeros((classes, CLASS_BINS)) if classes else None
        self._names, self._new = names, 0

    def add_pairs(
        self, h: NDArray[Any], hit: NDArray[Any], loss: NDArray[Any] | None
    ) -> bool:
        """Add pairs if all are hits or misses and follow the rules; say whether."""
        rows = [x if x is None else _ready(x) for x in (h, hit, loss)]
        if any(x is not None and x.dtype.kind not in "fiu" for x in rows):
            return False
        if self._compiled.count_others(*rows):
            return False
        self._compiled.add_pairs(self._part, *rows)
        self._count(len(h))
        return True

    def add_probs(self, predictions: Predictions) -> bool:
        """Add top labels of rows of probabilities; say whether all follow the rules."""
        assert self._within is not None
        fine = self._compiled.add_predictions(self._part, self._within, predictions)
        self._count(len(predictions.scores))
        return bool(fine)

    def _count(self, rows: int) -> None:
        self._new += rows
        if self._new >= FLUSH:
            self._flush()

    def _flush(self) -> None:
        table, part = self._table, self._part
        table[:, :-2] += part[:, :-2]
        np.minimum(table[:, -2], part[:, -2], out=table[:, -2])
        np.maximum(table[:, -1], part[:, -1], out=table[:, -1])
        part[:, :-2] = 0.0
        self._new = 0

    def grouped(self) -> Grouped:
        """The sums so far, as an engine would give them."""
        self._flush()
        some = np.flatnonzero(self._table[:, 0])
        cell, hit = np.divmod(some, 2)
        ends = {0: CERTAIN_NO, STEPS - 1: CERTAIN_YES, STEPS: 0, STEPS + 1: STEPS - 1}
        cells = cell.copy()
        for place, name in ends.items():
            cells[cell == place] = name
        *columns, low, high = self._table[some].T
        sums = dict(zip(self._names, columns, strict=False))
        sums |= {"rows": sums["t_0"], "low": low, "high": high}
        hits, nobody = hit.astype(float), np.zeros_like(cell)
        return Grouped(cells, hits, nobody, None, sums, self._within)


def can_tally(kind: Kind) -> bool:
    """Whether rows of this kind are top labels, of no more classes than are kept."""
    few = len(kind.classes) * CLASS_BINS <= MOST_CLASS_BINS
    return kind.target == "top-label" and few


def _ready(column: NDArray[Any]) -> NDArray[Any]:
    """Booleans as bytes, and no array writeable: fewer types to compile for."""
    found = column.view(np.int8) if column.dtype == bool else column.view()
    found.flags.writeable = False
    return found
