"""Kernels, and weighted sums of them over a grid or over rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._inputs.arrays import Column
from calibrant._rows import compiled, engines
from calibrant._sketch.grid import PAD, fold, node_places

Table = NDArray[np.float64]
"""One row per column that is summed, one column per place."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel scaled so that its peak is 1; `mass` is its integral."""

    name: str
    profile: Callable[[Column], Column]
    mass: float
    reach: float


def _bell(u: Column) -> Column:
    square = u * u
    square *= -0.5
    return np.exp(square, out=square)


GAUSSIAN = Kernel("gaussian", _bell, sqrt(2 * pi), 8.6)
EPANECHNIKOV = Kernel("epanechnikov", lambda u: np.maximum(1 - u * u, 0.0), 4 / 3, 1.0)
KERNELS = {kernel.name: kernel for kernel in (GAUSSIAN, EPANECHNIKOV)}


def lay_out(
    weights: Table, kernel: Kernel, bandwidth: float, boundary: str
) -> tuple[Column, Table, int]:
    """Places and weights to sum over, mirrored beyond 0 and 1 if asked.

    Returns the places, the weights and how many nodes were added on each side.
    """
    cells = weights.shape[1] - 2 * PAD
    if boundary == "none":
        return node_places(cells), weights, 0
    extra = ceil(kernel.reach * bandwidth * cells) + 1
    mirrored = np.pad(fold(weights), ((0, 0), (extra, extra)), mode="symmetric")
    return (np.arange(-extra, cells + extra) + 0.5) / cells, mirrored, extra


def sums_at_nodes(
    weights: Table, kernel: Kernel, bandwidth: float, boundary: str = "none"
) -> Table:
    """Kernel sums at the nodes the weights sit on, by one FFT.

    Round-off is about 1e-16 of the total weight, wherever a node lies: fine at nodes
    that carry weight, useless far from them.
    """
    cells = weights.shape[1] - 2 * PAD
    _, values, extra = lay_out(weights, kernel, bandwidth, boundary)
    nodes = values.shape[1]
    reach = min(nodes - 1, ceil(kernel.reach * bandwidth * cells))
    taps = kernel.profile(np.arange(-reach, reach + 1) / (bandwidth * cells))
    size = _fast_length(nodes + reach)
    ring = np.zeros(size)
    ring[: reach + 1], ring[size - reach :] = taps[reach:], taps[:reach]
    spectrum = np.fft.rfft(values, size, axis=1) * np.fft.rfft(ring)
    sums = np.fft.irfft(spectrum, size, axis=1)[:, :nodes]
    if extra == 0:
        return sums
    inside = sums[:, extra : nodes - extra]
    return np.pad(inside, ((0, 0), (PAD, PAD)), mode="symmetric")


def _fast_length(n: int) -> int:
    """The next number of the form 2^a 3^b 5^c."""
    best = 1 << (n - 1).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            power = three << max(0, (-(-n // three) - 1).bit_length())
            if n <= power < best:
                best = power
            three *= 3
        five *= 5
    return best


def sums_at(
    places: Column,
    weights: Table,
    kernel: Kernel,
    bandwidth: float,
    boundary: str = "none",
) -> Table:
    """Kernel sums at any places, term by term: accurate in the tails too."""
    nodes, values, _ = lay_out(weights, kernel, bandwidth, boundary)
    used = np.flatnonzero(values.any(axis=0))
    nodes, values = nodes[used], values[:, used]
    sums, reach = np.empty((len(values), len(places))), kernel.reach * bandwidth
    if kernel is GAUSSIAN and engines.wanted():
        given = bandwidth, reach, places, nodes, values
        return compiled.filled("bells", sums.shape, *given)
    for start in range(0, len(places), 32):
        part = slice(start, start + 32)
        ends = places[part][0] - reach, places[part][-1] + reach
        lo, hi = np.searchsorted(nodes, ends)
        u = (places[part, None] - nodes[None, lo:hi]) / bandwidth
        sums[:, part] = values[:, lo:hi] @ kernel.profile(u).T
    return sums


def epanechnikov_sums(
    places: Column, h: Column, values: Table, bandwidth: float
) -> Table:
    """Exact Epanechnikov sums over sorted rows h, by prefix sums: O(n log n).

    Rows are grouped in cells as wide as the bandwidth, and powers are taken about the
    centre of the row's own cell, so the three cells a window can touch need no large
    differences. Prefix sums run in extended precision where the platform has it.
    """
    cell = np.floor(h / bandwidth).astype(np.intp)
    d = (h / bandwidth - cell) - 0.5
    prefixes = [_prefix(values * d**j) for j in range(3)]
    lo = np.searchsorted(h, places - bandwidth, side="left")
    hi = np.searchsorted(h, places + bandwidth, side="right")
    home = np.floor(places / bandwidth).astype(np.intp)
    sums = np.zeros((len(values), len(places)))
    for shift in (-1, 0, 1):
        first = np.clip(np.searchsorted(cell, home + shift, side="left"), lo, hi)
        last = np.clip(np.searchsorted(cell, home + shift, side="right"), lo, hi)
        e = (home + shift + 0.5) - places / bandwidth  # cell centre as seen from there
        for prefix, factor in zip(prefixes, (1 - e * e, -2 * e, -1.0), strict=True):
            sums += factor * (prefix[:, last] - prefix[:, first]).astype(np.float64)
    return sums


def _prefix(values: Table) -> NDArray[Any]:
    total = np.zeros((values.shape[0], values.shape[1] + 1), np.longdouble)
    np.cumsum(values, axis=1, dtype=np.longdouble, out=total[:, 1:])
    return total
