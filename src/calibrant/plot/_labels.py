"""Names and numbers on figures: beside what they name, and above the panels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite, isnan
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._base.evaluation import Evaluation
from calibrant._base.records import Estimate
from calibrant._base.text import number, printed_gap, rest_of_sum
from calibrant._inputs.arrays import Column
from calibrant._inputs.divergences import score_in_words
from calibrant._sketch.ordered import pooled
from calibrant._views.diagram import View, axis_words
from calibrant.plot import _style as style
from calibrant.plot._layout import Panels, make_room
from calibrant.plot._panel import Look, ribbons

NOT_ALIKE = r"$d_\mathrm{CAL}$ is not estimated alike, and cannot be compared"


def spread(wanted: Column, least: float) -> Column:
    """Move places apart until they differ by `least`, each as little as can be.

    Examples
    --------
    >>> spread(np.array([0.0, 0.1, 5.0]), least=1.0)
    array([-0.45,  0.55,  5.  ])
    """
    order = np.argsort(wanted, kind="stable")
    # With i * least taken off, "differ by least" becomes "not decreasing".
    steps = least * np.arange(len(wanted))
    first, sums, count = pooled(wanted[order] - steps, np.ones(len(wanted)))
    placed = np.repeat(sums / count, np.diff(first, append=len(wanted))) + steps
    moved = np.empty_like(wanted)
    moved[order] = placed
    return moved


LEADER = {"linewidth": 0.5, "shrinkA": 1, "shrinkB": 0}


def at_right_end(
    ax: Axes, names: list[str], y: Column, colours: list[str], inches: float
) -> None:
    """Write the names of lines beyond their right ends, with leaders where moved."""
    figure, size = ax.get_figure(root=True), style.theme().points(style.NOTE)
    assert figure is not None
    height = ax.get_position().height * figure.get_figheight() * 72
    beyond = 9 / 72 / max(inches, 0.1) * 0.2
    inches -= beyond * ax.get_position().width * figure.get_figwidth()
    pixels = ax.transData.transform(np.column_stack([np.ones_like(y), y]))
    fraction = ax.transAxes.inverted().transform(pixels)[:, 1]
    placed = spread(fraction, 1.18 * size / height)
    for name, start, end, colour in zip(names, fraction, placed, colours, strict=True):
        at = 1 + beyond, end
        where: Any = {"xycoords": "axes fraction", "textcoords": "axes fraction"}
        look: Any = {"va": "center", "fontsize": size, "color": colour}
        leader: Any = {"arrowstyle": "-", "color": colour, **LEADER}
        text = style.elide(name, inches, size)
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


GAPS = (6.0, 13.0, 22.0, 33.0, 46.0, 62.0, 80.0)
"""Distances of a name from its marker, in points; from the second on it has a leader."""

Corner = tuple[float, float, str, str]


class Marker(NamedTuple):
    """A marker to be named: its place, and the ends of the upright line through it."""

    name: str
    colour: str
    x: float
    y: float
    ends: tuple[float, float]


def beside_markers(ax: Axes, markers: list[Marker]) -> None:
    """Name each marker on the side where it collides least with what is there."""
    figure, look = ax.get_figure(root=True), style.theme()
    assert figure is not None
    scale, size = 72 / figure.dpi, look.points(style.NOTE)
    taken, places = [], []
    for _, _, x, y, (low, high) in markers:
        corners = ax.transData.transform([(x, low), (x, high), (x, y)]) * scale
        places.append(corners[2])
        taken.append(np.concatenate([corners[2] - 5, corners[2] + 5]))
        taken.append(np.concatenate([corners[0] - 2, corners[1] + 2]))
    frame = ax.get_window_extent().get_points().ravel() * scale
    wide = [72 * style.width_of(marker.name, size) for marker in markers]
    chosen = _choose_places(places, wide, size, taken, frame)
    for marker, (corner, gap) in zip(markers, chosen, strict=True):
        _name_beside(ax, marker, corner, gap)


def _name_beside(ax: Axes, marker: Marker, corner: Corner, gap: float) -> None:
    """The name at this corner, with a leader if it is far."""
    (dx, dy, ha, va), look = corner, style.theme()
    text: Any = {"xytext": (gap * dx, gap * dy), "textcoords": "offset points"}
    text |= {"ha": ha, "va": va, "fontsize": look.points(style.NOTE), "zorder": 6}
    text |= {"color": look.ink, "annotation_clip": False, "gid": "name"}
    text["bbox"] = {"facecolor": look.ground, "linewidth": 0, "pad": 0.5, "alpha": 0.7}
    if gap > GAPS[0]:
        text["arrowprops"] = {"arrowstyle": "-", "color": marker.colour, **LEADER}
    ax.annotate(marker.name, (marker.x, marker.y), **text)


def _choose_places(
    places: list[Column],
    wide: list[float],
    tall: float,
    taken: list[Column],
    frame: Column,
) -> list[tuple[Corner, float]]:
    """A corner and a distance for each name, at which they cost least together.

    Names are placed in turn, and then again, since a later one may have taken what an
    earlier one needs.
    """
    options = [(corner, gap) for gap in GAPS for corner in CORNERS]
    chosen = [options[0]] * len(wide)
    boxes: list[Column] = []
    for _turn in range(3):
        for i, place in enumerate(places):
            others = [*taken, *(box + APART for j, box in enumerate(boxes) if j != i)]
            found = [_box(place, *option, wide[i], tall) for option in options]
            rest = np.delete(np.array(places), i, axis=0)
            costs = [
                _cost(box, others, frame) + 1.5 * gap + _doubt(box, place, rest)
                for box, (_, gap) in zip(found, options, strict=True)
            ]
            best = int(np.argmin(costs))
            chosen[i] = options[best]
            boxes[i : i + 1] = [found[best]]
    return chosen


def _doubt(box: Column, own: Column, others: Column) -> float:
    """What it costs that a name stands nearer to another marker, or a leader crosses one."""
    near, *away = _distance(box, np.vstack([own, others]))
    nearer = np.maximum(near + CLEAR - np.array(away), 0)
    # Along the leader, from the marker to the middle of the name.
    middle = (box[:2] + box[2:]) / 2
    step = middle - own
    along = np.clip((others - own) @ step / max(float(step @ step), 1e-9), 0, 1)
    passed = np.linalg.norm(others - own - along[:, None] * step, axis=1)
    return float(12 * nearer.sum() + 12 * np.maximum(CLEAR - passed, 0).sum())


APART = np.array([-4.0, 0.0, 4.0, 0.0])
"""Room between the names of two markers that stand side by side, in points."""

CLEAR = 6.0
"""Points by which a name is nearer to its marker than to others, and leaders miss these."""


def _distance(box: Column, points: Column) -> Column:
    """How far points are from a box."""
    out = np.maximum(np.maximum(box[:2] - points, points - box[2:]), 0)
    return np.asarray(np.linalg.norm(out, axis=1))


def _box(place: Column, corner: Corner, gap: float, wide: float, tall: float) -> Column:
    """Left, bottom, right and top of a name, in points, with a point around it."""
    dx, dy, ha, va = corner
    left = place[0] + gap * dx - wide * {"left": 0.0, "center": 0.5, "right": 1.0}[ha]
    low = place[1] + gap * dy - tall * {"bottom": 0.0, "center": 0.5, "top": 1.0}[va]
    return np.array([left - 1, low - 1, left + wide + 1, low + tall + 1])


def _cost(box: Column, taken: list[Column], frame: Column) -> float:
    """Area shared with what is there, and a high price for leaving the frame."""
    other = np.array(taken)
    shared = np.minimum(box[2:], other[:, 2:]) - np.maximum(box[:2], other[:, :2])
    cost = 4 * float(np.prod(np.maximum(shared, 0), axis=1).sum())
    outside = np.maximum(frame[:2] - box[:2], 0).sum()
    outside += np.maximum(box[2:] - frame[2:], 0).sum()
    return cost + 200 * float(outside)


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
    digits = _decimals(value)
    if value.interval is None or not all(map(isfinite, value.interval)):
        return percent(value, digits)
    low, high = (percent(end, digits) for end in value.interval)
    return f"{percent(value, digits)} [{low}, {high}]"


def _decimals(value: Estimate) -> int:
    """How many decimals a number has beside its interval: fewer where that is wide."""
    ends = value.interval or ()
    return 1 if ends and max(ends) >= 0.0995 and all(map(isfinite, ends)) else 2


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
        return f"{text}, [{level:g}% interval]"
    if parts.bandwidth is None:
        return text
    return f"{text}, {parts.kernel.capitalize()} kernel, bandwidth {parts.bandwidth:g}"


def title_size(names: Iterable[str], inches: float) -> float:
    """One size for all names: the usual one if every name fits, else a smaller one."""
    size = style.theme().size("title")
    widest = max(style.width_of(name, size, bold=True) for name in names)
    return size if widest <= inches else SMALLER * size


SMALLER = 0.87


def write(ax: Axes, view: View, inches: float, size: float) -> None:
    """Name and numbers above an Axes, outside it, where nothing is hidden."""
    parts, digits = view.parts, _decimals(view.parts.calibration)
    cal = rf"$d_\mathrm{{CAL}}$ {with_interval(parts.calibration)}"
    gap = f"gap {_signs(number(printed_gap(parts, digits, 100), digits))}"
    total = rf"$d_\mathrm{{TOT}}$ {percent(parts.total, digits)}"
    whole, broken = f"{cal} + {gap} = {total}", (cal, f"{gap}   {total}")
    header(ax, view.ev.name, whole, broken, inches, size)


def _signs(text: str) -> str:
    return text.replace("-", "−").replace("inf", "∞")


def corp_parts(ev: Evaluation) -> tuple[str, str, str]:
    """MCB, DSC and UNC x100, so that they add up to the score as printed."""
    mcb, dsc, unc = (float(ev.metrics[key]) for key in ("mcb", "dsc", "unc"))
    last = rest_of_sum(mcb - dsc + unc, [mcb, -dsc], unc, 2, 100)
    return percent(mcb), percent(dsc), _signs(number(last, 2))


def header(
    ax: Axes,
    name: str,
    whole: str,
    broken: Sequence[str],
    inches: float,
    size: float | None = None,
) -> None:
    """A name in bold above a line about it, which is broken where panels are narrow."""
    look = style.theme()
    size = look.size("title") if size is None else size
    one_line = inches >= ONE_LINE_FROM * look.room
    lines = [whole] if one_line else [line for line in broken if line]
    step = look.room * LINE
    for row, text in enumerate(reversed(lines)):
        points = look.points(style.TEXT if one_line else style.NOTE)
        above(ax, text, 3.5 + row * step, fontsize=fitting(text, inches, points))
    shown = style.elide(name, inches, size, bold=True)
    above(ax, shown, 4.5 + len(lines) * step, fontsize=size, weight="bold")


def fitting(text: str, inches: float, size: float) -> float:
    """The size at which a line of text fits, if it need not be very small."""
    return size * min(1.0, max(inches / style.width_of(text, size), 0.75))


def finish(
    sheet: Panels,
    strips: Sequence[Axes],
    models: Sequence[Evaluation],
    handles: Sequence[Artist] = (),
    columns: int = 1,
    note: str = "",
) -> None:
    """What diagrams share once drawn: names of the axes, words, a key, and room."""
    for place, (main, below) in enumerate(zip(sheet.axes, strips, strict=True)):
        if sheet.is_bottom(place):
            style.name_axis(below, "x", axis_words(models[place])["said"])
            below.xaxis.labelpad = 2
        if sheet.is_left(place):
            name_strip(below)
        else:
            main.yaxis.label.set_text("")
            main.tick_params(labelleft=False)
    if sheet.sheet is None:
        make_room([*sheet.axes, *strips])
        return
    sheet.sheet.alt_text = " ".join(ev.describe() for ev in models)
    if handles:
        legend(sheet.sheet, handles, columns, note)


def name_strip(strip: Axes) -> None:
    """The name of a strip's y axis, if it is high enough for it."""
    look = style.theme()
    size, figure = look.points(style.SMALL), strip.get_figure(root=True)
    assert figure is not None
    tall = strip.get_position().height * figure.get_figheight()
    fits = 1.03 * tall > style.width_of("examples", size)
    shown = "examples" if fits else "n"
    style.name_axis(strip, "y", shown, size=size, colour=look.colours.density_edge)
    if not fits:  # a letter lying on its side is no letter
        strip.yaxis.label.set(rotation=0, ha="right", va="center")


def legend(
    figure: Figure, handles: Sequence[Artist], columns: int, note: str = ""
) -> None:
    """The key, below everything."""
    theme = style.theme()
    spacing: Any = {"handlelength": 1.4, "columnspacing": 1.0, "handletextpad": 0.4}
    spacing |= {"labelspacing": 0.35, "borderpad": 0.1, "borderaxespad": 0.2}
    look: Any = {"title": note or None, "ncols": columns, "loc": "lower center"}
    look |= {"alignment": "left" if columns < 3 else "center", **spacing}
    size, free = theme.size("key"), figure.get_figwidth() - 0.1
    key = figure.legend(
        handles=list(handles), fontsize=size, title_fontsize=size, **look
    )
    wide = key.get_window_extent().width / figure.dpi
    if wide > free:  # as all its spacing is in ems, it shrinks as a whole
        key.remove()
        size *= free / wide
        key = figure.legend(
            handles=list(handles), fontsize=size, title_fontsize=size, **look
        )
    key.get_title().set_color(theme.muted)


def above(ax: Axes, text: str, points: float, **look: Any) -> None:
    """A line of text this many points above the left end of an Axes."""
    at: Any = {"xycoords": "axes fraction", "textcoords": "offset points"}
    ax.annotate(text, (0, 1), xytext=(0, points), va="bottom", **at, **look)


def key(views: list[View], look: Look, *, brief: bool) -> list[Line2D | Patch]:
    """Handles of the legend: one for each thing that is drawn, or the main ones."""
    theme, hit = style.theme(), axis_words(views[0].ev)["hit"]
    curve = Line2D([], [], color=theme.curve, linewidth=theme.line(1.5), label=hit)
    shrunk = f", drawn at ×{look.band_scale:g}" if look.band_scale != 1 else ""
    gap = Patch(label=f"sharpness gap{shrunk or ' × density'}", **theme.band_fill)
    handles: list[Line2D | Patch] = [curve, gap]
    level = 100 * float(views[0].ev.settings["level"])
    drawn = {kind for v in views for kind in ribbons(v, look.interval)}
    handles += [
        Patch(label=f"{level:g}% {kind}", **theme.ribbons[kind])
        for kind in ("pointwise", "simultaneous")
        if kind in drawn
    ]
    if brief:
        return handles
    handles += [
        Line2D([], [], label="perfect calibration", **theme.diagonal),
        Patch(label="share of examples", **{**theme.rows_fill, "linewidth": 0.8}),
    ]
    return [*handles, *circle([v.ev for v in views])]


def circle(models: Sequence[Evaluation]) -> list[Line2D]:
    """The handle of repeated confidences, if there are any."""
    theme = style.theme()
    if not any(len(ev.atoms.count) for ev in models):
        return []
    ring: Any = {"markerfacecolor": theme.ground, "markeredgecolor": theme.curve}
    ring |= {"linestyle": "none", "marker": "o", "markersize": 4}
    return [Line2D([], [], label=f"repeated {axis_words(models[0])['said']}", **ring)]


def interval_patch(label: str) -> Patch:
    """The handle of an interval."""
    return Patch(label=label, **style.theme().interval)
