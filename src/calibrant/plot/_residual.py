"""The residual diagram: accuracy less confidence, so that small errors are seen."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from calibrant._base.evaluation import Evaluation
from calibrant._stats import closed_forms
from calibrant._views.diagram import View, doubtful, only, the_one, trusted, view
from calibrant.plot import _labels as labels
from calibrant.plot import _panel as panel
from calibrant.plot import _style as style
from calibrant.plot._layout import one_panel
from calibrant.plot._style import in_style


@in_style
def residual(
    ev: Evaluation,
    *,
    bandwidth: float | None = None,
    kernel: str = "gaussian",
    interval: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy less confidence: below 0 the model is too sure of itself.

    Parameters
    ----------
    ev : Evaluation
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
    seen = view(the_one(ev), bandwidth=bandwidth, kernel=kernel)
    sheet = one_panel(ax, left=0.55)
    (main,) = sheet.axes
    below = panel.split(main)
    style.dress(main)
    reach = max(_line(main, seen), _atoms(main, seen, interval=interval))
    if interval:
        reach = max(reach, _ribbon(main, seen))
    main.axhline(0, zorder=3, gid="diagonal", **style.DIAGONAL)
    reach = min(max(1.1 * reach, 0.05), 1.0)
    main.set(xlim=(0, 1), ylim=(-reach, reach), ylabel="accuracy − confidence")
    style.number_ticks(main, "x", (0, 0.2, 0.4, 0.6, 0.8, 1))
    _say_which_side(main)
    panel.draw_strip(below, seen, None)
    below.set_xlabel("confidence")
    below.set_ylabel("rows", color=style.DENSITY_EDGE, fontsize=7)
    parts = seen.parts
    line = rf"$d_\mathrm{{CAL}}$ ×100: {labels.with_interval(parts.calibration)}"
    labels.title(main, ev.name, line, sheet.inches)
    if sheet.sheet is not None:
        sheet.sheet.alt_text = ev.describe()
    return main


def _line(ax: Axes, seen: View) -> float:
    curve, sure = seen.curve, trusted(seen)
    off = curve.accuracy - curve.confidence
    ax.plot(
        curve.confidence,
        only(off, sure),
        color=style.CURVE,
        linewidth=1.5,
        zorder=4,
        gid="residual",
    )
    ax.plot(
        curve.confidence,
        only(off, doubtful(seen)),
        color=style.CURVE,
        linewidth=1.0,
        linestyle=(0, (1, 1.6)),
        zorder=3.8,
        gid="residual-doubtful",
    )
    return float(np.abs(off[sure]).max(initial=0.0))


def _ribbon(ax: Axes, seen: View) -> float:
    curve, sure = seen.curve, trusted(seen)
    ends = np.array([curve.low, curve.high]) - curve.confidence
    sure &= np.isfinite(ends).all(axis=0)
    ax.fill_between(
        curve.confidence,
        ends[0],
        ends[1],
        where=sure,
        color=style.RIBBON,
        alpha=style.RIBBON_ALPHA,
        linewidth=0,
        zorder=2,
        gid="interval",
    )
    return float(np.abs(ends[:, sure]).max(initial=0.0))


def _atoms(ax: Axes, seen: View, *, interval: bool) -> float:
    atoms = seen.ev.atoms
    off = atoms.accuracy - atoms.confidence
    if len(off) == 0:
        return 0.0
    level = float(seen.ev.settings["level"])
    low, high = closed_forms.wilson(atoms.accuracy, atoms.count, level)
    if interval:
        h = atoms.confidence
        ax.vlines(h, low - h, high - h, color=style.CURVE, linewidth=0.8, zorder=4.5)
    ax.scatter(
        atoms.confidence,
        off,
        s=4 + 40 * np.sqrt(atoms.count / seen.ev.n),
        facecolor="white",
        edgecolor=style.CURVE,
        linewidth=0.9,
        zorder=5,
        clip_on=False,
        gid="atoms",
    )
    return float(
        np.abs(np.concatenate([off, low - h, high - h] if interval else [off])).max()
    )


def _say_which_side(ax: Axes) -> None:
    for text, y, va in (
        ("under-confident", 0.98, "top"),
        ("over-confident", 0.02, "bottom"),
    ):
        ax.text(
            0.02,
            y,
            text,
            transform=ax.transAxes,
            va=va,
            fontsize=style.SMALL,
            color=style.MUTED,
        )
