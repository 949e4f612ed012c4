"""`residual`: accuracy less confidence, so that small errors are seen."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from calibrant._base.evaluation import Evaluation
from calibrant._views.diagram import View, the_one, view
from calibrant.plot import _labels as labels
from calibrant.plot import _panel as panel
from calibrant.plot import _style as style
from calibrant.plot._layout import one_panel


@style.in_style
def residual(
    models: Evaluation,
    *,
    bandwidth: float | None = None,
    kernel: str = "gaussian",
    interval: bool | str = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy less confidence: below 0 the model is too sure of itself.

    Parameters
    ----------
    models : Evaluation
        The model.
    bandwidth, kernel, interval, ax
        As in `calibration_sharpness`.

    Returns
    -------
    Axes
        The Axes of the residual; the share of rows is on a second one below.

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, 0.7] * 30)
    >>> calibrant.plot.residual(ev).get_ylabel()
    'accuracy − confidence'
    """
    ev = the_one(models)
    seen = view(ev, bandwidth=bandwidth, kernel=kernel)
    sheet = one_panel(ax, left=0.55)
    main, below = sheet.with_strip()
    style.dress(main)
    reach = min(max(1.1 * _draw_residuals(main, seen, interval=interval), 0.05), 1.0)
    main.axhline(0, zorder=3, gid="diagonal", **style.DIAGONAL)
    main.set(xlim=(0, 1), ylim=(-reach, reach), ylabel="accuracy − confidence")
    style.number_ticks(main, "x", style.UNIT_TICKS)
    for text, y, va in (("under", 0.98, "top"), ("over", 0.02, "bottom")):
        place: Any = {"transform": main.transAxes, "va": va}
        main.text(0.02, y, f"{text}-confident", **place, **style.FAINT)
    panel.draw_strip(below, seen, None)
    line = rf"$d_\mathrm{{CAL}}$ ×100: {labels.with_interval(seen.parts.calibration)}"
    labels.finish(sheet, below, ev, line)
    return main


def _draw_residuals(ax: Axes, seen: View, *, interval: bool | str) -> float:
    """Line, atoms and ribbons; how far from 0 they reach."""
    curve, sure, h = seen.curve, seen.trusted(), seen.ev.atoms.confidence
    off, at = curve.accuracy - curve.confidence, curve.confidence
    ends = panel.draw_ribbons(ax, seen, at, interval, less=at)
    panel.draw_lines(ax, seen, at, off, (1.5, 1.0), "residual")
    circles = panel.draw_atoms(ax, seen.ev, h, h, interval=bool(interval))
    drawn = np.concatenate([off[sure], circles, ends])
    return float(np.abs(drawn).max(initial=0.0))
