"""Calibration-sharpness diagrams, of one model or of several side by side."""

from __future__ import annotations

from typing import Any

from acumen.arrays import check_choice
from acumen.comparison import is_trivial
from acumen.plot import diagram, header, logit_scale, paper_style, strip
from acumen.plot.diagram import Look, find_band
from acumen.plot.layout import (
    Margins,
    Panels,
    columns_for,
    give_back,
    given_panels,
    panels,
)
from acumen.plot.reading import Evaluations, View, as_list, view
from acumen.plot.style import DENSITY_EDGE, in_style
from acumen.results import Evaluation

CUT_AT = 1.25
"""Aligned axes end here: a single tall band would squeeze all others."""

SCALES = (16.0, 8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125)
"""How much a band may be stretched or shrunk where its height has no natural unit."""

HEADROOM = 1.03


@in_style
def calibration_sharpness(
    evs: Evaluations,
    *,
    style: str = "modern",
    divergence: str | None = None,
    bandwidth: float | None = None,
    kernel: str = "gaussian",
    boundary: str = "none",
    interval: bool = True,
    scale: str = "probability",
    ylim: str | None = None,
    legend: bool = True,
    ax: Any = None,
) -> Any:
    r"""Draw accuracy against confidence inside a band of the sharpness gap.

    Parameters
    ----------
    evs : Evaluation, Comparison or sequence of Evaluation
        One model, or several side by side with aligned axes.
    style : {"modern", "paper"}
        ``"modern"`` has a strip below that shows where the rows are; ``"paper"`` is the
        figure of the paper, element by element, at its bandwidth of 0.05.
    divergence : str, optional
        ``"brier"``, ``"log"`` or your own; by default that of the evaluation.
    bandwidth : float, optional
        Draw the paper's kernel estimate at this bandwidth, with `kernel`
        (``"gaussian"`` or ``"epanechnikov"``) and `boundary` (``"none"`` or
        ``"reflect"``). By default, what the evaluation was made with.
    interval : bool
        Whether to draw the pointwise interval of the accuracy.
    scale : {"probability", "logit"}
        ``"logit"`` spreads out the confidences of a saturated model.
    ylim : {"shared", "full", "free"}, optional
        ``"shared"``: all panels end at the same height, at most 1.25; a taller band is
        cut and labelled with its true top. ``"full"``: the same height, nothing cut.
        ``"free"``: each panel as high as it needs. By default ``"shared"`` in the modern
        style and ``"free"`` in that of the paper.
    legend : bool
        Whether a figure made here gets a key.
    ax : Axes or sequence of Axes, optional
        Where to draw: one for each model.

    Returns
    -------
    Axes or array of Axes
        The Axes of the diagram: one for one model, else an array.

    Notes
    -----
    The band is centred on the curve and :math:`\hat p(h)\,\rho(h)` high: density of the
    rows times pointwise sharpness gap, so a larger band is worse. Its bottom is cut at 0,
    its top is not cut at 1. Around an adaptive curve the band is that of the bandwidth
    0.05. A curve is dotted where fewer than 20 rows are near, and not drawn where there
    are none.

    Examples
    --------
    >>> import numpy as np, acumen as ac, acumen.plot
    >>> rng = np.random.default_rng(0)
    >>> h = rng.beta(4, 1, 500)
    >>> ev = ac.evaluate_pairs(rng.random(500) < h**2, h, name="too sure")
    >>> ax = acumen.plot.calibration_sharpness(ev)
    >>> ax.get_ylabel()
    'accuracy'
    """
    check_choice(style, "style", ("modern", "paper"))
    check_choice(scale, "scale", ("probability", "logit"))
    check_choice(ylim, "ylim", (None, "shared", "full", "free"))
    models, several = as_list(evs), not isinstance(evs, Evaluation)
    options = divergence, bandwidth, kernel, boundary
    if style == "paper":
        axes = paper_style.draw_all(models, options, ylim or "free", ax)
        return give_back(axes, several=several)
    views = [view(ev, *options) for ev in models]
    sheet = (
        _sheet(len(views), legend=legend)
        if ax is None
        else given_panels(len(views), ax)
    )
    ends = logit_scale.limits(models) if scale == "logit" else None
    look = Look(CUT_AT, _band_scale(views, ends), interval, ends, sheet.roomy)
    looks = _with_tops(views, look, ylim or "shared")
    size = header.title_size(views, sheet.inches)
    for place, (one, its_look) in enumerate(zip(views, looks, strict=True)):
        _panel(sheet, place, one, its_look, size)
    _finish(sheet, views, looks[0], legend=legend)
    return give_back(sheet.axes, several=several)


def _sheet(count: int, *, legend: bool) -> Panels:
    columns = columns_for(count)
    key = 0.32 if columns > 3 else 0.48 if columns > 1 else 0.62
    roomy = columns <= 2
    return panels(
        count,
        Margins(
            height=2.55 if columns == 1 else 2.0 if roomy else 1.62,
            head=0.36 if columns == 1 else 0.47,
            foot=0.2,
            bottom=0.2 + (key if legend else 0.0),
        ),
    )


def _panel(sheet: Panels, place: int, one: View, look: Look, size: float) -> None:
    ax = sheet.axes[place]
    lower = strip.split(ax)
    diagram.draw(ax, one, look)
    strip.draw(lower, one, look.ends)
    header.write(ax, one, sheet.inches, size)
    if sheet.is_left(place):
        ax.set_ylabel("accuracy")
        lower.set_ylabel("rows", color=DENSITY_EDGE, fontsize=7)
    else:
        ax.tick_params(labelleft=False)
    if sheet.is_bottom(place):
        lower.set_xlabel("confidence", labelpad=2)


def _band_scale(views: list[View], ends: tuple[float, float] | None) -> float:
    """1 for Brier on the probability scale; elsewhere so that bands fit the axes."""
    named = views[0].parts.divergence == "brier"
    if ends is None and named:
        return 1.0
    judged = [v for v in views if not is_trivial(v.ev)] or views
    for scale in SCALES if ends is not None else SCALES[4:]:
        look = Look(CUT_AT, scale, ends=ends)
        if max(find_band(v, look).top for v in judged) <= CUT_AT:
            return scale
    return SCALES[-1]


def _with_tops(views: list[View], look: Look, ylim: str) -> list[Look]:
    """Decide where each y axis ends."""
    needed = [max(1.0, find_band(v, look).top) * HEADROOM for v in views]
    if ylim == "free":
        return [_ending(look, top) for top in needed]
    top = max(needed)
    return [_ending(look, min(top, CUT_AT) if ylim == "shared" else top)] * len(views)


def _ending(look: Look, top: float) -> Look:
    return Look(top, look.band_scale, look.interval, look.ends, look.roomy)


def _finish(sheet: Panels, views: list[View], look: Look, *, legend: bool) -> None:
    """Key, the meaning of the numbers, and the words for those who cannot see it."""
    if sheet.sheet is None:
        return
    sheet.sheet.alt_text = " ".join(v.ev.describe() for v in views)
    if not legend:
        return
    columns = 2 if sheet.columns == 1 else 3 if sheet.columns < 4 else 6
    note = f"numbers: {header.method(views)}"
    header.legend(sheet.sheet, header.key(views, look), columns, note)
