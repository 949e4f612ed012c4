"""Names beside what they name, moved apart where they would collide."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from acumen.arrays import Column
from acumen.plot import style


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


def at_right_end(
    ax: Axes, names: list[str], y: Column, colours: list[str], inches: float
) -> None:
    """Write the names of lines beyond their right ends, with leaders where moved."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    height = ax.get_position().height * figure.get_figheight() * 72
    pixels = ax.transData.transform(np.column_stack([np.ones_like(y), y]))[:, 1]
    fraction = ax.transAxes.inverted().transform(
        np.column_stack([np.zeros_like(y), pixels])
    )[:, 1]
    placed = spread(fraction, (style.NOTE + 1.2) / height)
    for name, start, end, colour in zip(names, fraction, placed, colours, strict=True):
        ax.annotate(
            style.elide(name, inches, style.NOTE),
            (1, start),
            xycoords="axes fraction",
            xytext=(1 + 9 / 72 / max(inches, 0.1) * 0.2, end),
            textcoords="axes fraction",
            va="center",
            fontsize=style.NOTE,
            color=colour,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.5,
                "shrinkA": 1,
                "shrinkB": 0,
            },
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


def beside_markers(ax: Axes, names: list[str], x: Column, y: Column) -> None:
    """Name each marker on the side where it collides least with what is there."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    scale = 72 / figure.dpi
    places = ax.transData.transform(np.column_stack([x, y])) * scale
    frame = ax.get_window_extent().get_points().ravel() * scale
    taken = [np.array([px - 4, py - 4, px + 4, py + 4]) for px, py in places]
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
        ax.annotate(
            name,
            (float(x[i]), float(y[i])),
            xytext=(gap * dx, gap * dy),
            textcoords="offset points",
            ha=ha,
            va=va,
            fontsize=style.NOTE,
            zorder=6,
        )


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
