"""`smooth_reliability`: the curve of SmoothECE, as thick as there are examples."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._base.evaluation import Evaluation
from calibrant._base.measures import effective
from calibrant._base.records import SmoothCurve
from calibrant._inputs.arrays import Column
from calibrant._stats import closed_forms
from calibrant._views.diagram import Evaluations, Mask, as_list, axis_words, view
from calibrant.plot import _labels as labels
from calibrant.plot import _panel as panel
from calibrant.plot import _style as style
from calibrant.plot._layout import give_back, model_panels, split

THINNEST, THICKEST = 0.5, 4.0
"""Widths of the line, in points, where the density is least and greatest."""


REACH = 0.05
"""The curve is not drawn further than this from every example, nor the bandwidth."""


@style.in_style
def smooth_reliability(
    models: Evaluations,
    *,
    interval: bool | str = True,
    legend: bool = True,
    figsize: tuple[float, float] | None = None,
    ax: Any = None,
) -> Any:
    """Draw the curve behind SmoothECE; its width follows the density of the examples.

    Parameters
    ----------
    models : Evaluation, Comparison or sequence of Evaluation
        One model, or up to 12 side by side.
    interval : bool or {"pointwise", "simultaneous"}
        Which bands of the curve to draw: by default both.
    legend, figsize, ax
        As in `calibration_sharpness`.

    Returns
    -------
    Axes or array of Axes
        The Axes of the curve: one for one model, else an array; the share of examples is
        on a second one below each.

    Notes
    -----
    The curve is smoothed with the Gaussian of SmoothECE, reflected at 0 and 1, at the
    bandwidth that equals its own error, and is drawn where there are examples. Its bands
    are Wilson's at the effective number of examples under the kernel; the wider one holds
    at all places at once (by the tube formula of Sun and Loader, 1994). They tell how far
    chance moves the curve, not what smoothing hides: a wide kernel flattens it, see
    `calibration_sharpness`.

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, 0.7] * 30)
    >>> calibrant.plot.smooth_reliability(ev).get_ylabel()
    'accuracy'
    """
    chosen, several = as_list(models), not isinstance(models, Evaluation)
    sheet = model_panels(
        len(chosen),
        ax,
        figsize,
        key=(0.31 + 0.15 * _third_line(chosen)) if legend else 0.0,
    )
    strips = [split(main) for main in sheet.axes]
    size = labels.title_size((ev.name for ev in chosen), sheet.inches)
    for ev, main, below in zip(chosen, sheet.axes, strips, strict=True):
        _draw_curve(main, ev, interval)
        panel.draw_strip(below, view(ev), None)
        value = labels.percent(ev.metrics["smooth_ece"])
        broken = f"SmoothECE ×100: {value}", f"bandwidth {ev.smooth.bandwidth:.3g}"
        whole = f"{broken[0]} ({broken[1]})"
        labels.header(main, ev.name, whole, broken, sheet.inches, size)
    handles = [*_key(chosen[0], interval), *labels.circle(chosen)] if legend else []
    labels.finish(sheet, strips, chosen, handles, 2 if sheet.columns < 3 else 4)
    return give_back(sheet.axes, several=several)


def _third_line(chosen: list[Evaluation]) -> bool:
    """Whether the key has a line more: repeated confidences, beside two lines of others."""
    return bool(labels.circle(chosen)) and len(chosen) < 3


def _draw_curve(ax: Axes, ev: Evaluation, interval: bool | str) -> None:  # noqa: FBT001
    """Bands, diagonal and curve; a confidence that repeats is a circle as well."""
    style.dress(ax)
    seen = _support(ev)
    for kind, (low, high) in _bands(ev, seen).items():
        if interval in (True, kind):
            look: Any = {"gid": panel.GIDS[kind], "label": _band_name(ev, kind)}
            look |= {"where": seen, **style.theme().ribbons[kind]}
            ax.fill_between(ev.smooth.confidence, low, high, **look)
    panel.draw_diagonal(ax)
    ax.add_collection(_weighted_line(ev.smooth, seen))
    panel.draw_atoms(ax, ev, ev.atoms.confidence, interval=False)
    style.unit_square(ax, axis_words(ev)["hit"])


def _support(ev: Evaluation) -> Mask:
    """Where examples are: between the first and the last, and near one of them."""
    cells, at = np.flatnonzero(ev.histogram), ev.smooth.confidence
    places = (cells + 0.5) / len(ev.histogram)
    nearest = np.abs(at[:, None] - places).min(axis=1)
    half = 0.5 / len(ev.histogram)
    inside = (at >= places[0] - half - 1e-9) & (at <= places[-1] + half + 1e-9)
    reach = max(min(REACH, ev.smooth.bandwidth), 2 * half)
    known: Mask = np.isfinite(ev.smooth.accuracy)
    return known & inside & (nearest <= reach + 1e-9)


def _bands(ev: Evaluation, seen: Mask) -> dict[str, tuple[Column, Column]]:
    """Ends of the bands of the curve by kind, the wider one first."""
    level, count = float(ev.settings["level"]), _examples_under_kernel(ev)
    length = float(seen.sum() / len(seen))
    wide = _level_everywhere(level, length / ev.smooth.bandwidth)
    levels = {"simultaneous": wide, "pointwise": level}
    known = np.nan_to_num(ev.smooth.accuracy)
    return {kind: closed_forms.wilson(known, count, x) for kind, x in levels.items()}


def _examples_under_kernel(ev: Evaluation) -> Column:
    """Examples that a mean at each place is worth: Kish's number of its weights."""
    h, at = (
        (np.arange(len(ev.histogram)) + 0.5) / len(ev.histogram),
        ev.smooth.confidence,
    )
    images = [shift + side * h for shift in (-2, 0, 2) for side in (1, -1)]
    kernel = sum(
        np.exp(-0.5 * ((at[:, None] - image) / ev.smooth.bandwidth) ** 2)
        for image in images
    )
    mass, squares = kernel @ ev.histogram, np.square(kernel) @ ev.histogram
    worth = mass**2 / np.maximum(squares, 1e-300)
    return np.maximum(worth * _independent(ev) / ev.n, 1e-9)


def _independent(ev: Evaluation) -> float:
    """How many examples count, if weights differ, and if clusters widen intervals."""
    count, accuracy = effective(ev), ev.metrics.get("accuracy")
    if ev.n_clusters is None or accuracy is None or accuracy.interval is None:
        return count
    level = float(ev.settings["level"])
    low, high = closed_forms.wilson_of(float(accuracy), count, level)
    wide = accuracy.interval[1] - accuracy.interval[0]
    return count * min(1.0, (high - low) / max(wide, 1e-9)) ** 2


def _level_everywhere(level: float, widths: float) -> float:
    """The level at which a pointwise band holds everywhere, over so many bandwidths."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    length = widths / np.sqrt(2)

    def excess(z: float) -> float:
        return float(2 * norm.sf(z) + length / np.pi * np.exp(-(z**2) / 2) - 1 + level)

    return float(1 - 2 * norm.sf(brentq(excess, 0.0, 40.0)))


def _band_name(ev: Evaluation, kind: str) -> str:
    return f"{100 * float(ev.settings['level']):g}% {kind}"


def _key(ev: Evaluation, interval: bool | str) -> list[Line2D | Patch]:  # noqa: FBT001
    """What the line and its bands are."""
    theme = style.theme()
    width = theme.line(1.5)
    handles: list[Line2D | Patch] = [
        Line2D([], [], color=theme.curve, linewidth=width, label=_curve_name(ev)),
        Line2D([], [], label="perfect calibration", **theme.diagonal),
    ]
    return handles + [
        Patch(label=_band_name(ev, kind), **theme.ribbons[kind])
        for kind in ("pointwise", "simultaneous")
        if interval in (True, kind)
    ]


def _curve_name(ev: Evaluation) -> str:
    return f"smoothed {axis_words(ev)['hit']}"


def _weighted_line(curve: SmoothCurve, seen: Mask) -> LineCollection:
    """The curve as short segments, each as wide as the density at its middle."""
    points = np.column_stack([curve.confidence, curve.accuracy])
    segments = np.stack([points[:-1], points[1:]], axis=1)
    density = 0.5 * (curve.density[:-1] + curve.density[1:])
    width = THINNEST + (THICKEST - THINNEST) * np.sqrt(density / density.max())
    known, theme = seen[:-1] & seen[1:], style.theme()
    look: Any = {"color": theme.curve, "zorder": 4, "gid": "accuracy"}
    look |= {"capstyle": "butt", "linewidths": theme.line(1.0) * width[known]}
    return LineCollection(list(segments[known]), **look)
