"""`residual`: accuracy less confidence, so that small errors are seen."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from calibrant._base.evaluation import Evaluation
from calibrant._views.diagram import Evaluations, View, as_list, axis_words, view
from calibrant._views.words import DIRECTIONS
from calibrant.plot import _labels as labels
from calibrant.plot import _panel as panel
from calibrant.plot import _style as style
from calibrant.plot._layout import give_back, model_panels, split


@style.in_style
def residual(
    models: Evaluations,
    *,
    bandwidth: float | None = None,
    kernel: str = "gaussian",
    interval: bool | str = True,
    legend: bool = True,
    figsize: tuple[float, float] | None = None,
    ax: Any = None,
) -> Any:
    """Draw accuracy less confidence: below 0 the model is too sure of itself.

    Parameters
    ----------
    models : Evaluation, Comparison or sequence of Evaluation
        One model, or up to 12 side by side with one scale.
    bandwidth, kernel, interval, legend, figsize, ax
        As in `calibration_sharpness`.

    Returns
    -------
    Axes or array of Axes
        The Axes of the residual: one for one model, else an array; the share of examples
        is on a second one below each.

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, 0.7] * 30)
    >>> calibrant.plot.residual(ev).get_ylabel()
    'accuracy − confidence'
    """
    chosen, several = as_list(models), not isinstance(models, Evaluation)
    views = [view(ev, bandwidth=bandwidth, kernel=kernel) for ev in chosen]
    key = 0.31 if legend and interval else 0.0
    key += 0.15 if key and labels.circle(chosen) and len(chosen) < 3 else 0.0
    sheet = model_panels(len(chosen), ax, figsize, key=key, left=0.55)
    strips = [split(main) for main in sheet.axes]
    size = labels.title_size((ev.name for ev in chosen), sheet.inches)
    far = [
        _draw_residuals(main, seen, interval=interval)
        for main, seen in zip(sheet.axes, views, strict=True)
    ]
    reach = min(max(1.3 * max(far), 0.05), 1.15)  # with room for words
    for seen, main, below in zip(views, sheet.axes, strips, strict=True):
        _finish_panel(main, seen, reach)
        panel.draw_strip(below, seen, None)
        error = labels.with_interval(seen.parts.calibration)
        broken = r"$d_\mathrm{CAL}$ ×100:", error
        labels.header(main, seen.ev.name, " ".join(broken), broken, sheet.inches, size)
    handles = _key(views, interval) if key else []
    labels.finish(sheet, strips, chosen, handles, 2 if sheet.columns < 3 else 4)
    return give_back(sheet.axes, several=several)


def _finish_panel(ax: Axes, seen: View, reach: float) -> None:
    """The line of calibrated models, what is above and below it, and the axes."""
    theme, words = style.theme(), axis_words(seen.ev)
    ax.axhline(0, zorder=3, gid="diagonal", **theme.diagonal)
    ax.set(xlim=(0, 1), ylim=(-reach, reach))
    style.name_axis(ax, "y", f"{words['hit']} − {words['said']}")
    style.number_ticks(ax, "x", style.unit_ticks(ax, "x"))
    low, high = DIRECTIONS[words["said"] == "forecast"]
    for text, y, va in ((low, 0.98, "top"), (high, 0.02, "bottom")):
        place: Any = {"transform": ax.transAxes, "va": va}
        ax.text(0.02, y, text.lower(), **place, **theme.faint)


def _key(views: list[View], interval: bool | str) -> list[Any]:  # noqa: FBT001
    """The handles of the line and its bands."""
    look = panel.Look(1.0, interval=interval)
    line, _, *bands = labels.key(views, look, brief=True)
    words = axis_words(views[0].ev)
    line.set_label(f"{words['hit']} − {words['said']}")
    diagonal = Line2D([], [], label="perfect calibration", **style.theme().diagonal)
    return [line, diagonal, *bands, *labels.circle([v.ev for v in views])]


def _draw_residuals(ax: Axes, seen: View, *, interval: bool | str) -> float:
    """Line, atoms and ribbons; how far from 0 they reach."""
    curve, sure, h = seen.curve, seen.trusted(), seen.ev.atoms.confidence
    off, at = curve.accuracy - curve.confidence, curve.confidence
    widths = style.theme().line(1.5), style.theme().line(1.0)
    style.dress(ax)
    ends = panel.draw_ribbons(ax, seen, at, interval, less=at)
    panel.draw_lines(ax, seen, at, off, widths, "residual")
    circles = panel.draw_atoms(ax, seen.ev, h, h, interval=bool(interval))
    drawn = np.concatenate([off[sure], circles, ends])
    return float(np.abs(drawn).max(initial=0.0))
