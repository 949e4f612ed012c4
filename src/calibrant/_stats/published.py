"""The paper's Nadaraya-Watson regression on confidence, and what follows from it.

With kernel weights K_i(p) = w_i K((p - h_i) / bandwidth), accuracy and loss at
confidence p are the K_i(p)-weighted means of hits and losses. The calibration error
averages phi over *all* rows, which from cells is a weighted sum over their nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf

import numpy as np

from calibrant._base.records import Curve
from calibrant._inputs.arrays import Column
from calibrant._inputs.divergences import Divergence
from calibrant._rows.columns import Columns
from calibrant._sketch import kernels
from calibrant._sketch.cells import Cells
from calibrant._sketch.grid import CELLS, PAD, coarsen, node_weights
from calibrant._sketch.kernels import EPANECHNIKOV, Kernel

PLACES = np.arange(481) / 480
"""Where a curve is evaluated: 0, 1 and every 1/480 between."""

LEAST_SUPPORT = exp(-4.5)
"""Kernel weight of one row three bandwidths away; below it, nothing is estimated."""

NODES_PER_BANDWIDTH, NODES_FOR_CURVE = 96, 48
"""Keep the error of a sketch below 1e-10 in the calibration error, 1e-8 in a curve."""


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Accuracy and losses at some confidences, with bands of the accuracy.

    `errors` are calibration errors of the rows near each place, where they are known row
    by row; else the error of a place is that of its accuracy.
    """

    at: Column
    accuracy: Column
    losses: Mapping[str, Column]
    density: Column
    support: Column
    low: Column
    high: Column
    band_low: Column
    band_high: Column
    errors: Mapping[str, Column] | None = None

    def curves(
        self, divergences: Mapping[str, Divergence], factors: Mapping[str, float]
    ) -> dict[str, Curve]:
        """By divergence, its calibration error multiplied by its factor."""
        curves = {}
        for name, divergence in divergences.items():
            loss, gap = self.losses[name], self._gap(divergence, factors[name])
            values = self.at, self.accuracy, gap, loss, self.density, self.support
            bands = self.low, self.high, self.band_low, self.band_high
            curves[name] = Curve(*values, *bands)
        return curves

    def _gap(self, divergence: Divergence, factor: float) -> Column:
        """Pointwise sharpness gap rho(p): the loss, less the calibration error."""
        loss = self.losses[divergence.name]
        with np.errstate(invalid="ignore"):
            if self.errors is None:
                return loss - factor * divergence.on_unit(self.accuracy, self.at)
            return np.maximum(loss - factor * self.errors[divergence.name], 0.0)


Seen = tuple[Column, Column, Mapping[str, Column]]
"""Support, accuracy and losses at the places of a curve."""


@dataclass(frozen=True, eq=False)
class Regression:
    """Accuracy as a function of confidence, at the places of a curve and at the rows.

    `weight`, `accuracy_at` and `slopes` form a quadrature over all rows: a sum over
    rows of F(m(h)) is a sum of `weight` times F(`accuracy_at`). The places of the curve
    are looked at when they are first asked for.
    """

    kernel: Kernel
    bandwidth: float
    boundary: str
    total: float
    look: Callable[[], Seen]
    weight: Column
    accuracy_at: Column
    slopes: Mapping[str, Column]

    @cached_property
    def _seen(self) -> Seen:
        return self.look()

    @property
    def support(self) -> Column:
        """Kernel weight of the rows near each place."""
        return self._seen[0]

    @property
    def accuracy(self) -> Column:
        """At each place; NaN where no row is near."""
        return self._seen[1]

    @property
    def losses(self) -> Mapping[str, Column]:
        """By divergence, the same."""
        return self._seen[2]

    @property
    def places(self) -> Places:
        """The places of the curve, with the density of confidences; no ribbon."""
        density = self.support / (self.kernel.mass * self.bandwidth * self.total)
        seen = PLACES, self.accuracy, self.losses, density, self.support
        return Places(*seen, *np.full((4, len(PLACES)), np.nan))


def cells_for(bandwidth: float) -> int:
    """Number of cells that resolve a bandwidth; a multiple of `CELLS`."""
    return CELLS * max(1, int(np.ceil(NODES_PER_BANDWIDTH / (bandwidth * CELLS))))


def regress(
    cells: Cells, kernel: Kernel, bandwidth: float, boundary: str = "none"
) -> Regression:
    """Regress hits and losses on confidence, from sums by cell.

    Exact to `NODES_PER_BANDWIDTH`'s promise for the Gaussian kernel. The corner of the
    Epanechnikov kernel limits it to about 1e-4: use `regress_rows` where rows are had.
    """
    scale = inf if kernel is EPANECHNIKOV else 1 / bandwidth
    moments = coarsen(cells.moments, NODES_PER_BANDWIDTH * scale)
    weights = node_weights(moments)
    at_nodes = kernels.sums_at_nodes(weights[:2], kernel, bandwidth, boundary)
    loss_rows = [cells.column(name) for name in cells.divergences]
    few = node_weights(coarsen(moments[[0, 1, *loss_rows]], NODES_FOR_CURVE * scale))
    names, infinite = tuple(cells.divergences), _where_infinite(cells)
    used = weights[0] != 0
    accuracy = _share(at_nodes[1][used], at_nodes[0][used], 1e-12 * cells.weight)
    columns = {name: cells.column(name, "slope") for name in cells.divergences}
    slopes = {name: weights[column][used] for name, column in columns.items()}
    how = kernel, bandwidth, boundary

    def look() -> Seen:
        at_places = kernels.sums_at(PLACES, few, *how)
        _spread_infinity(at_places, infinite, kernel, bandwidth)
        return _ratios(at_places, names)

    return Regression(*how, cells.weight, look, weights[0][used], accuracy, slopes)


def regress_rows(
    columns: Columns, cells: Cells, bandwidth: float, boundary: str = "none"
) -> Regression:
    """Regress with the Epanechnikov kernel, exactly, from the rows."""
    index = np.argsort(columns.confidence, kind="stable")
    h, w = columns.confidence[index], columns.weights[index]
    losses = [columns.loss(d)[index] for d in cells.divergences.values()]
    values = w, w * columns.hit[index], *(w * _finite(x) for x in losses)
    rows, table = h, np.stack(values)
    if boundary == "reflect":
        rows, table = _mirror(h, table, bandwidth)
    at_rows = kernels.epanechnikov_sums(h, rows, table[:2], bandwidth)
    at_places = kernels.epanechnikov_sums(PLACES, rows, table, bandwidth)
    at_places = np.where(at_places[0] > 1e-12 * cells.weight, at_places, 0.0)
    _spread_infinity(at_places, _where_infinite(cells), EPANECHNIKOV, bandwidth)
    slopes = {
        name: w * _finite(divergence.tangent(h, columns.log_odds[index])[0])
        for name, divergence in cells.divergences.items()
    }
    accuracy = _share(at_rows[1], at_rows[0], 0.0)
    how = EPANECHNIKOV, bandwidth, boundary
    seen = _ratios(at_places, tuple(cells.divergences))
    return Regression(*how, cells.weight, lambda: seen, w, accuracy, slopes)


def _where_infinite(cells: Cells) -> list[Column | None]:
    """Weight of rows of infinite loss by cell, for each divergence that has any."""
    return [counts if counts.any() else None for counts in cells.infinite]


def _spread_infinity(
    sums: Column, infinite: list[Column | None], kernel: Kernel, bandwidth: float
) -> None:
    """Make the loss infinite wherever a row of infinite loss is near enough to count."""
    for row, counts in zip(sums[2:], infinite, strict=True):
        if counts is not None:
            nodes = np.pad(counts, PAD)[None]
            near = kernels.sums_at(PLACES, nodes, kernel, bandwidth)[0]
            row[near >= LEAST_SUPPORT] = inf


def _mirror(h: Column, values: Column, bandwidth: float) -> tuple[Column, Column]:
    """Rows with their images beyond 0 and 1, in order."""
    times = int(np.ceil(bandwidth / 2)) + 1
    shifts = range(-2 * times, 2 * times + 1, 2)
    images = np.concatenate([s + side * h for s in shifts for side in (1, -1)])
    table = np.tile(values, 2 * len(shifts))
    near = (images >= -bandwidth) & (images <= 1 + bandwidth)
    images, table = images[near], table[:, near]
    index = np.argsort(images, kind="stable")
    return images[index], table[:, index]


def _finite(values: Column) -> Column:
    return np.where(np.isfinite(values), values, 0.0)


def _share(part: Column, whole: Column, least: float) -> Column:
    """Divide, as a share in [0, 1]; only round-off can lie outside."""
    some = whole > least
    return np.clip(np.divide(part, whole, out=np.zeros_like(part), where=some), 0, 1)


def _ratios(sums: Column, names: Sequence[str]) -> Seen:
    support = np.maximum(sums[0], 0)
    empty = support < LEAST_SUPPORT
    accuracy = np.where(empty, np.nan, _share(sums[1], support, 0.0))
    whole = np.where(empty, 1.0, support)
    means = {
        name: np.where(empty, np.nan, row / whole)
        for name, row in zip(names, sums[2:], strict=True)
    }
    return support, accuracy, means


def calibration_error(
    regression: Regression, cells: Cells, name: str, estimator: str
) -> float:
    """d_CAL: ``"direct"`` as the authors' code, ``"plugin"`` as the Theorem.

    Direct is the mean of d(m(h), h), written phi(m) - [phi(h) - h phi'(h)] - m phi'(h)
    so that no divergence is evaluated at a node that no row sits on. Plug-in is the
    mean of d(a, h) less that of phi(a) - phi(m(h)).
    """
    divergence, totals = cells.divergences[name], cells.totals[name]
    m = regression.accuracy_at
    phi = float((regression.weight * divergence.phi_1d(m)).sum())
    if estimator == "plugin":
        return (totals.unit_loss - totals.phi_hit + phi) / cells.weight
    if _certain_but_wrong(regression, cells, divergence):
        return inf
    slope = float((regression.slopes[name] * m).sum())
    return (phi - totals.tangent - slope) / cells.weight


def _certain_but_wrong(
    regression: Regression, cells: Cells, divergence: Divergence
) -> bool:
    """Whether a forecast of 0 or 1 meets another accuracy, at an infinite price."""
    with np.errstate(all="ignore"):
        steep = np.isinf(divergence.derivative_1d(np.array([0.0, 1.0])))
    wrong_no = cells.certain_no > 0 and regression.accuracy[0] > 1e-9
    wrong_yes = cells.certain_yes > 0 and regression.accuracy[-1] < 1 - 1e-9
    return bool((steep[0] and wrong_no) or (steep[1] and wrong_yes))
