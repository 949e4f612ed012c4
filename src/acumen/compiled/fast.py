"""When to use the numba twins of the NumPy code, which ``acumen[fast]`` installs.

numba is imported only here and in the modules named after it, and only once it pays:
loading it takes half a second.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from acumen.arrays import Column, Matrix, check_choice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from acumen.columns import Columns
    from acumen.compiled.cells_numba import CellSums
    from acumen.compiled.sketch_numba import Block
    from acumen.estimators.neighbours import Cells
    from acumen.grid import Moments
    from acumen.predictions import Predictions
    from acumen.reduction import Output

ENGINES = ("auto", "numpy", "numba")

WORTH_CALLING = 1 << 22
"""Numbers in a matrix from which the compiled reduction pays, once it is loaded."""

WORTH_CALLING_ROWS = 200_000
"""Rows added to a sketch from which the compiled sums pay."""

LOADING = 8
"""Before that, a matrix or a sketch must be this many times larger."""


def wanted(engine: str, scores: Matrix, *, plain: bool) -> bool:
    """Whether to reduce rows by numba; `plain` says whether it can."""
    return _chosen(engine, scores.size if plain else 0, WORTH_CALLING) and plain


def wanted_for_rows(engine: str, rows: int) -> bool:
    """Whether to add up this many rows by numba."""
    return _chosen(engine, rows, WORTH_CALLING_ROWS)


def wanted_if_loaded(engine: str) -> bool:
    """Whether to use numba for what does not make up for loading it."""
    return _chosen(engine, 1, 1)


def installed() -> bool:
    """Whether numba is there, loaded or not."""
    return find_spec("numba") is not None


def loaded() -> bool:
    """Whether some kernel was already needed in this process."""
    return "acumen.compiled.math_numba" in sys.modules


def _chosen(engine: str, size: int, enough: int) -> bool:
    """Whether numba is asked for, or installed and worth it for this size."""
    check_choice(engine, "engine", ENGINES)
    worthwhile = size >= (enough if loaded() else LOADING * enough)
    if engine == "numpy" or (engine == "auto" and not worthwhile):
        return False
    try:
        import numba  # noqa: F401
    except ImportError as error:  # also what numba raises if NumPy is too new for it
        if engine == "auto":
            return False
        raise ImportError(
            f"engine='numba' needs numba ({error}): pip install 'acumen[fast]'."
        ) from error
    return True


def range_reducer(
    predictions: Predictions, out: Output
) -> Callable[[int, int], NDArray[Any]]:
    """Return a function that reduces rows start..stop into `out` with numba."""
    from acumen.compiled import kernels_numba

    return kernels_numba.range_reducer(predictions, out)


def cell_sums(
    moments: Moments, log_odds_sums: NDArray[np.float64], reach: float
) -> CellSums:
    """Return what adds up rows on both grids of a sketch with numba."""
    from acumen.compiled import cells_numba

    return cells_numba.CellSums(moments, log_odds_sums, reach)


def block_of_cells(
    table: NDArray[np.float64], low: Column, high: Column, reach: float
) -> Block:
    """Return what adds rows to the cells of a sketch with numba."""
    from acumen.compiled import sketch_numba

    return sketch_numba.Block(table, low, high, reach)


def add_residual(moments: NDArray[np.float64], columns: Columns) -> None:
    """Add the residual a - h of all rows to its (order, cells) moments with numba."""
    from acumen.compiled import cells_numba

    cells_numba.add_residual(moments, columns)


def climb(
    K: NDArray[np.float64],
    cells: Cells,
    nodes: Column,
    rules: tuple[float, float, int, float],
    shift: Column,
    slope: Column,
) -> tuple[Column, Column]:
    """Fit local Platt scaling in place with numba; return leverage and variance."""
    from acumen.compiled import platt_numba

    seen = map(np.ascontiguousarray, (K, cells.z, cells.weight, cells.hits, nodes))
    return platt_numba.climb(*seen, rules, shift, slope)
