"""The sketch: sums that replace the rows, about 2.5 MB whatever their number.

Two grids, because confidences live on two scales. The probability grid (`grid`) serves
the paper's curve at any bandwidth, binned errors and SmoothECE. The log-odds grid
serves the adaptive estimators, which need resolution where h is near 0 or 1. All of it
is sums: sketches of shards add up to the sketch of the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.bregman import Divergence
from acumen.columns import Columns, softplus
from acumen.compiled import fast
from acumen.grid import CELLS, CHUNK, ORDER, Moments, add_moments, cell_of

if TYPE_CHECKING:
    from acumen.compiled.cells_numba import CellSums

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
        if fast.wanted_for_rows(engine, len(columns)):
            sums = fast.cell_sums(self.moments, self.log_odds_sums, LOG_ODDS_REACH)
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
    h = columns.confidence
    if divergence.name == "log":  # log-odds and log(1 - h), exact near h = 1
        slope = columns.log_odds
        tangent = -softplus(slope)
    else:
        with np.errstate(all="ignore"):
            slope = np.asarray(divergence.derivative_1d(h), dtype=np.float64)
            tangent = divergence.phi_1d(h) - h * slope
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
