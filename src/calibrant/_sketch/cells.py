"""Cells: the additive sums that replace the rows, whatever their number."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant._inputs.arrays import Column, sigmoid
from calibrant._inputs.divergences import Divergence
from calibrant._inputs.predictions import MOST_GROUPS, Predictions
from calibrant._rows import engines
from calibrant._rows.columns import Columns
from calibrant._rows.reduce import each_class
from calibrant._sketch.grid import CELLS, CHUNK, ORDER, Moments, add_moments, cell_of

if TYPE_CHECKING:
    from calibrant._sketch.numba_cells import Block, CellSums


def cell_sums(
    moments: Moments, log_odds_sums: NDArray[np.float64], reach: float
) -> CellSums:
    """Return what adds up rows on both grids of a sketch with numba."""
    from calibrant._sketch import numba_cells

    return numba_cells.CellSums(moments, log_odds_sums, reach)


def block_of_cells(
    table: NDArray[np.float64], low: Column, high: Column, reach: float
) -> Block:
    """Return what adds rows to the cells of a sketch with numba."""
    from calibrant._sketch import numba_cells

    return numba_cells.Block(table, low, high, reach)


# ----------------------------------------------------------------------------
# The sketch: sums that replace the rows, about 2.5 MB whatever their number.
#
# Two grids, because confidences live on two scales. The probability grid (`grid`) serves
# the paper's curve at any bandwidth, binned errors and SmoothECE. The log-odds grid
# serves the adaptive estimators, which need resolution where h is near 0 or 1. All of it
# is sums: sketches of shards add up to the sketch of the whole.


LOG_ODDS_CELLS = 2000

LOG_ODDS_REACH = 20.0
"""The log-odds grid covers [-20, 20]; only the coordinate is cut there, no sum is."""

PART = 1 << 17
"""Rows added at a time."""

CELL_SUMS = ("weight", "hit", "hit2", "r1", "r2", "r3", "r4", "h", "z")
"""Sums per log-odds cell: of 1, a, a^2, powers of the residual a - h, h, log-odds."""


@dataclass(slots=True, eq=False)
class Totals:
    """Exact sums over all rows for one divergence.

    `loss` and `loss2` are the full loss and its square over rows where it is finite
    (`Sums.infinite` counts the others). `unit_loss` is the sum of d(a, h),
    `phi_hit` of phi(a), and `tangent` of phi(h) - h phi'(h) over rows where phi'(h)
    is finite.
    """

    loss: float = 0.0
    loss2: float = 0.0
    unit_loss: float = 0.0
    phi_hit: float = 0.0
    tangent: float = 0.0

    def __add__(self, other: Totals) -> Totals:
        mine, theirs = self.as_array(), other.as_array()
        return Totals(*(mine + theirs).tolist())

    def as_array(self) -> NDArray[np.float64]:
        """The sums in the order of the fields."""
        return np.array([getattr(self, name) for name in self.__slots__])


@dataclass(slots=True, eq=False)
class Sums:
    """Additive state from which every kernel estimate follows.

    `moments` has the columns ``weight``, ``hit``, then loss and slope phi'(h) of each
    divergence; `log_odds_sums` has `CELL_SUMS`, then the loss of each divergence.
    `infinite` is the weight of rows of infinite loss, by divergence and cell;
    `certain_no` and `certain_yes` that of rows with h = 0 and h = 1.
    """

    divergences: Mapping[str, Divergence]
    cells: int = CELLS
    rows: int = 0
    weight: float = 0.0
    certain_no: float = 0.0
    certain_yes: float = 0.0
    moments: Moments = field(init=False)
    log_odds_sums: NDArray[np.float64] = field(init=False)
    infinite: NDArray[np.float64] = field(init=False)
    totals: dict[str, Totals] = field(init=False)

    def __post_init__(self) -> None:
        kinds = len(self.divergences)
        self.moments = np.zeros((2 + 2 * kinds, ORDER, self.cells))
        self.log_odds_sums = np.zeros((len(CELL_SUMS) + kinds, LOG_ODDS_CELLS))
        self.infinite = np.zeros((kinds, self.cells))
        self.totals = {name: Totals() for name in self.divergences}

    def update(self, columns: Columns, engine: str = "auto") -> Sums:
        """Add rows, in parts that stay in cache; returns the sketch itself."""
        sums = None
        if engines.wanted_for_rows(engine, len(columns)):
            sums = cell_sums(self.moments, self.log_odds_sums, LOG_ODDS_REACH)
        for start in range(0, len(columns), PART):
            part = columns.take(slice(start, start + PART))
            self._add_part(part.with_log_odds(), sums)
        if sums is not None:
            sums.finish()
        return self

    def _add_part(self, columns: Columns, sums: CellSums | None) -> None:
        w = columns.weight
        self.rows += len(columns)
        self.weight += columns.total_weight
        no, yes = certain_weights(columns)
        self.certain_no += no
        self.certain_yes += yes
        grid: list[Column | None] = [w, times(w, columns.hit)]
        losses = []
        for row, (name, divergence) in enumerate(self.divergences.items()):
            terms = terms_of(columns, divergence)
            self.totals[name] += terms.totals
            if terms.lost is not None:
                cells = cell_of(columns.confidence[terms.lost], self.cells)
                weight = None if w is None else w[terms.lost]
                self.infinite[row] += np.bincount(cells, weight, self.cells)
            losses.append(times(w, terms.loss))
            grid += [losses[-1], times(w, terms.slope)]
        if sums is not None:
            sums.add(columns, grid)
        else:
            add_moments(self.moments, columns.confidence, grid)
            _add_log_odds_sums(self.log_odds_sums, columns, losses)

    def __add__(self, other: Sums) -> Sums:
        if not isinstance(other, Sums):
            return NotImplemented
        mine, theirs = list(self.divergences), list(other.divergences)
        if (mine, self.cells) != (theirs, other.cells):
            raise ValueError(
                "sketches add up only if they have the same divergences and cells: "
                f"{mine}, {self.cells} against {theirs}, {other.cells}."
            )
        both = Sums(self.divergences, self.cells)
        for name in _ADDITIVE:
            setattr(both, name, getattr(self, name) + getattr(other, name))
        both.totals = {n: t + other.totals[n] for n, t in self.totals.items()}
        return both

    def infinite_weight(self, name: str) -> float:
        """Weight of the rows whose loss is infinite."""
        return float(self.infinite[list(self.divergences).index(name)].sum())

    def column(self, name: str, part: str = "loss") -> int:
        """Row of `moments` that holds the loss or slope of a divergence."""
        return 2 + 2 * list(self.divergences).index(name) + (part == "slope")


_ADDITIVE = (
    "rows",
    "weight",
    "certain_no",
    "certain_yes",
    "moments",
    "log_odds_sums",
    "infinite",
)


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """What rows contribute under one divergence.

    `loss` and `slope` phi'(h) are 0 where they are infinite; `lost` says where the loss
    is, and is None if it is nowhere.
    """

    loss: Column
    slope: Column
    totals: Totals
    lost: NDArray[np.bool_] | None


def terms_of(columns: Columns, divergence: Divergence) -> Terms:
    """The loss and the slope of each row, and what they add up to."""
    w, loss = columns.weight, columns.loss(divergence)
    lost = ~np.isfinite(loss)
    if lost.any():
        _refuse_nan(columns, loss)
        loss = np.where(lost, 0.0, loss)
    slope, tangent = _tangent(columns, divergence)
    totals = Totals(
        loss=_sum(w, loss),
        loss2=_sum(w, loss * loss),
        unit_loss=_sum(w, columns.unit_loss(divergence)),
        phi_hit=_sum_of_phi(columns, divergence),
        tangent=_sum(w, tangent),
    )
    return Terms(loss, slope, totals, lost if lost.any() else None)


def certain_weights(columns: Columns) -> tuple[float, float]:
    """Weight of the rows with h = 0 and with h = 1."""
    w, z = columns.weight, columns.log_odds
    return _sum(w, np.isneginf(z)), _sum(w, np.isposinf(z))


def times(weight: Column | None, column: Column) -> Column:
    """The column times the weights, if there are any."""
    return column if weight is None else weight * column


def _sum(weight: Column | None, column: NDArray[Any]) -> float:
    # Not np.dot: on a busy machine its threads wait for each other.
    return float(column.sum() if weight is None else (weight * column).sum())


def _sum_of_phi(columns: Columns, divergence: Divergence) -> float:
    if not columns.hard:
        return _sum(columns.weight, divergence.phi_1d(columns.hit))
    hits = _sum(columns.weight, columns.hit)
    no, yes = divergence.phi_1d(np.array([0.0, 1.0]))
    return float((columns.total_weight - hits) * no + hits * yes)


def _refuse_nan(columns: Columns, loss: Column) -> None:
    if np.isnan(loss).any():
        h = float(columns.confidence[int(np.argmax(np.isnan(loss)))])
        raise ValueError(
            f"a divergence gave NaN as the loss of a row of confidence {h}."
        )


def _tangent(columns: Columns, divergence: Divergence) -> tuple[Column, Column]:
    """phi'(h) and phi(h) - h phi'(h) of each row, 0 where they are infinite."""
    slope, tangent = divergence.tangent(columns.confidence, columns.log_odds)
    finite = np.isfinite(slope)
    if finite.all():
        return slope, tangent
    return np.where(finite, slope, 0.0), np.where(finite, tangent, 0.0)


def _add_log_odds_sums(
    sums: NDArray[np.float64], columns: Columns, losses: list[Column]
) -> None:
    cells = sums.shape[1]
    for start in range(0, len(columns), CHUNK):
        part = slice(start, start + CHUNK)
        h, a = columns.confidence[part], columns.hit[part]
        z = np.clip(columns.log_odds[part], -LOG_ODDS_REACH, LOG_ODDS_REACH)
        cell = ((z + LOG_ODDS_REACH) * (cells / (2 * LOG_ODDS_REACH))).astype(np.intp)
        np.minimum(cell, cells - 1, out=cell)
        w = None if columns.weight is None else columns.weight[part]
        r = a - h
        r2 = r * r
        values = [a, a * a, r, r2, r2 * r, r2 * r2, h, z]
        sums[0] += np.bincount(cell, w, cells)
        for row, value in enumerate(values, start=1):
            sums[row] += np.bincount(cell, times(w, value), cells)
        for row, loss in enumerate(losses, start=1 + len(values)):
            sums[row] += np.bincount(cell, loss[part], cells)


# ----------------------------------------------------------------------------
# Distinct confidences with their sums, as long as there are few of them.
#
# Up to `MOST_VALUES` every distinct confidence is kept, so ties, ranks and quantiles are
# those of the rows. Rows wait until there are enough of them to be worth merging.


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
    >>> from calibrant._inputs.divergences import BRIER
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
        if engines.wanted_for_rows(engine, len(columns)):
            ends = self.low, self.high
            block = block_of_cells(self.table, *ends, LOG_ODDS_REACH)
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


MOST_VALUES = 1 << 17
"""Distinct confidences up to which every one is kept."""

FIELDS = ("weight", "hit", "hit2", "z", "finite_z")
"""Sums kept of each confidence, before the loss of each divergence."""


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


# ----------------------------------------------------------------------------
# What a sketch keeps of one set of rows, and the rows that stand for them.


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


# ----------------------------------------------------------------------------
# What is in a sketch: the kind of its rows, and their sums, whole and by group.


MOST_CLASSES = 200
"""Classes up to which a sketch of each may be kept."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What the rows of a sketch are: only rows of the same kind add up."""

    target: str
    classes: tuple[Hashable, ...]
    divergences: Mapping[str, Divergence]

    def check_fits(self, other: Kind) -> None:
        """Raise unless rows of the other kind may be added."""
        mine, theirs = list(self.divergences), list(other.divergences)
        for what, one, two in (
            ("targets", self.target, other.target),
            ("numbers of classes", len(self.classes), len(other.classes)),
            ("classes", self.classes, other.classes),
            ("scores", mine, theirs),
        ):
            if one != two:
                raise ValueError(
                    f"only rows of the same kind add up in a sketch, and these have "
                    f"different {what}: {one!r} and {two!r}."
                )

    def empty(self) -> State:
        """No rows of this kind yet."""
        predicts = self.target in ("top-label", "class-wise")
        return State.empty(self.divergences, len(self.classes) if predicts else 0)


@dataclass(slots=True, eq=False)
class Contents:
    """Additive sums of rows of one kind.

    `groups` and `per_class` are the same sums for each group, and for each class against
    the rest; `parts` are names of rows that are in, `soft_rows` the weight of rows with
    soft labels.
    """

    kind: Kind
    state: State
    groups: dict[str, State] = field(default_factory=dict)
    per_class: list[State] = field(default_factory=list)
    parts: set[str] = field(default_factory=set)
    soft_rows: float = 0.0

    @classmethod
    def empty(cls, kind: Kind) -> Contents:
        """No rows of this kind yet."""
        found = cls(kind, kind.empty())
        if kind.target == "class-wise":
            _check_classes(len(kind.classes))
            found.per_class = [State.empty(kind.divergences) for _ in kind.classes]
        return found

    def add(
        self, columns: Columns, names: NDArray[np.str_] | None, engine: str
    ) -> None:
        """Add rows; `names` are their groups."""
        new = [] if names is None else np.unique(names).tolist()
        check_groups({*self.groups, *new})
        self.state.add(columns, engine)
        for name in new:
            group = self.groups.setdefault(name, self.kind.empty())
            group.add(columns.take(names == name), engine)

    def add_classes(self, predictions: Predictions, engine: str) -> None:
        """Add the rows of every class against the rest, if these are kept."""
        if self.per_class:
            classes = each_class(predictions)
            for state, columns in zip(self.per_class, classes, strict=True):
                state.add(columns, engine)

    def __add__(self, other: Contents) -> Contents:
        self.kind.check_fits(other.kind)
        _check_parts(self.parts & other.parts)
        groups = {
            name: _sum_of_states(self.groups.get(name), other.groups.get(name))
            for name in sorted({*self.groups, *other.groups})
        }
        check_groups(groups)
        per_class = [
            one + two for one, two in zip(self.per_class, other.per_class, strict=True)
        ]
        return Contents(
            self.kind,
            self.state + other.state,
            groups,
            per_class,
            self.parts | other.parts,
            self.soft_rows + other.soft_rows,
        )


def _sum_of_states(one: State | None, two: State | None) -> State:
    if one is None or two is None:
        found = two if one is None else one
        assert found is not None
        return found
    return one + two


def _check_parts(both: set[str]) -> None:
    if both:
        first = min(both)
        raise ValueError(
            f"part {first!r} is in both sketches ({len(both)} parts are), and its rows "
            "would count twice. Merge sketches of different parts."
        )


def _check_classes(count: int) -> None:
    if count > MOST_CLASSES:
        raise ValueError(
            f"a sketch of every class takes 4 MB each, and {count} classes are more than "
            f"{MOST_CLASSES}. Use target='top-label', or some classes at a time with "
            "target='positive'."
        )


def check_groups(groups: Collection[str]) -> None:
    """Raise if there are so many groups that they must be something else."""
    if len(groups) > MOST_GROUPS:
        raise ValueError(
            f"group has {len(groups)} distinct values, more than {MOST_GROUPS}; is it a "
            "number of the row? Put similar ones together."
        )


# ----------------------------------------------------------------------------
# How far metrics of a sketch may be from those of its rows.


def bounds_of(state: State, bins: int) -> dict[str, float]:
    """Bounds of what depends on the order of rows within a cell; nothing else does."""
    if state.exact:
        return {}
    cells = state.cells
    weight, hits = cells["weight_0"], cells["hit_0"]
    n, most = float(weight.sum()), float(weight.max())
    found = {
        "ks_error": most / n,
        "auroc": _pairs_within(hits, weight - hits),
        "ece_mass": min(2 * (bins - 1) * most / n, 1.0),
    }
    if CELLS % bins:
        shared = _weight_on_edges(cells.low, cells.high, weight, bins)
        found |= dict.fromkeys(("ece", "top_label_ece"), min(2 * shared / n, 1.0))
    return found


def _pairs_within(hits: Column, misses: Column) -> float:
    """Half the share of pairs of a hit and a miss that lie within one cell."""
    pairs = float(hits.sum() * misses.sum())
    return 0.5 * float((hits * misses).sum()) / pairs if pairs else 0.0


def _weight_on_edges(low: Column, high: Column, weight: Column, bins: int) -> float:
    """Weight of the cells that an edge of a bin cuts."""
    edges = np.arange(1, bins) / bins
    first, last = (np.searchsorted(edges, ends, "left") for ends in (low, high))
    return float(weight[(weight > 0) & (first != last)].sum())
