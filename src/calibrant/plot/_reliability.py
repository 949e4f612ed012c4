"""`reliability`: accuracy in bins, with counts, gaps and intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._base.evaluation import Evaluation
from calibrant._base.records import Bins
from calibrant._inputs.arrays import Column
from calibrant._stats import closed_forms
from calibrant._stats.bins import binned_error
from calibrant._views.diagram import bins_of, the_one
from calibrant.plot import _labels as labels
from calibrant.plot import _panel as panel
from calibrant.plot import _style as style
from calibrant.plot._layout import one_panel

LEAST_WIDTH = 0.008
"""A bin of one confidence is drawn this wide."""

GAP: dict[str, Any] = {**style.BAND_FILL, "hatch": "////", "alpha": 0.8}
MEAN: dict[str, Any] = {"color": style.INK, "linewidth": 0.9}
HITS: dict[str, Any] = {**MEAN, "color": style.CURVE, "linestyle": (0, (2, 1.2))}


@style.in_style
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
    legend, ax
        As in `calibration_sharpness`.

    Returns
    -------
    Axes
        The Axes of the bars; the shares are on a second one below.

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, 0.7] * 30)
    >>> calibrant.plot.reliability(ev, bins=10).get_ylabel()
    'accuracy'
    """
    ev = the_one(models)
    found, level = bins_of(ev, bins, strategy), float(ev.settings["level"])
    sheet = one_panel(ax, key=0.31 if legend else 0.0)
    main, below = sheet.with_strip()
    middle, width = 0.5 * (found.lower + found.upper), found.upper - found.lower
    width = np.maximum(width, LEAST_WIDTH)
    left = np.clip(middle - width / 2, 0, 1 - width)
    _draw_bins(main, found, left, width, level if interval else None)
    style.dress(below, grid=False, hide=("top", "right", "left"))
    share = found.count / found.count.sum()
    below.bar(left, share, width, align="edge", gid="rows", **style.ROWS_FILL)
    below.set(yticks=[], ylim=(0, 1.12 * share.max()))
    # Mean confidence and overall accuracy: their distance is the over-confidence.
    sums = (np.nansum(found.count * x) for x in (found.confidence, found.accuracy))
    mean, hits = (float(total / found.count.sum()) for total in sums)
    below.axvline(mean, gid="mean-confidence", **MEAN)
    below.axvline(hits, **HITS)
    handles = _key_of_bins(level, interval=interval) if legend else []
    labels.finish(sheet, below, ev, _ece(ev, found, strategy), handles, 2)
    return main


def _draw_bins(
    ax: Axes, bins: Bins, left: Column, width: Column, level: float | None
) -> None:
    """Bars, the gaps to the confidence, and intervals of this level if there is one."""
    style.dress(ax)
    full = bins.count > 0
    place, bar = left[full], width[full]
    h, m = bins.confidence[full], bins.accuracy[full]
    ax.bar(place, m, bar, align="edge", zorder=2, gid="accuracy", **style.ROWS_FILL)
    ax.bar(place, h - m, bar, bottom=m, align="edge", zorder=2.5, gid="gap", **GAP)
    panel.draw_diagonal(ax)
    if level is not None:
        low, high = closed_forms.wilson(m, bins.count[full], level)
        ends = np.maximum([m - low, high - m], 0)
        look: Any = {"markersize": 2.6, "elinewidth": 0.8, "color": style.INK}
        ax.errorbar(h, m, yerr=ends, fmt="o", zorder=4, gid="interval", **look)
    style.unit_square(ax, "accuracy")


def _ece(ev: Evaluation, bins: Bins, strategy: str) -> str:
    same = bins in (ev.bins, ev.mass_bins)
    name = "ece" if strategy == "width" else "ece_mass"
    value = ev.metrics[name] if same and not ev.per_class else binned_error(bins)
    count = f"{len(bins.count)} equal-{strategy} bins"
    return f"ECE ×100: {labels.percent(value)} ({count})"


def _key_of_bins(level: float, *, interval: bool) -> list[Any]:
    label = f"accuracy, {100 * level:g}% Wilson" if interval else "accuracy"
    return [
        Patch(label=label, **style.ROWS_FILL),
        Patch(label="gap to the confidence", **GAP),
        Line2D([], [], label="mean confidence", **MEAN),
        Line2D([], [], label="overall accuracy", **HITS),
    ]
