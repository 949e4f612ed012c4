"""`corp`: the isotonic fit, which needs no bins and no width."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._base.evaluation import Evaluation
from calibrant._stats.bins import consistency_band
from calibrant._views.diagram import Evaluations, as_list, axis_words, view
from calibrant.plot import _labels as labels
from calibrant.plot import _panel as panel
from calibrant.plot import _style as style
from calibrant.plot._layout import give_back, model_panels, split


@style.in_style
def corp(
    models: Evaluations,
    *,
    interval: bool = True,
    legend: bool = True,
    figsize: tuple[float, float] | None = None,
    ax: Any = None,
) -> Any:
    """Draw the isotonic fit of the accuracy against a band for calibrated models.

    Parameters
    ----------
    models : Evaluation, Comparison or sequence of Evaluation
        One model, or up to 12 side by side.
    interval : bool
        Whether to draw the consistency band: where the fit would lie, pointwise, if the
        model were calibrated. It comes from 400 draws, the same every time.
    legend, figsize, ax
        As in `calibration_sharpness`.

    Returns
    -------
    Axes or array of Axes
        The Axes of the fit: one for one model, else an array; the share of examples is on
        a second one below each. MCB, DSC and UNC are those of the Brier score of the
        confidence alone.

    References
    ----------
    T. Dimitriadis, T. Gneiting and A. Jordan, *Stable reliability diagrams for
    probabilistic classifiers*, PNAS 118 (2021).

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, 0.7] * 30)
    >>> calibrant.plot.corp(ev).get_ylabel()
    'accuracy, isotonic'
    """
    chosen, several = as_list(models), not isinstance(models, Evaluation)
    sheet = model_panels(len(chosen), ax, figsize, key=0.31 if legend else 0.0)
    strips = [split(main) for main in sheet.axes]
    size = labels.title_size((ev.name for ev in chosen), sheet.inches)
    for ev, main, below in zip(chosen, sheet.axes, strips, strict=True):
        _draw_fit(main, ev, interval=interval)
        panel.draw_strip(below, view(ev), None)
        labels.header(main, ev.name, *_parts(ev), sheet.inches, size)
    handles = _key_of_fit(chosen[0], interval=interval) if legend else []
    note = f"Brier score of the {axis_words(chosen[0])['said']} alone"
    labels.finish(sheet, strips, chosen, handles, 3, note)
    return give_back(sheet.axes, several=several)


def _draw_fit(ax: Axes, ev: Evaluation, *, interval: bool) -> None:
    style.dress(ax)
    if interval:
        _draw_consistency(ax, ev, float(ev.settings["level"]))
    panel.draw_diagonal(ax)
    # The fit is level on each block, and straight between blocks.
    x, theme = (
        np.column_stack([ev.isotonic.lower, ev.isotonic.upper]).ravel(),
        style.theme(),
    )
    look: Any = {"linewidth": theme.line(1.4), "clip_on": False, "gid": "accuracy"}
    look |= {"label": "isotonic fit", **theme.sure}
    if len(ev.atoms.count):
        look |= {"marker": "o", "markersize": 2.6}
    ax.plot(x, np.repeat(ev.isotonic.accuracy, 2), **look)
    style.unit_square(ax, f"{axis_words(ev)['hit']}, isotonic")


def _draw_consistency(ax: Axes, ev: Evaluation, level: float) -> None:
    """The band, from the examples at each confidence, to a cell of the histogram."""
    at, count = ev.atoms.confidence, ev.atoms.count
    if not len(count):
        used = np.flatnonzero(ev.histogram)
        at, count = (used + 0.5) / len(ev.histogram), ev.histogram[used]
    low, high = consistency_band(at, count, level)
    if len(at) == 1:
        muted = style.theme().colours.muted
        ax.vlines(at, low, high, color=muted, linewidth=3, alpha=0.4)
        return
    look: Any = {"zorder": 2, "gid": "interval", "label": _if_calibrated(level)}
    ax.fill_between(at, low, high, **look, **style.theme().interval)


def _if_calibrated(level: float) -> str:
    return f"{100 * level:g}% if calibrated"


def _parts(ev: Evaluation) -> tuple[str, tuple[str, ...]]:
    """What the Brier score consists of, on one line and on two."""
    if "mcb" not in ev.metrics:
        return "isotonic fit", ("isotonic fit",)
    mcb, dsc, unc = labels.corp_parts(ev)
    first, last = f"Brier ×100 = MCB {mcb}", f"− DSC {dsc} + UNC {unc}"
    return f"{first} {last}", (first, last)


def _key_of_fit(ev: Evaluation, *, interval: bool) -> list[Line2D | Patch]:
    theme, level = style.theme(), float(ev.settings["level"])
    width = theme.line(1.4)
    handles: list[Line2D | Patch] = [
        Line2D([], [], color=theme.curve, linewidth=width, label="isotonic fit"),
        Line2D([], [], label="perfect calibration", **theme.diagonal),
    ]
    if interval:
        handles.insert(1, labels.interval_patch(_if_calibrated(level)))
    return handles
