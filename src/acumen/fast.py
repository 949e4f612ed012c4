"""When to use the numba twins of the NumPy code, which ``acumen[fast]`` installs.

numba is imported only here and in the modules named after it, and only once it pays:
loading it takes half a second.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from acumen.arrays import Column, Matrix, check_choice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from acumen.columns import Columns
    from acumen.grid import Moments
    from acumen.neighbours import Cells
    from acumen.predictions import Predictions
    from acumen.reduction import Output

ENGINES = ("auto", "numpy", "numba")

WORTH_COMPILING = 1 << 22
"""Numbers in a matrix from which loading the compiled kernels pays."""

WORTH_COMPILING_ROWS = 200_000
"""Rows added to a sketch from which it pays."""


def wanted(engine: str, scores: Matrix, *, plain: bool) -> bool:
    """Whether to reduce rows by numba: asked for, or worth it; `plain` if it can."""
    large = plain and scores.size >= WORTH_COMPILING
    return _chosen(engine, worthwhile=large) and plain


def wanted_for_rows(engine: str, rows: int) -> bool:
    """Whether to add up this many rows by numba."""
    return _chosen(engine, worthwhile=rows >= WORTH_COMPILING_ROWS)


def wanted_if_loaded(engine: str) -> bool:
    """Whether to use numba for what does not make up for loading it."""
    return _chosen(engine, worthwhile=loaded())


def loaded() -> bool:
    """Whether some kernel was already needed in this process."""
    return "acumen.math_numba" in sys.modules


def _chosen(engine: str, *, worthwhile: bool) -> bool:
    check_choice(engine, "engine", ENGINES)
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
    from acumen import kernels_numba

    return kernels_numba.range_reducer(predictions, out)


def add_sums(
    moments: Moments,
    log_odds_sums: NDArray[Any],
    columns: Columns,
    values: list[Column | None],
    reach: float,
) -> None:
    """Add rows to both grids of a sketch in one pass with numba."""
    from acumen import sketch_numba

    sketch_numba.add_sums(moments, log_odds_sums, columns, values, reach)


def climb(
    K: NDArray[np.float64],
    cells: Cells,
    nodes: Column,
    rules: tuple[float, float, int, float],
    shift: Column,
    slope: Column,
) -> tuple[Column, Column]:
    """Fit local Platt scaling in place with numba; return leverage and variance."""
    from acumen import platt_numba

    seen = map(np.ascontiguousarray, (K, cells.z, cells.weight, cells.hits, nodes))
    return platt_numba.climb(*seen, rules, shift, slope)
