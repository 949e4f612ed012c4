"""What the bandwidth does: small multiples, and the calibration error against it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from calibrant._base.checks import check_choice, shown
from calibrant._base.evaluation import Evaluation
from calibrant._base.measures import is_trivial
from calibrant._inputs.arrays import Column, as_scores
from calibrant._inputs.options import LEAST_BANDWIDTH, MOST_BANDWIDTH, PAPER_BANDWIDTH
from calibrant._sketch.kernels import KERNELS
from calibrant._views import diagram
from calibrant.plot import _labels as labels
from calibrant.plot import _panel as panel
from calibrant.plot import _style as style

BANDWIDTHS = (0.01, 0.03, 0.05, 0.1, 0.25)

FINE = np.geomspace(0.005, 0.25, 18)
"""Bandwidths at which the calibration error is computed, besides those drawn."""

PANEL, ERRORS = 1.2, 2.1


class Sweep(NamedTuple):
    """Axes of a bandwidth sweep: one per model, kernel and bandwidth, and the errors."""

    panels: NDArray[np.object_]
    errors: Axes


@style.in_style
def bandwidth_sweep(
    models: diagram.Evaluations,
    bandwidths: Sequence[float] = BANDWIDTHS,
    *,
    kernel: str = "gaussian",
    divergence: str | None = None,
) -> Sweep:
    """Draw diagrams at several bandwidths, and d_CAL against the bandwidth.

    Parameters
    ----------
    models : Evaluation, Comparison or sequence of Evaluation
        One model or several, from `calibrant.evaluate`: the sums behind them are needed.
    bandwidths : sequence of float
        One column of diagrams for each.
    kernel : {"gaussian", "epanechnikov", "both"}
        One row of diagrams for each model and kernel.
    divergence : str, optional
        By default that of the evaluation.

    Returns
    -------
    Sweep
        ``panels``, an array of Axes with a row for each model and kernel, and
        ``errors``, the Axes of d_CAL. The shaded range is where the models, trivial ones
        aside, rank as they do at the paper's bandwidth of 0.05.

    Notes
    -----
    A wide kernel blurs the curve towards its mean, so over-smoothing changes the
    calibration error and can change the order of models.

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, 0.7] * 30)
    >>> calibrant.plot.bandwidth_sweep(ev, [0.05, 0.1]).panels.shape
    (1, 2)
    """
    check_choice(kernel, "kernel", (*KERNELS, "both"))
    chosen = diagram.as_list(models)
    bandwidths = read_bandwidths(bandwidths)
    for ev in chosen:
        if divergence is not None:
            check_choice(divergence, "divergence", tuple(ev.curves))
        diagram.sums_behind(ev, "a bandwidth sweep")
    kernels = tuple(KERNELS) if kernel == "both" else (kernel,)
    rows = [(ev, name) for ev in chosen for name in kernels]
    sheet, panels, errors = _lay_out(len(rows), len(bandwidths))
    for row, (ev, name) in enumerate(rows):
        _row(panels[row], ev, name, bandwidths, divergence, first=row == 0)
        label = style.elide(ev.name, PANEL - 0.1, 7)
        label += f"\n{name}" if len(kernels) > 1 else ""
        panels[row, 0].set_ylabel(label, fontsize=7)
    _errors(errors, chosen, kernels, sorted({*FINE, *bandwidths}), divergence)
    sheet.alt_text = " ".join(ev.describe() for ev in chosen)
    return Sweep(panels, errors)


def read_bandwidths(given: Any) -> list[float]:
    """Read the bandwidths of a sweep, of which there must be one."""
    found = np.atleast_1d(as_scores(given, "bandwidths"))
    inside = (found >= LEAST_BANDWIDTH) & (found <= MOST_BANDWIDTH)
    if found.ndim != 1 or not found.size or not inside.all():
        raise ValueError(
            f"bandwidths must be numbers from {LEAST_BANDWIDTH:g} to "
            f"{MOST_BANDWIDTH:g}, got {shown(given)}."
        )
    return [float(width) for width in found]


def _lay_out(rows: int, columns: int) -> tuple[style.Sheet, NDArray[np.object_], Axes]:
    top, middle, bottom = 0.32, 0.45, 0.55
    height = top + rows * PANEL + middle + ERRORS + bottom
    sheet = style.sheet(style.PAGE, height, layout=None)
    across = {"left": 0.55 / style.PAGE, "right": 0.99, "wspace": 0.08, "hspace": 0.2}
    down = {"top": 1 - top / height, "bottom": (bottom + ERRORS + middle) / height}
    grid = sheet.add_gridspec(rows, columns, **across, **down)
    panels = np.array(
        [[sheet.add_subplot(grid[r, c]) for c in range(columns)] for r in range(rows)]
    )
    box = (0.55 / style.PAGE, bottom / height, 0.68, ERRORS / height)
    return sheet, panels, sheet.add_axes(box)


def _row(
    axes: NDArray[np.object_],
    ev: Evaluation,
    kernel: str,
    bandwidths: Sequence[float],
    divergence: str | None,
    *,
    first: bool,
) -> None:
    for ax, bandwidth in zip(axes, bandwidths, strict=True):
        seen = diagram.view(ev, divergence, bandwidth, kernel)
        panel.draw(
            ax, seen, panel.Look(diagram.GEOMETRY.most_top, interval=False, roomy=False)
        )
        ax.tick_params(labelbottom=False, labelleft=ax is axes[0])
        text = rf"$d_\mathrm{{CAL}}$ {labels.percent(seen.parts.calibration)}"
        labels.above(ax, text, 1.5, fontsize=style.SMALL)
        if first:
            labels.above(ax, f"bandwidth {bandwidth:g}", 10.5, fontsize=7.5)


def _errors(
    ax: Axes,
    models: list[Evaluation],
    kernels: tuple[str, ...],
    at: list[float],
    divergence: str | None,
) -> None:
    style.dress(ax)
    ax.set_xscale("log")
    ax.set_yscale("function", functions=(_root, np.square))
    found: dict[str, list[Column]] = {name: [] for name in kernels}
    for place, ev in enumerate(models):
        colour, dash, _ = style.MODELS[place % len(style.MODELS)]
        for kernel in kernels:
            error = 100 * errors_at(ev, at, kernel, divergence)
            found[kernel].append(error)
            width, alpha = (1.3, 1.0) if kernel == kernels[0] else (0.7, 0.7)
            look: Any = {"color": colour, "linestyle": dash, "linewidth": width}
            ax.plot(at, error, alpha=alpha, gid=f"{ev.name}, {kernel}", **look)
    ends = np.array([errors[-1] for errors in found[kernels[0]]])
    every = np.array(list(found.values()))
    highest = float(every.max(where=np.isfinite(every), initial=0.01))
    ax.set(xlim=(min(at), max(at)), ylim=(0, 1.08 * highest))
    ax.axvline(PAPER_BANDWIDTH, color=style.MUTED, linewidth=0.8, zorder=1.5)
    ticks = [0.005, 0.01, 0.03, 0.05, 0.1, 0.25]
    style.number_ticks(ax, "x", [tick for tick in ticks if min(at) <= tick <= max(at)])
    ax.xaxis.set_ticks([], minor=True)
    ax.set_ylabel(r"$d_\mathrm{CAL}$ ×100")
    colours = [style.MODELS[i % len(style.MODELS)][0] for i in range(len(models))]
    labels.at_right_end(ax, [ev.name for ev in models], ends, colours, 1.55)
    thin = f"; thin: {kernels[1].capitalize()}" if len(kernels) > 1 else ""
    note = _shade_ranking(ax, models, np.array(found[kernels[0]]), np.array(at))
    ax.set_xlabel(
        f"bandwidth ({kernels[0].capitalize()} kernel{thin})\n{note}".rstrip()
    )


def _root(values: Column) -> Column:
    return np.sqrt(np.maximum(values, 0))


def errors_at(
    ev: Evaluation, at: Sequence[float], kernel: str, divergence: str | None = None
) -> Column:
    """d_CAL of a model at each bandwidth."""
    name = ev.divergence if divergence is None else divergence
    return np.array(
        [diagram.at_bandwidth(ev, name, width, kernel)[0].calibration for width in at],
        float,
    )


def ranking_range(errors: NDArray[np.float64], at: Column) -> tuple[float, float]:
    """Bandwidths around 0.05 between which the models keep their order."""
    start = int(np.argmin(np.abs(at - PAPER_BANDWIDTH)))
    order = np.argsort(errors, axis=0, kind="stable")
    same = (order == order[:, [start]]).all(axis=0)
    low = high = start
    while low > 0 and same[low - 1]:
        low -= 1
    while high + 1 < len(at) and same[high + 1]:
        high += 1
    return float(at[low]), float(at[high])


def _shade_ranking(
    ax: Axes, models: list[Evaluation], errors: NDArray[np.float64], at: Column
) -> str:
    """Shade where the ranking holds, and say so."""
    ranked = [i for i, ev in enumerate(models) if not is_trivial(ev)]
    if len(ranked) < 2:
        return ""
    low, high = ranking_range(errors[ranked], at)
    ax.axvspan(low, high, color=style.SHADE, zorder=0, linewidth=0, gid="ranking")
    whole = (low, high) == (at[0], at[-1])
    aside = " (trivial models aside)" if len(ranked) < len(models) else ""
    where = f"from {low:.2g} to {high:.2g}"
    return f"ranking at 0.05{aside} holds {where}" + (", everywhere" if whole else "")
