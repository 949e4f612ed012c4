"""`score_map`: calibration error against sharpness gap, with lines of equal score."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from calibrant._base.checks import check_choice
from calibrant._base.evaluation import Evaluation
from calibrant._base.measures import is_trivial
from calibrant._base.records import Decomposition
from calibrant._inputs.arrays import Column
from calibrant._views.diagram import Evaluations, as_list, estimated_alike
from calibrant.plot import _labels as labels
from calibrant.plot import _style as style
from calibrant.plot._layout import given_panels, make_room, read_figsize


@style.in_style
def score_map(
    models: Evaluations,
    *,
    divergence: str | None = None,
    figsize: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw each model by its sharpness gap and its calibration error.

    Parameters
    ----------
    models : Evaluation, Comparison or sequence of Evaluation
        The models.
    divergence, figsize, ax
        As in `calibration_sharpness`.

    Returns
    -------
    Axes
        Better is left and down. On each slanted line the score d_TOT is the same.
        Hollow: a model that gives (nearly) every example the same confidence, and so is calibrated
        without being of use. A model of infinite score cannot be placed and is named
        at the top, where it also says if d_CAL was not estimated alike. More than 8 models are numbered, with a key.

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> y = [1, 0, 1, 1] * 30
    >>> a = cal.evaluate_pairs(y, [0.9, 0.4, 0.8, 0.7] * 30, name="a")
    >>> b = cal.evaluate_pairs(y, [0.6, 0.5, 0.6, 0.6] * 30, name="b")
    >>> calibrant.plot.score_map([a, b]).get_xlabel()
    'sharpness gap (Brier ×100)'
    """
    chosen = as_list(models)
    name = chosen[0].divergence if divergence is None else divergence
    check_choice(name, "divergence", tuple(chosen[0].decompositions))
    parts = [ev.decompositions[name] for ev in chosen]
    placed = [i for i, one in enumerate(parts) if np.isfinite(float(one.total))]
    own, ax = ax is None, _axes(ax, figsize, len(placed))
    style.dress(ax, grid=False)
    x = np.array([100 * parts[i].sharpness_gap for i in placed], float)
    y = np.array([100 * parts[i].calibration for i in placed], float)
    _limits(ax, x, y, [parts[i] for i in placed])
    style.name_axis(ax, "x", f"sharpness gap ({labels.score_name(name)} ×100)")
    style.name_axis(ax, "y", r"calibration error $d_\mathrm{CAL}$ ×100")
    _iso_lines(ax)
    for place, i in enumerate(placed):
        _marker(ax, chosen[i], i, (x[place], y[place]), parts[i])
    missing = [ev.name for i, ev in enumerate(chosen) if i not in placed]
    _remarks(ax, missing, alike=estimated_alike(chosen, name))
    markers = [
        labels.Marker(
            chosen[i].name, style.theme().model(i)[0], x[k], y[k], _ends(parts[i])
        )
        for k, i in enumerate(placed)
    ]
    _name_models(ax, markers, own=own)
    if own:
        ax.figure.set_layout_engine("none")  # type: ignore[union-attr]
        ax.figure.alt_text = " ".join(ev.describe() for ev in chosen)  # type: ignore[union-attr]
    return ax


def _axes(ax: Axes | None, figsize: Any, count: int) -> Axes:
    if ax is not None:
        return given_panels(1, ax, figsize).axes[0]
    room = style.theme().room
    wide = 3.6 if count <= MOST_NAMES else 5.2  # with a key at the right
    size = (wide * room, 3.0 * room) if figsize is None else read_figsize(figsize)
    found: Axes = style.sheet(*size).subplots()
    return found


MOST_NAMES = 8
"""Names that have room beside their markers; of more models, numbers do, with a key."""


def _key(ax: Axes, markers: list[labels.Marker], *, own: bool) -> None:
    """What the numbers stand for: beside the Axes, or inside one that was given."""
    theme, drawn = style.theme(), {line.get_gid(): line for line in ax.lines}
    handles = [copy(drawn[marker.name]) for marker in markers]
    names = [
        f"{i}  {style.elide(marker.name, 1.5 * theme.room, theme.points(style.NOTE))}"
        for i, marker in enumerate(markers, 1)
    ]
    where: Any = {"loc": "upper left", "bbox_to_anchor": (1.06, 1.0)}
    look: Any = {"fontsize": theme.points(style.NOTE), "handletextpad": 0.2}
    look |= {"borderaxespad": 0.0, "labelspacing": 0.35, "frameon": False}
    ax.legend(handles, names, **(where if own else {"loc": "best"}), **look)


def _name_models(ax: Axes, markers: list[labels.Marker], *, own: bool) -> None:
    """Names beside markers, once it is known where those will be."""
    if len(markers) > MOST_NAMES:
        _key(ax, markers, own=own)
        markers = [m._replace(name=f"{i}") for i, m in enumerate(markers, 1)]
    make_room([ax])
    figure, theme = ax.get_figure(root=True), style.theme()
    assert figure is not None
    figure.draw_without_rendering()
    room = theme.room * (1.3 if len(markers) <= 6 else 0.85)
    room = min(room, 0.45 * ax.get_position().width * figure.get_figwidth())
    size = theme.points(style.NOTE)
    named = [m._replace(name=style.elide(m.name, room, size)) for m in markers]
    labels.beside_markers(ax, named)


def _limits(ax: Axes, x: Column, y: Column, parts: list[Decomposition]) -> None:
    ends = [100 * p.calibration.interval[1] for p in parts if p.calibration.interval]
    high = max([*y.tolist(), *ends, 0.01])
    wide, middle = 0.15, 0.5
    if len(x):
        # All gaps may be 0, and an axis has to have a width.
        wide = max(float(np.ptp(x)), 0.15 * float(x.max()), 0.1 * high)
        middle = 0.5 * (x.min() + x.max())
    ax.set_xlim(max(middle - 0.75 * wide, 0.0), middle + 0.75 * wide)
    ax.set_ylim(min(0.0, 1.2 * float(y.min(initial=0.0))) - 0.04 * high, 1.15 * high)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(5))


def _iso_lines(ax: Axes) -> None:
    """Lines of equal score, labelled at their upper ends."""
    (left, right), (low, high), theme = ax.get_xlim(), ax.get_ylim(), style.theme()
    for total in MaxNLocator(7).tick_values(left + max(low, 0), right + high):
        if not left + low < total < right + high:
            continue
        x = np.array([total - low, total - high])
        rule = {"color": theme.rule, "linewidth": 0.8, "zorder": 1}
        ax.plot(x, [low, high], gid="equal score", **rule)  # type: ignore[arg-type]
        top, end = total - high, total - right
        if left < top < right:
            ax.text(top, high, f"{total:g}", ha="center", va="bottom", **theme.faint)
        elif low < end < high:
            ax.text(right, end, f" {total:g}", ha="left", va="center", **theme.faint)
    ax.set(xlim=(left, right), ylim=(low, high))
    at: Any = {"xycoords": "axes fraction", "textcoords": "offset points"}
    look: Any = {"ha": "right", "va": "bottom", **theme.faint}
    ax.annotate(r"$d_\mathrm{TOT}$", (0, 1), xytext=(-4, 1.5), **at, **look)


def _ends(parts: Decomposition) -> tuple[float, float]:
    """The ends of the calibration error's interval, or the error itself twice."""
    error = parts.calibration
    low, high = error.interval or (float(error), float(error))
    return 100 * low, 100 * high


def _marker(
    ax: Axes, ev: Evaluation, place: int, at: tuple[float, float], parts: Decomposition
) -> None:
    colour, _, shape = style.theme().model(place)
    if parts.calibration.interval is not None:
        ax.vlines(at[0], *_ends(parts), color=colour, linewidth=0.9, zorder=3)
    face = style.theme().ground if is_trivial(ev) else colour
    look: Any = {
        "marker": shape,
        "markersize": 5 * style.theme().room,
        "linestyle": "none",
        "zorder": 4,
    }
    look |= {"markeredgecolor": colour, "markerfacecolor": face}
    ax.plot(*at, clip_on=False, gid=ev.name, **look)


def _remarks(ax: Axes, missing: list[str], *, alike: bool) -> None:
    """Which models cannot be placed, and that heights cannot be compared if that is so."""
    theme = style.theme()
    room, size = 2.2 * theme.room, theme.points(style.SMALL)
    lines = [] if alike else [labels.NOT_ALIKE]
    if missing:
        lines.append(f"infinite score: {style.elide(', '.join(missing), room, size)}")
    look: Any = {"ha": "right", "va": "top", **theme.faint}
    ax.text(0.98, 0.98, "\n".join(lines), transform=ax.transAxes, **look)
