"""The arithmetic of one block of rows: sums without the largest entry, and losses.

Leaving the largest entry out of the sums keeps the relative accuracy of 1 - h where h
itself rounds to 1, and makes every loss a sum of non-negative terms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._inputs.arrays import ROW_SUM_TOLERANCE, Column, Mask, Matrix, Table


class Sums(NamedTuple):
    """What the rows of a block leave behind.

    `others` is the block itself with the largest entry of each row set to 0: for
    logits the exponentials relative to that entry, for probabilities themselves.
    """

    offends: Mask
    best: NDArray[Any]
    top: Column
    rest: Column
    log_odds: Column
    others: Matrix


class Losses(NamedTuple):
    """Hit, Brier and log loss of each row."""

    hit: Column
    brier: Column
    log: Column


def sums_of_logits(scores: Matrix, others: Matrix) -> Sums:
    """Exponentials relative to the row maximum, which is then set to 0; row sums."""
    at, best = np.arange(len(scores)), scores.argmax(axis=1)
    top = scores[at, best]
    np.subtract(scores, top[:, None], out=others)
    np.exp(others, out=others)
    others[at, best] = 0
    rest = np.add.reduce(others, axis=1).astype(np.float64)
    log_rest = np.log(rest)
    tiny = np.flatnonzero(rest < (1e-30 if others.dtype == np.float32 else 1e-290))
    if tiny.size:  # the other classes underflowed: once more, with room
        log_rest[tiny] = _log_rest(scores[tiny].astype(np.float64), best[tiny])
        rest[tiny] = np.exp(log_rest[tiny])
    top = top.astype(np.float64)
    return Sums(~np.isfinite(top), best, top, rest, -log_rest, others)


def _log_rest(z: Table, best: NDArray[Any]) -> Column:
    """Log of the sum of exp(z - max) over all but the largest entry."""
    at = np.arange(len(z))
    top = z[at, best]
    z[at, best] = -np.inf
    second = z.max(axis=1)
    second = np.where(np.isneginf(second), 0.0, second)
    return (second - top) + np.log(np.exp(z - second[:, None]).sum(axis=1))


def sums_of_probs(scores: Matrix, others: Matrix, tolerance: float) -> Sums:
    """The rows with their maximum set to 0; row sums; which rows break a rule."""
    at, best = np.arange(len(scores)), scores.argmax(axis=1)
    top = scores[at, best].astype(np.float64)
    others[...] = scores
    others[at, best] = 0
    rest = np.add.reduce(others, axis=1).astype(np.float64)
    offends = ~(np.abs(top + rest - 1) <= tolerance)
    if not others.min() >= 0:
        offends |= ~(others >= 0).all(axis=1)
    return Sums(offends, best, top, rest, np.log(top) - np.log(rest), others)


def hard_losses_of_logits(scores: Matrix, sums: Sums, labels: NDArray[Any]) -> Losses:
    """Losses for observed classes.

    With S = 1 + rest, |g - e_y|^2 = (1 - g_y)^2 + sum_{j != y} g_j^2: every term is a
    sum of non-negative numbers, so nothing cancels as g_y goes to 1.
    """
    at = np.arange(len(scores))
    hit, scale = sums.best == labels, 1 / (1 + sums.rest)
    e_y = sums.others[at, labels].astype(np.float64)
    squares = np.vecdot(sums.others, sums.others).astype(np.float64)
    missing = np.where(hit, sums.rest, 1 + sums.rest - e_y) * scale
    others = np.where(hit, squares, 1 + np.maximum(squares - e_y * e_y, 0))
    brier = missing * missing + others * scale * scale
    log = np.log1p(sums.rest) + (sums.top - scores[at, labels])
    return Losses(hit.astype(np.float64), brier, log)


def hard_losses_of_probs(scores: Matrix, sums: Sums, labels: NDArray[Any]) -> Losses:
    """Losses for observed classes, with the probabilities taken as they are."""
    hit = sums.best == labels
    p_y = scores[np.arange(len(scores)), labels].astype(np.float64)
    squares = np.vecdot(sums.others, sums.others).astype(np.float64)
    wrong = sums.top * sums.top + np.maximum(squares - p_y * p_y, 0)
    others = np.where(hit, squares, wrong)
    log = -np.log(np.minimum(p_y, 1.0))
    return Losses(hit.astype(np.float64), (1 - p_y) ** 2 + others, log)


def log_probabilities(kind: str, scores: Matrix) -> Table:
    """Logarithm of g, row by row, in double precision."""
    z = scores.astype(np.float64)
    if kind != "logits":
        return np.log(z)
    z -= z.max(axis=1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def soft_losses(
    kind: str, scores: Matrix, sums: Sums, labels: NDArray[Any]
) -> tuple[Losses, Mask]:
    """d(pi, g) for soft labels pi, and the rows where pi is no distribution."""
    log_p = log_probabilities(kind, scores)
    p = np.exp(log_p) if kind == "logits" else scores.astype(np.float64)
    some = labels > 0
    ratio = np.where(some, np.log(np.where(some, labels, 1.0)) - log_p, 0.0)
    hit = np.minimum(labels[np.arange(len(labels)), sums.best], 1.0)
    log = np.maximum((labels * ratio).sum(axis=1), 0.0)  # rows sum to 1 only nearly
    losses = Losses(hit, ((labels - p) ** 2).sum(axis=1), log)
    return losses, ~are_distributions(labels)


@np.errstate(over="ignore")
def are_distributions(labels: NDArray[Any]) -> Mask:
    """Which rows of soft labels are non-negative and sum to 1, within the tolerance."""
    off = np.abs(labels.sum(axis=1, dtype=np.float64) - 1)
    return (off <= ROW_SUM_TOLERANCE[labels.dtype.name]) & (labels >= 0).all(axis=1)
