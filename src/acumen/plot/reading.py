"""What a figure reads: curves and bins from the record, or from the sums behind it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen.analysis import analyse
from acumen.arrays import Column, check_choice
from acumen.comparison import Comparison
from acumen.estimators import bins as binning
from acumen.estimators.neighbours import cells_of_sketch
from acumen.kernels import KERNELS
from acumen.ordered import Ordered
from acumen.results import Bins, Curve, Decomposition, Evaluation
from acumen.settings import PAPER_BANDWIDTH, Settings, check_bandwidth
from acumen.sums import Sums

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
            "figures draw what acumen.evaluate returns, got an object of type "
            f"{type(strange[0]).__name__}."
        )
    return chosen


def the_one(ev: Evaluation) -> Evaluation:
    """Refuse anything but a single evaluation."""
    given: Any = ev
    if not isinstance(given, Evaluation):
        raise TypeError(
            "this figure shows one evaluation, as acumen.evaluate returns it; got an "
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


def sums_behind(ev: Evaluation, wish: str) -> Sums:
    """The sketch of an evaluation, or one clear error."""
    if ev.sketch is None:
        raise ValueError(
            f"{wish} needs the sums behind {ev.name!r}, and this evaluation has none: "
            "it was restored from a file or is class-wise. Pass the option to "
            "acumen.evaluate instead."
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


def _ordered(sketch: Sums) -> Ordered:
    """The cells of the probability grid as distinct confidences."""
    (weight, offset), hits = sketch.moments[0, :2], sketch.moments[1, 0]
    used = weight > 0
    centre = np.arange(sketch.cells) + 0.5
    claimed = (weight * centre + offset) / sketch.cells
    h = (claimed[used] / weight[used]).clip(0, 1)
    return Ordered(h, weight[used], hits[used], hits[used], claimed[used])
