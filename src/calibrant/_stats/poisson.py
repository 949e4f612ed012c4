"""Poisson counts, the same bits whichever engine draws them.

Small means are drawn by inversion: a uniform number of a counter-based generator
(SplitMix64) is looked up in a table of probabilities, which is made of products and sums
alone. Large means go through the expansion of the Poisson quantile in the normal one (Giles,
ACM TOMS 2016), whose error is of order mean ** -1.5: far below what draws can show.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant._inputs.arrays import Column, Index, Table
from calibrant._rows import compiled, engines

FEW = 512.0
"""Mean up to which counts are looked up in a table."""

STREAM, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def poisson(
    means: Column, draws: int, rng: np.random.Generator, engine: str = "auto"
) -> Table:
    """Counts of each mean: draws x means.

    Examples
    --------
    >>> counts = poisson(np.array([0.5, 20.0, 3000.0]), 4000, np.random.default_rng(0))
    >>> counts.mean(axis=0).round(1).tolist()
    [0.5, 20.1, 2999.2]
    """
    few = means <= FEW
    counts = np.empty((len(means), draws))
    seed = int(rng.integers(1 << 63))
    draw = _draw_compiled if engines.wanted(engine) else _draw_few
    counts[few] = draw(means[few], draws, seed)
    many = means[~few, None]
    counts[~few] = _expand(many, rng.standard_normal((len(many), draws)))
    return counts.T


def _expand(mean: Table, w: Table) -> Table:
    """The Poisson quantile where the normal one is w."""
    root, square = np.sqrt(mean), w * w
    found = mean + root * w + (1 / 3 + square / 6)
    found -= w * (2 + square) / (72 * root)
    found += (square * (3 * square + 7) - 16) / (810 * mean)
    return np.floor(found, out=found)


def _reaches(means: Column) -> Index:
    """How far from the mode counts are that are ever drawn: beyond is less than 1e-17."""
    return np.ceil(9 * np.sqrt(means)).astype(np.int64) + 12


def _draw_compiled(means: Column, draws: int, seed: int) -> Table:
    counts = np.empty((len(means), draws))
    compiled.loops.poisson(seed, draws, means, _reaches(means), counts)
    return counts


def _draw_few(means: Column, draws: int, seed: int) -> Table:
    """The same, mean by mean."""
    counts = np.empty((len(means), draws))
    numbers = np.arange(draws, dtype=np.uint64)
    for i, (mean, reach) in enumerate(
        zip(means, _reaches(means).tolist(), strict=True)
    ):
        low, shares = _shares(float(mean), reach)
        u = uniform(seed, numbers + np.uint64(i * draws))
        at = np.searchsorted(shares, u * shares[-1], side="right")
        counts[i] = low + np.minimum(at, len(shares) - 1)
    return counts


def _shares(mean: float, reach: int) -> tuple[int, Column]:
    """The least count, and sums of probabilities up to each, times a constant."""
    mode = int(mean)
    low = max(mode - reach, 0)
    down = np.cumprod(np.arange(mode, low, -1.0) / mean) if mode > low else np.empty(0)
    up = np.cumprod(mean / np.arange(mode + 1.0, mode + reach + 1.0))
    return low, np.cumsum(np.concatenate([down[::-1], [1.0], up]))


def uniform(seed: int, numbers: NDArray[np.uint64]) -> Column:
    """Uniform numbers inside (0, 1): those of these places in the stream of a seed."""
    x = np.uint64(seed) + (numbers + np.uint64(1)) * np.uint64(STREAM)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(FIRST)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(SECOND)
    x ^= x >> np.uint64(31)
    return ((x >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
