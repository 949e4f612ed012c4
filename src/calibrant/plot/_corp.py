"""The CORP reliability diagram: the isotonic fit, which needs no bins and no width."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._base.evaluation import Evaluation
from calibrant._base.records import Bins
from calibrant._inputs.arrays import Column
from calibrant._stats.bins import consistency_band
from calibrant._views.diagram import the_one, view
from calibrant.plot import _labels as labels
from calibrant.plot import _panel as panel
from calibrant.plot import _style as style
from calibrant.plot._layout import one_panel
from calibrant.plot._style import in_style


@in_style
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
    legend : bool
        Whether a figure made here gets a key.
    ax : Axes, optional
        Where to draw.

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
    >>> import numpy as np, calibrant as cal, calibrant.plot
    >>> rng = np.random.default_rng(0)
    >>> h = rng.random(500)
    >>> ev = cal.evaluate_pairs(rng.random(500) < h**2, h)
    >>> calibrant.plot.corp(ev).get_ylabel()
    'accuracy, made increasing'
    """
    ev = the_one(models)
    sheet = one_panel(ax, key=0.17 if legend else 0.0)
    main, below = sheet.with_strip()
    style.dress(main)
    level = float(ev.settings["level"])
    if interval:
        _band(main, ev, level)
    main.plot([0, 1], [0, 1], zorder=3, gid="diagonal", **style.DIAGONAL)
    x, y = steps(ev.isotonic)
    dots: dict[str, Any] = {}
    if len(ev.atoms.count):
        dots = {"marker": "o", "markersize": 2.6}
    look = {"linewidth": 1.4, "clip_on": False, "gid": "accuracy", **style.SURE}
    main.plot(x, y, **look, **dots)
    style.unit_square(main, "accuracy, made increasing")
    panel.draw_strip(below, view(ev), None)
    handles = _key(level, interval=interval) if legend else []
    labels.finish(sheet, below, ev, _headline(ev), handles, 3)
    return main


def steps(blocks: Bins) -> tuple[Column, Column]:
    """The fit as a line: level on each block, straight between blocks."""
    x = np.column_stack([blocks.lower, blocks.upper]).ravel()
    return x, np.repeat(blocks.accuracy, 2)


def _band(ax: Axes, ev: Evaluation, level: float) -> None:
    at, count = _rows(ev)
    low, high = consistency_band(at, count, level)
    if len(at) == 1:
        ax.vlines(at, low, high, color=style.RIBBON, linewidth=3, alpha=0.4)
        return
    ax.fill_between(at, low, high, zorder=2, gid="interval", **style.INTERVAL)


def _rows(ev: Evaluation) -> tuple[Column, Column]:
    """Confidences and the rows at each, to a cell of the histogram."""
    if len(ev.atoms.count):
        return ev.atoms.confidence, ev.atoms.count
    cells = len(ev.histogram)
    at = (np.arange(cells) + 0.5) / cells
    used = ev.histogram > 0
    return at[used], ev.histogram[used]


def _headline(ev: Evaluation) -> str:
    if "mcb" not in ev.metrics:
        return "isotonic fit"
    mcb, dsc, unc = (labels.percent(ev.metrics[name]) for name in ("mcb", "dsc", "unc"))
    return f"Brier score ×100 = MCB {mcb} − DSC {dsc} + UNC {unc}"


def _key(level: float, *, interval: bool) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = [
        Line2D([], [], color=style.CURVE, linewidth=1.4, label="isotonic fit"),
        Line2D([], [], label="calibration", **style.DIAGONAL),
    ]
    if interval:
        label = f"{100 * level:g}% if calibrated"
        handles.insert(1, labels.interval_patch(label))
    return handles
