"""The diagram as the paper draws it: its colours, box, hatching and scaled density."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from calibrant._base.evaluation import Evaluation
from calibrant._inputs.options import PAPER_BANDWIDTH
from calibrant._views.diagram import View, view
from calibrant.plot import _style as style
from calibrant.plot._labels import percent
from calibrant.plot._layout import Panels, given_panels, loose_panels

RED, BLUE, LINES = "#d62728", "#1f77b4", "#b0b0b0"
Options = tuple[str | None, float | None, str, str]


def draw_all(
    models: list[Evaluation], options: Options, ylim: str, ax: object
) -> list[Axes]:
    """One panel for each model."""
    divergence, bandwidth, kernel, boundary = options
    bandwidth = PAPER_BANDWIDTH if bandwidth is None else bandwidth
    views = [view(ev, divergence, bandwidth, kernel, boundary) for ev in models]
    count = len(models)
    sheet = loose_panels(count, 2.7, 2.2) if ax is None else given_panels(count, ax)
    tops = [max(1.0, float(_edges(v)[1].max(initial=0))) for v in views]
    if ylim != "free":
        tops = [max(tops) if ylim == "full" else min(max(tops), 1.25)] * len(tops)
    for place, (each, one) in enumerate(zip(sheet.axes, views, strict=True)):
        draw(each, one, tops[place], roomy=sheet.roomy)
        if sheet.sheet is not None:
            size = style.TITLE if sheet.roomy else style.SMALL_TITLE
            name = style.elide(one.ev.name, sheet.inches, size)
            each.set_title(name, fontsize=size)
            sheet.sheet.alt_text += one.ev.describe("paper") + " "
    _label(sheet)
    return sheet.axes


def _label(sheet: Panels) -> None:
    for place, ax in enumerate(sheet.axes):
        if sheet.is_bottom(place):
            ax.set_xlabel(r"Confidence $(h(x))$")
        if sheet.is_left(place):
            ax.set_ylabel(r"Conditional Expectation of $Y = c(X)$", fontsize=7)


def _line(one: View) -> np.ndarray:
    """The curve; a constant confidence is drawn as a flat line, as the authors do."""
    accuracy = one.curve.accuracy
    if len(one.ev.atoms.count) == 1:
        return np.full_like(accuracy, np.nanmean(accuracy))
    return accuracy


def _edges(one: View) -> tuple[np.ndarray, np.ndarray]:
    """Both edges of the band: the lower cut at 0, the upper not cut at 1."""
    curve = one.curve
    gap = np.where(np.isfinite(curve.sharpness_gap), curve.sharpness_gap, 0.0)
    half, middle = 0.5 * curve.density * gap, np.nan_to_num(_line(one))
    return np.maximum(middle - half, 0), middle + half


def draw(ax: Axes, one: View, top: float, *, roomy: bool) -> None:
    """Diagonal, curve, band, density and the box of numbers."""
    curve, (low, high) = one.curve, _edges(one)
    at, known = curve.confidence, np.isfinite(_line(one))
    style.dress(ax, grid=False, hide=())
    for spine in ax.spines.values():
        spine.set(color="black", linewidth=0.8)
    ax.tick_params(color="black", labelcolor="black")
    ax.set_axisbelow(False)
    ax.grid(color=LINES, linewidth=0.8, zorder=1)
    ax.plot(at, at, linestyle="dashed", color="black", linewidth=1.2, gid="diagonal")
    ax.plot(at, _line(one), color=RED, linewidth=1.5, gid="accuracy")
    ax.fill_between(
        at, low, high, where=known, color=RED, alpha=0.5, linewidth=0.6, gid="band"
    )
    ax.fill_between(
        at,
        curve.density / curve.density.max(),
        color=BLUE,
        hatch="/",
        alpha=0.3,
        gid="density",
    )
    ax.set(xlim=(0, 1), ylim=(0, top))
    _box(ax, one, roomy=roomy)


def _box(ax: Axes, one: View, *, roomy: bool) -> None:
    parts = one.parts
    lines = [
        rf"$d_{{\varphi,\mathrm{{CAL}}}} = {percent(parts.calibration)}$",
        rf"$d_{{\phi,\mathrm{{TOT}}}} = {percent(parts.total)}$",
    ]
    ax.text(
        0.05,
        0.95,
        "\n".join(line.replace("∞", r"\infty") for line in lines),
        transform=ax.transAxes,
        va="top",
        fontsize=8 if roomy else 6.8,
        bbox={"boxstyle": "round", "facecolor": "gray", "alpha": 0.2},
    )
    ax.text(
        0.95,
        0.02,
        r"$\hat{p}(h(x))$",
        transform=ax.transAxes,
        ha="right",
        va="bottom",
        fontsize=9 if roomy else 7.5,
    )
