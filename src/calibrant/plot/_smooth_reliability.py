"""`smooth_reliability`: the curve of SmoothECE, as thick as there are rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._base.evaluation import Evaluation
from calibrant._base.records import SmoothCurve
from calibrant._views.diagram import the_one, view
from calibrant.plot import _labels as labels
from calibrant.plot import _panel as panel
from calibrant.plot import _style as style
from calibrant.plot._layout import one_panel

THINNEST, THICKEST = 0.5, 6.0
"""Widths of the line, in points, where the density is least and greatest."""


@style.in_style
def smooth_reliability(
    models: Evaluation, *, interval: bool | str = True, ax: Axes | None = None
) -> Axes:
    """Draw the curve behind SmoothECE; its width follows the density of the rows.

    Parameters
    ----------
    models : Evaluation
        The model.
    interval, ax
        As in `calibration_sharpness`.

    Returns
    -------
    Axes
        The Axes of the curve; the share of rows is on a second one below.

    Notes
    -----
    The curve is smoothed with the Gaussian of SmoothECE, reflected at 0 and 1, at the
    bandwidth that equals its own error. The bands are those of the accuracy, as in
    `calibration_sharpness`: where the curve leaves them, that bandwidth is too wide.

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, 0.7] * 30)
    >>> calibrant.plot.smooth_reliability(ev).get_ylabel()
    'accuracy'
    """
    ev = the_one(models)
    seen, sheet = view(ev), one_panel(ax, key=0.17 if interval else 0.0)
    main, below = sheet.with_strip()
    style.dress(main)
    panel.draw_ribbons(main, seen, seen.curve.confidence, interval)
    panel.draw_diagonal(main)
    main.add_collection(_weighted_line(ev.smooth))
    style.unit_square(main, "accuracy")
    panel.draw_strip(below, seen, None)
    value = labels.percent(ev.metrics["smooth_ece"])
    line = f"SmoothECE ×100: {value} (bandwidth {ev.smooth.bandwidth:.3g})"
    labels.finish(sheet, below, ev, line, _key(ev) if interval else (), 2)
    return main


def _key(ev: Evaluation) -> list[Line2D | Patch]:
    """What line and bands are: they are not of one estimate."""
    level = 100 * float(ev.settings["level"])
    return [
        Line2D([], [], color=style.CURVE, linewidth=1.4, label="curve of SmoothECE"),
        labels.interval_patch(f"accuracy, {level:g}%"),
    ]


def _weighted_line(curve: SmoothCurve) -> LineCollection:
    """The curve as short segments, each as wide as the density at its middle."""
    points = np.column_stack([curve.confidence, curve.accuracy])
    segments = np.stack([points[:-1], points[1:]], axis=1)
    density = 0.5 * (curve.density[:-1] + curve.density[1:])
    width = THINNEST + (THICKEST - THINNEST) * np.sqrt(density / density.max())
    known = np.isfinite(segments).all(axis=(1, 2))
    look: Any = {"color": style.CURVE, "zorder": 4, "gid": "accuracy"}
    look |= {"capstyle": "round", "linewidths": width[known]}
    return LineCollection(list(segments[known]), **look)
