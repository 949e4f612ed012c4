"""Sums by cell on the device: what `acumen.sketches` keeps of rows, as tensors.

All are sums, least or largest values over rows, so those of several devices or
processes are put together entry by entry.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import torch
from torch import Tensor

from acumen.bregman import BUILT_IN
from acumen.grid import CELLS, ORDER
from acumen.sketches.cells import STEPS, Cells, fields_of
from acumen.sketches.contents import Contents, Kind
from acumen.sketches.sketch import Sketch
from acumen.sketches.state import CLASS_BINS, MOST_CLASS_BINS, State
from acumen.sums import LOG_ODDS_CELLS, LOG_ODDS_REACH, Totals
from acumen.torch.reduction import TensorColumns, softplus

PART = 1 << 14
"""Rows added at a time; their contributions take 5 MB."""

EXTREMES = {"low": "min", "high": "max"}
"""How tensors are put together that are not sums."""

Sums = Mapping[str, Tensor]


def empty(classes: int) -> dict[str, Tensor]:
    """The sums of no rows; `classes` is the number of classes that may be predicted.

    `table` has the sums of each cell, `low` and `high` its least and largest confidence;
    `totals` those of `acumen.sums.Totals` for Brier and log; `certain` counts h = 0 and
    h = 1; `within` has the residuals of each predicted class, if these are kept.
    """
    zeros = {
        "table": (STEPS, len(fields_of(BUILT_IN))),
        "totals": (len(BUILT_IN), len(Totals.__slots__)),
        "certain": (2,),
    }
    if 0 < classes * CLASS_BINS <= MOST_CLASS_BINS:
        zeros["within"] = (classes, CLASS_BINS)
    return {
        "rows": torch.zeros((), dtype=torch.int64),
        "low": torch.full((STEPS,), torch.inf, dtype=torch.float64),
        "high": torch.full((STEPS,), -torch.inf, dtype=torch.float64),
        **{name: torch.zeros(x, dtype=torch.float64) for name, x in zeros.items()},
    }


def add_rows(sums: Sums, columns: TensorColumns, keep: Tensor) -> None:
    """Add rows to the sums, in place; rows that are not kept leave no trace."""
    for start in range(0, len(keep), PART):
        part = slice(start, start + PART)
        _add_part(sums, columns.take(part), keep[part])


def _add_part(sums: Sums, columns: TensorColumns, keep: Tensor) -> None:
    h, z, hit, brier, log = (torch.where(keep, x, 0.0) for x in columns[:5])
    losses = torch.stack([brier, log])
    cell, w = cell_number(h), keep.double()
    table = _contributions(h, z, hit, losses)
    sums["table"].index_add_(0, cell, table * w[:, None])
    sums["low"].scatter_reduce_(0, cell, torch.where(keep, h, torch.inf), "amin")
    sums["high"].scatter_reduce_(0, cell, torch.where(keep, h, -torch.inf), "amax")
    totals = torch.where(keep, _totals(h, z, hit, losses), 0.0)
    sums["totals"].add_(totals.sum(dim=2))
    sums["certain"].add_(torch.stack([z.isneginf(), z.isposinf()]).double().sum(dim=1))
    sums["rows"].add_(keep.sum())
    if "within" in sums and columns.predicted is not None:
        place = columns.predicted * CLASS_BINS + cell_of(h, CLASS_BINS)
        sums["within"].view(-1).index_add_(0, place, (hit - h) * w)


def _contributions(h: Tensor, z: Tensor, hit: Tensor, losses: Tensor) -> Tensor:
    """What each row adds to each field of its cell."""
    finite_z, (brier, log) = _or_zero(z), _or_zero(losses)
    moments = [torch.ones_like(h), hit, brier, 2 * h, log, finite_z]
    r = hit - h
    r2, cut = r * r, z.clamp(-LOG_ODDS_REACH, LOG_ODDS_REACH)
    of_rows = [hit * hit, r, r2, r2 * r, r2 * r2, h, cut, finite_z]
    lost = (~losses.isfinite()).double()
    return torch.cat([_with_powers(moments, h), torch.stack([*of_rows, *lost], 1)], 1)


def _totals(h: Tensor, z: Tensor, hit: Tensor, losses: Tensor) -> Tensor:
    """What each row adds to `Totals`, for Brier and for log."""
    finite = _or_zero(losses)
    unit = torch.stack([(hit - h).square(), softplus(torch.where(hit > 0, -z, z))])
    phi_hit = torch.stack([hit, torch.zeros_like(hit)])  # a^2, and no entropy at 0 or 1
    tangent = torch.stack([-h * h, torch.where(z.isfinite(), -softplus(z), 0.0)])
    return torch.stack([finite, finite * finite, unit, phi_hit, tangent], dim=1)


def _or_zero(x: Tensor) -> Tensor:
    return torch.where(x.isfinite(), x, 0.0)


def _with_powers(values: list[Tensor], h: Tensor) -> Tensor:
    """Each value times the powers of the place in the cell."""
    t = h * CELLS - cell_of(h, CELLS) - 0.5
    powers = t[:, None] ** torch.arange(ORDER, device=t.device)
    return (torch.stack(values, dim=1)[:, :, None] * powers[:, None, :]).flatten(1)


def cell_of(h: Tensor, cells: int) -> Tensor:
    """As `acumen.grid.cell_of`: number of the right-closed cell that holds h."""
    cell = torch.ceil(h * cells) - 1
    cell -= (h <= cell / cells).double()  # the product rounded up across an edge
    cell += (h > (cell + 1) / cells).double()
    return cell.clamp(min=0).long()


def cell_number(h: Tensor) -> Tensor:
    """As `acumen.sketches.cells.cell_number`, from the log-odds of h itself."""
    z = h.log() - torch.log1p(-h)
    scaled = (z.clamp(-LOG_ODDS_REACH, LOG_ODDS_REACH) + LOG_ODDS_REACH) * (
        LOG_ODDS_CELLS / (2 * LOG_ODDS_REACH)
    )
    cell = scaled.long().clamp(max=LOG_ODDS_CELLS - 1) + 1
    cell = torch.where(z.isneginf(), 0, cell)
    cell = torch.where(z.isposinf(), LOG_ODDS_CELLS + 1, cell)
    return cell_of(h, CELLS) + cell


def sketch_of(sums: Sums, target: str, classes: tuple[Hashable, ...]) -> Sketch:
    """The sums as a sketch on the host, to be evaluated, merged or saved."""
    if not int(sums["rows"]):
        return Sketch(target=target, classes=classes)
    arrays = {name: x.detach().cpu().numpy().copy() for name, x in sums.items()}
    cells = Cells(BUILT_IN)
    cells.rows = int(arrays["rows"])
    cells.certain_no, cells.certain_yes = arrays["certain"].tolist()
    cells.table, cells.low, cells.high = (arrays[x] for x in ("table", "low", "high"))
    for name, total in zip(BUILT_IN, arrays["totals"].tolist(), strict=True):
        cells.totals[name] = Totals(*total)
    state = State(cells, None, arrays.get("within"))
    return Sketch.of(Contents(Kind(target, classes, BUILT_IN), state))
