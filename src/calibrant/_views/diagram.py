"""What every diagram reads: line, band and bins of a model, and where they are known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import check_choice
from calibrant._base.comparison import Comparison
from calibrant._base.evaluation import Evaluation
from calibrant._base.records import Bins, Curve, Decomposition
from calibrant._inputs.arrays import Column
from calibrant._inputs.options import PAPER_BANDWIDTH, Settings, check_bandwidth
from calibrant._sketch.cells import Cells
from calibrant._sketch.kernels import KERNELS
from calibrant._sketch.ordered import Ordered
from calibrant._stats import bins as binning
from calibrant._stats.decomposition import analyse
from calibrant._stats.neighbours import cells_of_sketch

# ----------------------------------------------------------------------------
# What a figure reads: curves and bins from the record, or from the sums behind it.


Evaluations = Evaluation | Comparison | Iterable[Evaluation]

LEAST_BAND, LEAST_MASS = 0.015, 5.0
"""A band thinner than this, or of less than so many rows, is not drawn."""


def as_list(evs: Evaluations) -> list[Evaluation]:
    """One evaluation, several, or a comparison, as a list."""
    chosen: list[Any] = [evs] if isinstance(evs, Evaluation) else list(evs)
    if not chosen:
        raise ValueError("there is no evaluation to draw; give at least one.")
    strange = [ev for ev in chosen if not isinstance(ev, Evaluation)]
    if strange:
        raise TypeError(
            "figures draw what calibrant.evaluate returns, got an object of type "
            f"{type(strange[0]).__name__}."
        )
    return chosen


def the_one(ev: Evaluation) -> Evaluation:
    """Refuse anything but a single evaluation."""
    given: Any = ev
    if not isinstance(given, Evaluation):
        raise TypeError(
            "this figure shows one evaluation, as calibrant.evaluate returns it; got an "
            f"object of type {type(given).__name__}."
        )
    return given


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """The sharpness gap as drawn: its middle and height, and where it is drawn."""

    confidence: Column
    middle: Column
    height: Column
    drawn: NDArray[np.bool_]
    infinite: NDArray[np.bool_]

    @property
    def low(self) -> Column:
        """The lower edge, cut at 0."""
        return np.maximum(self.middle - self.height / 2, 0)

    @property
    def high(self) -> Column:
        """The upper edge, which may pass 1."""
        return self.middle + self.height / 2

    @property
    def top(self) -> float:
        """The highest point drawn."""
        return float(self.high[self.drawn].max(initial=0.0))


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One model as a diagram sees it.

    `curve` is the line. `mass` is the curve whose density and gap make the band: the
    same one, or for an adaptive line that of the paper's bandwidth, since a band drawn
    as mass needs a width that the eye can see.
    """

    ev: Evaluation
    parts: Decomposition
    curve: Curve
    mass: Curve

    @property
    def adaptive(self) -> bool:
        """Whether the width of the line adapts to the data."""
        return self.parts.bandwidth is None

    def band(self, scale: float = 1.0) -> Band:
        """Density times sharpness gap, centred on the line; `scale` shrinks it."""
        at, gap = self.mass.confidence, self.mass.sharpness_gap
        infinite = np.isposinf(gap)
        height = scale * self.mass.density * np.where(infinite, np.nan, gap)
        middle = self.curve.accuracy
        if self.adaptive:
            known = np.isfinite(self.curve.accuracy)
            middle = np.interp(at, self.curve.confidence[known], middle[known])
        enough = self.mass.support >= min(LEAST_MASS, self.ev.n / 10)
        drawn = enough & (np.nan_to_num(height) > LEAST_BAND) & np.isfinite(middle)
        return Band(at, middle, height, drawn, infinite & enough)


def view(
    ev: Evaluation,
    divergence: str | None = None,
    bandwidth: float | None = None,
    kernel: str = "gaussian",
    boundary: str = "none",
) -> View:
    """Find the line, the band and the numbers of a diagram."""
    name = ev.divergence if divergence is None else divergence
    check_choice(name, "divergence", tuple(ev.curves))
    if bandwidth is None:
        parts, curve = ev.decompositions[name], ev.curves[name]
        mass = ev.paper_curves[name] if parts.bandwidth is None else curve
        return View(ev, parts, curve, mass)
    parts, curve = at_bandwidth(ev, name, bandwidth, kernel, boundary)
    return View(ev, parts, curve, curve)


def at_bandwidth(
    ev: Evaluation, name: str, bandwidth: float, kernel: str, boundary: str = "none"
) -> tuple[Decomposition, Curve]:
    """The paper's estimate at any bandwidth; recorded if it is the paper's own."""
    check_bandwidth(bandwidth)
    check_choice(kernel, "kernel", tuple(KERNELS))
    check_choice(boundary, "boundary", ("none", "reflect"))
    published = (bandwidth, kernel, boundary) == (PAPER_BANDWIDTH, "gaussian", "none")
    if published and ev.settings["counterpart"] == "paper":
        return ev.paper_decompositions[name], ev.paper_curves[name]
    settings = replace(
        Settings(**{**ev.settings, "divergence": "brier", "preset": None}),
        bandwidth=float(bandwidth),
        kernel=kernel,
        boundary=boundary,
    )
    factor = ev.k / (ev.k - 1) if settings.counterpart == "tight" else 1.0
    found = analyse(None, sums_behind(ev, "another bandwidth"), settings, factor)
    return found.decompositions[name], found.curves[name]


def sums_behind(ev: Evaluation, wish: str) -> Cells:
    """The sketch of an evaluation, or one clear error."""
    if ev.sketch is None:
        raise ValueError(
            f"{wish} needs the sums behind {ev.name!r}, and this evaluation has none: "
            "it was restored from a file or is class-wise. Pass the option to "
            "calibrant.evaluate instead."
        )
    return ev.sketch


def bins_of(ev: Evaluation, bins: Any, strategy: str) -> Bins:
    """Bins of the record, or as many others from the sums behind it.

    From the sums, rows are told apart to 1/9600 in confidence (equal-width bins) or 0.02
    in log-odds (equal-mass bins).
    """
    check_choice(strategy, "strategy", ("width", "mass"))
    recorded = len(ev.bins.count)
    count = recorded if bins is None else binning.count_bins(bins, ev.n)
    if count == recorded:
        return ev.bins if strategy == "width" else ev.mass_bins
    sketch = sums_behind(ev, "another number of bins")
    if strategy == "width":
        return binning.width_bins(_ordered(sketch), count, ev.settings["closed"])
    cells = cells_of_sketch(sketch)
    values = Ordered.of(cells.h, cells.weight, cells.hits, cells.hits2)
    return binning.mass_bins(values, count)


def _ordered(sketch: Cells) -> Ordered:
    """The cells of the probability grid as distinct confidences."""
    (weight, offset), hits = sketch.moments[0, :2], sketch.moments[1, 0]
    used = weight > 0
    centre = np.arange(sketch.cells) + 0.5
    claimed = (weight * centre + offset) / sketch.cells
    h = (claimed[used] / weight[used]).clip(0, 1)
    return Ordered(h, weight[used], hits[used], hits[used], claimed[used])


# ----------------------------------------------------------------------------
# Where an estimate has rows behind it, so that nothing is drawn as if it were known.


Mask = NDArray[np.bool_]

ENOUGH_ROWS = 20.0
"""With fewer rows nearby, a line is dotted and has no interval."""

TAIL = 0.005
"""An adaptive line is dotted beyond these shares of the rows, where it extrapolates."""


def rows_within(ev: Evaluation, at: Column, reach: float) -> Column:
    """Rows whose confidence is at most `reach` away, to a cell of the histogram."""
    edges = np.linspace(0, 1, len(ev.histogram) + 1)
    below = np.concatenate([[0.0], np.cumsum(ev.histogram)])
    return np.interp(at + reach, edges, below) - np.interp(at - reach, edges, below)


def trusted(view: View) -> Mask:
    """Where the line has enough rows nearby to be drawn as known."""
    curve, bandwidth = view.curve, view.parts.bandwidth
    finite = np.isfinite(curve.accuracy)
    if bandwidth is not None:
        return finite & (
            rows_within(view.ev, curve.confidence, bandwidth) >= ENOUGH_ROWS
        )
    low, high = _middle(view.ev)
    inside = (curve.confidence >= low) & (curve.confidence <= high)
    return finite & inside & (curve.support >= ENOUGH_ROWS)


def _middle(ev: Evaluation) -> tuple[float, float]:
    """Between which confidences all but the tails of the rows lie."""
    share = np.cumsum(ev.histogram) / ev.histogram.sum()
    cells = len(share)
    first = int(np.searchsorted(share, TAIL))
    last = int(np.searchsorted(share, 1 - TAIL))
    return first / cells, min(last + 1, cells) / cells


def doubtful(view: View) -> Mask:
    """Where some rows are near, but too few; one place further, so that lines meet."""
    curve, bandwidth = view.curve, view.parts.bandwidth
    known = np.isfinite(curve.accuracy)
    if bandwidth is not None:
        known &= rows_within(view.ev, curve.confidence, bandwidth) >= 1
    sure = trusted(view)
    faint = known & ~sure
    beside = np.zeros_like(faint)
    beside[1:] |= faint[:-1]
    beside[:-1] |= faint[1:]
    return faint | (beside & sure)


def only(values: Column, where: Mask) -> Column:
    """The values where they may be drawn, NaN elsewhere."""
    return np.where(where, values, np.nan)


def spans(where: Mask) -> list[tuple[int, int]]:
    """First and last index of each run of True.

    Examples
    --------
    >>> spans(np.array([True, True, False, True]))
    [(0, 1), (3, 3)]
    """
    steps = np.diff(np.concatenate([[0], where.astype(np.int8), [0]]))
    first, last = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1) - 1
    return list(zip(first.tolist(), last.tolist(), strict=True))
