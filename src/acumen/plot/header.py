"""What stands above and below the diagrams: names, numbers and the key."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from acumen.plot import style
from acumen.plot.diagram import Look
from acumen.plot.reading import View
from acumen.results import Decomposition, Estimate

SCORES = {"brier": "Brier", "log": "log loss"}
LINE = 9.5
"""Distance of lines of numbers, in points."""

ONE_LINE_FROM = 2.4
"""A panel at least this many inches wide has its numbers on one line."""


def percent(value: float, digits: int = 2) -> str:
    """A score times 100, with a true minus sign.

    Examples
    --------
    >>> percent(0.12345), percent(-0.0004), percent(float("inf"))
    ('12.35', '−0.04', '∞')
    """
    if not isfinite(value):
        return "n/a" if isnan(value) else "∞" if value > 0 else "−∞"
    text = f"{100 * value:.{digits}f}"
    return text.replace("-", "−") if float(text) else f"{0:.{digits}f}"


def with_interval(value: Estimate) -> str:
    """A score times 100 with its interval, if it has one.

    Examples
    --------
    >>> with_interval(Estimate(0.0164, (0.015, 0.018)))
    '1.64 [1.50, 1.80]'
    """
    if value.interval is None or not all(map(isfinite, value.interval)):
        return percent(value)
    digits = 2 if max(value.interval) < 0.0995 else 1
    low, high = (percent(end, digits) for end in value.interval)
    return f"{percent(value, digits)} [{low}, {high}]"


def score_name(parts: Decomposition) -> str:
    """The name of the score that is split, as people call it."""
    return SCORES.get(parts.divergence, parts.divergence)


def method(views: list[View]) -> str:
    """What the numbers are and how they were found, for the key."""
    parts, ev = views[0].parts, views[0].ev
    text = f"{score_name(parts)} ×100"
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


def legend(
    figure: Figure, handles: Sequence[Artist], columns: int, note: str = ""
) -> None:
    """The key, below everything."""
    key = figure.legend(
        handles=list(handles),
        loc="lower center",
        ncols=columns,
        handlelength=1.4,
        columnspacing=1.0,
        handletextpad=0.4,
        labelspacing=0.35,
        borderpad=0.1,
        borderaxespad=0.2,
        fontsize=style.NOTE,
        title=note or None,
        title_fontsize=style.NOTE,
        alignment="left" if columns < 3 else "center",
    )
    key.get_title().set_color(style.MUTED)


def above(ax: Axes, text: str, points: float, **look: Any) -> None:
    """A line of text this many points above the left end of an Axes."""
    ax.annotate(
        text,
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, points),
        textcoords="offset points",
        va="bottom",
        **look,
    )


def key(views: list[View], look: Look) -> list[Line2D | Patch]:
    """Handles of the legend: one for each thing that is drawn."""
    curve = Line2D([], [], color=style.CURVE, linewidth=1.5, label="accuracy")
    handles: list[Line2D | Patch] = [curve]
    if look.interval and any(v.adaptive for v in views):
        level = 100 * float(views[0].ev.settings["level"])
        handles.append(
            Patch(
                facecolor=style.RIBBON,
                alpha=style.RIBBON_ALPHA,
                label=f"pointwise {level:g}% interval",
            )
        )
    handles += [
        Patch(
            facecolor=style.BAND,
            edgecolor=style.BAND_EDGE,
            linewidth=0.6,
            label=_band_label(look.band_scale),
        ),
        Line2D([], [], label="perfect calibration", **style.DIAGONAL),
        Patch(
            facecolor=style.DENSITY,
            edgecolor=style.DENSITY_EDGE,
            linewidth=0.8,
            label="share of rows",
        ),
    ]
    if any(len(v.ev.atoms.count) for v in views):
        handles.append(
            Line2D(
                [],
                [],
                linestyle="none",
                marker="o",
                markersize=4,
                markerfacecolor="white",
                markeredgecolor=style.CURVE,
                label="repeated confidence",
            )
        )
    return handles


def _band_label(scale: float) -> str:
    shrunk = "" if scale == 1 else f", drawn at ×{scale:g}"
    return rf"sharpness gap $\hat p\,\rho${shrunk}"
