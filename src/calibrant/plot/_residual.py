"""The residual diagram: accuracy less confidence, so that small errors are seen."""

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
from calibrant.plot._style import in_style


@in_style
def residual(
    models: Evaluation,
    *,
    bandwidth: float | None = None,
    kernel: str = "gaussian",
    interval: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy less confidence: below 0 the model is too sure of itself.

    Parameters
    ----------
    models : Evaluation
        The model.
    bandwidth, kernel
        As in `calibration_sharpness`.
    interval : bool
        Whether to draw the pointwise interval of the accuracy, if there is one.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The Axes of the residual; the share of rows is on a second one below.

    Examples
    --------
    >>> import numpy as np, calibrant as cal, calibrant.plot
    >>> rng = np.random.default_rng(0)
    >>> h = rng.random(500)
    >>> ev = cal.evaluate_pairs(rng.random(500) < h**2, h)
    >>> calibrant.plot.residual(ev).get_ylabel()
    'accuracy − confidence'
    """
    ev = the_one(models)
    seen = view(ev, bandwidth=bandwidth, kernel=kernel)
    sheet = one_panel(ax, left=0.55)
    main, below = sheet.with_strip()
    style.dress(main)
    reach = max(_line(main, seen), _atoms(main, seen, interval=interval))
    if interval:
        reach = max(reach, _ribbon(main, seen))
    main.axhline(0, zorder=3, gid="diagonal", **style.DIAGONAL)
    reach = min(max(1.1 * reach, 0.05), 1.0)
    main.set(xlim=(0, 1), ylim=(-reach, reach), ylabel="accuracy − confidence")
    style.number_ticks(main, "x", style.UNIT_TICKS)
    for text, y, va in (("under", 0.98, "top"), ("over", 0.02, "bottom")):
        place: Any = {"transform": main.transAxes, "va": va}
        main.text(0.02, y, f"{text}-confident", **place, **style.FAINT)
    panel.draw_strip(below, seen, None)
    line = rf"$d_\mathrm{{CAL}}$ ×100: {labels.with_interval(seen.parts.calibration)}"
    labels.finish(sheet, below, ev, line)
    return main


def _line(ax: Axes, seen: View) -> float:
    off = seen.curve.accuracy - seen.curve.confidence
    panel.draw_lines(ax, seen, seen.curve.confidence, off, (1.5, 1.0), "residual")
    return float(np.abs(off[seen.trusted()]).max(initial=0.0))


def _ribbon(ax: Axes, seen: View) -> float:
    curve, sure = seen.curve, seen.trusted()
    ends = np.array([curve.low, curve.high]) - curve.confidence
    sure &= np.isfinite(ends).all(axis=0)
    look: Any = {**style.INTERVAL, "zorder": 2, "gid": "interval"}
    ax.fill_between(curve.confidence, ends[0], ends[1], where=sure, **look)
    return float(np.abs(ends[:, sure]).max(initial=0.0))


def _atoms(ax: Axes, seen: View, *, interval: bool) -> float:
    h = seen.ev.atoms.confidence
    drawn = panel.draw_atoms(ax, seen.ev, h, h, interval=interval)
    return float(np.abs(drawn).max(initial=0.0))
