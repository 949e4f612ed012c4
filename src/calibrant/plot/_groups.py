"""`groups` and `group_gaps`: one model on several groups, in one figure."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from calibrant._base.checks import check_choice, check_kind
from calibrant._base.measures import MEASURES
from calibrant._base.records import Estimate
from calibrant._verbs.compare_groups import Groups
from calibrant._verbs.multicalibration_error import Multicalibration
from calibrant._views.diagram import axis_words, view
from calibrant.plot import _labels as labels
from calibrant.plot import _style as style
from calibrant.plot._layout import LEAST_PANEL, MOST_MODELS, check_room, read_figsize

ROW, HEAD, FOOT, LEAST_HEIGHT, NAMES = 0.26, 0.3, 0.62, 2.0, 1.5


@style.in_style
def groups(
    found: Groups,
    *,
    metrics: tuple[str, str] = ("calibration", "brier"),
    figsize: tuple[float, float] | None = None,
) -> NDArray[np.object_]:
    """Draw the calibration curves of all groups in one panel, and two metrics beside it.

    Parameters
    ----------
    found : Groups
        From `calibrant.compare_groups` or `calibrant.find_slices`, up to 12 groups. For
        one panel each, pass it to `calibration_sharpness`.
    metrics : (str, str)
        Keys of the metrics.
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    array of Axes
        The curves, and one Axes for each metric. Where the interval of the worst of
        all true values is known, a grey band shows it; it is not that of one group.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> p = np.random.default_rng(0).random(600)
    >>> y, sex = np.random.default_rng(1).random(600) < p, ["f", "m"] * 300
    >>> len(cal.plot.groups(cal.compare_groups(y, probs=p, group=sex)))
    3
    """
    check_kind(found, Groups, "found")
    for key in metrics:
        check_choice(key, "metrics", tuple(MEASURES))
    if len(found) > MOST_MODELS:
        raise ValueError(
            f"found must have at most {MOST_MODELS} groups for this figure, got "
            f"{len(found)}; compare fewer, or put similar ones together."
        )
    sheet, axes = _lay_out(len(found), len(metrics), figsize)
    _overlay(axes[0], found)
    for ax, key in zip(axes[1:], metrics, strict=True):
        _metric(ax, found, key, named=ax is axes[1])
    _note(sheet, found)
    sheet.alt_text = str(found)
    return np.array(axes)


def _lay_out(count: int, more: int, figsize: Any) -> tuple[style.Sheet, list[Axes]]:
    room = style.theme().room
    tall = max(LEAST_HEIGHT, ROW * count) + HEAD + FOOT
    usual = room * style.PAGE, room * tall
    width, height = usual if figsize is None else read_figsize(figsize)
    inner = height - room * (HEAD + FOOT)
    check_room(figsize, (width - 4 * room, inner), (width, height))
    sheet = style.sheet(width, height, layout=None)
    down = {"top": 1 - room * HEAD / height, "bottom": room * FOOT / height}
    first = sheet.add_gridspec(1, 1, left=room * 0.5 / width, right=0.38, **down)
    left = 0.38 + room * (NAMES + 0.1) / width
    rest = sheet.add_gridspec(1, more, left=left, right=0.985, wspace=0.12, **down)
    places = [first[0, 0], *(rest[0, i] for i in range(more))]
    return sheet, [sheet.add_subplot(place) for place in places]


LEAST_AT_ONE = 5
"""Rows of a confidence, on average, from which on a group is shown by its values: the
outcomes of single rows are 0 or 1."""


def _overlay(ax: Axes, found: Groups) -> None:
    """One line for each group, where it has rows."""
    style.dress(ax)
    theme, words = style.theme(), axis_words(found[0])
    ax.plot([0, 1], [0, 1], zorder=2, gid="diagonal", **theme.diagonal)
    for place, ev in enumerate(found):
        colour, dashes, marker = theme.model(place)
        look: Any = {"color": colour, "linestyle": dashes, "linewidth": theme.line(1.4)}
        h = ev.atoms.confidence
        if len(h) and ev.rows >= LEAST_AT_ONE * len(h):
            round_: Any = {"marker": marker, "markersize": 3.5, "linewidth": 0.6}
            ax.plot(h, ev.atoms.accuracy, gid=ev.name, **{**look, **round_})
            continue
        seen = view(ev)
        sure = seen.trusted() if seen.trusted().any() else seen.doubtful()
        accuracy = np.where(sure, seen.curve.accuracy, np.nan)
        ax.plot(seen.curve.confidence, accuracy, gid=ev.name, zorder=3, **look)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    style.name_axis(ax, "x", words["said"])
    style.name_axis(ax, "y", words["hit"])
    for axis in "xy":
        style.number_ticks(ax, axis, style.unit_ticks(ax, axis))
    name = style.elide(found.model, 2.3 * theme.room, theme.size("title"), bold=True)
    labels.above(ax, name, 4, fontsize=theme.size("title"), weight="bold")


def _metric(ax: Axes, found: Groups, key: str, *, named: bool) -> None:
    values = [MEASURES[key].of(ev) for ev in found]
    looks = [style.theme().model(place) for place in range(len(found))]
    worst = found.worst.get(key)
    if worst is not None and worst.interval is not None:
        low, high = (100 * end for end in worst.interval)
        ax.axvspan(low, high, zorder=0, gid="worst", **style.theme().interval)
    title = MEASURES[key].label.replace("d_CAL", r"$d_\mathrm{CAL}$")
    _forest(ax, values, looks, f"{title} ×100")
    _name_rows(ax, [ev.name for ev in found] if named else [], NAMES)
    for place, (colour, *_) in enumerate(looks if named else []):
        ax.get_yticklabels()[place].set_color(colour)
        below: Any = {"xytext": (-4, -9), "textcoords": "offset points", "ha": "right"}
        below |= {"xycoords": ("axes fraction", "data"), "va": "center"}
        count = f"n = {found[place].n:,.10g}"
        ax.annotate(count, (0, place), **below, **style.theme().faint)


def _forest(
    ax: Axes, values: list[Estimate], looks: list[tuple[str, Any, str]], title: str
) -> None:
    """A marker and its interval for each row, the first on top."""
    style.dress(ax, hide=("top", "right", "left"))
    ax.grid(visible=False, axis="y")
    for place, (value, look_of) in enumerate(zip(values, looks, strict=True)):
        colour, dashes, marker = look_of
        if not isfinite(value):
            continue
        if value.interval is not None and all(map(isfinite, value.interval)):
            low, high = (100 * end for end in value.interval)
            ax.hlines(place, low, high, color=colour, linestyle=dashes, linewidth=1.2)
        look: Any = {"color": colour, "markersize": 4 * style.theme().room, "zorder": 4}
        ax.plot(100 * float(value), place, marker, **look)
    ax.set_ylim(len(values) - 0.5, -0.5)
    ax.locator_params(axis="x", nbins=4)
    labels.above(ax, title, 4, fontsize=style.theme().size("title"))


def _name_rows(ax: Axes, names: list[str], inches: float = 0.0) -> None:
    theme = style.theme()
    size, wide = theme.size("tick"), inches * theme.room
    shown = [style.elide(name, wide, size) for name in names]
    low, high = ax.get_ylim()
    ax.yaxis.set_ticks(range(round(max(low, high) + 0.5)), shown or None)
    ax.tick_params(axis="y", length=0, labelleft=bool(names))
    ax.tick_params(axis="y", labelcolor=theme.settings["text.color"])


def _note(sheet: style.Sheet, found: Groups) -> None:
    theme = style.theme()
    worst = "grey: that of the worst of all groups"
    lines = [f"bars: {100 * found.level:g}% intervals of each group; {worst}"]
    if found.equality is not None:
        p = found.equality.p_value
        shown = "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
        lines.append(f"test that all groups are calibrated alike: {shown}")
    size = theme.points(style.SMALL)
    look: Any = {"color": theme.muted, "fontsize": size, "va": "bottom", "ha": "right"}
    sheet.text(0.985, 0.04 / sheet.get_figheight(), "\n".join(lines), **look)


@style.in_style
def group_gaps(
    found: Multicalibration, *, figsize: tuple[float, float] | None = None
) -> Axes:
    """Draw accuracy less confidence of groups that may overlap, with intervals of all.

    Parameters
    ----------
    found : Multicalibration
        From `calibrant.multicalibration_error`.
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    Axes
        A line for each group.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> p = np.random.default_rng(0).random(600)
    >>> y = np.random.default_rng(1).random(600) < p
    >>> found = cal.multicalibration_error(y, probs=p, groups={"low": p < 0.5})
    >>> cal.plot.group_gaps(found).get_xlabel()
    'observed frequency − forecast, points'
    """
    given: Any = found
    if isinstance(given, Groups):
        raise TypeError(
            "found is a Groups, from compare_groups: draw it with plot.groups. "
            "group_gaps draws what multicalibration_error gives."
        )
    check_kind(found, Multicalibration, "found")
    room, count = style.theme().room, len(found.names)
    tall = max(room * (0.75 + ROW * count), 0.7 * room + LEAST_PANEL)
    usual = room * style.COLUMN, tall
    width, height = usual if figsize is None else read_figsize(figsize)
    names = room * 1.25
    check_room(figsize, (width - names, height - 0.7 * room), (width, height))
    sheet = style.sheet(width, height, layout=None)
    down = {"top": 1 - 0.08 * room / height, "bottom": 0.62 * room / height}
    grid = sheet.add_gridspec(1, 1, left=names / width, right=0.97, **down)
    ax = sheet.add_subplot(grid[0, 0])
    _forest(ax, list(found.gaps), [(style.theme().curve, "-", "o")] * count, "")
    ax.axvline(0, zorder=1, **style.theme().diagonal)
    _name_rows(ax, list(found.names), 1.15)
    words = axis_words(found)
    style.name_axis(ax, "x", f"{words['hit']} − {words['said']}, points")
    look: Any = {
        "color": style.theme().muted,
        "fontsize": style.theme().points(style.SMALL),
    }
    note = f"{100 * found.level:g}% intervals of all groups at once"
    sheet.text(names / width, 0.04 * room / height, note, va="bottom", **look)
    sheet.alt_text = str(found)
    return ax
