"""`compare_methods`: the score as calibration error plus gap, beside ECE and accuracy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.transforms import ScaledTranslation
from numpy.typing import NDArray

from calibrant._base.checks import check_choice
from calibrant._base.evaluation import Evaluation
from calibrant._base.measures import is_mirrored, is_trivial
from calibrant._base.records import Estimate
from calibrant._verbs.compare import sameness
from calibrant._views.diagram import Evaluations, as_list, axis_words, estimated_alike
from calibrant.plot import _curves as curves
from calibrant.plot import _labels as labels
from calibrant.plot import _style as style
from calibrant.plot._layout import check_room, read_figsize

Read = Callable[[Evaluation], Estimate]
ROW, HEAD, FOOT, LINE = 0.27, 0.3, 0.52, 0.12
NAMES = 1.25
WIDTHS = (3.0, 1.1, 0.95, 0.95)
NARROW, NARROW_WIDTHS = 5.9, (1.75, 1.25, 0.7, 0.9)
"""Inches up to which ECE and accuracy are numbers alone, and the columns are these."""


@style.in_style
def compare_methods(
    models: Evaluations,
    *,
    divergence: str | None = None,
    figsize: tuple[float, float] | None = None,
) -> NDArray[np.object_]:
    """Draw what each method costs: its score in two parts, and what ECE would say.

    Parameters
    ----------
    models : Comparison or sequence of Evaluation
        Methods on the same examples, as `calibrant.study` gives them.
    divergence : str, optional
        By default that of the evaluations.
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    array of Axes
        Score, d_CAL, ECE and accuracy, from left to right. A method that gives (nearly)
        every example the same confidence is shaded and hollow: it is the yardstick which
        others should beat in score, not in calibration.

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> y = [1, 0, 1, 1] * 30
    >>> a = cal.evaluate_pairs(y, [0.9, 0.4, 0.8, 0.7] * 30, name="a")
    >>> b = cal.evaluate_pairs(y, [0.5] * 120, name="b")
    >>> len(calibrant.plot.compare_methods([a, b]))
    4
    """
    chosen = as_list(models)
    name = chosen[0].divergence if divergence is None else divergence
    check_choice(name, "divergence", tuple(chosen[0].decompositions))
    alike = estimated_alike(chosen, name)
    sheet, axes = _lay_out([ev.name for ev in chosen], figsize, more=not alike)
    narrow = bool(sheet.get_figwidth() < NARROW * style.theme().room)
    _bars(axes[0], chosen, name, narrow=narrow)
    columns: dict[str, Read] = {
        r"$d_\mathrm{CAL}$": lambda ev: ev.decompositions[name].calibration,
        "ECE": lambda ev: ev.metrics["ece"],
        "accuracy": lambda ev: ev.metrics["accuracy"],
    }
    for ax, (title, read) in zip(axes[1:], columns.items(), strict=True):
        _dots(ax, chosen, title if narrow else f"{title} ×100", read)
        if narrow and ax is not axes[1]:
            _numbers_alone(ax)
    for place, ax in enumerate(axes):
        _rows(ax, chosen, named=place == 0)
    _note(sheet, chosen, columns, narrow=narrow, alike=alike)
    sheet.alt_text = " ".join(ev.describe() for ev in chosen)
    return np.array(axes)


def _lay_out(
    listed: list[str], figsize: Any, *, more: bool
) -> tuple[style.Sheet, list[Axes]]:
    """A sheet with a row for each method, and its four columns; with room for one line more."""
    room, count = style.theme().room, len(listed)
    below = FOOT + LINE * more
    usual = room * style.PAGE, room * (HEAD + ROW * count + below)
    width, height = usual if figsize is None else read_figsize(figsize)
    narrow = width < room * NARROW
    names = room * (0.72 if narrow else NAMES * min(1, width / usual[0]))
    size = style.theme().size("tick")  # as wide as the longest name, within reason
    longest = 0.28 + max(style.width_of(name, size) for name in listed)
    names = max(names, min(longest, (0.2 if narrow else 0.3) * width))
    head, foot = room * (HEAD + 0.14 * narrow), room * below
    if figsize is not None:
        columns = room * (1.9 if narrow else 2.5)
        free = width - names - columns, height - head - foot - 0.15 * room * count
        check_room(figsize, (free[0], free[1] + 0.5), (width, height))
    sheet = style.sheet(width, height, layout=None)
    across = {"left": names / width, "right": 0.985, "wspace": 0.09}
    down = {"top": 1 - head / height, "bottom": foot / height}
    widths = NARROW_WIDTHS if narrow else WIDTHS
    grid = sheet.add_gridspec(1, 4, width_ratios=widths, **across, **down)
    return sheet, [sheet.add_subplot(grid[0, i]) for i in range(4)]


def _rows(ax: Axes, models: list[Evaluation], *, named: bool) -> None:
    ax.set_ylim(len(models) - 0.5, -0.5)
    theme, figure = style.theme(), ax.get_figure(root=True)
    assert figure is not None
    box, size = ax.get_position(), theme.size("tick")
    inches, high = box.x0 * figure.get_figwidth() - 0.08, figure.get_figheight()
    two = box.height * high / len(models) > 2.9 * size / 72  # lines fit a row
    names = [_in_lines(ev.name, inches, size, two=two) for ev in models if named]
    ax.yaxis.set_ticks(range(len(models)), names)
    ax.tick_params(axis="y", length=0, labelcolor=theme.settings["text.color"])
    for place, ev in enumerate(models):
        if is_trivial(ev):
            shade: Any = {"color": theme.shade, "zorder": 0, "linewidth": 0}
            ax.axhspan(place - 0.5, place + 0.5, **shade)


def _in_lines(name: str, inches: float, size: float, *, two: bool) -> str:
    """A name that fits, in two lines if that is what it takes and there may be two."""
    lines = curves.broken(style.elide(name, np.inf, size), inches, size)
    whole = two and lines.count("\n") == 1 and "…" not in lines
    return lines if whole else style.elide(name, inches, size)


def _bars(ax: Axes, models: list[Evaluation], name: str, *, narrow: bool) -> None:
    style.dress(ax, hide=("top", "right", "left"))
    ax.grid(visible=False, axis="y")
    parts = [ev.decompositions[name] for ev in models]
    total = np.array([100 * p.total for p in parts], float)
    cal = np.array([max(100 * p.calibration, 0.0) for p in parts], float)
    finite = np.isfinite(total)
    widest = float(total[finite].max(initial=1.0))
    shown = np.where(finite, total, 1.1 * widest)
    cal = np.minimum(np.where(np.isfinite(cal), cal, shown), shown)
    places, theme = np.arange(len(models)), style.theme()
    gap = ax.barh(places, shown - cal, 0.6, left=cal, gid="gap", **theme.band_fill)
    ax.barh(places, cal, 0.6, color=theme.curve, linewidth=0, gid="calibration")
    for place, bar in enumerate(gap):
        if not finite[place]:
            bar.set_hatch("////")
        beside: Any = {"xytext": (3, 0), "textcoords": "offset points", **_number()}
        ax.annotate(labels.percent(total[place] / 100), (shown[place], place), **beside)
    ax.set_xlim(0, (1.6 if narrow else 1.17) * float(shown.max()))
    if narrow:  # the last number would meet the first of the next column
        ax.locator_params(axis="x", nbins=3)
        ax.set_xticks([x for x in ax.get_xticks() if 0 <= x <= shown.max()])
    _name_column(ax, labels.score_name(name) + ("" if narrow else " ×100"))
    handles = [
        Patch(color=theme.curve, label="calibration error"),
        Patch(label="sharpness gap", **theme.band_fill),
    ]
    spacing: Any = {"handlelength": 0.9, "columnspacing": 0.8, "handletextpad": 0.35}
    spacing |= {"borderpad": 0.1, "borderaxespad": 0.1}
    spacing["fontsize"] = theme.points(style.SMALL)
    above: Any = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 2}
    if narrow:  # in a line of its own, above the names of the columns
        row = ax.transAxes + ScaledTranslation(0, 0.17 * theme.room, _inches(ax))
        above |= {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
        above["bbox_transform"] = row
    ax.legend(handles=handles, **above, **spacing)


def _inches(ax: Axes) -> Any:
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure.dpi_scale_trans


def _numbers_alone(ax: Axes) -> None:
    """Leave the numbers of a column that has no room for more."""
    for line in (*ax.lines, *ax.collections):
        line.set_visible(False)
    title = ax.get_title(loc="left")
    ax.set_title("", loc="left")
    _name_column(ax, title, at="right")
    ax.xaxis.set_visible(False)
    ax.spines["bottom"].set_visible(False)


def _name_column(ax: Axes, title: str, at: Literal["left", "right"] = "left") -> None:
    ax.set_title(title, fontsize=style.theme().points(7.5), pad=4, loc=at)


def _number() -> dict[str, Any]:
    theme = style.theme()
    return {"va": "center", "fontsize": theme.points(style.NOTE), "color": theme.ink}


def _dots(ax: Axes, models: list[Evaluation], title: str, read: Read) -> None:
    style.dress(ax, hide=("top", "right", "left"))
    ax.grid(visible=False, axis="y")
    ends = [0.0] if "accuracy" not in title else []
    ink, ground = style.theme().ink, style.theme().ground
    for place, ev in enumerate(models):
        value = read(ev)
        low, high = value.interval or (float(value), float(value))
        at = 100 * float(value)
        ends += [100 * low, 100 * high, at]
        if value.interval is not None:
            ax.hlines(place, 100 * low, 100 * high, color=ink, linewidth=0.9)
        face = ground if is_trivial(ev) else ink
        look: Any = {
            "markersize": 4 * style.theme().room,
            "markeredgewidth": 0.9,
            "zorder": 4,
        }
        look |= {"markeredgecolor": ink, "markerfacecolor": face}
        ax.plot(at, place, "o", clip_on=False, gid=ev.name, **look)
        text, right = labels.percent(value), ("axes fraction", "data")
        ax.annotate(text, (1, place), xycoords=right, ha="right", **_number())
    known = [end for end in ends if np.isfinite(end)] or [0.0, 1.0]
    low, high = min(known), max(known)
    room = max(high - low, 0.02)
    ax.set_xlim(low - 0.06 * room, high + 0.75 * room)  # the numbers stand at the right
    ax.locator_params(axis="x", nbins=3)
    _name_column(ax, title)


def _note(
    sheet: style.Sheet,
    models: list[Evaluation],
    columns: dict[str, Read],
    *,
    narrow: bool,
    alike: bool,
) -> None:
    """Which intervals are drawn, and which methods are no achievement."""
    if narrow:
        columns = dict(list(columns.items())[:1])
    found = {title: _method(models, read) for title, read in columns.items()}
    named = [f"{title} {method}" for title, method in found.items() if method]
    level = 100 * float(models[0].settings["level"])
    lines = [f"lines: {level:g}% intervals ({', '.join(named)})"] if named else []
    lines = [f"numbers ×100; {''.join(lines)}".rstrip("; ")] if narrow else lines
    trivial, theme = [ev for ev in models if is_trivial(ev)], style.theme()
    size, width = theme.points(style.SMALL), sheet.get_figwidth()
    left = 0.02 if narrow else sheet.axes[0].get_position().x0
    if trivial:
        listed = ", ".join(ev.name for ev in trivial)
        same = f", {_sameness(trivial, narrow=narrow)}"
        free = (0.98 - left) * width - style.width_of(f"hollow: {same}", size)
        free = min(max(free, 0.6 * theme.room), 2.2 * theme.room)
        lines.append(f"hollow: {style.elide(listed, free, size)}{same}")
    lines += [] if alike else [labels.NOT_ALIKE]
    sizes = [labels.fitting(line, (1 - left) * width, size) for line in lines]
    look: Any = {"color": theme.muted, "fontsize": min(sizes, default=size)}
    sheet.text(
        left, 0.04 / sheet.get_figheight(), "\n".join(lines), va="bottom", **look
    )


def _sameness(trivial: list[Evaluation], *, narrow: bool) -> str:
    """What trivial models do; where the predicted class has one probability, as tables say."""
    said, mirrored = axis_words(trivial[0])["said"], [*filter(is_mirrored, trivial)]
    if narrow:
        return f"the same {'for each class' if mirrored else f'{said} for all'}"
    if mirrored:
        return f"a baseline that {sameness(mirrored[0])}"
    return f"a baseline that gives every example the same {said}"


def _method(models: list[Evaluation], read: Read) -> str:
    methods = [read(ev).method for ev in models if read(ev).interval is not None]
    return next((method for method in methods if method), "")
