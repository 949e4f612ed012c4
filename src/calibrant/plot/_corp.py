"""`corp`: the isotonic fit, which needs no bins and no width."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._base.evaluation import Evaluation
from calibrant._stats.bins import consistency_band
from calibrant._views.diagram import the_one, view
from calibrant.plot import _labels as labels
from calibrant.plot import _panel as panel
from calibrant.plot import _style as style
from calibrant.plot._layout import one_panel


@style.in_style
def corp(
    models: Evaluation,
    *,
    interval: bool = True,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw the isotonic fit of the accuracy against a band for calibrated models.

    Parameters
    ----------
    models : Evaluation
        The model.
    interval : bool
        Whether to draw the consistency band: where the fit would lie, pointwise, if the
        model were calibrated. It comes from 400 draws, the same every time.
    legend, ax
        As in `calibration_sharpness`.

    Returns
    -------
    Axes
        The Axes of the fit; the share of rows is on a second one below.

    References
    ----------
    T. Dimitriadis, T. Gneiting and A. Jordan, *Stable reliability diagrams for
    probabilistic classifiers*, PNAS 118 (2021).

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, 0.7] * 30)
    >>> calibrant.plot.corp(ev).get_ylabel()
    'accuracy, made increasing'
    """
    ev = the_one(models)
    sheet = one_panel(ax, key=0.17 if legend else 0.0)
    main, below = sheet.with_strip()
    style.dress(main)
    level = float(ev.settings["level"])
    if interval:
        _draw_consistency(main, ev, level)
    panel.draw_diagonal(main)
    # The fit is level on each block, and straight between blocks.
    x = np.column_stack([ev.isotonic.lower, ev.isotonic.upper]).ravel()
    look = {"linewidth": 1.4, "clip_on": False, "gid": "accuracy", **style.SURE}
    if len(ev.atoms.count):
        look |= {"marker": "o", "markersize": 2.6}
    main.plot(x, np.repeat(ev.isotonic.accuracy, 2), **look)
    style.unit_square(main, "accuracy, made increasing")
    panel.draw_strip(below, view(ev), None)
    handles = _key_of_fit(level, interval=interval) if legend else []
    labels.finish(sheet, below, ev, _parts(ev), handles, 3)
    return main


def _draw_consistency(ax: Axes, ev: Evaluation, level: float) -> None:
    """The band, from the rows at each confidence, to a cell of the histogram."""
    at, count = ev.atoms.confidence, ev.atoms.count
    if not len(count):
        used = np.flatnonzero(ev.histogram)
        at, count = (used + 0.5) / len(ev.histogram), ev.histogram[used]
    low, high = consistency_band(at, count, level)
    if len(at) == 1:
        ax.vlines(at, low, high, color=style.RIBBON, linewidth=3, alpha=0.4)
        return
    ax.fill_between(at, low, high, zorder=2, gid="interval", **style.INTERVAL)


def _parts(ev: Evaluation) -> str:
    if "mcb" not in ev.metrics:
        return "isotonic fit"
    mcb, dsc, unc = (labels.percent(ev.metrics[name]) for name in ("mcb", "dsc", "unc"))
    return f"Brier score ×100 = MCB {mcb} − DSC {dsc} + UNC {unc}"


def _key_of_fit(level: float, *, interval: bool) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = [
        Line2D([], [], color=style.CURVE, linewidth=1.4, label="isotonic fit"),
        Line2D([], [], label="calibration", **style.DIAGONAL),
    ]
    if interval:
        handles.insert(1, labels.interval_patch(f"{100 * level:g}% if calibrated"))
    return handles
