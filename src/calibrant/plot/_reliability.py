"""The reliability diagram: accuracy in bins, with counts, gaps and intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._base.evaluation import Evaluation
from calibrant._base.records import Bins
from calibrant._stats import closed_forms
from calibrant._stats.bins import binned_error
from calibrant._views.diagram import bins_of, the_one
from calibrant.plot import _labels as labels
from calibrant.plot import _style as style
from calibrant.plot._layout import one_panel
from calibrant.plot._style import in_style

LEAST_WIDTH = 0.008
"""A bin of one confidence is drawn this wide."""


@in_style
def reliability(
    models: Evaluation,
    *,
    bins: int | str | None = None,
    strategy: str = "width",
    interval: bool = True,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw the accuracy in bins of the confidence, with the share of rows in each below.

    Parameters
    ----------
    models : Evaluation
        The model.
    bins : int or "cube-root", optional
        Number of bins; by default that of the evaluation, which has 15 unless told.
    strategy : {"width", "mass"}
        Bins of equal width or of equal weight. Ties are never split.
    interval : bool
        Whether each accuracy gets its Wilson interval.
    legend : bool
        Whether a figure made here gets a key.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The Axes of the bars; the shares are on a second one below.

    Examples
    --------
    >>> import numpy as np, calibrant as cal, calibrant.plot
    >>> rng = np.random.default_rng(0)
    >>> h = rng.random(500)
    >>> ev = cal.evaluate_pairs(rng.random(500) < h**2, h)
    >>> calibrant.plot.reliability(ev, bins=10).get_ylabel()
    'accuracy'
    """
    ev = the_one(models)
    found = bins_of(ev, bins, strategy)
    sheet = one_panel(ax, key=0.31 if legend else 0.0)
    main, below = sheet.with_strip()
    left, width = _extents(found)
    _bars(main, found, left, width)
    if interval:
        _intervals(main, found, float(ev.settings["level"]))
    style.unit_square(main, "accuracy")
    style.dress(below, grid=False, hide=("top", "right", "left"))
    share = found.count / found.count.sum()
    below.bar(left, share, width, align="edge", gid="rows", **style.ROWS_FILL)
    below.set(yticks=[], ylim=(0, 1.12 * share.max()))
    _mark_mean(below, found)
    handles = _key(ev, interval=interval) if legend else []
    labels.finish(sheet, below, ev, _headline(ev, found, strategy), handles, 2)
    return main


_GAP: dict[str, Any] = {**style.BAND_FILL, "hatch": "////", "alpha": 0.8}
_HITS: dict[str, Any] = {
    "color": style.CURVE, "linewidth": 0.9, "linestyle": (0, (2, 1.2)),
}  # fmt: skip


def _extents(bins: Bins) -> tuple[np.ndarray, np.ndarray]:
    """Left end and width of each bar; a single confidence is widened."""
    middle, width = 0.5 * (bins.lower + bins.upper), bins.upper - bins.lower
    width = np.maximum(width, LEAST_WIDTH)
    return np.clip(middle - width / 2, 0, 1 - width), width


def _bars(ax: Axes, bins: Bins, left: np.ndarray, width: np.ndarray) -> None:
    style.dress(ax)
    full = bins.count > 0
    place, bar = left[full], width[full]
    h, m = bins.confidence[full], bins.accuracy[full]
    ax.bar(place, m, bar, align="edge", zorder=2, gid="accuracy", **style.ROWS_FILL)
    ax.bar(place, h - m, bar, bottom=m, align="edge", zorder=2.5, gid="gap", **_GAP)
    ax.plot([0, 1], [0, 1], zorder=3, gid="diagonal", **style.DIAGONAL)


def _intervals(ax: Axes, bins: Bins, level: float) -> None:
    full = bins.count > 0
    h, m = bins.confidence[full], bins.accuracy[full]
    low, high = closed_forms.wilson(m, bins.count[full], level)
    ends = np.maximum([m - low, high - m], 0)
    look: dict[str, Any] = {"markersize": 2.6, "elinewidth": 0.8, "color": style.INK}
    ax.errorbar(h, m, yerr=ends, fmt="o", zorder=4, gid="interval", **look)


def _mark_mean(ax: Axes, bins: Bins) -> None:
    """Mean confidence and overall accuracy: their distance is the over-confidence."""
    mean = float(np.nansum(bins.count * bins.confidence) / bins.count.sum())
    hits = float(np.nansum(bins.count * bins.accuracy) / bins.count.sum())
    ax.axvline(mean, color=style.INK, linewidth=0.9, gid="mean-confidence")
    ax.axvline(hits, **_HITS)


def _headline(ev: Evaluation, bins: Bins, strategy: str) -> str:
    same = bins in (ev.bins, ev.mass_bins)
    name = "ece" if strategy == "width" else "ece_mass"
    value = ev.metrics[name] if same and not ev.per_class else binned_error(bins)
    return (
        f"ECE ×100: {labels.percent(value)} ({len(bins.count)} equal-{strategy} bins)"
    )


def _key(ev: Evaluation, *, interval: bool) -> list[Any]:
    level = 100 * float(ev.settings["level"])
    label = f"accuracy, {level:g}% Wilson" if interval else "accuracy"
    return [
        Patch(label=label, **style.ROWS_FILL),
        Patch(label="gap to the confidence", **_GAP),
        Line2D([], [], color=style.INK, linewidth=0.9, label="mean confidence"),
        Line2D([], [], label="accuracy of all rows", **_HITS),
    ]
