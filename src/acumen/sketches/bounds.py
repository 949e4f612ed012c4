"""How far metrics of a sketch may be from those of its rows."""

from __future__ import annotations

import numpy as np

from acumen.arrays import Column
from acumen.grid import CELLS
from acumen.sketches.state import State


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
