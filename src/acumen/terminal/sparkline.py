"""Where the confidences are, in one line of blocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BLOCKS = " ▁▂▃▄▅▆▇█"
SHADES = " .,:;+*#@"


def sparkline(
    histogram: NDArray[np.float64], width: int, *, unicode: bool = True
) -> str:
    """A histogram as blocks whose height is the square root of the weight.

    The root keeps thin tails visible: any weight above 0 shows.

    Examples
    --------
    >>> sparkline(np.array([0, 1, 0, 4, 16.0]), 5)
    ' ▂ ▄█'
    """
    cells = np.asarray(histogram, float)
    edges = np.linspace(0, len(cells), width + 1)
    sums = np.diff(
        np.interp(edges, np.arange(len(cells) + 1), np.r_[0, cells.cumsum()])
    )
    if sums.max() <= 0:
        return " " * width
    levels = np.ceil(8 * np.sqrt(np.maximum(sums, 0) / sums.max())).astype(int)
    signs = BLOCKS if unicode else SHADES
    return "".join(signs[level] for level in levels)
