"""The diagram every view draws: its geometry, and the line, band and bins of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import check_choice, shown
from calibrant._base.comparison import (
    Comparison,
    as_comparison,
    evaluations_in,
    shown_evaluation,
    shown_names,
)
from calibrant._base.evaluation import Evaluation
from calibrant._base.records import FORECASTS, Bins, Curve, Decomposition
from calibrant._inputs.arrays import Column
from calibrant._inputs.options import (
    PAPER_BANDWIDTH,
    Settings,
    brier_factor,
    check_bandwidth,
)
from calibrant._sketch.cells import Cells
from calibrant._sketch.kernels import KERNELS
from calibrant._sketch.ordered import Ordered
from calibrant._stats import bins as binning
from calibrant._stats.decomposition import analyse
from calibrant._stats.neighbours import cells_of_sketch

Evaluations = Evaluation | Comparison | Iterable[Evaluation] | Mapping[str, Any]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Geometry:
    """Numbers that all drawings of a diagram share; a page hands them to its script.

    Attributes
    ----------
    least_band, least_mass : float
        A band thinner than this, or of less than so many rows, is not drawn.
    enough_rows : float
        With fewer rows nearby, a line is dotted and has no interval.
    tail : float
        An adaptive line is dotted beyond these shares of the rows: it extrapolates.
    most_top : float
        Axes that are shared end here: one tall band would squeeze all others.
    scales, most_band : tuple of float, float
        A page shrinks all bands by the first factor that makes the tallest fit.
    """

    least_band: float = 0.015
    least_mass: float = 5.0
    enough_rows: float = 20.0
    tail: float = 0.005
    most_top: float = 1.25
    scales: tuple[float, ...] = (1.0, 0.5, 0.25, 0.125, 0.0625)
    most_band: float = 1.05


GEOMETRY = Geometry()


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """The sharpness gap as drawn: its middle and height, and where it is drawn."""

    confidence: Column
    middle: Column
    height: Column
    drawn: Mask
    infinite: Mask

    @classmethod
    def of(
        cls,
        confidence: Column,
        middle: Column,
        density: Column,
        gap: Column,
        scale: float = 1.0,
        enough: Mask | bool = True,  # noqa: FBT001, FBT002
    ) -> Self:
        """Density times gap, centred on the line, where `enough` rows are near."""
        infinite = np.isposinf(gap)
        height = scale * density * np.where(infinite, np.nan, gap)
        thick = np.nan_to_num(height) > GEOMETRY.least_band
        drawn = enough & thick & np.isfinite(middle)
        return cls(confidence, middle, height, drawn, infinite & enough)

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

    @property
    def peak(self) -> float:
        """The largest height drawn."""
        return float(self.height[self.drawn].max(initial=0.0))


def shared_top(bands: Iterable[Band], headroom: float = 1.0) -> float:
    """Where axes end that bands share: at 1, or as high as they go, within limits."""
    tops = (headroom * max(1.0, band.top) for band in bands)
    return min(GEOMETRY.most_top, max(tops))


def band_scale(bands: Sequence[Band]) -> float:
    """How much a page shrinks all bands, so that the tallest fits."""
    peak = max(band.peak for band in bands)
    fitting = (s for s in GEOMETRY.scales if peak * s <= GEOMETRY.most_band)
    return next(fitting, GEOMETRY.scales[-1])


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
        mass, middle = self.mass, self.curve.accuracy
        if self.adaptive:
            known = np.isfinite(middle)
            at = self.curve.confidence[known]
            middle = along(mass.confidence, at, middle[known])
        enough = mass.support >= min(GEOMETRY.least_mass, self.ev.n / 10)
        gap, density = mass.sharpness_gap, mass.density
        return Band.of(mass.confidence, middle, density, gap, scale, enough)

    def trusted(self) -> Mask:
        """Where the line has enough rows nearby to be drawn as known."""
        curve, finite = self.curve, np.isfinite(self.curve.accuracy)
        if not self.adaptive:
            return finite & (self._rows_near() >= GEOMETRY.enough_rows)
        low, high = _middle(self.ev)
        at = curve.confidence  # a mean of equal confidences may miss the edge it is on
        inside = (at >= low - 1e-9) & (at <= high + 1e-9)
        return finite & inside & (curve.support >= GEOMETRY.enough_rows)

    def doubtful(self) -> Mask:
        """Where some rows are near, but too few; one place further, so that lines meet."""
        known = np.isfinite(self.curve.accuracy)
        if not self.adaptive:
            known &= self._rows_near() >= 1
        sure = self.trusted()
        faint = known & ~sure
        beside = np.zeros_like(faint)
        beside[1:] |= faint[:-1]
        beside[:-1] |= faint[1:]
        return faint | (beside & sure)

    def _rows_near(self) -> Column:
        """Rows at most a bandwidth away, to a cell of the histogram."""
        histogram, reach = self.ev.histogram, self.parts.bandwidth or 0.0
        edges = np.linspace(0, 1, len(histogram) + 1)
        below, at = np.concatenate([[0.0], np.cumsum(histogram)]), self.curve.confidence
        return np.interp(at + reach, edges, below) - np.interp(at - reach, edges, below)


def _middle(ev: Evaluation) -> tuple[float, float]:
    """Between which confidences all but the tails of the rows lie."""
    share = np.cumsum(ev.histogram) / ev.histogram.sum()
    cells = len(share)
    first = int(np.searchsorted(share, GEOMETRY.tail))
    last = int(np.searchsorted(share, 1 - GEOMETRY.tail))
    return first / cells, min(last + 1, cells) / cells


def along(x: Column, at: Column, values: Column) -> Column:
    """Values between the places of a line; NaN if it has none, as of too few rows."""
    return np.interp(x, at, values) if len(at) else np.full_like(x, np.nan)


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


def as_list(models: Evaluations) -> list[Evaluation]:
    """One evaluation, several, or a comparison, as a list."""
    known = isinstance(models, Evaluation | Mapping)
    given = as_comparison(models) if known else evaluations_in(models)
    names = shown_names(ev.name for ev in given)
    return [shown_evaluation(ev, names) for ev in given]


def estimated_alike(models: Iterable[Evaluation], divergence: str) -> bool:
    """Whether calibration errors of one divergence can be compared."""
    ways = ("estimator", "boundary", "counterpart")
    found = set()
    for ev in models:
        parts, said = ev.decompositions[divergence], ev.settings
        kernel = parts.bandwidth is not None
        how = [said.get(way) for way in ways] if kernel else [None]
        found.add((parts.bandwidth, parts.kernel if kernel else None, *how))
    return len(found) < 2


def the_one(models: Evaluation) -> Evaluation:
    """Refuse anything but a single evaluation."""
    given: Any = models
    if not isinstance(given, Evaluation):
        raise TypeError(
            "models must be one Evaluation, as calibrant.evaluate returns it, for this "
            f"figure; got {shown(given)}."
        )
    return shown_evaluation(given)


def axis_words(ev: Any) -> dict[str, str]:
    """What the axes of a diagram are called: what came true, against what was said.

    `ev` is an Evaluation, or any other result that has a target.

    Examples
    --------
    >>> import calibrant as cal
    >>> axis_words(cal.evaluate([1, 0], probs=[0.9, 0.4], target="positive"))
    {'hit': 'observed frequency', 'said': 'forecast'}
    """
    if ev.target in (*FORECASTS, "class-wise"):
        return {"hit": "observed frequency", "said": "forecast"}
    return {"hit": "accuracy", "said": "confidence"}


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
    factor = brier_factor(settings.counterpart, ev.k)
    found = analyse(None, sums_behind(ev, "another bandwidth"), settings, factor)
    return found.decompositions[name], found.curves[name]


def sums_behind(ev: Evaluation, wish: str) -> Cells:
    """The sums behind an evaluation, or one clear error."""
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
    sums = sums_behind(ev, "another number of bins")
    if strategy == "width":
        return binning.width_bins(_ordered(sums), count, ev.settings["closed"])
    cells = cells_of_sketch(sums)
    values = Ordered.of(cells.h, cells.weight, cells.hits, cells.hits2)
    return binning.mass_bins(values, count)


def _ordered(cells: Cells) -> Ordered:
    """The cells of the probability grid as distinct confidences."""
    (weight, offset), hits = cells.moments[0, :2], cells.moments[1, 0]
    used = weight > 0
    centre = np.arange(cells.cells) + 0.5
    claimed = (weight * centre + offset) / cells.cells
    h = (claimed[used] / weight[used]).clip(0, 1)
    weight, hits, claimed = weight[used], hits[used], claimed[used]
    return Ordered(h, weight, hits, hits, claimed, weight)
