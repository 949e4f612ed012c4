"""Names and numbers on figures: beside what they name, and above the panels."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._base.evaluation import Evaluation
from calibrant._base.records import Estimate
from calibrant._inputs.arrays import Column
from calibrant._views.diagram import View
from calibrant._views.words import score_in_words
from calibrant.plot import _style as style
from calibrant.plot._layout import Panels
from calibrant.plot._panel import Look, ribbons


def spread(wanted: Column, least: float) -> Column:
    """Move places apart until they differ by `least`, each as little as can be.

    Examples
    --------
    >>> spread(np.array([0.0, 0.1, 5.0]), least=1.0)
    array([-0.45,  0.55,  5.  ])
    """
    order = np.argsort(wanted, kind="stable")
    # With i * least taken off, "differ by least" becomes "not decreasing".
    from scipy.optimize import isotonic_regression

    steps = least * np.arange(len(wanted))
    placed = isotonic_regression(wanted[order] - steps).x + steps
    moved = np.empty_like(wanted)
    moved[order] = placed
    return moved


LEADER = {"linewidth": 0.5, "shrinkA": 1, "shrinkB": 0}


def at_right_end(
    ax: Axes, names: list[str], y: Column, colours: list[str], inches: float
) -> None:
    """Write the names of lines beyond their right ends, with leaders where moved."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    height = ax.get_position().height * figure.get_figheight() * 72
    pixels = ax.transData.transform(np.column_stack([np.ones_like(y), y]))
    fraction = ax.transAxes.inverted().transform(pixels)[:, 1]
    placed = spread(fraction, (style.NOTE + 1.2) / height)
    for name, start, end, colour in zip(names, fraction, placed, colours, strict=True):
        at = 1 + 9 / 72 / max(inches, 0.1) * 0.2, end
        where: Any = {"xycoords": "axes fraction", "textcoords": "axes fraction"}
        look: Any = {"va": "center", "fontsize": style.NOTE, "color": colour}
        leader: Any = {"arrowstyle": "-", "color": colour, **LEADER}
        text = style.elide(name, inches, style.NOTE)
        ax.annotate(
            text,
            (1, start),
            at,
            arrowprops=leader,
            annotation_clip=False,
            **where,
            **look,
        )


CORNERS = (
    (1.0, 0.0, "left", "center"),
    (0.0, 1.0, "center", "bottom"),
    (0.0, -1.0, "center", "top"),
    (-1.0, 0.0, "right", "center"),
    (0.8, 0.8, "left", "bottom"),
    (0.8, -0.8, "left", "top"),
    (-0.8, 0.8, "right", "bottom"),
    (-0.8, -0.8, "right", "top"),
)
"""Sides of a marker on which its name may stand, best first."""


def beside_markers(
    ax: Axes, names: list[str], x: Column, y: Column, ends: list[tuple[float, float]]
) -> None:
    """Name each marker on the side where it collides least with what is there.

    `ends` are those of the upright line through each marker.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None
    scale = 72 / figure.dpi
    places = ax.transData.transform(np.column_stack([x, y])) * scale
    frame = ax.get_window_extent().get_points().ravel() * scale
    taken = [np.array([px - 4, py - 4, px + 4, py + 4]) for px, py in places]
    for at, (low, high) in zip(x, ends, strict=True):
        corners = ax.transData.transform([[at, low], [at, high]]) * scale
        taken.append(np.concatenate([corners[0] - 1, corners[1] + 1]))
    for i, (name, place) in enumerate(zip(names, places, strict=True)):
        wide = 72 * style.width_of(name, style.NOTE)
        options = [
            (_cost(_box(place, corner, gap, wide), taken, frame) + 3 * far, corner, gap)
            for far, gap in enumerate((6.0, 14.0, 24.0))
            for corner in CORNERS
        ]
        _, corner, gap = min(options, key=lambda option: option[0])
        taken.append(_box(place, corner, gap, wide))
        dx, dy, ha, va = corner
        beside: Any = {"xytext": (gap * dx, gap * dy), "textcoords": "offset points"}
        beside |= {"ha": ha, "va": va, "fontsize": style.NOTE, "zorder": 6}
        ax.annotate(name, (float(x[i]), float(y[i])), **beside)


def _box(
    place: Column, corner: tuple[float, float, str, str], gap: float, wide: float
) -> Column:
    """Left, bottom, right and top of a name, in points."""
    dx, dy, ha, va = corner
    tall = style.NOTE
    left = place[0] + gap * dx - wide * {"left": 0.0, "center": 0.5, "right": 1.0}[ha]
    low = place[1] + gap * dy - tall * {"bottom": 0.0, "center": 0.5, "top": 1.0}[va]
    return np.array([left, low, left + wide, low + tall])


def _cost(box: Column, taken: list[Column], frame: Column) -> float:
    """Area shared with what is there, and a high price for leaving the frame."""
    cost = 0.0
    for other in taken:
        overlap = np.minimum(box[2:], other[2:]) - np.maximum(box[:2], other[:2])
        cost += float(np.prod(np.maximum(overlap, 0)))
    outside = np.maximum(frame[:2] - box[:2], 0).sum()
    outside += np.maximum(box[2:] - frame[2:], 0).sum()
    return cost + 50 * float(outside)


LINE = 9.5
"""Distance of lines of numbers, in points."""

ONE_LINE_FROM = 2.4
"""A panel at least this many inches wide has its numbers on one line."""


def percent(value: float, digits: int = 2) -> str:
    """A score times 100, with a true minus sign."""
    if not isfinite(value):
        return "n/a" if isnan(value) else "∞" if value > 0 else "−∞"
    text = f"{100 * value:.{digits}f}"
    return text.replace("-", "−") if float(text) else f"{0:.{digits}f}"


def with_interval(value: Estimate) -> str:
    """A score times 100 with its interval, if it has one."""
    if value.interval is None or not all(map(isfinite, value.interval)):
        return percent(value)
    digits = 2 if max(value.interval) < 0.0995 else 1
    low, high = (percent(end, digits) for end in value.interval)
    return f"{percent(value, digits)} [{low}, {high}]"


def score_name(divergence: str) -> str:
    """The name of the score that is split, as short as people call it."""
    return score_in_words(divergence).removesuffix(" score")


def method(views: list[View]) -> str:
    """What the numbers are and how they were found, for the key."""
    parts, ev = views[0].parts, views[0].ev
    text = f"{score_name(parts.divergence)} ×100"
    named = [v.parts.calibration for v in views if v.parts.calibration.interval]
    if named:
        level = 100 * float(ev.settings["level"])
        return f"{text}, [{level:g}% {named[0].method} interval]"
    if parts.bandwidth is None:
        return text
    return f"{text}, {parts.kernel.capitalize()} kernel, bandwidth {parts.bandwidth:g}"


def title_size(views: list[View], inches: float) -> float:
    """One size for all names: the usual one if every name fits, else a smaller one."""
    widest = max(style.width_of(v.ev.name, style.TITLE, bold=True) for v in views)
    return style.TITLE if widest <= inches else style.SMALL_TITLE


def write(ax: Axes, view: View, inches: float, size: float) -> None:
    """Name and numbers above an Axes, outside it, where nothing is hidden."""
    parts, roomy = view.parts, inches >= ONE_LINE_FROM
    cal = rf"$d_\mathrm{{CAL}}$ {with_interval(parts.calibration)}"
    gap = f"gap {percent(parts.sharpness_gap)}"
    total = rf"$d_\mathrm{{TOT}}$ {percent(parts.total)}"
    lines = [f"{cal} + {gap} = {total}"] if roomy else [cal, f"{gap}   {total}"]
    for row, text in enumerate(reversed(lines)):
        above(ax, text, 3.5 + row * LINE, fontsize=7.2 if roomy else style.NOTE)
    name = style.elide(view.ev.name, inches, size, bold=True)
    above(ax, name, 4.5 + len(lines) * LINE, fontsize=size, weight="bold")


def title(ax: Axes, name: str, line: str, inches: float) -> None:
    """A name in bold, and one line about it."""
    above(ax, line, 3.5, fontsize=7.2)
    shown = style.elide(name, inches, style.TITLE, bold=True)
    above(ax, shown, 4.5 + LINE, fontsize=style.TITLE, weight="bold")


def finish(
    sheet: Panels,
    below: Axes,
    ev: Evaluation,
    line: str,
    handles: Sequence[Artist] = (),
    columns: int = 1,
) -> None:
    """What figures of one model share: title, names of the axes, words and a key."""
    title(sheet.axes[0], ev.name, line, sheet.inches)
    below.set_xlabel("confidence")
    name_rows(below)
    if sheet.sheet is not None:
        sheet.sheet.alt_text = ev.describe()
        if handles:
            legend(sheet.sheet, handles, columns)


def name_rows(strip: Axes) -> None:
    """The name of a strip's y axis."""
    strip.set_ylabel("rows", color=style.DENSITY_EDGE, fontsize=7)


def legend(
    figure: Figure, handles: Sequence[Artist], columns: int, note: str = ""
) -> None:
    """The key, below everything."""
    spacing: Any = {"handlelength": 1.4, "columnspacing": 1.0, "handletextpad": 0.4}
    spacing |= {"labelspacing": 0.35, "borderpad": 0.1, "borderaxespad": 0.2}
    look: Any = {"fontsize": style.NOTE, "title_fontsize": style.NOTE, "ncols": columns}
    look |= {"loc": "lower center", "alignment": "left" if columns < 3 else "center"}
    key = figure.legend(handles=list(handles), title=note or None, **look, **spacing)
    key.get_title().set_color(style.MUTED)


def above(ax: Axes, text: str, points: float, **look: Any) -> None:
    """A line of text this many points above the left end of an Axes."""
    at: Any = {"xycoords": "axes fraction", "textcoords": "offset points"}
    ax.annotate(text, (0, 1), xytext=(0, points), va="bottom", **at, **look)


IN_WORDS = {"pointwise": "each place", "simultaneous": "all places at once"}


def key(views: list[View], look: Look) -> list[Line2D | Patch]:
    """Handles of the legend: one for each thing that is drawn."""
    curve = Line2D([], [], color=style.CURVE, linewidth=1.5, label="accuracy")
    shrunk = "" if look.band_scale == 1 else f", drawn at ×{look.band_scale:g}"
    gap = Patch(label=rf"sharpness gap $\hat p\,\rho${shrunk}", **style.BAND_FILL)
    handles: list[Line2D | Patch] = [curve, gap]
    level = 100 * float(views[0].ev.settings["level"])
    drawn = {kind for v in views for kind in ribbons(v, look.interval)}
    handles += [
        Patch(label=f"{level:g}%, {told}", **style.RIBBONS[kind])
        for kind, told in IN_WORDS.items()
        if kind in drawn
    ]
    handles += [
        Line2D([], [], label="perfect calibration", **style.DIAGONAL),
        Patch(label="share of examples", **{**style.ROWS_FILL, "linewidth": 0.8}),
    ]
    if any(len(v.ev.atoms.count) for v in views):
        ring: Any = {"markerfacecolor": "white", "markeredgecolor": style.CURVE}
        ring |= {"linestyle": "none", "marker": "o", "markersize": 4}
        handles.append(Line2D([], [], label="repeated confidence", **ring))
    return handles


def interval_patch(label: str) -> Patch:
    """The handle of an interval."""
    return Patch(facecolor=style.RIBBON, alpha=style.RIBBON_ALPHA, label=label)
