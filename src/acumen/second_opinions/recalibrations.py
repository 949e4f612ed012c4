"""Three recalibrations of a confidence, fitted on cells: Platt, isotonic and kernel.

Each is a map from log-odds to log-odds. It reads the cells of some rows, so that it
costs the same for any number of them, and may be asked about any other row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from acumen.analysis import LOCAL_CELLS
from acumen.arrays import Column
from acumen.estimators import platt
from acumen.estimators.local_error import fixed_width
from acumen.estimators.neighbours import Cells, thin

Map = Callable[[Column], Column]
"""From log-odds to recalibrated log-odds; both finite."""

EVERYWHERE = 1e6
"""A width in rank at which the kernel sees all rows alike."""


def fit_platt(cells: Cells) -> Map:
    """Platt scaling: the log-odds stretched and shifted, with a weak prior."""
    centre = float(cells.z @ cells.weight / cells.n)
    fitted = platt.fit(cells, EVERYWHERE, np.array([centre]))
    shift, slope = float(fitted.shift[0]), float(fitted.slope[0])
    return lambda z: z + shift + slope * (z - centre)


def fit_isotonic(cells: Cells) -> Map:
    """Isotonic regression, interpolated; half a hit and half a miss join each level.

    Without them a level of hits alone would be certain, and a single miss among other
    rows infinitely dear.
    """
    from scipy.optimize import isotonic_regression

    found = isotonic_regression(cells.hits / cells.weight, weights=cells.weight)
    first, size = found.blocks[:-1], np.diff(found.blocks)
    hits, weight = (np.add.reduceat(x, first) for x in (cells.hits, cells.weight))
    misses = np.maximum(weight - hits, 0.0)
    level = np.repeat(np.log(hits + 0.5) - np.log(misses + 0.5), size)
    return lambda z: np.interp(z, cells.z, level)


def fit_kernel(cells: Cells) -> Map:
    """Local Platt scaling, of the width behind the headline of the log divergence."""
    few = thin(cells, LOCAL_CELLS)
    return platt.fit(few, fixed_width(few.n), platt.choose_nodes(few)).log_odds


def _as_it_is(z: Column) -> Column:
    return z


NONE = "none"
METHODS: Mapping[str, Callable[[Cells], Map]] = {
    "platt": fit_platt,
    "isotonic": fit_isotonic,
    "kernel": fit_kernel,
    NONE: lambda cells: _as_it_is,
}
"""By name; the last leaves the confidence alone, and gains nothing."""
