"""From sums by cell and hit to the contents of a sketch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.engines.grouping import Grouped
from acumen.engines.terms import CERTAIN_NO, CERTAIN_YES
from acumen.grid import CELLS, ORDER
from acumen.sketches.cells import STEPS, Cells, grid_cells
from acumen.sketches.contents import Contents, Kind, check_groups
from acumen.sketches.state import CLASS_BINS, State
from acumen.sketches.values import FIELDS, Values
from acumen.sums import LOG_ODDS_REACH, Totals

Polynomial = NDArray[np.float64]
"""Coefficients of the powers of the place t, one column per group."""


def contents_of(kind: Kind, grouped: Grouped) -> Contents:
    """The contents of a sketch whose rows have these sums."""
    found = Contents(kind, _filled(kind, grouped))
    if grouped.group is not None:
        names = np.unique(grouped.group).tolist()
        check_groups(names)
        found.groups = {n: _filled(kind, grouped.of_group(n)) for n in names}
    return found


def _filled(kind: Kind, grouped: Grouped) -> State:
    state, terms = kind.empty(), _Terms(grouped)
    state.cells = _cells(kind, grouped, terms)
    state.values = _values(state.cells)
    shape = None if state.within is None else state.within.shape
    state.within = grouped.within
    if grouped.within is None and shape is not None and "certain" in grouped.sums:
        state.within = _residuals(grouped, terms, shape)
    return state


def _residuals(
    grouped: Grouped, terms: _Terms, shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """Sums of residuals by predicted class and bin."""
    place = grouped.predicted * CLASS_BINS
    place += grid_cells()[0][_cells_of(grouped)] // (CELLS // CLASS_BINS)
    sums = np.bincount(place, terms.sum_of(terms.r), int(np.prod(shape)))
    return np.asarray(sums, float).reshape(shape)


class _Terms:
    """Sums of polynomials of the place, and of columns times powers of it."""

    def __init__(self, grouped: Grouped) -> None:
        self.grouped, self.sums = grouped, grouped.sums
        centre = (grid_cells()[0][_cells_of(grouped)] + 0.5) / CELLS
        step = np.full_like(centre, 1 / CELLS)
        self.one = np.ones((1, len(centre)))
        self.h = np.stack([centre, step])
        self.r = np.stack([grouped.hit - centre, -step])

    def power(self, x: Polynomial, exponent: int) -> Polynomial:
        """A power of a polynomial."""
        found = self.one
        for _ in range(exponent):
            found = _product(found, x)
        return found

    def sum_of(self, x: Polynomial, j: int = 0) -> Column:
        """The sums of the polynomial times t^j, by group."""
        return sum(
            (row * self.sums[f"t_{i + j}"] for i, row in enumerate(x)),
            np.zeros(x.shape[1]),
        )


def _product(x: Polynomial, y: Polynomial) -> Polynomial:
    found = np.zeros((len(x) + len(y) - 1, x.shape[1]))
    for i, row in enumerate(x):
        found[i : i + len(y)] += row * y
    return found


def _cells(kind: Kind, grouped: Grouped, terms: _Terms) -> Cells:
    cells, sums, at = Cells(kind.divergences), grouped.sums, _cells_of(grouped)
    for name, values in _fields(kind, grouped, terms):
        cells.table[:, cells.fields.index(name)] = np.bincount(at, values, STEPS)
    np.minimum.at(cells.low, at, sums["low"])
    np.maximum.at(cells.high, at, sums["high"])
    cells.rows = int(sums["rows"].sum())
    no, yes = _certain(grouped)
    cells.certain_no, cells.certain_yes = float(no.sum()), float(yes.sum())
    for name in kind.divergences:
        cells.totals[name] = (_brier if name == "brier" else _log)(grouped, terms)
    return cells


def _cells_of(grouped: Grouped) -> NDArray[np.int64]:
    """Cells of the sketch: log-odds beyond the grid belong to its ends."""
    cell, inside = grouped.cell, np.clip(grouped.cell, 1, STEPS - 2)
    inside[cell == CERTAIN_NO] = 0
    inside[cell >= CERTAIN_YES] = STEPS - 1
    return inside


def _certain(grouped: Grouped) -> tuple[Column, Column]:
    """Weight of rows of log-odds -inf and inf, by group."""
    weight = grouped.sums["t_0"]
    if "certain" in grouped.sums:
        return np.zeros_like(weight), grouped.sums["certain"]
    no, yes = grouped.cell == CERTAIN_NO, grouped.cell >= CERTAIN_YES
    return np.where(no, weight, 0.0), np.where(yes, weight, 0.0)


def _fields(
    kind: Kind, grouped: Grouped, terms: _Terms
) -> Iterator[tuple[str, Column]]:
    """Every field of a cell with its sums by group."""
    sums, hit = grouped.sums, grouped.hit
    no, yes = _certain(grouped)
    for j in range(ORDER):
        yield f"weight_{j}", sums[f"t_{j}"]
        yield f"hit_{j}", hit * sums[f"t_{j}"]
        yield f"brier_slope_{j}", terms.sum_of(2 * terms.h, j)
        yield f"brier_loss_{j}", _brier_loss(terms, j)
        if "log" in kind.divergences:
            yield f"log_loss_{j}", sums[f"log_{j}"]
            yield f"log_slope_{j}", sums[f"z_{j}"]
    yield "hit2", hit * sums["t_0"]
    for exponent in range(1, 5):
        yield f"r{exponent}", terms.sum_of(terms.power(terms.r, exponent))
    yield "h", terms.sum_of(terms.h)
    yield "z", _cut_log_odds(grouped) + LOG_ODDS_REACH * (yes - no)
    yield "finite_z", sums["z_0"]
    if "log" in kind.divergences:
        yield "log_infinite", _lost(grouped)


def _cut_log_odds(grouped: Grouped) -> Column:
    """Sums of log-odds, cut at the ends of the grid; 0 for certain rows."""
    if "z_cut" in grouped.sums:
        return grouped.sums["z_cut"]
    low = (grouped.cell < 1) & (grouped.cell != CERTAIN_NO)
    high = (grouped.cell > STEPS - 2) & (grouped.cell < CERTAIN_YES)
    beyond = LOG_ODDS_REACH * grouped.sums["t_0"]
    return np.where(low, -beyond, np.where(high, beyond, grouped.sums["z_0"]))


def _brier_loss(terms: _Terms, j: int) -> Column:
    if "brier_0" in terms.sums:
        return terms.sums[f"brier_{j}"]
    return terms.sum_of(terms.power(terms.r, 2), j)


def _lost(grouped: Grouped) -> Column:
    """Weight of rows of infinite log loss, by group."""
    if "log_infinite" in grouped.sums:
        return grouped.sums["log_infinite"]
    return _certainly_wrong(grouped)


def _certainly_wrong(grouped: Grouped) -> Column:
    no, yes = _certain(grouped)
    return np.where(grouped.hit == 1, no, yes)


def _brier(grouped: Grouped, terms: _Terms) -> Totals:
    sums, h2 = grouped.sums, terms.power(terms.h, 2)
    square = sums.get("brier_square")
    if square is None:
        square = terms.sum_of(terms.power(terms.r, 4))
    return Totals(
        loss=float(_brier_loss(terms, 0).sum()),
        loss2=float(square.sum()),
        unit_loss=float(terms.sum_of(terms.power(terms.r, 2)).sum()),
        phi_hit=float((grouped.hit * sums["t_0"]).sum()),
        tangent=-float(terms.sum_of(h2).sum()),
    )


def _log(grouped: Grouped, terms: _Terms) -> Totals:
    # Of a hit the loss of the pair is softplus(-z), and softplus(z) that plus z.
    sums, hit = grouped.sums, grouped.hit
    unit = sums.get("unit_0", sums["log_0"])
    wrong = _certainly_wrong(grouped).any()
    return Totals(
        loss=float(sums["log_0"].sum()),
        loss2=float(sums["log_square"].sum()),
        unit_loss=float("inf") if wrong else float(unit.sum()),
        phi_hit=0.0,
        tangent=-float((unit + hit * sums["z_0"]).sum()),
    )


def _values(cells: Cells) -> Values | None:
    """Distinct confidences, if no cell holds two of them."""
    some = cells["weight_0"] > 0
    if (cells.low[some] < cells.high[some]).any():
        return None
    names = ["weight_0", "hit_0", "hit2", "z", "finite_z"]
    assert len(names) == len(FIELDS)
    losses = [f"{name}_loss_0" for name in cells.divergences]
    found = Values(cells.divergences)
    h = np.abs(cells.low[some])  # -0.0 is 0
    found.table = np.stack([h, *(cells[name][some] for name in (*names, *losses))])
    return found
