"""Sums by cell: what a sketch keeps of rows, and how they are added.

A cell is where a cell of the probability grid (1/9600 wide) meets one of the log-odds
grid (0.02 wide), so that sums over cells are sums over either grid. Exactly 0 and 1
have log-odds cells of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.bregman import Divergence
from acumen.columns import Columns, sigmoid
from acumen.compiled import fast
from acumen.grid import CELLS, CHUNK, ORDER, cell_of
from acumen.sums import (
    CELL_SUMS,
    LOG_ODDS_CELLS,
    LOG_ODDS_REACH,
    Sums,
    Totals,
    certain_weights,
    terms_of,
    times,
)

if TYPE_CHECKING:
    from acumen.compiled.sketch_numba import Block

Table = NDArray[np.float64]
Index = NDArray[np.intp]

STEPS = CELLS + LOG_ODDS_CELLS + 1
"""Number of cells: one edge after the other is crossed as h goes from 0 to 1."""

MOMENTS = ("weight", "hit")
OF_ROWS = ("hit2", "r1", "r2", "r3", "r4", "h", "z", "finite_z")
"""Sums of a^2, powers of the residual a - h, h, and log-odds: cut, or 0 if infinite."""

FEW = 4096
"""Rows up to which only the cells they fall in are touched."""


def fields_of(divergences: Mapping[str, Divergence]) -> tuple[str, ...]:
    """Names of the sums of a cell; ``x_j`` is the sum of x t^j, t the place in the cell.

    Examples
    --------
    >>> from acumen.bregman import BRIER
    >>> fields_of({"brier": BRIER})[9:13]
    ('hit_4', 'brier_loss_0', 'brier_loss_1', 'brier_loss_2')
    """
    parts = [f"{name}_{part}" for name in divergences for part in ("loss", "slope")]
    moments = [f"{x}_{j}" for x in (*MOMENTS, *parts) for j in range(ORDER)]
    return (*moments, *OF_ROWS, *(f"{name}_infinite" for name in divergences))


@dataclass(slots=True, eq=False)
class Cells:
    """Additive sums of rows by cell, whatever their number.

    `table` has a row of sums (`fields_of`) per cell; `low` and `high` are the least and
    the largest confidence in it.
    """

    divergences: Mapping[str, Divergence]
    rows: int = 0
    certain_no: float = 0.0
    certain_yes: float = 0.0
    table: Table = field(init=False)
    low: Column = field(init=False)
    high: Column = field(init=False)
    totals: dict[str, Totals] = field(init=False)

    def __post_init__(self) -> None:
        self.table = np.zeros((STEPS, len(self.fields)))
        self.low = np.full(STEPS, np.inf)
        self.high = np.full(STEPS, -np.inf)
        self.totals = {name: Totals() for name in self.divergences}

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the sums."""
        return fields_of(self.divergences)

    def __getitem__(self, name: str) -> Column:
        """The sums of that name, by cell."""
        return self.table[:, self.fields.index(name)]

    def update(self, columns: Columns, engine: str = "auto") -> None:
        """Add rows, in parts that stay in cache."""
        block = None
        if fast.wanted_for_rows(engine, len(columns)):
            ends = self.low, self.high
            block = fast.block_of_cells(self.table, *ends, LOG_ODDS_REACH)
        for start in range(0, len(columns), CHUNK):
            part = columns.take(slice(start, start + CHUNK))
            rows = part.with_log_odds()
            own = rows.log_odds if part.exact_log_odds is None else None
            self._add_part(rows, cell_number(rows.confidence, own), block)
        if block is not None:
            block.flush()

    def _add_part(self, columns: Columns, cell: Index, block: Block | None) -> None:
        self.rows += len(columns)
        no, yes = certain_weights(columns)
        self.certain_no += no
        self.certain_yes += yes
        values, lost = [times(columns.weight, columns.hit)], list[Column]()
        for name, divergence in self.divergences.items():
            terms = terms_of(columns, divergence)
            self.totals[name] += terms.totals
            values += [times(columns.weight, x) for x in (terms.loss, terms.slope)]
            lost.append(_as_numbers(terms.lost, len(columns)))
        if block is not None:
            block.add(cell, columns, values, lost)
        else:
            self._add_rows(cell, columns, _contributions(columns, values, lost))

    def _add_rows(
        self, cell: Index, columns: Columns, contributions: list[Column | None]
    ) -> None:
        touched: Index | slice = slice(None)
        place, count = cell, STEPS
        if len(cell) <= FEW:
            touched, place = np.unique(cell, return_inverse=True)
            count = len(touched)
        sums = [np.bincount(place, x, count) for x in contributions]
        self.table[touched] += np.transpose(sums)
        np.minimum.at(self.low, cell, columns.confidence)
        np.maximum.at(self.high, cell, columns.confidence)

    def __add__(self, other: Cells) -> Cells:
        both = Cells(self.divergences)
        both.rows = self.rows + other.rows
        both.certain_no = self.certain_no + other.certain_no
        both.certain_yes = self.certain_yes + other.certain_yes
        both.table = self.table + other.table
        both.low = np.minimum(self.low, other.low)
        both.high = np.maximum(self.high, other.high)
        both.totals = {n: t + other.totals[n] for n, t in self.totals.items()}
        return both

    def sums(self) -> Sums:
        """The same sums on either grid, for the estimators."""
        found = Sums(self.divergences)
        p, z = grid_cells()
        columns = len(MOMENTS) + 2 * len(self.divergences)
        moments = [np.bincount(p, x, CELLS) for x in self.table.T[: columns * ORDER]]
        found.moments = np.reshape(moments, (columns, ORDER, CELLS))
        losses = [f"{name}_loss_0" for name in self.divergences]
        names = ["weight_0", "hit_0", *OF_ROWS[: len(CELL_SUMS) - 2], *losses]
        found.log_odds_sums = np.array(
            [np.bincount(z, self[name], LOG_ODDS_CELLS) for name in names]
        )
        lost = [f"{name}_infinite" for name in self.divergences]
        found.infinite = np.array([np.bincount(p, self[x], CELLS) for x in lost])
        found.rows, found.weight = self.rows, float(self["weight_0"].sum())
        found.certain_no, found.certain_yes = self.certain_no, self.certain_yes
        found.totals = dict(self.totals)
        return found


def _contributions(
    columns: Columns, values: list[Column], lost: list[Column]
) -> list[Column | None]:
    """What each row adds to each field; None stands for ones."""
    w, h, a, z = columns.weight, columns.confidence, columns.hit, columns.log_odds
    t = place_in_cell(h)
    found: list[Column | None] = []
    for value in (w, *values):
        power: Column | None = value
        for _ in range(ORDER):
            found.append(power)
            power = t if power is None else power * t
    r = a - h
    cut = np.clip(z, -LOG_ODDS_REACH, LOG_ODDS_REACH)
    finite = np.where(np.isfinite(z), z, 0.0)
    of_rows = (a * a, r, r * r, r * r * r, r * r * (r * r), h, cut, finite)
    return found + [times(w, x) for x in (*of_rows, *lost)]


def _as_numbers(mask: NDArray[np.bool_] | None, rows: int) -> Column:
    return np.zeros(rows) if mask is None else mask.astype(np.float64)


def place_in_cell(h: Column) -> Column:
    """Where in its probability cell a confidence lies, from -1/2 to 1/2."""
    return h * CELLS - cell_of(h, CELLS) - 0.5


def cell_number(h: Column, log_odds: Column | None = None) -> Index:
    """Number of the cell of each confidence, increasing with it.

    `log_odds` are those of h itself, if they are at hand.

    Examples
    --------
    >>> np.diff(cell_number(np.array([0.0, 1e-9, 0.30002, 0.30004, 0.31, 0.5, 1.0]))) > 0
    array([ True,  True, False,  True,  True,  True])
    """
    if log_odds is None:
        with np.errstate(divide="ignore"):
            log_odds = np.log(h) - np.log1p(-h)
    return cell_of(h, CELLS) + log_odds_cell(log_odds)


def log_odds_cell(z: Column) -> Index:
    """Number of the log-odds cell: 0 and 2001 for certainty, 1 to 2000 in between."""
    scaled = (np.clip(z, -LOG_ODDS_REACH, LOG_ODDS_REACH) + LOG_ODDS_REACH) * (
        LOG_ODDS_CELLS / (2 * LOG_ODDS_REACH)
    )
    cell = np.minimum(scaled.astype(np.intp), LOG_ODDS_CELLS - 1) + 1
    cell[np.isneginf(z)] = 0
    cell[np.isposinf(z)] = LOG_ODDS_CELLS + 1
    return cell


@cache
def grid_cells() -> tuple[Index, Index]:
    """The probability cell and the log-odds cell in which each cell lies."""
    edges = np.linspace(-LOG_ODDS_REACH, LOG_ODDS_REACH, LOG_ODDS_CELLS + 1)[1:-1]
    # Probability cell at which each of the 2,002 log-odds cells starts.
    starts = np.concatenate([[0, 0], cell_of(sigmoid(edges), CELLS), [CELLS - 1]])
    p = np.empty(STEPS, np.intp)
    for z, start in enumerate(starts):
        p[start + z :] = np.arange(start, STEPS - z)
    z_cell = np.arange(STEPS) - p - 1
    return np.minimum(p, CELLS - 1), np.clip(z_cell, 0, LOG_ODDS_CELLS - 1)
