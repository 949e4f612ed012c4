"""Where panels go: on the Axes given, or on a sheet of a row or a grid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from math import ceil
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.gridspec import GridSpec

from calibrant._base.checks import as_number, shown
from calibrant.plot._style import COLUMN, PAGE, Sheet, sheet, theme

WIDTHS = {1: COLUMN, 2: 4.6, 3: 5.8}
MOST_COLUMNS = 5

LEAST_SIZE, MOST_SIZE, LEAST_PANEL = 0.5, 100.0, 0.5
"""The least and the largest side of a figure, and of a panel on it, in inches."""

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

    def times(self, factor: float) -> Margins:
        """The same around larger text."""
        return Margins(*(factor * inches for inches in astuple(self)))


@dataclass(frozen=True, slots=True)
class Panels:
    """Axes in reading order, and the sheet they are on if it is ours."""

    axes: list[Axes]
    columns: int
    sheet: Sheet | None
    inches: float
    tall: float

    @property
    def roomy(self) -> bool:
        """Whether panels have room for long labels."""
        return self.inches >= ROOMY_FROM * theme().room

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


def panels(
    count: int,
    margins: Margins,
    figsize: Any = None,
    least: tuple[float, float] = (LEAST_PANEL, LEAST_PANEL),
) -> Panels:
    """A sheet of panels of one size; text larger than usual makes all of it larger."""
    columns, room = columns_for(count), theme().room
    m = margins.times(room)
    rows, step = ceil(count / columns), m.height + m.head + m.foot
    usual = room * WIDTHS.get(columns, PAGE), rows * step + m.bottom
    width, height = usual if figsize is None else read_figsize(figsize)
    inside = width - m.left - m.right - (columns - 1) * m.between
    tall = (height - m.bottom) / rows - m.head - m.foot
    inner, grid_size = (inside / columns, tall), (columns, rows)
    check_room(figsize, inner, (width, height), grid_size, least)
    figure = sheet(width, height, layout=None)
    across = {"left": m.left / width, "right": 1 - m.right / width}
    down = {"top": 1 - m.head / height, "bottom": (m.bottom + m.foot) / height}
    between = {
        "wspace": m.between * columns / inside,
        "hspace": (m.head + m.foot) / tall,
    }
    grid = figure.add_gridspec(rows, columns, **across, **down, **between)
    axes = [figure.add_subplot(grid[divmod(i, columns)]) for i in range(count)]
    return Panels(axes, columns, figure, inside / columns, tall)


def head_for(columns: int, figsize: Any) -> float:
    """Inches for a name and a line of numbers, or two lines where panels are narrow."""
    wide = figsize is None or read_figsize(figsize)[0] >= (COLUMN - 0.1) * theme().room
    return 0.36 if columns == 1 and wide else 0.47


def read_figsize(given: Any) -> tuple[float, float]:
    """Width and height in inches, or one clear error.

    Examples
    --------
    >>> read_figsize((3.25, 2.4))
    (3.25, 2.4)
    """
    pair = given.tolist() if isinstance(given, np.ndarray) else given
    sizes = [as_number(x) for x in pair] if isinstance(pair, list | tuple) else []
    if len(sizes) != 2 or not all(LEAST_SIZE <= size <= MOST_SIZE for size in sizes):
        raise ValueError(
            f"figsize must be (width, height), each from {LEAST_SIZE:g} to {MOST_SIZE:g} "
            f"inches, got {shown(given)}."
        )
    return sizes[0], sizes[1]


def check_room(
    figsize: Any,
    panel: tuple[float, float],
    whole: tuple[float, float],
    grid: tuple[int, int] = (1, 1),
    least: tuple[float, float] = (LEAST_PANEL, LEAST_PANEL),
) -> None:
    """Refuse a size at which labels leave no room for what they name."""
    missing = [max(x - inches, 0) for x, inches in zip(least, panel, strict=True)]
    if not any(missing):
        return
    width, height = (
        ceil(10 * (size + count * more)) / 10 if more else size
        for size, count, more in zip(whole, grid, missing, strict=True)
    )
    raise ValueError(
        f"figsize is too small for this figure and the size of its text: at least "
        f"({width:g}, {height:g}) inches are needed, got {shown(figsize)}."
    )


def loose_panels(count: int, single: float, row: float, figsize: Any = None) -> Panels:
    """A sheet of panels that each find room for labels of their own."""
    columns, room = columns_for(count), theme().room
    rows = ceil(count / columns)
    height = room * (single if count == 1 else rows * row)
    size = room * WIDTHS.get(columns, PAGE), height
    width, height = size if figsize is None else read_figsize(figsize)
    figure = sheet(width, height)
    grid = figure.add_gridspec(rows, columns)
    axes = [figure.add_subplot(grid[divmod(i, columns)]) for i in range(count)]
    inches = width / columns - room * (0.6 if count == 1 else 0.12)
    return Panels(axes, columns, figure, inches, height / rows)


def given_panels(count: int, ax: Any, figsize: Any = None) -> Panels:
    """The Axes of the user, one for each model."""
    if figsize is not None:
        raise ValueError(
            "figsize is the size of a figure made here; ax= has a figure of its own. "
            "Give one of them."
        )
    nested = isinstance(ax, list | tuple | np.ndarray)
    axes = list(np.ravel(np.asarray(ax, dtype=object))) if nested else [ax]
    if len(axes) != count or not all(isinstance(one, Axes) for one in axes):
        raise ValueError(
            f"ax must be one matplotlib Axes for each model: {count} wanted, "
            f"got {len(axes)}."
        )
    figure = axes[0].get_figure(root=True)
    assert figure is not None
    box, (width, height) = axes[0].get_position(), figure.get_size_inches()
    return Panels(
        axes, count, None, float(box.width * width), float(box.height * height)
    )


def make_room(axes: Iterable[Axes]) -> None:
    """Widen the margins of a user's figure without a layout if it would cut text off."""
    for ax in axes:
        figure = ax.figure
        if ax.get_subplotspec() is None or not isinstance(figure, Figure):
            continue
        if figure.get_layout_engine() is not None:
            continue
        box, frame = ax.get_tightbbox(), figure.bbox
        assert box is not None
        if box.x0 < 0 or box.y0 < 0 or box.x1 > frame.x1 or box.y1 > frame.y1:
            figure.tight_layout(pad=0.3)


def move_inside(ax: Axes) -> None:
    """Narrow the panels of a sheet if what the first of them is called is cut on its left."""
    figure, spec, box = ax.figure, ax.get_subplotspec(), ax.get_tightbbox()
    assert isinstance(figure, Figure)
    assert spec is not None
    assert box is not None
    grid = spec.get_gridspec()
    assert isinstance(grid, GridSpec)
    if box.x0 < 0 and grid.left is not None:
        beyond = 0.03 * figure.dpi - box.x0
        grid.update(left=grid.left + beyond / figure.bbox.width)
        figure.subplots_adjust()


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


MOST_MODELS = 12
"""More panels than this on one page cannot be read."""


def model_panels(
    count: int, ax: Any, figsize: Any, *, key: float = 0.0, left: float = 0.43
) -> Panels:
    """A panel for each model, with a strip to come, a header and a key of this height."""
    if count > MOST_MODELS:
        raise ValueError(
            f"models must be at most {MOST_MODELS} for this figure, which has a panel for "
            f"each, got {count}; choose some, or see plot.score_map."
        )
    if ax is not None:
        return given_panels(count, ax, figsize)
    columns = columns_for(count)
    height = 2.4 if columns == 1 else 2.0 if columns == 2 else 1.62
    head = head_for(columns, figsize)
    margins = Margins(height, head, foot=0.2, bottom=0.2 + key, left=left)
    return panels(count, margins, figsize)
