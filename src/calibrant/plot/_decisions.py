"""`decision_curve`, `murphy` and `triptych`: what acting on forecasts gains and costs."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from calibrant._base.evaluation import Evaluation
from calibrant._base.records import FORECASTS
from calibrant._stats.bins import consistency_band
from calibrant._verbs.decisions import DecisionCurve, Murphy
from calibrant._verbs.decisions import decision_curve as decision_curve_of
from calibrant._verbs.decisions import murphy as murphy_of
from calibrant._views.diagram import Evaluations, as_list, axis_words
from calibrant.plot import _curves as curves
from calibrant.plot import _labels as labels
from calibrant.plot import _style as style
from calibrant.plot._layout import Margins, move_inside, panels, read_figsize


@style.in_style
def decision_curve(
    models: Any,
    *,
    interval: bool = True,
    legend: bool = True,
    figsize: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw net benefit against the threshold from which on one acts.

    Parameters
    ----------
    models : DecisionCurve, Evaluation, Comparison, or a sequence of either
        Up to 8 models. Evaluations must have their rows at hand.
    interval : bool
        Whether to draw the pointwise intervals.
    legend, figsize, ax
        As in `calibration_sharpness`.

    Returns
    -------
    Axes
        Higher is better. A model is worth using where it is above both grey lines: acting
        always, and never.

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> ev = cal.evaluate([1, 0, 0, 1] * 30, probs=[0.9, 0.4, 0.3, 0.7] * 30)
    >>> calibrant.plot.decision_curve(ev).get_ylabel()
    'net benefit'
    """
    found = curves.curves_of(models, DecisionCurve, decision_curve_of)
    names, own, theme = curves.names_of(found), ax is None, style.theme()
    ax = curves.axes_of(ax, figsize, (len(found) + 3) * legend)
    style.dress(ax)
    first, grey = found[0], theme.muted
    both: Any = {"linewidth": theme.line(0.9), "zorder": 3}
    always = {"color": grey, "linestyle": (0, (5, 2)), **both}
    never = {"color": grey, "linestyle": "-", **both}
    handles = curves.model_handles(names)
    if not first.baseline:
        ax.plot(first.threshold, first.treat_all, gid="treat all", **always)
        handles.append(Line2D([], [], label="act always", **always))
    ax.axhline(0, gid="treat none", **never)
    text = "the same" if first.baseline else "act never"
    handles.append(Line2D([], [], label=text, **never))
    for place, (one, name) in enumerate(zip(found, names, strict=True)):
        ends = (one.low, one.high) if interval else None
        curves.draw_model(ax, place, one.threshold, one.net_benefit, ends, name)
    _limit_benefit(ax, found)
    handles += [curves.band_handle(first.level)] if interval else []
    alt = " ".join(_benefit_in_words(x, n) for x, n in zip(found, names, strict=True))
    curves.finish(ax, handles, alt, own=own, legend=legend)
    return ax


def _limit_benefit(ax: Axes, found: list[DecisionCurve]) -> None:
    """From a little below 0: what is far below is of no use to anybody."""
    top = max(float(x.net_benefit.max()) for x in found)
    top = max(top, *(x.rate for x in found)) if not found[0].baseline else top
    if found[0].baseline:
        low = min(float(x.low.min()) for x in found)
        top = max(float(x.high.max()) for x in found)
        ax.set(ylim=(1.1 * min(low, -1e-6), 1.1 * max(top, 1e-6)))
    else:
        ax.set(ylim=(-0.2 * top, 1.08 * max(top, 1e-6)))
    last = max(float(x.threshold.max()) for x in found)
    first = min(float(x.threshold.min()) for x in found)
    if last > 0.5:
        ax.set_xlim(0, 1)
        style.number_ticks(ax, "x", style.unit_ticks(ax, "x"))
    else:  # of rare events: as far as one asked
        ax.set_xlim(0 if first < 0.2 * last else first, last)
        ax.locator_params(axis="x", nbins=5)
    style.name_axis(ax, "x", "threshold: act from this probability on")
    text = _less(ax, "net benefit less", found[0].baseline) or "net benefit"
    style.name_axis(ax, "y", text)


def _less(ax: Axes, what: str, baseline: str) -> str:
    """What an axis shows of a difference, with so much of the name as fits beside it."""
    if not baseline:
        return ""
    figure, size = ax.get_figure(root=True), style.theme().size("label")
    assert figure is not None
    start = f"{what} that of "
    # The layout will take some of it for the legend.
    tall = 0.85 * ax.get_position().height * figure.get_figheight()
    return start + style.elide(baseline, tall - style.width_of(start, size), size)


def _benefit_in_words(found: DecisionCurve, name: str) -> str:
    place = int(np.abs(found.threshold - 0.2).argmin())
    t, value = found.threshold[place], found.net_benefit[place]
    return f"Net benefit of {name}: {value:.4f} at a threshold of {t:.2g}."


@style.in_style
def murphy(
    models: Any,
    *,
    interval: bool = True,
    legend: bool = True,
    figsize: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the Murphy diagram: the mean elementary score at every threshold.

    Parameters
    ----------
    models : Murphy, Evaluation, Comparison, or a sequence of either
        Up to 8 models, or differences to a baseline. Evaluations must have their rows at
        hand.
    interval : bool
        Whether to draw the pointwise intervals.
    legend, figsize, ax
        As in `calibration_sharpness`.

    Returns
    -------
    Axes
        Lower is better; the area below a line is the Brier score; of a top label, that of
        the confidence alone.

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> ev = cal.evaluate([1, 0, 0, 1] * 30, probs=[0.9, 0.4, 0.3, 0.7] * 30)
    >>> calibrant.plot.murphy(ev).get_ylabel()
    'mean elementary score'
    """
    found = curves.curves_of(models, Murphy, murphy_of)
    names, own = curves.names_of(found), ax is None
    ax = curves.axes_of(ax, figsize, (len(found) + 1) * legend)
    _draw_murphy(ax, found, names, interval=interval)
    texts = [f"{n}: {_area(x)}" for n, x in zip(names, found, strict=True)]
    handles = curves.model_handles(texts)
    handles += [curves.band_handle(found[0].level)] if interval else []
    alt = " ".join(f"Murphy diagram of {text}." for text in texts)
    curves.finish(ax, handles, alt, own=own, legend=legend)
    return ax


def _area(found: Murphy) -> str:
    kind = _brier(found.target) + (" difference" if found.baseline else "")
    return f"{kind} ×100 {labels.with_interval(found.area)}"


def _brier(target: str) -> str:
    """What the Brier score of one number per row is called beside that of all classes."""
    return "Brier" if target in (*FORECASTS, "pairs") else "Brier of the confidence"


def _draw_murphy(
    ax: Axes, found: list[Murphy], names: list[str], *, interval: bool
) -> None:
    style.dress(ax)
    for place, (one, name) in enumerate(zip(found, names, strict=True)):
        ends = (one.low, one.high) if interval else None
        curves.draw_model(ax, place, one.threshold, one.score, ends, name)
    against = found[0].baseline
    if against:
        ax.axhline(0, gid="the same", **style.theme().diagonal)
    else:
        top = max(float(x.high.max()) for x in found)
        ax.set_ylim(0, 1.08 * max(top, 1e-3))
    ax.set_xlim(0, 1)
    style.number_ticks(ax, "x", style.unit_ticks(ax, "x"))
    style.name_axis(ax, "x", "threshold")
    text = _less(ax, "score less", against) or "mean elementary score"
    style.name_axis(ax, "y", text)


# -- the triptych ---------------------------------------------------------------------------


@style.in_style
def triptych(
    models: Evaluations,
    *,
    interval: bool = True,
    legend: bool = True,
    figsize: tuple[float, float] | None = None,
) -> Any:
    """Draw value, calibration and ranking side by side: Murphy, CORP and ROC.

    Parameters
    ----------
    models : Evaluation, Comparison or sequence of Evaluation
        Up to 8 models, with their rows at hand.
    interval : bool
        Whether to draw intervals of the Murphy diagram, and for one model where a
        calibrated one would lie.
    legend, figsize
        As in `calibration_sharpness`.

    Returns
    -------
    array of Axes
        The Murphy diagram, whose area is the Brier score; the isotonic fit, with MCB as
        the miscalibration; and the concave ROC curve, which ranks alone decide.

    References
    ----------
    T. Dimitriadis, T. Gneiting, A. Jordan and P. Vogel, *Evaluating probabilistic
    classifiers: the triptych*, International Journal of Forecasting 40, 2024.

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> ev = cal.evaluate([1, 0, 0, 1] * 30, probs=[0.9, 0.4, 0.3, 0.7] * 30)
    >>> [ax.get_ylabel() for ax in calibrant.plot.triptych(ev)][1:]
    ['observed frequency, isotonic', 'hit rate']
    """
    chosen = as_list(models)
    found = curves.curves_of(chosen, Murphy, murphy_of)
    names = curves.names_of(found)
    texts = [f"{n}: {_parts(ev)}" for n, ev in zip(names, chosen, strict=True)]
    handles = curves.model_handles(texts, np.inf) if legend else []
    room = style.theme().room
    width = room * style.PAGE if figsize is None else read_figsize(figsize)[0]
    lines = curves.break_labels(handles, width - curves.BESIDE * room)
    margins = Margins(2.0, 0.28, 0.34, 0.05 + 0.14 * lines, left=0.5, between=0.5)
    size = (width, room * (2.67 + 0.14 * lines)) if figsize is None else figsize
    sheet = panels(3, margins, size, _least_panel(chosen[0]))
    first, middle, last = sheet.axes
    _draw_murphy(first, found, names, interval=interval)
    _draw_fits(middle, chosen, names, interval=interval)
    _draw_roc(last, chosen, names)
    for ax, title in zip(
        sheet.axes, ("Murphy", "reliability (CORP)", "ROC"), strict=True
    ):
        points = style.theme().size("title")
        labels.above(ax, title, 4, fontsize=points, fontweight="bold")
    assert sheet.sheet is not None
    sheet.sheet.alt_text = " ".join(ev.describe() for ev in chosen)
    if legend:
        labels.legend(sheet.sheet, handles, 1)
    move_inside(first)
    return np.array(sheet.axes)


def _least_panel(ev: Evaluation) -> tuple[float, float]:
    """Inches that a panel needs so that what its axes are called is not cut off."""
    theme, words = style.theme(), axis_words(ev)
    wide, tall = (
        max(style.width_of(text, theme.size("label")) for text in names)
        for names in (
            ("false alarm rate", words["said"]),
            ("mean elementary score", f"{words['hit']}, isotonic"),
        )
    )
    return wide, tall - 0.4 * theme.room


def _parts(ev: Evaluation) -> str:
    mcb, dsc, unc, auc = (ev.metrics.get(k) for k in ("mcb", "dsc", "unc", "auroc"))
    if mcb is None or dsc is None or unc is None or auc is None:
        return "isotonic fit"
    score = labels.percent(float(mcb) - float(dsc) + float(unc))
    parts = "MCB {} − DSC {} + UNC {}".format(*labels.corp_parts(ev))
    return f"{_brier(ev.target)} ×100 {score} = {parts}, AUROC {auc:.3f}"


def _draw_fits(
    ax: Axes, chosen: list[Evaluation], names: list[str], *, interval: bool
) -> None:
    style.dress(ax)
    if interval and len(chosen) == 1:
        _draw_consistency(ax, chosen[0])
    ax.plot([0, 1], [0, 1], gid="diagonal", **style.theme().diagonal)
    for place, (ev, name) in enumerate(zip(chosen, names, strict=True)):
        x = np.column_stack([ev.isotonic.lower, ev.isotonic.upper]).ravel()
        curves.draw_model(ax, place, x, np.repeat(ev.isotonic.accuracy, 2), name=name)
    words = axis_words(chosen[0])
    style.unit_square(ax, f"{words['hit']}, isotonic")
    style.name_axis(ax, "x", words["said"])


def _draw_consistency(ax: Axes, ev: Evaluation) -> None:
    used = np.flatnonzero(ev.histogram)
    at, count = (used + 0.5) / len(ev.histogram), ev.histogram[used]
    low, high = consistency_band(at, count, float(ev.settings["level"]))
    ax.fill_between(at, low, high, zorder=2, gid="interval", **style.theme().interval)


def _draw_roc(ax: Axes, chosen: list[Evaluation], names: list[str]) -> None:
    """The concave ROC curves: those of the isotonic fits."""
    style.dress(ax)
    ax.plot([0, 1], [0, 1], gid="diagonal", **style.theme().diagonal)
    for place, (ev, name) in enumerate(zip(chosen, names, strict=True)):
        x, y = roc_of(ev)
        curves.draw_model(ax, place, x, y, name=name)
    style.unit_square(ax, "hit rate")
    style.name_axis(ax, "x", "false alarm rate")


def roc_of(ev: Evaluation) -> tuple[Any, Any]:
    """False alarm and hit rates of all thresholds of the isotonic fit, from (0, 0) on.

    Examples
    --------
    >>> import calibrant as cal
    >>> x, y = roc_of(cal.evaluate([1, 0, 1, 0], probs=[0.9, 0.6, 0.4, 0.1]))
    >>> x.tolist(), y.tolist()
    ([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0])
    """
    fit = ev.isotonic
    hits = (fit.count * fit.accuracy)[::-1]
    misses = fit.count[::-1] - hits
    start = np.zeros(1)
    x, y = (np.concatenate([start, np.cumsum(z)]) for z in (misses, hits))
    return x / max(x[-1], 1e-300), y / max(y[-1], 1e-300)
