"""`cumulative_differences`: outcomes less confidences, added up; its slope is the error."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from calibrant._verbs.cutoff_error import CutoffError, cutoff_error
from calibrant._views.diagram import axis_words
from calibrant.plot import _curves as curves
from calibrant.plot import _labels as labels
from calibrant.plot import _style as style


@style.in_style
def cumulative_differences(
    models: Any,
    *,
    interval: bool = True,
    legend: bool = True,
    figsize: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the sum of outcomes less confidences, in order of confidence.

    Parameters
    ----------
    models : CutoffError, Evaluation, Comparison, or a sequence of either
        Up to 8 models. Evaluations must have their rows at hand.
    interval : bool
        Whether to draw the band in which a calibrated model stays, all along, as often as
        the level says. It is that of the first model.
    legend, figsize, ax
        As in `calibration_sharpness`.

    Returns
    -------
    Axes
        Where a line falls, confidences are too high, by its slope; where it rises, too low.
        From its lowest to its highest point it is the cutoff error.

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, 0.7] * 30)
    >>> calibrant.plot.cumulative_differences(ev).get_xlabel()
    'share of examples, by confidence'
    """
    found = curves.curves_of(models, CutoffError, cutoff_error)
    names, own = curves.names_of(found), ax is None
    reach = found[0].reach if interval else 0.0
    ax = curves.axes_of(ax, figsize, (len(found) + bool(reach) + 1) * legend)
    style.dress(ax)
    if reach:
        look: Any = {"zorder": 1.5, "gid": "interval", **style.theme().interval}
        ax.fill_between([0, 1], -reach, reach, **look)
    ax.axhline(0, gid="calibrated", **style.theme().diagonal)
    for place, (one, name) in enumerate(zip(found, names, strict=True)):
        curves.draw_model(ax, place, one.share, one.difference, name=name)
    _name_axes(ax, found[0])
    texts = [
        f"{n}: cutoff error ×100 {_size(x)}" for n, x in zip(names, found, strict=True)
    ]
    handles = curves.model_handles(texts)
    if reach:
        handles.append(curves.band_handle(found[0].level, "if calibrated"))
    alt = " ".join(f"Cumulative differences of {text}." for text in texts)
    curves.finish(ax, handles, alt, own=own, legend=legend)
    return ax


def _size(found: CutoffError) -> str:
    return labels.with_interval(found.error)


def _name_axes(ax: Axes, found: CutoffError) -> None:
    """Shares below, and the confidences that they reach above."""
    ax.set_xlim(0, 1)
    style.number_ticks(ax, "x", style.unit_ticks(ax, "x"))
    said = axis_words(found)["said"]
    style.name_axis(ax, "x", f"share of examples, by {said}")
    style.name_axis(ax, "y", "cumulative difference")
    theme = style.theme()
    places = style.UNIT_TICKS[2:]
    reached = [float(np.interp(x, found.share, found.confidence)) for x in places]
    for share, text in zip(places, ticks_apart(reached), strict=True):
        at: Any = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        look: Any = {"ha": "center" if share < 1 else "right", **theme.faint}
        ax.annotate(text, (share, 1), xytext=(0, 1.5), va="bottom", **at, **look)
    words: Any = {"xycoords": "axes fraction", "textcoords": "offset points"}
    ax.annotate(said, (0, 1), xytext=(0, 1.5), va="bottom", **words, **theme.faint)


def ticks_apart(values: list[float], most: int = 5) -> list[str]:
    """Numbers in as few digits as tell them apart; empty where they repeat the one before.

    Examples
    --------
    >>> ticks_apart([0.62, 0.8]), ticks_apart([0.9991, 0.99973, 1.0, 1.0])
    (['0.62', '0.8'], ['0.9991', '0.9997', '1', ''])
    """
    for digits in range(2, most + 1):
        texts = [f"{x:.{digits}g}" for x in values]
        if len({*texts}) == len({*values}):
            break
    return [x if x not in texts[:i] else "" for i, x in enumerate(texts)]
