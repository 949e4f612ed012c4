"""What a local recalibration of whole vectors gains, each row left out of its own fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from acumen.arrays import Column
from acumen.canonical.neighbourhoods import Near
from acumen.canonical.start import Start
from acumen.canonical.vectors import Table, Vectors
from acumen.estimators.platt import LARGEST_VARIANCE

PRIOR = 1.0
"""Rows' worth of the start that each neighbourhood is given, for log."""


class Gains(NamedTuple):
    """Per row: the gain held out, the noise in the fit, how far it moves, and others."""

    held_out: Column
    noise: Column
    size: Column
    neighbours: Column


Gain = Callable[[Vectors, Start, Near], Gains]
"""Of some rows, from where they start and the sums around them."""


def brier_gains(vectors: Vectors, start: Start, near: Near) -> Gains:
    r"""Gains of the squared error.

    With q the start and g the kernel mean of e - q without the row itself, the fit moves
    p by :math:`u = q + g - p` and gains :math:`2 (e - p) \cdot u - |u|^2`, whose mean
    misses d_CAL by the variances of g and q (and by the square of what the kernel smooths
    away).
    """
    p, e, q = vectors.probs, vectors.labels, np.exp(start.log_probs)
    share = 1 / np.maximum(near.mass, 1.0)
    own = e - q
    g = share[:, None] * (near.hits - near.claims - own)
    noise = share**2 * (near.noise - (own**2).sum(axis=1))
    noise += ((q * start.error) ** 2).sum(axis=1)
    move = q + g - p
    size = (move**2).sum(axis=1)
    gain = 2 * ((e - p) * move).sum(axis=1) - size
    return Gains(gain, noise, size, near.mass - 1)


def log_gains(vectors: Vectors, start: Start, near: Near) -> Gains:
    """Gains of the log loss: the start times observed over expected hits nearby."""
    e, q = vectors.labels, np.exp(start.log_probs)
    hits = np.maximum(near.hits - e, 0.0) + PRIOR * q
    claims = np.maximum(near.claims - q, 0.0) + PRIOR * q
    log_m = start.log_probs + np.log(hits) - np.log(claims)
    log_m -= np.log(np.exp(log_m).sum(axis=1, keepdims=True))
    m = np.exp(log_m)
    possible = np.isfinite(vectors.log_probs)
    rise = log_m - vectors.log_probs  # infinite where a class was held impossible
    gain = _times(e, rise)
    size = _times(np.where(possible, m, 0.0), rise)
    spread = np.minimum(_spread(near, claims) + start.error**2, LARGEST_VARIANCE)
    noise = 0.5 * (m * spread).sum(axis=1)
    return Gains(gain, noise, size, near.mass - 1)


def _times(weight: Table, values: Table) -> Column:
    """Sums over classes, where a weight of 0 counts for nothing."""
    return (weight * np.where(weight > 0, values, 0.0)).sum(axis=1)


def _spread(near: Near, claims: Table) -> Table:
    """Variance of the logarithm of observed over expected hits."""
    others = np.maximum(near.mass - 1, 1e-12)
    narrow = np.minimum(np.maximum(near.mass2 - 1, 0.0) / others, 1.0)
    share = np.minimum(claims / (others + PRIOR)[:, None], 1.0)
    return narrow[:, None] * (1 - share) / claims


GAINS: Mapping[str, Gain] = {"brier": brier_gains, "log": log_gains}
