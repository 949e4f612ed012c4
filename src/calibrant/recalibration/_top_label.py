"""Top-label: only the confidence is recalibrated, and the other classes share the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._inputs.arrays import Column, Matrix
from calibrant.recalibration._rows import Rows

MARGIN = 1e-6
"""How much less than the predicted class any other gets, relatively, at least."""


def find_top(rows: Rows, part: slice) -> tuple[Matrix, NDArray[np.intp], Column]:
    """Probabilities in an array of their own, predicted classes and confidences."""
    best = rows.block(part).argmax(axis=1)
    probs = rows.probabilities(part)
    h = probs[np.arange(len(probs)), best].astype(np.float64)
    return probs, best, np.minimum(h, 1.0)


def confidences(rows: Rows) -> tuple[Column, NDArray[np.bool_]]:
    """Confidence of every row, and whether its label is the predicted class."""
    h, hit = np.empty(len(rows)), np.empty(len(rows), np.bool_)

    def read(part: slice) -> None:
        _, best, h[part] = find_top(rows, part)
        hit[part] = best == rows.y[part]

    rows.each(read)
    return h, hit


def others_of(probs: Matrix, best: NDArray[Any]) -> Column:
    """What all but the predicted class have: 1 - h where that would round to 0."""
    others = np.array(probs)
    others[np.arange(len(probs)), best] = 0
    return others.sum(axis=1, dtype=np.float64)


def give(probs: Matrix, best: NDArray[Any], value: Column, rest: Column) -> None:
    """Give the predicted class its new probability and the others the rest, in place.

    They share it in proportion to what they had. If one of them would then come too
    close, shares are blended with equal ones, just as much as is needed.
    """
    at, others = np.arange(len(probs)), probs.shape[1] - 1
    _keep_others(probs, at, best)
    largest = probs.max(axis=1).astype(np.float64)
    blend = _blend(largest, value, rest, 1 / others)
    probs *= ((1 - blend) * rest)[:, None].astype(probs.dtype)
    if blend.any():
        probs += (blend * rest / others)[:, None].astype(probs.dtype)
    probs[at, best] = value


def _keep_others(probs: Matrix, at: NDArray[Any], best: NDArray[Any]) -> None:
    """Shares of the other classes in what they have together; equal ones of nothing."""
    probs[at, best] = 0
    rest = probs.sum(axis=1, dtype=np.float64)
    nothing = rest == 0
    if nothing.any():
        probs[nothing] = 1
        probs[at[nothing], best[nothing]] = 0
        rest[nothing] = probs.shape[1] - 1
    probs /= rest[:, None].astype(probs.dtype)


def _blend(largest: Column, value: Column, rest: Column, even: float) -> Column:
    """How far shares must go towards equal ones for the largest to be small enough."""
    with np.errstate(divide="ignore", invalid="ignore"):
        allowed = value / rest * (1 - MARGIN)
        blend = (largest - allowed) / (largest - even)
    return np.where(largest > even, blend.clip(0, 1), 0.0)
