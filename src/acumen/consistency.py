"""What an isotonic fit looks like when the model is calibrated: a band to compare with."""

from __future__ import annotations

import numpy as np

from acumen.arrays import Column

RESAMPLES = 400


def consistency_band(
    confidence: Column, count: Column, level: float = 0.95, seed: int = 0
) -> tuple[Column, Column]:
    """Pointwise band of isotonic fits to labels drawn with the stated confidences.

    Parameters
    ----------
    confidence, count : array
        Distinct confidences in increasing order, and the rows at each.
    level : float
        Share of fits inside the band at each confidence.
    seed : int
        The draws are random, but the same every time.

    Examples
    --------
    >>> low, high = consistency_band(np.array([0.2, 0.8]), np.array([100.0, 100.0]))
    >>> bool(low[0] < 0.2 < high[0] < low[1] < 0.8 < high[1])
    True
    """
    from scipy.optimize import isotonic_regression

    rng = np.random.default_rng(seed)
    rows = np.maximum(np.round(count), 1).astype(np.int64)
    fits = np.empty((RESAMPLES, len(confidence)))
    for fit in fits:
        share = rng.binomial(rows, confidence) / rows
        fit[:] = isotonic_regression(share, weights=count).x
    low, high = np.quantile(fits, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high
