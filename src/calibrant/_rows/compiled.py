"""The compiled loops over rows, where `_compiled.c` was built; else `loops` is None.

What its functions take is in `_compiled.pyi`. NumPy is the reference for each of them and
does their work where there is no module: `engines` says which.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    from calibrant._rows import _compiled as loops
except ImportError:  # no compiler was there when it was installed
    loops = None  # type: ignore[assignment]

__all__ = ["filled", "loops", "ready", "rows_at_once"]

COPIED_BYTES = 1 << 18
"""Of the blocks of a matrix that is copied because of its type or its place in memory."""


def ready(array: NDArray[Any], dtype: Any = np.float64) -> NDArray[Any]:
    """The array as the loops read it: contiguous, aligned, of this native type."""
    flags = array.flags
    if array.dtype == dtype and flags.c_contiguous and flags.aligned:
        return array  # as most are: asking NumPy takes longer than many a loop
    return np.require(array, dtype, ["C", "A"])


def filled(name: str, shape: Any, *given: Any) -> NDArray[np.float64]:
    """What a loop writes into its last argument, an array of this shape."""
    out, loop = np.zeros(shape), getattr(loops, name)
    try:
        loop(*given, out)
    except (
        TypeError,
        ValueError,
    ):  # not contiguous, or it says once more what is wrong
        arrays = (ready(x, x.dtype) if isinstance(x, np.ndarray) else x for x in given)
        loop(*arrays, out)
    return out


def rows_at_once(scores: NDArray[Any], dtype: np.dtype[Any]) -> int:
    """How many rows of a matrix to make ready at a time: all, if they are."""
    flags, k = scores.flags, scores.shape[1]
    if scores.dtype == dtype and flags.c_contiguous and flags.aligned:
        return max(len(scores), 1)
    return max(1, COPIED_BYTES // (k * dtype.itemsize))
