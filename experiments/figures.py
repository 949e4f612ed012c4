"""The paper's figures, drawn by calibrant's own functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from calibrant import plot
from experiments.models import RECORDED
from experiments.paper import TABLES
from experiments.protocol import HB, IR, Experiment
from experiments.protocol import experiment as recorded

LEADING = "cifar100_netcal_densenet_bc_100"
"""Stands in for the paper's ViT: 20 calibration rows for each class, where ViT had 10."""

DOTS = 200
PAGE = 7.2
"""Inches across: the text of a conference paper, as calibrant's own sheets are."""


# -- drawing ------------------------------------------------------------------------------


def draw_row(one: Experiment, **options: Any) -> Figure:
    """Diagrams of all methods side by side, each as high as it needs (Figure 1)."""
    return _sheet_of(plot.calibration_sharpness(one.study, style="paper", **options))


def draw_aligned_row(one: Experiment) -> Figure:
    """The same in calibrant's own style, with aligned axes."""
    return _sheet_of(plot.calibration_sharpness(one.study))


def draw_against_reliability(one: Experiment) -> Figure:
    """HB and IR: calibration-sharpness and reliability diagrams, axes aligned (Figure 2)."""
    pair = [one.study[HB], one.study[IR]]
    sheet, axes = _panels(2, 2)
    plot.calibration_sharpness(pair, ylim="full", ax=axes[:2])
    for ev, ax in zip(pair, axes[2:], strict=True):
        plot.reliability(ev, ax=ax)
    return _without_repeats(sheet, axes, columns=2)


def draw_smooth_ece(one: Experiment) -> Figure:
    """The diagrams of SmoothECE (Figure 8)."""
    sheet, axes = _panels(2, 3, width=8.6)  # for the words above each
    axes[-1].remove()
    for ev, ax in zip(one.study, axes[:-1], strict=True):
        plot.smooth_reliability(ev, ax=ax)
    return _without_repeats(sheet, axes[:-1], columns=3)


def draw_bandwidths(one: Experiment) -> Figure:
    """Figures 9 to 12 in one: all bandwidths, and d_CAL against them."""
    return _sheet_of(plot.bandwidth_sweep(one.study))


def _sheet_of(axes: Any) -> Figure:
    return np.ravel(axes)[0].figure


def _panels(rows: int, columns: int, width: float = PAGE) -> tuple[Figure, list[Any]]:
    """Panels with room above each for a name and numbers."""
    with rc_context({"axes.labelsize": 8}):
        sheet = Figure(figsize=(width, 2.6 * rows))
        grid = sheet.add_gridspec(
            rows, columns, left=0.06, right=0.94, top=0.91, bottom=0.08, hspace=0.45
        )
        places = range(rows * columns)
        return sheet, [sheet.add_subplot(grid[divmod(i, columns)]) for i in places]


def _without_repeats(sheet: Figure, axes: list[Any], columns: int) -> Figure:
    """Only the first panel of a row says what its y axis is."""
    for place, ax in enumerate(axes):
        if place % columns:
            ax.set_ylabel("")
    return sheet


# -- which figure is of what -----------------------------------------------------------------


def _leading(outputs: Path | None) -> Experiment:
    """The paper's ViT where it was inferred, else what stands in for it."""
    one, _ = TABLES[0].experiment(outputs)
    return recorded(LEADING) if one.name == TABLES[0].stand_in else one


def _of_table(number: int) -> Callable[[Path | None], Figure]:
    """The row of a table's model; of one alike, if only that was recorded."""

    def draw(outputs: Path | None) -> Figure:
        table = TABLES[number - 1]
        one, _ = table.experiment(outputs)
        if table.alike and one.name == table.stand_in:
            one = recorded(table.alike)
        return draw_row(one)

    return draw


def _at(kernel: str, width: float) -> Callable[[Path | None], Figure]:
    return lambda outputs: draw_row(_leading(outputs), kernel=kernel, bandwidth=width)


FIGURES: dict[str, Callable[[Path | None], Figure]] = {
    "figure1": lambda outputs: draw_row(_leading(outputs)),
    "figure1_aligned": lambda outputs: draw_aligned_row(_leading(outputs)),
    "figure2": lambda outputs: draw_against_reliability(_leading(outputs)),
    "figure3": _of_table(2),
    "figure4": _of_table(3),
    "figure5": _of_table(4),
    "figure6": _of_table(5),
    "figure7": _of_table(6),
    "figure8": lambda outputs: draw_smooth_ece(_leading(outputs)),
    "figure9": _at("gaussian", 0.01),
    "figure10": _at("gaussian", 0.03),
    "figure11": _at("gaussian", 0.1),
    "figure12": _at("gaussian", 0.25),
    "figure13": _at("epanechnikov", 0.03),
    "figure14": _at("epanechnikov", 0.05),
    "bandwidths": lambda outputs: draw_bandwidths(_leading(outputs)),
}
"""The paper's figures by number; those with words for a number are ours."""


def save_figure(name: str, folder: Path, outputs: Path | None = None) -> None:
    """Write a figure as PNG and PDF."""
    sheet = FIGURES[name](outputs)
    sheet.savefig(folder / f"{name}.png", dpi=DOTS)
    sheet.savefig(folder / f"{name}.pdf")


def save_rows(folder: Path) -> None:
    """Write the row of diagrams of every recorded model."""
    rows = folder / "rows"
    rows.mkdir(exist_ok=True)
    for name in RECORDED:
        draw_aligned_row(recorded(name)).savefig(rows / f"{name}.png", dpi=DOTS // 2)
