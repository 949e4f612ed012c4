"""Cells: the additive sums that replace the rows, whatever their number."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._inputs.arrays import Column, Index, Mask
from calibrant._inputs.divergences import Divergence
from calibrant._inputs.predictions import MOST_GROUPS
from calibrant._rows import compiled, engines
from calibrant._rows.columns import Columns, log_odds_of
from calibrant._sketch import grid
from calibrant._sketch.clusters import ClusterSums, Hashes

Table = NDArray[np.float64]

MOMENTS = ("weight", "hit")

OF_ROWS = ("hit2", "r1", "r2", "r3", "r4", "h", "z", "finite_z")
"""Sums of a^2, powers of the residual a - h, h, and log-odds: cut, or 0 if infinite."""

CELL_SUMS = (*MOMENTS, *OF_ROWS[:-1])
"""Sums per log-odds cell, before the loss of each divergence."""

FEW = 4096
"""Rows up to which only the cells they fall in are touched."""

SQUARES = ("w2", "w2r", "w2r2", "w3r2")
"""Sums of w^2, w^2 r, w^2 r^2 and w^3 r^2, r the residual, where rows have weights."""

WITHOUT_WEIGHTS = ("weight_0", "r1", "r2", "r2")
"""What they are where rows only count."""

CLASS_BINS = 300
"""Bins by which residuals of each predicted class are kept: 10, 15, 20, 25, 30, 50, 60,
75, 100, 150 and 300 bins are whole ones of them."""

MOST_CLASS_BINS = 1 << 20
"""Classes times bins up to which they are kept."""

MOST_VALUES = 1 << 17
"""Distinct confidences up to which every one is kept."""

WAITING = 1 << 17
"""Rows that wait until their confidences are worth merging."""

VALUES = ("weight", "hit", "hit2", "z", "finite_z", "w2", "w2_hit")
"""Sums kept of each distinct confidence, before the loss of each divergence."""


@dataclass(slots=True, eq=False)
class Totals:
    """Exact sums over all rows for one divergence.

    `loss` and `loss2` are the full loss and its square over rows where it is finite
    (`Cells.infinite` counts the others), `w2_loss` and `w2_loss2` the same with squared
    weights. `unit_loss` is the sum of d(a, h), `phi_hit` of phi(a), and `tangent` of
    phi(h) - h phi'(h) over rows where phi'(h) is finite.
    """

    loss: float = 0.0
    loss2: float = 0.0
    unit_loss: float = 0.0
    phi_hit: float = 0.0
    tangent: float = 0.0
    w2_loss: float = 0.0
    w2_loss2: float = 0.0

    @classmethod
    def of_counted(
        cls, loss: float, loss2: float, unit: float, phi: float, tangent: float
    ) -> Totals:
        """Of rows without weights."""
        return cls(loss, loss2, unit, phi, tangent, loss, loss2)

    def __add__(self, other: Totals) -> Totals:
        mine, theirs = self.as_array(), other.as_array()
        return Totals(*(mine + theirs).tolist())

    def as_array(self) -> NDArray[np.float64]:
        """The sums in the order of the fields."""
        return np.array([getattr(self, name) for name in self.__slots__])

    def times(self, factor: float) -> Totals:
        """Of the same rows with all weights multiplied."""
        powers = np.array([1, 1, 1, 1, 1, 2, 2])
        return Totals(*(self.as_array() * factor**powers).tolist())


def fields_of(divergences: Mapping[str, Divergence]) -> tuple[str, ...]:
    """Names of the sums of a cell; ``x_j`` is the sum of x t^j, t the place in the cell."""
    parts = [f"{name}_{part}" for name in divergences for part in ("loss", "slope")]
    moments = [f"{x}_{j}" for x in (*MOMENTS, *parts) for j in range(grid.ORDER)]
    return (*moments, *OF_ROWS, *(f"{name}_infinite" for name in divergences))


class Thin(NamedTuple):
    """A large array that is mostly 0, on its way to another process."""

    shape: tuple[int, ...]
    place: NDArray[np.intp]
    values: Column

    @classmethod
    def of(cls, x: Any) -> Any:
        """The array without its zeros, if that is worth it; else what was given."""
        if not (isinstance(x, np.ndarray) and x.dtype == float and x.size > 1 << 12):
            return x
        flat = np.ascontiguousarray(x).reshape(-1)
        place = np.flatnonzero(flat.view(np.uint64))  # -0.0 is kept
        few = 4 * len(place) < len(flat)
        return cls(x.shape, place, flat[place]) if few else x

    def whole(self) -> NDArray[np.float64]:
        """The array as it was."""
        out = np.zeros(self.shape)
        out.reshape(-1)[self.place] = self.values
        return out


@dataclass(eq=False)
class Cells:
    """Additive sums of rows by cell, whatever their number: all that estimators read.

    `table` has a row for each kind of sum (`fields_of`) with a number for each cell of the
    path (`grid.path`), `low` and `high` the least and the largest confidence in it; `cells`
    is the number of probability cells. `rows` are those added, `count` how many they stand
    for. `certain_no` and `certain_yes` are the weight of rows of log-odds -inf and inf.
    `squares` (`SQUARES`) are there once rows had weights, `clusters` where they were given.

    The cells of a sketch (`for_sketch`) keep more, and those of rows in hand do without
    `low` and `high` (`ends` says whether they are kept): `values` are tables of distinct
    confidences, of which all but the first wait to be merged, or None once there were too
    many; `within` are residuals by predicted class, None where no class is predicted or
    there are too many.
    """

    divergences: Mapping[str, Divergence]
    cells: int = grid.CELLS
    rows: int = 0
    count: float = 0.0
    certain_no: float = 0.0
    certain_yes: float = 0.0
    squares: Table | None = None
    clusters: ClusterSums | None = None
    values: list[Table] | None = None
    within: Table | None = None
    ends: bool = True
    table: Table = field(init=False)
    low: Column = field(init=False)
    high: Column = field(init=False)
    totals: dict[str, Totals] = field(init=False)

    def __post_init__(self) -> None:
        count = grid.steps(self.cells)
        self.table = np.zeros((len(self.fields), count))
        count = count if self.ends else 0
        self.low, self.high = np.full(count, np.inf), np.full(count, -np.inf)
        self.totals = {name: Totals() for name in self.divergences}

    @classmethod
    def for_sketch(
        cls, divergences: Mapping[str, Divergence], classes: int = 0
    ) -> Cells:
        """No rows yet; `classes` is the number of classes that may be predicted."""
        within = None
        if 0 < classes * CLASS_BINS <= MOST_CLASS_BINS:
            within = np.zeros((classes, CLASS_BINS))
        values = np.empty((1 + len(VALUES) + len(divergences), 0))
        return cls(divergences, values=[values], within=within)

    def __getstate__(self) -> dict[str, Any]:
        return {name: Thin.of(x) for name, x in self.__dict__.items()}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        whole = {n: x.whole() if isinstance(x, Thin) else x for n, x in state.items()}
        self.__dict__.update(whole)

    # -- adding up -------------------------------------------------------------------

    def update(
        self, columns: Columns, engine: str = "auto", clusters: Hashes | None = None
    ) -> Self:
        """Add rows of positive weight, in parts that stay in cache; returns itself.

        `clusters` are numbers of their clusters (`hash_clusters`).
        """
        self._forget()
        if columns.squared is not None:
            self._add_squares(columns, columns.squared)
        elif self.squares is not None:
            self._add_squares(columns, columns.weights)
        low, high = (self.low, self.high) if self.ends else (None, None)
        kind = CompiledBlock if engines.wanted(engine) else Block
        block = kind(self.table, low, high, self.cells)
        # Parts of equal size: the last is as large as any.
        parts = -(-len(columns) // grid.CHUNK)
        step = -(-len(columns) // max(parts, 1))
        for start in range(0, len(columns), max(step, 1)):
            self._add_part(columns.take(slice(start, start + step)), block)
        self._add_values(columns)
        self._add_within(columns)
        if clusters is not None:
            known = self.clusters or ClusterSums.none(self.divergences)
            self.clusters = known.plus(clusters, columns, self.divergences)
        return self

    def _forget(self) -> None:
        """What was computed from the sums no longer holds."""
        for name in _COMPUTED:
            self.__dict__.pop(name, None)

    def _add_part(self, part: Columns, block: Block) -> None:
        columns = part.with_log_odds()
        self.rows += len(columns)
        self.count += columns.count
        self.certain_no += _sum(columns.weight, np.isneginf(columns.log_odds))
        self.certain_yes += _sum(columns.weight, np.isposinf(columns.log_odds))
        values, lost = [_times(columns.weight, columns.hit)], list[Mask]()
        for name, divergence in self.divergences.items():
            *terms, infinite, totals = _terms_of(columns, divergence)
            self.totals[name] += totals
            values += [_times(columns.weight, x) for x in terms]
            lost.append(infinite)
        own = columns.log_odds
        if part.exact_log_odds is not None:
            own = log_odds_of(columns.confidence)
        block.add(columns, own, values, lost)

    def _add_squares(self, columns: Columns, squared: Column) -> None:
        """Add sums of squared weights, which so far were those of rows that count."""
        if self.squares is None:
            self.squares = np.stack([self[name] for name in WITHOUT_WEIGHTS])
        h = columns.confidence
        cell = grid.locate(h, log_odds_of(h), self.cells)[0]
        r, cubed = columns.hit - h, squared**2 / columns.weights
        terms = squared, squared * r, squared * r * r, cubed * r * r
        for number, x in enumerate(terms):
            self.squares[number] += np.bincount(cell, x, self.squares.shape[1])

    def _add_values(self, columns: Columns) -> None:
        for start in range(0, len(columns), WAITING):
            if self.values is None:
                return
            part = columns.take(slice(start, start + WAITING))
            self.values.append(_values_of(part, self.divergences))
            if sum(x.shape[1] for x in self.values[1:]) >= WAITING:
                self.values = _unless_full(self.values)

    def _add_within(self, columns: Columns) -> None:
        if self.within is None or columns.predicted is None:
            self.within = None
            return
        place = columns.predicted.astype(np.intp) * CLASS_BINS
        place += grid.cell_of(columns.confidence, CLASS_BINS)
        residual = _times(columns.weight, columns.hit - columns.confidence)
        sums = np.bincount(place, residual, self.within.size)
        self.within += sums.reshape(self.within.shape)

    def __add__(self, other: Cells) -> Cells:
        if not isinstance(other, Cells):
            return NotImplemented
        mine, theirs = list(self.divergences), list(other.divergences)
        if (mine, self.cells) != (theirs, other.cells):
            raise ValueError(
                "cells add up only if they have the same divergences and number: "
                f"{mine}, {self.cells} against {theirs}, {other.cells}."
            )
        both = Cells(self.divergences, self.cells, ends=self.ends)
        for name in (*SCALARS, "table"):
            setattr(both, name, getattr(self, name) + getattr(other, name))
        if self.squares is not None or other.squares is not None:
            both.squares = self.squared_sums + other.squared_sums
        found = [x for x in (self.clusters, other.clusters) if x is not None]
        both.clusters = (
            found[0] + found[1] if len(found) == 2 else next(iter(found), None)
        )
        both.low = np.minimum(self.low, other.low)
        both.high = np.maximum(self.high, other.high)
        both.totals = {n: t + other.totals[n] for n, t in self.totals.items()}
        if self.values is not None and other.values is not None:
            both.values = _unless_full([*self.values, *other.values])
        if self.within is not None and other.within is not None:
            both.within = self.within + other.within
        return both

    def sums(self) -> Cells:
        """A copy of the sums alone, which rows to come leave as it is."""
        alone = Cells(self.divergences, self.cells, ends=self.ends)
        for name in SCALARS:
            setattr(alone, name, getattr(self, name))
        alone.table, alone.totals = self.table.copy(), dict(self.totals)
        alone.low, alone.high = self.low.copy(), self.high.copy()
        alone.squares = None if self.squares is None else self.squares.copy()
        alone.clusters = self.clusters
        return alone

    def scaled(self) -> Cells:
        """The same with weights of mean 1, which frees them of their unit."""
        if self.squares is None:
            return self
        factor = self.count / self.weight
        found = self.sums()
        found.table *= factor
        found.certain_no = factor * self.certain_no
        found.certain_yes = factor * self.certain_yes
        found.squares = self.squares * factor ** np.array([[2], [2], [2], [3]])
        found.totals = {name: x.times(factor) for name, x in self.totals.items()}
        found.within = None if self.within is None else factor * self.within
        if self.clusters is not None:
            found.clusters = self.clusters.times(factor)
        if self.values is not None:
            settled = _unless_full(self.values)
            found.values = settled and [_scaled_values(settled[0], factor)]
        return found

    def settle(self) -> None:
        """Keep what estimators read, and drop the table it comes from: no more rows."""
        _ = self.weight, self.infinite, self.log_odds_sums
        rest = len(OF_ROWS) + len(self.divergences)
        self.table.resize((len(self.table) - rest, self.table.shape[1]), refcheck=False)
        self.table = self.moments[0, :, :0]

    # -- what estimators read --------------------------------------------------------

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the sums."""
        return fields_of(self.divergences)

    def __getitem__(self, name: str) -> Column:
        """The sums of that name, by cell of the path."""
        return self.table[self.fields.index(name)]

    @cached_property
    def weight(self) -> float:
        """Total weight of the rows."""
        return float(self.table[0].sum())

    @property
    def squared_sums(self) -> Table:
        """`SQUARES` by cell of the path, whether rows have weights or count."""
        if self.squares is not None:
            return self.squares
        return np.stack([self[name] for name in WITHOUT_WEIGHTS])

    @property
    def effective(self) -> float:
        """Number of rows of equal weight that would have as little noise."""
        if self.squares is None:
            return self.weight
        return self.weight**2 / float(self.squares[0].sum())

    @cached_property
    def moments(self) -> grid.Moments:
        """Sums by probability cell: of weight, hit, then loss and slope phi'(h) of each
        divergence, times powers of the place in the cell.
        """
        count = len(MOMENTS) + 2 * len(self.divergences)
        sums = self._by_probability(slice(count * grid.ORDER))
        return sums.reshape(count, grid.ORDER, self.cells)

    @cached_property
    def infinite(self) -> Table:
        """Weight of rows of infinite loss, by divergence and probability cell."""
        return self._by_probability(slice(-len(self.divergences), None))

    @cached_property
    def log_odds_sums(self) -> Table:
        """Sums by log-odds cell: `CELL_SUMS`, then the loss of each divergence."""
        losses = [f"{name}_loss_0" for name in self.divergences]
        names = ["weight_0", "hit_0", *CELL_SUMS[len(MOMENTS) :], *losses]
        fields = [self.fields.index(name) for name in names]
        return self._by_log_odds(self.table[fields])

    @property
    def squares_by_log_odds(self) -> Table | None:
        """`SQUARES` by log-odds cell; None where rows only count."""
        return None if self.squares is None else self._by_log_odds(self.squares)

    def _by_log_odds(self, sums: Table) -> Table:
        cell = grid.path(self.cells).log_odds
        return _added_up(sums, cell, grid.LOG_ODDS_CELLS)

    def _by_probability(self, fields: slice) -> Table:
        """Rows of the table by probability cell."""
        cell = grid.path(self.cells).probability
        return _added_up(self.table[fields], cell, self.cells)

    def infinite_weight(self, name: str) -> float:
        """Weight of the rows whose loss is infinite."""
        return float(self.infinite[list(self.divergences).index(name)].sum())

    def column(self, name: str, part: str = "loss") -> int:
        """Row of `moments` that holds the loss or slope of a divergence."""
        return 2 + 2 * list(self.divergences).index(name) + (part == "slope")

    # -- rows that stand for them ----------------------------------------------------

    @cached_property
    def distinct(self) -> Table | None:
        """Distinct confidences in order, with their sums; None if not all are known."""
        if self.values is None:
            return None
        settled = _unless_full(self.values)  # what waits still waits
        return None if settled is None else settled[0]

    @property
    def exact(self) -> bool:
        """Whether every distinct confidence is known."""
        return self.distinct is not None

    def columns(self, *, cut: bool) -> Columns:
        """At most two rows for each confidence or cell, with the same sums.

        One missed; the other hit, or under soft labels hit in part. Losses are means of
        the finite ones, and the same for both, since nothing tells them apart. `cut`
        asks for log-odds as the adaptive estimates read them.
        """
        if self.distinct is not None:
            h, weight, hits, hits2, z, finite_z, w2, w2_hit, *losses = self.distinct
        else:
            some = self["weight_0"] > 0
            found = self._values(some)
            weight, hits, hits2, z, finite_z, w2, w2_hit, *losses = found
            # Round-off must not leave the cell.
            h = np.clip(self["h"][some] / weight, self.low[some], self.high[some])
        by_name = dict(zip(self.divergences, losses, strict=True))
        squared = None if self.squares is None else (w2, w2_hit)
        z = z if cut else finite_z
        rows = _two_rows_each(h, weight, hits, hits2, z, by_name, squared)
        return rows.without_zero_weights()

    def _values(self, some: NDArray[np.bool_]) -> Table:
        """What is kept of each distinct confidence (`VALUES`, then losses), by cell."""
        losses = [f"{name}_loss_0" for name in self.divergences]
        first = [self[name][some] for name in ("weight_0", "hit_0", *VALUES[2:-2])]
        squares = first[:2]
        if self.squares is not None:
            w2, w2r = self.squares[:2, some]
            squares = [w2, w2r + w2 * self["h"][some] / first[0]]
        return np.stack([*first, *squares, *(self[name][some] for name in losses)])

    def clustered_columns(self) -> tuple[Columns, Index]:
        """The same for each pair of a cluster and a log-odds cell, and its cluster."""
        assert self.clusters is not None
        weight, hits, _, h, w2, *losses = self.clusters.sums
        by_name = dict(zip(self.divergences, losses, strict=True))
        h = np.clip(h / weight, 0.0, 1.0)
        z = weight * log_odds_of(h)
        squared = None if self.squares is None else (w2, w2 * hits / weight)
        rows = _two_rows_each(h, weight, hits, hits, z, by_name, squared)
        numbers = np.tile(self.clusters.numbers, 2)
        return rows.without_zero_weights(), numbers[rows.weights > 0]

    def find_values(self) -> None:
        """Keep distinct confidences, if no cell holds two of them."""
        some = self["weight_0"] > 0
        self.values = None
        if not (self.low[some] < self.high[some]).any():
            h = np.abs(self.low[some])  # -0.0 is 0
            self.values = [np.vstack([h, self._values(some)])]


SCALARS = ("rows", "count", "certain_no", "certain_yes")
_COMPUTED = ("weight", "moments", "infinite", "log_odds_sums", "distinct")


def _added_up(table: Table, cell: Index, cells: int) -> Table:
    """Sums over cells of each row of a table."""
    if engines.wanted():
        return compiled.filled("add_cells", (len(table), cells), cells, cell, table)
    sums = np.empty((len(table), cells))
    for number, row in enumerate(table):
        sums[number] = np.bincount(cell, row, cells)
    return sums


# -- what rows contribute --------------------------------------------------------------


def _terms_of(
    columns: Columns, divergence: Divergence
) -> tuple[Column, Column, Mask, Totals]:
    """Loss and slope phi'(h) of each row, where the loss is infinite, and the totals.

    Loss and slope are 0 where they are infinite.
    """
    w, loss = columns.weight, columns.loss(divergence)
    lost = ~np.isfinite(loss)
    if lost.any():
        if np.isnan(loss).any():
            h = float(columns.confidence[int(np.argmax(np.isnan(loss)))])
            raise ValueError(
                f"a divergence gave NaN as the loss of a row of confidence {h}."
            )
        loss = np.where(lost, 0.0, loss)
    slope, tangent = _tangent(columns, divergence)
    unit, phi = _sum(w, columns.unit_loss(divergence)), _sum_of_phi(columns, divergence)
    plain = _sum(w, loss), _sum(w, loss * loss), unit, phi, _sum(w, tangent)
    totals = Totals.of_counted(*plain)
    if (w2 := columns.squared) is not None:
        totals = Totals(*plain, _sum(w2, loss), _sum(w2, loss * loss))
    return loss, slope, lost, totals


def _tangent(columns: Columns, divergence: Divergence) -> tuple[Column, Column]:
    """phi'(h) and phi(h) - h phi'(h) of each row, 0 where they are infinite."""
    slope, tangent = divergence.tangent(columns.confidence, columns.log_odds)
    finite = np.isfinite(slope)
    if finite.all():
        return slope, tangent
    return np.where(finite, slope, 0.0), np.where(finite, tangent, 0.0)


def _sum_of_phi(columns: Columns, divergence: Divergence) -> float:
    if not columns.hard:
        return _sum(columns.weight, divergence.phi_1d(columns.hit))
    hits = _sum(columns.weight, columns.hit)
    no, yes = divergence.phi_1d(np.array([0.0, 1.0]))
    return float((columns.total_weight - hits) * no + hits * yes)


def _times(weight: Column | None, column: Column) -> Column:
    """The column times the weights, if there are any."""
    return column if weight is None else weight * column


def _sum(weight: Column | None, column: NDArray[Any]) -> float:
    # Not np.dot: on a busy machine its threads wait for each other.
    return float(column.sum() if weight is None else (weight * column).sum())


class Block:
    """Rows on their way into the table of `Cells`, field by field."""

    def __init__(
        self, table: Table, low: Column | None, high: Column | None, cells: int
    ) -> None:
        self.table, self.low, self.high, self.cells = table, low, high, cells

    def add(
        self, columns: Columns, log_odds: Column, values: list[Column], lost: list[Mask]
    ) -> None:
        """Add rows; `log_odds` are those of the confidences themselves.

        `values` are columns whose moments are summed, weights included: hit, then loss
        and slope of each divergence; `lost` says where a loss is infinite.
        """
        h = columns.confidence
        cell, place = grid.locate(h, log_odds, self.cells)
        contributions = _contributions(columns, place, values, lost)
        if len(cell) <= FEW:
            touched, at = np.unique(cell, return_inverse=True)
            for number, x in enumerate(contributions):
                self.table[number, touched] += np.bincount(at, x, len(touched))
        else:
            for number, x in enumerate(contributions):
                self.table[number] += np.bincount(cell, x, self.table.shape[1])
        if self.low is not None and self.high is not None:
            np.minimum.at(self.low, cell, h)
            np.maximum.at(self.high, cell, h)


class CompiledBlock(Block):
    """The same in one loop, which adds what a row contributes to all fields at once.

    Rows are summed in `_part`, a cell's sums together, before they join the table: sums of
    sums have less round-off, and the table is read once. `_place` says where a cell is.
    """

    _part, _place = np.empty(0), np.empty(0, np.int32)

    def add(
        self, columns: Columns, log_odds: Column, values: list[Column], lost: list[Mask]
    ) -> None:
        """As `Block.add`."""
        steps = self.table.shape[1]
        size = len(self.table) * min(len(columns), steps)
        if len(self._part) < size:
            self._part, self._place = np.empty(size), np.empty(steps, np.int32)
        masks = tuple(lost) if any(x.any() for x in lost) else ()
        sums = self.table, self.low, self.high, self._place, self._part
        given = columns.confidence, log_odds, columns.hit, columns.log_odds, *values
        weight = None if columns.weight is None else compiled.ready(columns.weight)
        rows = (compiled.ready(x) for x in given)
        compiled.loops.add_rows(self.cells, masks, *sums, weight, *rows)


def _contributions(
    columns: Columns, t: Column, values: list[Column], lost: list[Mask]
) -> Iterator[Column | None]:
    """What each row adds to each field, one after the other; None stands for ones."""
    w, h, a, z = columns.weight, columns.confidence, columns.hit, columns.log_odds
    for value in (w, *values):
        power: Column | None = value
        for j in range(grid.ORDER):
            if j:
                power = t if power is None else power * t
            yield power
    r = a - h
    r2 = r * r
    cut = np.clip(z, -grid.LOG_ODDS_REACH, grid.LOG_ODDS_REACH)
    finite = np.where(np.isfinite(z), z, 0.0)
    for x in (a * a, r, r2, r2 * r, r2 * r2, h, cut, finite):
        yield _times(w, x)
    if any(x.any() for x in lost):  # the last fields, which are nearly always 0
        yield from (_times(w, x.astype(np.float64)) for x in lost)


# -- distinct confidences --------------------------------------------------------------


def _values_of(columns: Columns, divergences: Mapping[str, Divergence]) -> Table:
    """The confidence of each row, and what it adds to `VALUES` and losses."""
    w, a, z = columns.weight, columns.hit, columns.log_odds
    cut = np.clip(z, -grid.LOG_ODDS_REACH, grid.LOG_ODDS_REACH)
    losses = [columns.loss(divergence) for divergence in divergences.values()]
    finite = [np.where(np.isfinite(x), x, 0.0) for x in (z, *losses)]
    first, *rest = finite
    sums = [_times(w, x) for x in (np.ones_like(a), a, a * a, cut, first)]
    losses = [_times(w, x) for x in rest]
    h = np.abs(columns.confidence)  # -0.0 is 0
    w2 = columns.squares
    return np.stack([h, *sums, w2, w2 * a, *losses])


def _scaled_values(values: Table, factor: float) -> Table:
    """Distinct confidences of the same rows with all weights multiplied."""
    powers = np.ones(len(values))
    powers[0] = 0
    powers[[1 + VALUES.index(name) for name in ("w2", "w2_hit")]] = 2
    return np.asarray(values * factor ** powers[:, None])


def _unless_full(parts: list[Table]) -> list[Table] | None:
    """Tables as one, by increasing confidence, unless too many of these are distinct."""
    table = np.concatenate(parts, axis=1)
    table = table[:, np.argsort(table[0], kind="stable")]
    first = np.flatnonzero(np.diff(table[0], prepend=-1.0))
    sums = np.add.reduceat(table[1:], first, axis=1)
    table = np.vstack([table[:1, first], sums])
    return None if table.shape[1] > MOST_VALUES else [table]


LEAST_SQUARE = 1e-9


def _two_rows_each(
    h: Column,
    weight: Column,
    hits: Column,
    hits2: Column,
    z: Column,
    losses: Mapping[str, Column],
    squares: tuple[Column, Column] | None,
) -> Columns:
    yes = np.zeros_like(hits)
    np.divide(hits, hits2, out=yes, where=hits2 > 0)
    yes = np.minimum(hits * yes, weight)
    share = np.minimum(np.divide(hits, yes, out=np.zeros_like(hits), where=yes > 0), 1)
    both = np.concatenate([weight - yes, yes])
    squared = None
    if squares is not None:
        w2, w2_hit = squares
        hit = np.divide(w2_hit, share, out=np.zeros_like(w2), where=share > 0)
        least = LEAST_SQUARE * both * np.tile(w2 / weight, 2)  # not 0 by round-off
        squared = np.maximum(np.concatenate([w2 - hit, hit]), least)
    return Columns(
        np.tile(h, 2),
        np.tile(z / weight, 2),
        np.concatenate([np.zeros_like(share), share]),
        {name: np.tile(loss / weight, 2) for name, loss in losses.items()},
        both,
        squared=squared,
    )


# -- rows of one kind ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kind:
    """What the rows of a sketch are: only equal kinds add up. Pairs may have no `classes`."""

    target: str
    classes: tuple[Hashable, ...]
    divergences: Mapping[str, Divergence]
    clustered: bool = False

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
                both = " and ".join(repr(x) if x else "not known" for x in (one, two))
                raise ValueError(
                    f"only rows of the same kind add up in a sketch, and these have "
                    f"different {what}: {both}."
                )
        if self.clustered != other.clustered:
            raise ValueError(
                "some rows of this sketch have clusters and others have none. Give "
                "cluster= with all of them, or with none."
            )

    def empty(self) -> Cells:
        """No rows of this kind yet."""
        predicts = self.target in ("top-label", "class-wise")
        return Cells.for_sketch(self.divergences, len(self.classes) if predicts else 0)


def check_groups(groups: Collection[str]) -> None:
    """Raise if there are so many groups that they must be something else."""
    if len(groups) > MOST_GROUPS:
        raise ValueError(
            f"group has {len(groups)} distinct values, more than {MOST_GROUPS}; is it a "
            "number of the row? Put similar ones together."
        )


# -- how far metrics of a sketch may be from those of its rows -------------------------


def bounds_of(cells: Cells, bins: int, target: str) -> dict[str, float]:
    """Bounds of what depends on the order of rows within a cell; nothing else does."""
    if cells.exact:
        return {}
    weight, hits = cells["weight_0"], cells["hit_0"]
    n, most = float(weight.sum()), float(weight.max())
    misses = weight - hits
    # Of all pairs of a hit and a miss, half of those within one cell may be turned.
    pairs, within = float(hits.sum() * misses.sum()), float((hits * misses).sum())
    found = {
        "ks_error": most / n,
        "auroc": 0.5 * within / pairs if pairs else 0.0,
        "ece_mass": min(2 * (bins - 1) * most / n, 1.0),
    }
    if grid.CELLS % bins:
        shared = _weight_on_edges(cells.low, cells.high, weight, bins)
        found |= dict.fromkeys(("ece", "top_label_ece"), min(2 * shared / n, 1.0))
    return found | _bounds_of_risk(cells.scaled(), target)


def _bounds_of_risk(cells: Cells, target: str) -> dict[str, float]:
    """Bounds of AURC, E-AURC and AUGRC, where rows of one cell may come in any order.

    With E(x) errors among the first x examples, an area is a constant and the integral of
    k(x) E(x): k is 1 / n for AUGRC, and 2 psi'(x + 1) + x psi''(x + 1) for AURC, which is
    between 0 and 2 / (x + 1/2). In a cell of w examples and e errors E is off by at most
    a triangle with base w and height e (1 - e / w).
    """
    held = np.flatnonzero(cells["weight_0"] > 0)
    low, high = cells.low[held], cells.high[held]
    weight, wrong = cells["weight_0"][held], (cells["weight_0"] - cells["hit_0"])[held]
    if target == "positive":
        # Accepted by max(p, 1 - p): cells whose ranges then meet count as one.
        other = high <= 0.5
        wrong = np.where(other, weight - wrong, wrong)
        low, high = np.where(other, 1 - high, low), np.where(other, 1 - low, high)
    by = np.argsort(low, kind="stable")
    reach = np.maximum.accumulate(high[by])
    starts = np.flatnonzero(np.append(True, low[by][1:] > reach[:-1]))
    weight, wrong = (np.add.reduceat(x[by], starts)[::-1] for x in (weight, wrong))
    n, before = float(weight.sum()), np.cumsum(weight) - weight
    height = np.clip(wrong, 0, weight) * np.clip(1 - wrong / weight, 0, 1)
    share = weight / (before + 0.5)
    area = float((height * np.minimum(share, 2 * np.log1p(share))).sum()) / n
    found = dict.fromkeys(("aurc", "excess_aurc"), min(area, 1.0))
    return found | {"augrc": 0.5 * float(height @ weight) / n**2}


def _weight_on_edges(low: Column, high: Column, weight: Column, bins: int) -> float:
    """Weight of the cells that an edge of a bin cuts."""
    edges = np.arange(1, bins) / bins
    first, last = (np.searchsorted(edges, ends, "left") for ends in (low, high))
    return float(weight[(weight > 0) & (first != last)].sum())
