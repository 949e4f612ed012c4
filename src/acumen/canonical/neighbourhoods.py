"""Kernel sums over rows whose whole vectors are alike.

Likeness is the Hellinger distance: Euclidean between square roots of probabilities, so
that 0.001 and 0.01 are as far apart as 0.5 and 0.57, and 0 is no special place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from acumen.arrays import Column
from acumen.canonical.vectors import Table


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """Weighted sums around some rows, the rows themselves included.

    `mass` and `mass2` sum K and K^2; `hits` and `claims` sum K times labels and start;
    `noise` sums K^2 times the squared length of their difference.
    """

    mass: Column
    mass2: Column
    hits: Table
    claims: Table
    noise: Column


def sums_around(
    rows: Table, root: Table, labels: Table, start: Table, weight: Column, square: float
) -> Iterator[Near]:
    """Sums around `rows`, with a kernel of width sqrt(`square`), then of halved squares.

    `root` and `rows` are square roots of probabilities. K = exp(-|x - y|^2 / (2 square)),
    so halving `square` squares K.
    """
    k = labels.shape[1]
    both = np.concatenate([labels, start, np.ones((len(weight), 1))], axis=1)
    both *= weight[:, None]
    lengths = ((labels - start) ** 2).sum(axis=1)
    squares = np.stack([weight * lengths, weight], axis=1)
    likeness = np.minimum(rows @ root.T, 1.0)
    K = np.exp((likeness - 1) / square)
    while True:
        K2 = K * K
        plain, noise = K @ both, K2 @ squares
        yield Near(
            mass=plain[:, -1],
            mass2=noise[:, 1],
            hits=plain[:, :k],
            claims=plain[:, k:-1],
            noise=noise[:, 0],
        )
        K = K2
