"""`loss_parts`: what a score is made of, and where the grouping loss shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from calibrant._base.checks import check_kind
from calibrant._verbs.grouping_loss import LossParts
from calibrant.plot import _labels as labels
from calibrant.plot import _style as style
from calibrant.plot._layout import check_room, read_figsize

HEAD, FOOT, HEIGHT, LEVELS = 0.3, 0.66, 2.1, 12


@style.in_style
def loss_parts(
    found: LossParts, *, figsize: tuple[float, float] | None = None
) -> NDArray[np.object_]:
    """Draw d_TOT as a pile of its parts, and the accuracy of regions at equal confidence.

    Parameters
    ----------
    found : LossParts
        From `calibrant.loss_parts`.
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    array of Axes
        The pile; and, if there are regions, their accuracy: the further they lie from
        the line of their level, the more the model lumps together.

    Examples
    --------
    >>> import calibrant as cal
    >>> parts = cal.loss_parts([1, 0, 1, 1] * 50, probs=[0.6] * 200, explain=["a", "b"] * 100)
    >>> len(cal.plot.loss_parts(parts))
    2
    """
    check_kind(found, LossParts, "found")
    room, cells = style.theme().room, len(found.share) > 0
    usual = (
        room * (1.65 * style.COLUMN if cells else 2.5),
        room * (HEAD + HEIGHT + FOOT),
    )
    width, height = usual if figsize is None else read_figsize(figsize)
    check_room(
        figsize, (width - 1.6 * room, height - room * (HEAD + FOOT)), (width, height)
    )
    sheet = style.sheet(width, height, layout=None)
    down = {"top": 1 - room * HEAD / height, "bottom": room * FOOT / height}
    pile = 1.0 * room / width
    left = room * 0.42 / width
    grid = sheet.add_gridspec(1, 1, left=left, right=left + pile, **down)
    axes = [sheet.add_subplot(grid[0, 0])]
    _pile(axes[0], found)
    if cells:
        beside = left + pile + room * 1.3 / width
        grid = sheet.add_gridspec(1, 1, left=beside, right=0.98, **down)
        axes.append(sheet.add_subplot(grid[0, 0]))
        _regions(axes[1], found)
    _note(sheet, found)
    sheet.alt_text = str(found)
    return np.array(axes)


def _pile(ax: Axes, found: LossParts) -> None:
    """Parts from below: calibration error, grouping loss, and what remains."""
    theme = style.theme()
    style.dress(ax)
    ax.grid(visible=False, axis="x")
    c, base = theme.colours, 0.0
    fills: dict[str, Any] = {
        "calibration error": {"facecolor": c.curve, "edgecolor": c.curve},
        "grouping loss": {"facecolor": c.band, "edgecolor": c.band_edge},
        "irreducible": {"facecolor": theme.shade, "edgecolor": c.muted},
        "rest": {"facecolor": theme.shade, "edgecolor": c.muted},
    }
    rows = [(name, 100 * float(x)) for name, x in found._parts() if name in fills]
    top = 100 * float(found.total)
    for name, value in rows:
        size = max(value, 0.0)
        ax.bar(0, size, 0.7, bottom=base, linewidth=0.6, gid=name, **fills[name])
        base += size
    wanted = np.cumsum([max(x, 0.0) for _, x in rows]) - [
        max(x, 0.0) / 2 for _, x in rows
    ]
    placed = labels.spread(np.maximum(wanted, 0.07 * top), 0.15 * top)
    for (name, value), at in zip(rows, placed, strict=True):
        text = f"{name}\n{labels.percent(value / 100)}"
        look: Any = {"fontsize": theme.points(style.NOTE), "va": "center"}
        ax.annotate(text, (0.42, at), annotation_clip=False, **look)
    ax.set(xlim=(-0.45, 0.45), ylim=(0, 1.02 * max(top, base)))
    ax.xaxis.set_ticks([])
    score = labels.score_name(found.divergence)
    labels.above(ax, f"{score} ×100", 4, fontsize=theme.size("title"))


def _regions(ax: Axes, found: LossParts) -> None:
    """Each region at its confidence: its accuracy, and that of its level."""
    theme = style.theme()
    style.dress(ax)
    ax.plot([0, 1], [0, 1], zorder=1, **theme.diagonal)
    seen = np.clip(found.seen, 0, 1)
    lines: Any = {"color": theme.colours.band_edge, "linewidth": 0.5, "alpha": 0.6}
    ax.vlines(found.confidence, found.expected, seen, zorder=2, **lines)
    level: Any = {"color": theme.curve, "linewidth": theme.line(1.4), "zorder": 3}
    ax.plot(*_levels(found), gid="level", **level)
    size = 1 + 22 * found.share / found.share.max()
    dots: Any = {"color": theme.colours.density_edge, "linewidth": 0, "zorder": 4}
    ax.scatter(found.confidence, seen, s=size, gid="regions", **dots)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    style.name_axis(ax, "x", "confidence")
    style.name_axis(ax, "y", "accuracy")
    for axis in "xy":
        style.number_ticks(ax, axis, style.unit_ticks(ax, axis))
    labels.above(ax, "regions at equal confidence", 4, fontsize=theme.size("title"))


def _levels(found: LossParts) -> tuple[Any, Any]:
    """Confidence and accuracy of levels, of equal weight."""
    order = np.argsort(found.confidence, kind="stable")
    share = found.share[order]
    place = (LEVELS * (np.cumsum(share) - 0.5 * share) / share.sum()).astype(np.intp)
    mass = np.bincount(place, share)
    both = found.confidence[order], found.expected[order]
    h, a = (np.bincount(place, share * x)[mass > 0] / mass[mass > 0] for x in both)
    return h, a


def _note(sheet: style.Sheet, found: LossParts) -> None:
    theme = style.theme()
    lines = [
        f"grouping loss {labels.with_interval(found.grouping)}, {100 * found.level:g}% interval",
        found.method
        if found.irreducible is not None
        else f"a lower bound, by {found.method}",
    ]
    size = theme.points(style.SMALL)
    wide = sheet.get_figwidth() - 0.1
    look: Any = {"color": theme.muted, "va": "bottom"}
    look["fontsize"] = min(labels.fitting(line, wide, size) for line in lines)
    sheet.text(0.02, 0.03 / sheet.get_figheight(), "\n".join(lines), **look)
