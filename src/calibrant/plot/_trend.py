"""`trend`: metrics by period with intervals, and the evidence for an alarm."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isfinite, log
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from calibrant._base.checks import check_choice, check_kind, read_names
from calibrant._base.measures import MEASURES
from calibrant._base.records import Estimate
from calibrant._verbs.monitor import Monitor
from calibrant.plot import _labels as labels
from calibrant.plot import _style as style
from calibrant.plot._layout import check_room, read_figsize

USUAL = ("brier", "calibration", "accuracy")
PANEL, HEAD, FOOT, LEFT, BETWEEN = 1.05, 0.28, 0.52, 0.5, 0.2
INCHES_A_NAME = 0.62


@style.in_style
def trend(
    monitor: Monitor,
    *,
    metrics: Sequence[str] = USUAL,
    figsize: tuple[float, float] | None = None,
) -> NDArray[np.object_]:
    """Draw metrics by period, what they were in the reference, and the evidence.

    Parameters
    ----------
    monitor : Monitor
        From `calibrant.monitor`.
    metrics : sequence of str
        Keys of the metrics to draw, each in a panel of its own.
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    array of Axes
        One for each metric, and the last for the evidence, if there is any.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.monitor([0, 1, 1] * 40, probs=[0.5] * 120, period=[1, 2, 3] * 40)
    >>> len(cal.plot.trend(found))
    4
    """
    check_kind(monitor, Monitor, "monitor")
    keys = [str(key) for key in read_names(metrics, "metrics")]
    for key in keys:
        check_choice(key, "metrics", tuple(monitor.trend))
    sheet, axes = _lay_out(len(keys) + (monitor.alarm is not None), figsize)
    for ax, key in zip(axes, keys, strict=False):
        _draw_metric(ax, monitor, key)
    if monitor.alarm is not None:
        _draw_evidence(axes[-1], monitor)
    for ax in axes:
        _mark_alarm(ax, monitor)
        _name_periods(ax, monitor, named=ax is axes[-1])
    _note(sheet, monitor)
    sheet.alt_text = str(monitor)
    return np.array(axes)


def _lay_out(count: int, figsize: Any) -> tuple[style.Sheet, list[Axes]]:
    room = style.theme().room
    usual = room * 1.35 * style.COLUMN, room * (HEAD + FOOT + count * (PANEL + BETWEEN))
    width, height = usual if figsize is None else read_figsize(figsize)
    tall = (height - room * (HEAD + FOOT)) / count - room * BETWEEN
    check_room(figsize, (width - room * LEFT, tall), (width, height), (1, count))
    sheet = style.sheet(width, height, layout=None)
    across = {"left": room * LEFT / width, "right": 0.98}
    down = {"top": 1 - room * HEAD / height, "bottom": room * FOOT / height}
    grid = sheet.add_gridspec(
        count, 1, hspace=room * BETWEEN / tall * 1.2, **across, **down
    )
    axes = [sheet.add_subplot(grid[0])]
    axes += [sheet.add_subplot(grid[i], sharex=axes[0]) for i in range(1, count)]
    return sheet, axes


def _draw_metric(ax: Axes, monitor: Monitor, key: str) -> None:
    """A dot and its interval for each period, over the interval of the reference."""
    style.dress(ax)
    theme, values = style.theme(), monitor.trend[key]
    base = monitor.baseline[key]
    if base.interval is not None and all(map(isfinite, base.interval)):
        low, high = (100 * end for end in base.interval)
        ax.axhspan(low, high, zorder=0, gid="reference", **theme.interval)
    ax.axhline(100 * float(base), zorder=1, **theme.diagonal)
    middle = np.array([100 * float(value) for value in values])
    middle[~np.isfinite(middle)] = np.nan
    look: Any = {"color": theme.curve, "linewidth": theme.line(1.0), "zorder": 3}
    ax.plot(np.arange(len(values)), middle, gid=key, **look)
    for place, value in enumerate(values):
        _draw_period(ax, monitor, place, value)
    title = MEASURES[key].label.replace("d_CAL", r"$d_\mathrm{CAL}$")
    labels.above(ax, f"{title} ×100", 3, fontsize=theme.size("title"))
    ax.locator_params(axis="y", nbins=4)


def _draw_period(ax: Axes, monitor: Monitor, place: int, value: Estimate) -> None:
    theme, at = style.theme(), 100 * float(value)
    if value.interval is not None and all(map(isfinite, value.interval)):
        low, high = (100 * end for end in value.interval)
        ax.vlines(place, low, high, color=theme.curve, linewidth=0.9, zorder=3)
    known = monitor.periods[place] in monitor.reference
    face = theme.ground if known else theme.curve
    look: Any = {"markersize": 3.6 * theme.room, "markeredgewidth": 0.9, "zorder": 4}
    look |= {"markeredgecolor": theme.curve, "markerfacecolor": face}
    ax.plot(place, at if isfinite(at) else np.nan, "o", **look)


def _draw_evidence(ax: Axes, monitor: Monitor) -> None:
    """Powers of ten, and the line from which on there is an alarm."""
    style.dress(ax)
    theme, alarm = style.theme(), monitor.alarm
    assert alarm is not None
    ten = alarm.evidence / log(10)
    line = alarm.threshold / log(10)
    ax.axhline(line, zorder=1, gid="threshold", **theme.diagonal)
    look: Any = {"color": theme.ink, "linewidth": theme.line(1.2), "zorder": 3}
    ax.plot(np.arange(len(ten)), ten, marker="o", markersize=2.6 * theme.room, **look)
    top = max(1.25 * line, 1.08 * float(ten.max()))
    ax.set_ylim(min(-0.5, float(ten.min()) - 0.2), top)
    title = "evidence of miscalibration, powers of ten"
    if alarm.against == "reference":
        title = "evidence of a change since the reference, powers of ten"
    size = labels.fitting(title, 3.5 * theme.room, theme.size("title"))
    labels.above(ax, title, 3, fontsize=size)
    at: Any = {"xytext": (2, 2), "textcoords": "offset points", "va": "bottom"}
    ax.annotate(
        "alarm", (0, line), xycoords=("axes fraction", "data"), **at, **theme.faint
    )
    ax.locator_params(axis="y", nbins=4, integer=True)


def _mark_alarm(ax: Axes, monitor: Monitor) -> None:
    """Shade the time since the model is likely to be off; a line where that was clear."""
    alarm, theme = monitor.alarm, style.theme()
    if alarm is None or alarm.period is None:
        return
    first = monitor.periods.index(str(alarm.since)) - 0.5
    shade: Any = {"color": theme.shade, "zorder": -1, "linewidth": 0}
    ax.axvspan(first, len(monitor.periods) - 0.5, gid="since", **shade)
    clear = monitor.periods.index(alarm.period)
    dots: Any = {"color": theme.ink, "linewidth": 0.9, "linestyle": (0, (1, 1.5))}
    ax.axvline(clear, zorder=0.5, gid="alarm", **dots)


def _name_periods(ax: Axes, monitor: Monitor, *, named: bool) -> None:
    """As many names of periods as there is room for."""
    figure, count = ax.get_figure(root=True), len(monitor.periods)
    assert figure is not None
    inches = ax.get_position().width * figure.get_figwidth()
    step = ceil(count * INCHES_A_NAME * style.theme().room / inches)
    places = range(0, count, step)
    size = style.theme().size("tick")
    names = [
        style.elide(monitor.periods[i], 0.9 * step * inches / count, size)
        for i in places
    ]
    ax.set_xlim(-0.5, count - 0.5)
    ax.xaxis.set_ticks(list(places), names)
    ax.tick_params(labelbottom=named)
    ax.grid(visible=False, axis="x")


def _note(sheet: style.Sheet, monitor: Monitor) -> None:
    """What lines and shades mean."""
    theme, alarm = style.theme(), monitor.alarm
    base = "dashed, grey: the reference (hollow) and its interval"
    lines = [f"bars: {100 * monitor.level:g}% intervals; {base}"]
    if alarm is not None:
        often = f"false alarms: at most {100 * alarm.alpha:g}% for all time"
        off = "; shaded: off, most likely; dotted: alarm" if alarm.period else ""
        lines.append(often + off)
    left, width = sheet.axes[0].get_position().x0, sheet.get_figwidth()
    size = theme.points(style.SMALL)
    sizes = [labels.fitting(line, (0.98 - left) * width, size) for line in lines]
    look: Any = {"color": theme.muted, "fontsize": min(sizes), "va": "bottom"}
    sheet.text(left, 0.03 / sheet.get_figheight(), "\n".join(lines), **look)
