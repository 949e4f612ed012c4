"""Figures of one model: accuracy in bins, made increasing, smoothed, and less confidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from calibrant._base.evaluation import Evaluation
from calibrant._base.records import Bins, SmoothCurve
from calibrant._inputs.arrays import Column
from calibrant._stats import closed_forms
from calibrant._stats.bins import binned_error, consistency_band
from calibrant._views.diagram import GEOMETRY, View, bins_of, the_one, view
from calibrant.plot import _labels as labels
from calibrant.plot import _panel as panel
from calibrant.plot import _style as style
from calibrant.plot._layout import Margins, one_panel, panels


def _draw_diagonal(ax: Axes) -> None:
    ax.plot([0, 1], [0, 1], zorder=3, gid="diagonal", **style.DIAGONAL)


# -- reliability: accuracy in bins, with counts, gaps and intervals --------------------

LEAST_WIDTH = 0.008
"""A bin of one confidence is drawn this wide."""

GAP: dict[str, Any] = {**style.BAND_FILL, "hatch": "////", "alpha": 0.8}
MEAN: dict[str, Any] = {"color": style.INK, "linewidth": 0.9}
HITS: dict[str, Any] = {**MEAN, "color": style.CURVE, "linestyle": (0, (2, 1.2))}


@style.in_style
def reliability(
    models: Evaluation,
    *,
    bins: int | str | None = None,
    strategy: str = "width",
    interval: bool = True,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw the accuracy in bins of the confidence, with the share of rows in each below.

    Parameters
    ----------
    models : Evaluation
        The model.
    bins : int or "cube-root", optional
        Number of bins; by default that of the evaluation, which has 15 unless told.
    strategy : {"width", "mass"}
        Bins of equal width or of equal weight. Ties are never split.
    interval : bool
        Whether each accuracy gets its Wilson interval.
    legend, ax
        As in `calibration_sharpness`.

    Returns
    -------
    Axes
        The Axes of the bars; the shares are on a second one below.

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, 0.7] * 30)
    >>> calibrant.plot.reliability(ev, bins=10).get_ylabel()
    'accuracy'
    """
    ev = the_one(models)
    found, level = bins_of(ev, bins, strategy), float(ev.settings["level"])
    sheet = one_panel(ax, key=0.31 if legend else 0.0)
    main, below = sheet.with_strip()
    middle, width = 0.5 * (found.lower + found.upper), found.upper - found.lower
    width = np.maximum(width, LEAST_WIDTH)
    left = np.clip(middle - width / 2, 0, 1 - width)
    _draw_bins(main, found, left, width, level if interval else None)
    style.dress(below, grid=False, hide=("top", "right", "left"))
    share = found.count / found.count.sum()
    below.bar(left, share, width, align="edge", gid="rows", **style.ROWS_FILL)
    below.set(yticks=[], ylim=(0, 1.12 * share.max()))
    # Mean confidence and overall accuracy: their distance is the over-confidence.
    sums = (np.nansum(found.count * x) for x in (found.confidence, found.accuracy))
    mean, hits = (float(total / found.count.sum()) for total in sums)
    below.axvline(mean, gid="mean-confidence", **MEAN)
    below.axvline(hits, **HITS)
    handles = _key_of_bins(level, interval=interval) if legend else []
    labels.finish(sheet, below, ev, _ece(ev, found, strategy), handles, 2)
    return main


def _draw_bins(
    ax: Axes, bins: Bins, left: Column, width: Column, level: float | None
) -> None:
    """Bars, the gaps to the confidence, and intervals of this level if there is one."""
    style.dress(ax)
    full = bins.count > 0
    place, bar = left[full], width[full]
    h, m = bins.confidence[full], bins.accuracy[full]
    ax.bar(place, m, bar, align="edge", zorder=2, gid="accuracy", **style.ROWS_FILL)
    ax.bar(place, h - m, bar, bottom=m, align="edge", zorder=2.5, gid="gap", **GAP)
    _draw_diagonal(ax)
    if level is not None:
        low, high = closed_forms.wilson(m, bins.count[full], level)
        ends = np.maximum([m - low, high - m], 0)
        look: Any = {"markersize": 2.6, "elinewidth": 0.8, "color": style.INK}
        ax.errorbar(h, m, yerr=ends, fmt="o", zorder=4, gid="interval", **look)
    style.unit_square(ax, "accuracy")


def _ece(ev: Evaluation, bins: Bins, strategy: str) -> str:
    same = bins in (ev.bins, ev.mass_bins)
    name = "ece" if strategy == "width" else "ece_mass"
    value = ev.metrics[name] if same and not ev.per_class else binned_error(bins)
    count = f"{len(bins.count)} equal-{strategy} bins"
    return f"ECE ×100: {labels.percent(value)} ({count})"


def _key_of_bins(level: float, *, interval: bool) -> list[Any]:
    label = f"accuracy, {100 * level:g}% Wilson" if interval else "accuracy"
    return [
        Patch(label=label, **style.ROWS_FILL),
        Patch(label="gap to the confidence", **GAP),
        Line2D([], [], label="mean confidence", **MEAN),
        Line2D([], [], label="accuracy of all rows", **HITS),
    ]


# -- CORP: the isotonic fit, which needs no bins and no width --------------------------


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
    _draw_diagonal(main)
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


# -- SmoothECE: a smooth curve, as thick as there are rows -----------------------------

THINNEST, THICKEST = 0.5, 6.0
"""Widths of the line, in points, where the density is least and greatest."""


@style.in_style
def smooth_reliability(
    models: Evaluation, *, interval: bool = True, ax: Axes | None = None
) -> Axes:
    """Draw the curve behind SmoothECE; its width follows the density of the rows.

    Parameters
    ----------
    models : Evaluation
        The model.
    interval, ax
        As in `calibration_sharpness`.

    Returns
    -------
    Axes
        The Axes of the curve; the share of rows is on a second one below.

    Notes
    -----
    The curve is smoothed with the Gaussian of SmoothECE, reflected at 0 and 1, at the
    bandwidth that equals its own error.

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, 0.7] * 30)
    >>> calibrant.plot.smooth_reliability(ev).get_ylabel()
    'accuracy'
    """
    ev = the_one(models)
    seen, sheet = view(ev), one_panel(ax)
    main, below = sheet.with_strip()
    style.dress(main)
    if interval:
        look = {**style.INTERVAL, "zorder": 2, "gid": "interval"}
        curve = seen.curve
        main.fill_between(curve.confidence, curve.low, curve.high, **look)
    _draw_diagonal(main)
    main.add_collection(_weighted_line(ev.smooth))
    style.unit_square(main, "accuracy")
    panel.draw_strip(below, seen, None)
    value = labels.percent(ev.metrics["smooth_ece"])
    line = f"SmoothECE ×100: {value} (bandwidth {ev.smooth.bandwidth:.3g})"
    labels.finish(sheet, below, ev, line)
    return main


def _weighted_line(curve: SmoothCurve) -> LineCollection:
    """The curve as short segments, each as wide as the density at its middle."""
    points = np.column_stack([curve.confidence, curve.accuracy])
    segments = np.stack([points[:-1], points[1:]], axis=1)
    density = 0.5 * (curve.density[:-1] + curve.density[1:])
    width = THINNEST + (THICKEST - THINNEST) * np.sqrt(density / density.max())
    known = np.isfinite(segments).all(axis=(1, 2))
    look: Any = {"color": style.CURVE, "zorder": 4, "gid": "accuracy"}
    look |= {"capstyle": "round", "linewidths": width[known]}
    return LineCollection(list(segments[known]), **look)


# -- residuals: accuracy less confidence, so that small errors are seen ----------------


@style.in_style
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


def _draw_residuals(ax: Axes, seen: View, *, interval: bool) -> float:
    """Line, atoms and ribbon; how far from 0 they reach."""
    curve, sure, h = seen.curve, seen.trusted(), seen.ev.atoms.confidence
    off = curve.accuracy - curve.confidence
    panel.draw_lines(ax, seen, curve.confidence, off, (1.5, 1.0), "residual")
    drawn = [off[sure], panel.draw_atoms(ax, seen.ev, h, h, interval=interval)]
    if interval:
        ends = np.array([curve.low, curve.high]) - curve.confidence
        sure &= np.isfinite(ends).all(axis=0)
        look: Any = {**style.INTERVAL, "zorder": 2, "gid": "interval"}
        ax.fill_between(curve.confidence, ends[0], ends[1], where=sure, **look)
        drawn.append(ends[:, sure].ravel())
    return float(np.abs(np.concatenate(drawn)).max(initial=0.0))


# -- one small diagram for each class, worst first ---------------------------------------

MARGINS = Margins(height=1.05, head=0.36, foot=0.2, bottom=0.36)


@style.in_style
def classwise_grid(
    models: Evaluation,
    *,
    classes: Sequence[object] | None = None,
    most: int = 20,
    interval: bool = True,
) -> NDArray[np.object_]:
    """Draw a diagram for each class of a class-wise evaluation.

    Parameters
    ----------
    models : Evaluation
        From ``calibrant.evaluate(..., target="class-wise")``.
    classes : sequence, optional
        Names of the classes to draw, in order. By default those of the largest
        calibration error, largest first.
    most : int
        How many to draw at most, if `classes` does not say which.
    interval
        As in `calibration_sharpness`.

    Returns
    -------
    array of Axes
        One for each class that was drawn.

    Examples
    --------
    >>> import numpy as np, calibrant as cal, calibrant.plot
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 300)
    >>> y = (p.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    >>> ev = cal.evaluate(y, probs=p, target="class-wise")
    >>> len(calibrant.plot.classwise_grid(ev))
    3
    """
    ev = the_one(models)
    chosen = _chosen(ev, classes, most)
    sheet = panels(len(chosen), MARGINS)
    views = [view(one) for one in chosen]
    top = min(GEOMETRY.most_top, max([1.03, *(seen.band().top for seen in views)]))
    look = panel.Look(top, interval=interval, roomy=False)
    for place, (ax, seen) in enumerate(zip(sheet.axes, views, strict=True)):
        panel.draw(ax, seen, look)
        cal = labels.with_interval(seen.parts.calibration)
        line = rf"$d_\mathrm{{CAL}}$ {cal}"
        labels.title(ax, seen.ev.name, line, sheet.inches)
        ax.tick_params(labelleft=sheet.is_left(place))
        if sheet.is_left(place):
            ax.set_ylabel("share of class", fontsize=7)
        if sheet.is_bottom(place):
            ax.set_xlabel("probability", fontsize=7, labelpad=2)
    assert sheet.sheet is not None
    _caption(sheet.axes[0], ev, len(chosen), by_size=classes is None)
    sheet.sheet.alt_text = ev.describe()
    return np.array(sheet.axes)


def _chosen(
    ev: Evaluation, classes: Sequence[object] | None, most: int
) -> list[Evaluation]:
    if not ev.per_class:
        raise ValueError(
            f"{ev.name!r} has no evaluations of single classes; make them with "
            "calibrant.evaluate(..., target='class-wise')."
        )
    if classes is None:
        worst = sorted(ev.per_class, key=_badness)
        return worst[: max(int(most), 1)]
    by_name = {one.name: one for one in ev.per_class}
    missing = [str(name) for name in classes if str(name) not in by_name]
    if missing:
        raise ValueError(
            f"classes must name classes of the evaluation; {missing[0]!r} is not one."
        )
    return [by_name[str(name)] for name in classes]


def _badness(ev: Evaluation) -> float:
    error = float(ev.decomposition.calibration)
    return np.inf if np.isnan(error) else -error


def _caption(ax: Axes, ev: Evaluation, shown: int, *, by_size: bool) -> None:
    figure = ax.get_figure(root=True)
    assert figure is not None
    order = ", largest calibration error first" if by_size else ""
    total = len(ev.per_class)
    count = f"{shown} of {total} classes" if shown < total else f"all {total} classes"
    name = style.elide(ev.name, 2.2, style.NOTE)
    text = f"{name}: {count}{order}; {labels.score_name(ev.divergence)} ×100"
    look: Any = {"fontsize": style.NOTE, "color": style.MUTED, "ha": "center"}
    figure.text(0.5, 0.05 / figure.get_figheight(), text, va="bottom", **look)
