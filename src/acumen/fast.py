"""The numba twin of the NumPy reduction, used when ``acumen[fast]`` is installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from acumen.arrays import Matrix, check_choice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from acumen.predictions import Predictions
    from acumen.reduction import Output

WORTH_COMPILING = 1 << 22
"""Numbers in a matrix from which loading the compiled kernels pays."""


def wanted(engine: str, scores: Matrix, *, plain: bool) -> bool:
    """Whether to use numba: asked for, or installed and worth the start-up time."""
    check_choice(engine, "engine", ("auto", "numpy", "numba"))
    if engine == "numpy" or not plain:
        return False
    installed = find_spec("numba") is not None
    if engine == "numba" and not installed:
        raise ImportError("engine='numba' needs numba: pip install 'acumen[fast]'.")
    return installed and (engine == "numba" or scores.size >= WORTH_COMPILING)


def range_reducer(
    predictions: Predictions, out: Output
) -> Callable[[int, int], NDArray[Any]]:
    """Return a function that reduces rows start..stop into `out` with numba."""
    from acumen import kernels_numba

    return kernels_numba.range_reducer(predictions, out)
