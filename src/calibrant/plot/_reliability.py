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
from calibrant._views.diagram import Evaluations, as_list, axis_words, bins_of
from calibrant.plot import _labels as labels
from calibrant.plot import _panel as panel
from calibrant.plot import _style as style
from calibrant.plot._layout import give_back, model_panels, split

LEAST_WIDTH = 0.008
"""A bin of one confidence is drawn this wide."""


@style.in_style
def reliability(
    models: Evaluations,
    *,
    bins: int | str | None = None,
    strategy: str = "width",
    interval: bool = True,
    legend: bool = True,
    figsize: tuple[float, float] | None = None,
    ax: Any = None,
) -> Any:
    """Draw the accuracy in bins of the confidence, with the share of examples below.

    Parameters
    ----------
    models : Evaluation, Comparison or sequence of Evaluation
        One model, or up to 12 side by side.
    bins : int or "cube-root", optional
        Number of bins; by default that of the evaluation, which has 15 unless told.
    strategy : {"width", "mass"}
        Bins of equal width or of equal weight. Ties are never split.
    interval : bool
        Whether each accuracy gets its Wilson interval.
    legend, figsize, ax
        As in `calibration_sharpness`.

    Returns
    -------
    Axes or array of Axes
        The Axes of the bars: one for one model, else an array; the shares are on a second
        one below each.

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, 0.7] * 30)
    >>> calibrant.plot.reliability(ev, bins=10).get_ylabel()
    'accuracy'
    """
    chosen, several = as_list(models), not isinstance(models, Evaluation)
    found = [bins_of(ev, bins, strategy) for ev in chosen]
    sheet = model_panels(len(chosen), ax, figsize, key=0.31 if legend else 0.0)
    strips = [split(main) for main in sheet.axes]
    size = labels.title_size((ev.name for ev in chosen), sheet.inches)
    for place, (ev, one) in enumerate(zip(chosen, found, strict=True)):
        level = float(ev.settings["level"]) if interval else None
        _draw_bins((sheet.axes[place], strips[place]), ev, one, level)
        lines = _ece(ev, one, strategy)
        broken = [line.strip("()") for line in lines]
        labels.header(
            sheet.axes[place], ev.name, " ".join(lines), broken, sheet.inches, size
        )
    handles = _key_of_bins(chosen[0], interval=interval) if legend else []
    labels.finish(sheet, strips, chosen, handles, 2 if sheet.columns < 4 else 4)
    return give_back(sheet.axes, several=several)


def _draw_bins(
    axes: tuple[Axes, Axes], ev: Evaluation, bins: Bins, level: float | None
) -> None:
    """Bars of the accuracy, and below them of the share of examples."""
    main, below = axes
    middle, width = 0.5 * (bins.lower + bins.upper), bins.upper - bins.lower
    width = np.maximum(width, LEAST_WIDTH)
    left = np.clip(middle - width / 2, 0, 1 - width)
    _draw_bars(main, bins, left, width, level)
    style.unit_square(main, axis_words(ev)["hit"])
    style.dress(below, grid=False, hide=("top", "right", "left"))
    share, fill = bins.count / bins.count.sum(), style.theme().rows_fill
    below.bar(left, share, width, align="edge", gid="rows", **fill)
    below.set(yticks=[], ylim=(0, 1.12 * share.max()))
    # Mean confidence and overall accuracy: their distance is the over-confidence.
    sums = (np.nansum(bins.count * x) for x in (bins.confidence, bins.accuracy))
    mean, hits = (float(total / bins.count.sum()) for total in sums)
    below.axvline(mean, gid="mean-confidence", **_mean())
    below.axvline(hits, **_overall())


def _gap() -> dict[str, Any]:
    return {**style.theme().band_fill, "hatch": "////", "alpha": 0.8}


def _mean() -> dict[str, Any]:
    return {"color": style.theme().ink, "linewidth": 0.9}


def _overall() -> dict[str, Any]:
    return {**_mean(), "color": style.theme().curve, "linestyle": (0, (2, 1.2))}


def _draw_bars(
    ax: Axes, bins: Bins, left: Column, width: Column, level: float | None
) -> None:
    """Bars, the gaps to the confidence, and intervals of this level if there is one."""
    style.dress(ax)
    full, theme = bins.count > 0, style.theme()
    place, bar = left[full], width[full]
    h, m = bins.confidence[full], bins.accuracy[full]
    ax.bar(place, m, bar, align="edge", zorder=2, gid="accuracy", **theme.rows_fill)
    ax.bar(place, h - m, bar, bottom=m, align="edge", zorder=2.5, gid="gap", **_gap())
    panel.draw_diagonal(ax)
    if level is not None:
        low, high = closed_forms.wilson(m, bins.count[full], level)
        ends = np.maximum([m - low, high - m], 0)
        look: Any = {
            "markersize": 2.6 * style.theme().room,
            "elinewidth": 0.8,
            "color": theme.ink,
        }
        ax.errorbar(h, m, yerr=ends, fmt="o", zorder=4, gid="interval", **look)


def _ece(ev: Evaluation, bins: Bins, strategy: str) -> list[str]:
    same = bins in (ev.bins, ev.mass_bins)
    name = "ece" if strategy == "width" else "ece_mass"
    value = ev.metrics[name] if same and not ev.per_class else binned_error(bins)
    count = f"({len(bins.count)} equal-{strategy} bins)"
    return [f"ECE ×100: {labels.percent(value)}", count]


def _key_of_bins(ev: Evaluation, *, interval: bool) -> list[Any]:
    words, level = axis_words(ev), 100 * float(ev.settings["level"])
    hit = words["hit"].split()[-1]
    label = f"{hit}, {level:g}% Wilson" if interval else hit
    return [
        Patch(label=label, **style.theme().rows_fill),
        Patch(label=f"gap to {words['said']}", **_gap()),
        Line2D([], [], label=f"mean {words['said']}", **_mean()),
        Line2D([], [], label=f"overall {hit}", **_overall()),
    ]
