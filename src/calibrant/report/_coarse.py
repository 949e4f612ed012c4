"""Coarse sums: what a page carries in place of the rows, and what it computes from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf, isfinite

import numpy as np
from numpy.typing import NDArray

from calibrant._base.evaluation import Evaluation
from calibrant._inputs.arrays import Column
from calibrant._inputs.divergences import BRIER, LOG, Divergence
from calibrant._inputs.options import brier_factor
from calibrant._sketch.cells import Cells
from calibrant._sketch.grid import coarsen, node_weights
from calibrant._sketch.kernels import KERNELS, Kernel, sums_at
from calibrant._stats.published import NODES_FOR_CURVE, calibration_error, regress
from calibrant._views.diagram import GEOMETRY

# Each row is split between its two neighbouring nodes of a uniform grid on [0, 1], in
# proportion to nearness. From these sums a browser makes the paper's estimate at any
# bandwidth; `estimate` does the same arithmetic here, so that both can be compared.
#
# The error is of second order in the spacing of nodes. Measured with 1,201 nodes on five
# recalibrations of a CIFAR-10 network, largest difference from the full sketch: 2e-5 in
# the curve and 3e-6 in the calibration errors at bandwidth 0.05, 6e-4 and 5e-5 at 0.01.
# Every page states its own (`page_error`).


NODES, FEWER_NODES, MANY_MODELS = 1201, 601, 9
"""Cells of a sketch nest in the gaps between nodes, so that splitting them is exact.
From so many models on, a page has fewer nodes, to stay small."""

SCORES: Mapping[str, Divergence] = {"brier": BRIER, "log": LOG}
"""Divergences a browser can compute; a user's own is Python."""


@dataclass(frozen=True, slots=True, eq=False)
class Coarse:
    """Sums on the nodes, and exact totals.

    `losses` are sums over rows of finite loss, `infinite` the weight of the others for
    the log loss, `slope` the sum of phi'(h) for the log divergence. Columns are rounded
    to what the page carries: single precision, but for `slope`, which cancels.

    `total`, `tangent` and `unit` are means over all rows, by divergence: of the loss,
    of phi(h) - h phi'(h), and of d(a, h) - phi(a).
    """

    weight: Column
    hits: Column
    losses: Mapping[str, Column]
    infinite: Column
    slope: Column
    rows: float
    total: Mapping[str, float]
    tangent: Mapping[str, float]
    unit: Mapping[str, float]
    certain: tuple[bool, bool]
    factor: float
    boundary: str
    estimator: str

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.weight)

    @property
    def places(self) -> Column:
        """Confidences of the nodes."""
        return np.arange(self.nodes) / (self.nodes - 1)


def coarse_sums(ev: Evaluation, nodes: int = NODES) -> Coarse | None:
    """The sums a page carries for one model; None if it kept none, or not of both scores."""
    cells: Cells | None = ev.sketch
    if cells is None or not {*SCORES} <= {*cells.divergences}:
        return None
    columns = [0, 1, *(cells.column(name) for name in SCORES)]
    weight, hits, *of_scores = _single(split(cells.moments[columns, :2], nodes))
    slope = split(cells.moments[[cells.column("log", "slope")], :2], nodes)[0]
    infinite = _single(split(_lost_moments(cells), nodes))[0]
    losses = dict(zip(SCORES, of_scores, strict=True))
    n, totals = cells.weight, {name: cells.totals[name] for name in SCORES}
    lost = {score: cells.infinite_weight(score) for score in SCORES}
    total = {s: inf if lost[s] else t.loss / n for s, t in totals.items()}
    tangent = {s: t.tangent / n for s, t in totals.items()}
    unit = {s: (t.unit_loss - t.phi_hit) / n for s, t in totals.items()}
    certain = (cells.certain_no > 0, cells.certain_yes > 0)
    factor = brier_factor(ev.settings["counterpart"], ev.k)
    sums = weight, hits, losses, infinite, slope, n, total, tangent, unit
    said = ev.settings["boundary"], ev.settings["estimator"]
    return Coarse(*sums, certain, factor, *said)


def _lost_moments(cells: Cells) -> NDArray[np.float64]:
    """Rows of infinite log loss, taken to lie where the rows of their cell do."""
    lost = cells.infinite[list(cells.divergences).index("log")]
    weight, offset = cells.moments[0, :2]
    where = np.divide(offset, weight, out=np.zeros_like(offset), where=weight > 0)
    return np.stack([lost, lost * where])[None]


def split(moments: NDArray[np.float64], nodes: int) -> NDArray[np.float64]:
    """Share the cells of each column between the nodes on either side, exactly.

    `moments` has the sums of the value, and of value times position within the cell.

    Examples
    --------
    >>> one_row_at_a_quarter = np.array([[[1.0, 0.0], [0.0, 0.0]]])
    >>> split(one_row_at_a_quarter, 2)
    array([[0.75, 0.25]])
    """
    columns, _, cells = moments.shape
    per_gap = cells // (nodes - 1)
    if per_gap * (nodes - 1) != cells:
        raise ValueError(
            f"nodes must divide {cells} cells into gaps, got {nodes} nodes."
        )
    within = np.arange(cells) % per_gap + 0.5
    to_right = (within * moments[:, 0] + moments[:, 1]) / per_gap
    by_gap = (columns, nodes - 1, per_gap)
    right = to_right.reshape(by_gap).sum(axis=2)
    left = moments[:, 0].reshape(by_gap).sum(axis=2) - right
    sums = np.zeros((columns, nodes))
    sums[:, :-1] += left
    sums[:, 1:] += right
    return sums


def _single(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    return sums.astype(np.float32).astype(np.float64)


# -- the arithmetic of the page ---------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Live:
    """What a page shows at one bandwidth, on the nodes; NaN where nothing is near."""

    accuracy: Column
    error: Column
    density: Column
    sharpness_gap: Column
    rows: Column
    support: Column
    calibration: float
    total: float


def estimate(sums: Coarse, bandwidth: float, kernel: str, score: str) -> Live:
    """The paper's estimate from coarse sums, as the page computes it."""
    chosen, divergence, factor = KERNELS[kernel], SCORES[score], _factor(sums, score)
    taps = _taps(sums, chosen, bandwidth)
    mass, accuracy = _accuracy(sums, taps)
    finite = sums.weight - sums.infinite if score == "log" else sums.weight
    misses = _smooth(sums.weight - sums.hits, taps**2, sums.boundary)
    with np.errstate(all="ignore"):
        loss = _smooth(sums.losses[score], taps, sums.boundary)
        loss /= _smooth(finite, taps, sums.boundary)
        hits = _smooth(sums.hits, taps**2, sums.boundary)
        spread = hits * (1 - accuracy) ** 2 + misses * accuracy**2
        error = np.sqrt(np.maximum(spread, 0)) / mass
        gap = loss - factor * divergence.on_unit(accuracy, sums.places)
    density = mass / (chosen.mass * bandwidth * sums.rows)
    rows = np.where(mass > 0, _rows_within(sums, bandwidth), 0.0)
    error_of_all = factor * _calibration(sums, accuracy, score)
    total = sums.total[score]
    return Live(accuracy, error, density, gap, rows, mass, error_of_all, total)


def calibrations(sums: Coarse, bandwidth: float, kernel: str) -> dict[str, float]:
    """d_CAL by score at one bandwidth."""
    _, accuracy = _accuracy(sums, _taps(sums, KERNELS[kernel], bandwidth))
    return {s: _factor(sums, s) * _calibration(sums, accuracy, s) for s in SCORES}


def _factor(sums: Coarse, score: str) -> float:
    return sums.factor if score == "brier" else 1.0


def _taps(sums: Coarse, kernel: Kernel, bandwidth: float) -> Column:
    """The kernel at whole numbers of nodes; an odd number of values."""
    gaps = sums.nodes - 1
    reach = ceil(kernel.reach * bandwidth * gaps)
    if sums.boundary == "none":
        reach = min(reach, gaps)
    return kernel.profile(np.arange(-reach, reach + 1) / (bandwidth * gaps))


def _smooth(column: Column, taps: Column, boundary: str) -> Column:
    """Kernel sums at the nodes, term by term: an FFT would drown the tails."""
    nodes, reach = len(column), len(taps) // 2
    if boundary == "reflect":
        # A node on the edge is its own image, and counts twice.
        ends = column.copy()
        ends[[0, -1]] *= 2
        return np.convolve(np.pad(ends, reach, mode="reflect"), taps, mode="valid")
    return np.convolve(column, taps)[reach : reach + nodes]


def _accuracy(sums: Coarse, taps: Column) -> tuple[Column, Column]:
    mass, hits = (_smooth(c, taps, sums.boundary) for c in (sums.weight, sums.hits))
    with np.errstate(all="ignore"):
        return mass, np.clip(hits / mass, 0, 1)


def _calibration(sums: Coarse, accuracy: Column, score: str) -> float:
    """d_CAL by the estimator of the evaluation; see `regression.calibration_error`."""
    phi, used = SCORES[score].phi_1d, sums.weight > 0
    n, m = sums.weight[used], accuracy[used]
    if sums.estimator == "plugin":
        return sums.unit[score] + float((n * phi(m)).sum() / sums.rows)
    if score == "brier":
        return float((n * (m - sums.places[used]) ** 2).sum() / sums.rows)
    no, yes = sums.certain
    if (no and accuracy[0] > 1e-9) or (yes and accuracy[-1] < 1 - 1e-9):
        return inf  # a forecast of 0 or 1 that does not hold
    gained = n * phi(m) - m * sums.slope[used]
    return float(gained.sum() / sums.rows) - sums.tangent[score]


def _rows_within(sums: Coarse, bandwidth: float) -> Column:
    """Weight of the nodes at most one bandwidth away."""
    gaps = sums.nodes - 1
    below = np.concatenate([[0.0], np.cumsum(sums.weight)])
    index = np.arange(sums.nodes)
    first = np.maximum(np.ceil(index - bandwidth * gaps - 1e-9), 0).astype(int)
    last = np.minimum(np.floor(index + bandwidth * gaps + 1e-9), gaps).astype(int)
    return below[last + 1] - below[first]


# -- how far the numbers of a page lie from those of the full sketch, measured --------

PLACES = 64

MEASURED_AT = (("gaussian", 0.05), ("gaussian", 0.01))
"""Where the error is measured. With the Epanechnikov kernel the full sketch itself
is not exact enough to measure against."""


@dataclass(frozen=True, slots=True)
class PageError:
    """Largest differences, in the curve and in the calibration errors."""

    kernel: str
    bandwidth: float
    curve: float
    calibration: float


def page_error(
    cells: Cells, sums: Coarse, kernel: str = "gaussian", bandwidth: float = 0.05
) -> PageError:
    """Compare coarse sums with the full sketch at 64 places that rows support."""
    live = {score: estimate(sums, bandwidth, kernel, score) for score in SCORES}
    chosen = np.unique(np.linspace(0, sums.nodes - 1, PLACES).round().astype(int))
    at, found = sums.places[chosen], KERNELS[kernel]
    nodes = node_weights(coarsen(cells.moments[:2], NODES_FOR_CURVE / bandwidth))
    mass, hits = sums_at(at, nodes, found, bandwidth, sums.boundary)
    seen = live["brier"].rows[chosen] >= GEOMETRY.enough_rows
    shown = live["brier"].accuracy[chosen][seen]
    curve = float(np.abs(hits[seen] / mass[seen] - shown).max(initial=0.0))
    exact = regress(cells, found, bandwidth, sums.boundary)
    apart = []
    for score in SCORES:
        error = calibration_error(exact, cells, score, sums.estimator)
        error *= _factor(sums, score)
        shown_error = live[score].calibration
        both_infinite = not (isfinite(error) or isfinite(shown_error))
        apart.append(0.0 if both_infinite else abs(error - shown_error))
    return PageError(kernel, bandwidth, curve, max(apart))
