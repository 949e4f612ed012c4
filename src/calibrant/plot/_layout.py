"""Where panels go: on the Axes given, or on a sheet of a row or a grid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from calibrant.plot._style import COLUMN, PAGE, Sheet, sheet

WIDTHS = {1: COLUMN, 2: 4.6, 3: 5.8}
MOST_COLUMNS = 5

ROOMY_FROM = 1.75
"""A panel at least this many inches wide gets more ticks and longer labels."""


@dataclass(frozen=True, slots=True)
class Margins:
    """Inches around panels: `head` and `foot` of each, `bottom` below all of them.

    Said outright rather than found by a layout engine, so that panels are of one size
    whatever stands above them.
    """

    height: float
    head: float
    foot: float
    bottom: float
    left: float = 0.43
    right: float = 0.06
    between: float = 0.13


@dataclass(frozen=True, slots=True)
class Panels:
    """Axes in reading order, and the sheet they are on if it is ours."""

    axes: list[Axes]
    columns: int
    sheet: Sheet | None
    inches: float

    @property
    def roomy(self) -> bool:
        """Whether panels have room for long labels."""
        return self.inches >= ROOMY_FROM

    def with_strip(self) -> tuple[Axes, Axes]:
        """The only panel, and a strip split off below it."""
        (main,) = self.axes
        return main, split(main)

    def is_left(self, place: int) -> bool:
        """Whether a panel begins a row, and so carries the labels of its y axis."""
        return self.sheet is None or place % self.columns == 0

    def is_bottom(self, place: int) -> bool:
        """Whether no panel is below."""
        return self.sheet is None or place + self.columns >= len(self.axes)


def columns_for(count: int) -> int:
    """Columns of a grid: at most five, and the last row nearly full.

    Examples
    --------
    >>> [columns_for(n) for n in (1, 5, 6, 12)]
    [1, 5, 3, 4]
    """
    return ceil(count / ceil(count / MOST_COLUMNS))


def panels(count: int, margins: Margins) -> Panels:
    """A sheet of panels of one size."""
    columns = columns_for(count)
    rows, width = ceil(count / columns), WIDTHS.get(columns, PAGE)
    m, step = margins, margins.height + margins.head + margins.foot
    height = rows * step + m.bottom
    inside = width - m.left - m.right - (columns - 1) * m.between
    figure = sheet(width, height, layout=None)
    across = {"left": m.left / width, "right": 1 - m.right / width}
    down = {"top": 1 - m.head / height, "bottom": (m.bottom + m.foot) / height}
    wide, tall = m.between * columns / inside, (m.head + m.foot) / m.height
    between = {"wspace": wide, "hspace": tall}
    grid = figure.add_gridspec(rows, columns, **across, **down, **between)
    axes = [figure.add_subplot(grid[divmod(i, columns)]) for i in range(count)]
    return Panels(axes, columns, figure, inside / columns)


def loose_panels(count: int, single: float, row: float) -> Panels:
    """A sheet of panels that each find room for labels of their own."""
    columns = columns_for(count)
    rows, width = ceil(count / columns), WIDTHS.get(columns, PAGE)
    figure = sheet(width, single if count == 1 else rows * row)
    grid = figure.add_gridspec(rows, columns)
    axes = [figure.add_subplot(grid[divmod(i, columns)]) for i in range(count)]
    inches = width / columns - (0.6 if count == 1 else 0.12)
    return Panels(axes, columns, figure, inches)


def given_panels(count: int, ax: Any) -> Panels:
    """The Axes of the user, one for each model."""
    nested = isinstance(ax, list | tuple | np.ndarray)
    axes = list(np.ravel(np.asarray(ax, dtype=object))) if nested else [ax]
    if len(axes) != count or not all(isinstance(one, Axes) for one in axes):
        raise ValueError(
            f"ax must be one matplotlib Axes for each model: {count} wanted, "
            f"got {len(axes)}."
        )
    figure = axes[0].get_figure(root=True)
    assert figure is not None
    inches = axes[0].get_position().width * figure.get_figwidth()
    return Panels(axes, count, None, float(inches))


def split(ax: Axes, share: float = 0.17) -> Axes:
    """Give up the lower part of an Axes to a second one with the same x axis."""
    figure, spec = ax.figure, ax.get_subplotspec()
    assert isinstance(figure, Figure | SubFigure)
    if spec is not None:
        parts = spec.subgridspec(2, 1, height_ratios=[1 - share, share], hspace=0.07)
        ax.set_subplotspec(parts[0])
        strip = figure.add_subplot(parts[1], sharex=ax)
    else:
        box = ax.get_position()
        upper = (share + 0.04) * box.height
        ax.set_position((box.x0, box.y0 + upper, box.width, box.height - upper))
        lower = (box.x0, box.y0, box.width, share * box.height)
        strip = figure.add_axes(lower, sharex=ax)
    ax.tick_params(labelbottom=False)
    return strip


def give_back(axes: Iterable[Axes], *, several: bool) -> Any:
    """One Axes for one model, an array of them for several."""
    found = list(axes)
    return np.array(found) if several else found[0]


def one_panel(
    ax: Axes | None, *, height: float = 2.4, key: float = 0.0, left: float = 0.43
) -> Panels:
    """One panel of column width with a strip to come, a header and a key of this height."""
    if ax is not None:
        return given_panels(1, ax)
    return panels(1, Margins(height, 0.36, 0.2, bottom=0.2 + key, left=left))
