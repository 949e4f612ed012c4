"""What the bandwidth does: small multiples, and the calibration error against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from calibrant._base.checks import check_choice, shown
from calibrant._base.comparison import shown_names
from calibrant._base.evaluation import Evaluation
from calibrant._base.measures import is_trivial
from calibrant._base.records import Frame, to_frame
from calibrant._base.text import aligned, number
from calibrant._inputs.arrays import Column, as_scores
from calibrant._inputs.options import LEAST_BANDWIDTH, MOST_BANDWIDTH, PAPER_BANDWIDTH
from calibrant._sketch.kernels import KERNELS
from calibrant._views import diagram
from calibrant.plot import _curves as curves
from calibrant.plot import _labels as labels
from calibrant.plot import _panel as panel
from calibrant.plot import _style as style
from calibrant.plot._layout import LEAST_PANEL, check_room, read_figsize

BANDWIDTHS = (0.01, 0.03, 0.05, 0.1, 0.25)

FINE = np.geomspace(0.005, 0.25, 18)
"""Bandwidths at which the calibration error is computed, besides those drawn."""

PANEL, ERRORS = 1.2, 2.1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BandwidthSweep:
    """d_CAL of models at many bandwidths: the numbers behind `bandwidth_sweep`.

    Attributes
    ----------
    evaluations : tuple of Evaluation
        The models.
    divergence : str
        Whose calibration error it is.
    kernels : tuple of str
        The kernels.
    bandwidths : array
        All bandwidths, those drawn among them.
    errors : array
        d_CAL by kernel, model and bandwidth.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.plot import BandwidthSweep
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, 0.7] * 30, name="a")
    >>> found = BandwidthSweep.of(ev, [0.05, 0.1])
    >>> [*found.frame()["bandwidth"]] == [*found.bandwidths]
    True
    """

    evaluations: tuple[Evaluation, ...]
    divergence: str
    kernels: tuple[str, ...]
    bandwidths: Column
    errors: NDArray[np.float64]

    def __str__(self) -> str:
        names = shown_names(ev.name for ev in self.evaluations).values()
        lines = [f"d_CAL ({self.divergence}) by bandwidth"]
        for kernel, errors in zip(self.kernels, self.errors, strict=True):
            rows = zip(self.bandwidths, errors.T, strict=True)
            table = [[f"{h:.3g}", *(number(x, 5) for x in row)] for h, row in rows]
            lines += ["", *aligned([(kernel, *names), *table])]
        return "\n".join(lines)

    def __repr__(self) -> str:
        names = [ev.name for ev in self.evaluations]
        return f"BandwidthSweep({names}, {len(self.bandwidths)} bandwidths)"

    @classmethod
    def of(
        cls,
        models: diagram.Evaluations,
        bandwidths: Sequence[float] = BANDWIDTHS,
        *,
        kernel: str = "gaussian",
        divergence: str | None = None,
    ) -> Self:
        """Compute the errors; arguments as in `bandwidth_sweep`."""
        check_choice(kernel, "kernel", (*KERNELS, "both"))
        chosen = diagram.as_list(models)
        at = np.array(sorted({*FINE, *read_bandwidths(bandwidths)}))
        for ev in chosen:
            if divergence is not None:
                check_choice(divergence, "divergence", tuple(ev.curves))
            diagram.sums_behind(ev, "a bandwidth sweep")
        name = chosen[0].divergence if divergence is None else divergence
        kernels = tuple(KERNELS) if kernel == "both" else (kernel,)
        errors = [[errors_at(ev, at, one, name) for ev in chosen] for one in kernels]
        return cls(tuple(chosen), name, kernels, at, np.array(errors))

    def frame(self, kind: str | None = None) -> Frame:
        """A row for each model, kernel and bandwidth.

        A pandas frame, else a Polars one, else a dict of arrays, as is installed; `kind`,
        ``"polars"`` or ``"pandas"``, says which.
        """
        names = [ev.name for ev in self.evaluations]
        kernels, models, at = np.indices(self.errors.shape).reshape(3, -1)
        columns = {
            "model": np.array(names)[models],
            "kernel": np.array(self.kernels)[kernels],
            "bandwidth": self.bandwidths[at],
            "calibration_error": self.errors.ravel(),
        }
        return to_frame(columns, kind)


@style.in_style
def bandwidth_sweep(
    models: diagram.Evaluations,
    bandwidths: Sequence[float] = BANDWIDTHS,
    *,
    kernel: str = "gaussian",
    divergence: str | None = None,
    figsize: tuple[float, float] | None = None,
) -> Axes:
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
    figsize : (float, float), optional
        Width and height in inches.

    Returns
    -------
    Axes
        The Axes of d_CAL against the bandwidth; ``ax.figure.axes`` has those of the
        diagrams before it, row by row. A `figsize` without room for diagrams has this Axes
        alone. The shaded range is where the models, trivial ones
        aside, rank as they do at the paper's bandwidth of 0.05. The numbers are those of
        ``BandwidthSweep.of(models).frame()``.

    Notes
    -----
    A wide kernel blurs the curve towards its mean, so over-smoothing changes the
    calibration error and can change the order of models.

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, 0.7] * 30)
    >>> ax = calibrant.plot.bandwidth_sweep(ev, [0.05, 0.1])
    >>> len(ax.figure.axes)
    3
    """
    sweep = BandwidthSweep.of(models, bandwidths, kernel=kernel, divergence=divergence)
    columns = read_bandwidths(bandwidths)
    rows = [(ev, name) for ev in sweep.evaluations for name in sweep.kernels]
    names = _names_of_bandwidths(sweep)
    sheet, panels, errors = _lay_out(len(rows), columns, figsize, names)
    size = style.theme().size("tick")
    for row, (axes, (ev, name)) in enumerate(zip(panels, rows, strict=False)):
        _row(axes, ev, name, columns, divergence, first=row == 0)
        label = style.elide(
            ev.name, axes[0].get_position().height * sheet.get_figheight(), size
        )
        label += f"\n{name}" if len(sweep.kernels) > 1 else ""
        style.name_axis(axes[0], "y", label, size=size)
    _errors(errors, sweep)
    sheet.alt_text = " ".join(ev.describe() for ev in sweep.evaluations)
    return errors


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


def _heading(bandwidth: float) -> str:
    return f"bandwidth {bandwidth:g}"


HEADING = 7.5
"""Points of the bandwidth above a diagram."""


def _lay_out(
    rows: int, bandwidths: Sequence[float], figsize: Any, names: list[str]
) -> tuple[style.Sheet, NDArray[np.object_], Axes]:
    room, columns = style.theme().room, len(bandwidths)
    top, middle, left = (room * inches for inches in (0.32, 0.45, 0.55))
    width = room * style.PAGE if figsize is None else read_figsize(figsize)[0]
    text, bottom = _below(names, left + 0.34 * width, width)
    usual = top + room * (rows * PANEL + ERRORS) + middle + bottom
    height = usual if figsize is None else read_figsize(figsize)[1]
    free = height - top - middle - bottom
    lower = free * ERRORS / (rows * PANEL + ERRORS)
    wide, tall = (width - left) / columns, (free - lower) / rows
    size = style.theme().points(HEADING)
    heading = max(style.width_of(_heading(one), size) for one in bandwidths)
    sheet = style.sheet(width, height, layout=None)
    if figsize is not None and (wide < 1.05 * heading or tall < LEAST_PANEL):
        return sheet, np.empty((0, columns), object), _alone(sheet, figsize, names)
    across = {"left": left / width, "right": 0.99, "wspace": 0.08, "hspace": 0.2}
    down = {"top": 1 - top / height, "bottom": (bottom + lower + middle) / height}
    grid = sheet.add_gridspec(rows, columns, **across, **down)
    panels = np.array(
        [[sheet.add_subplot(grid[r, c]) for c in range(columns)] for r in range(rows)]
    )
    box = (left / width, bottom / height, 0.68, lower / height)
    return sheet, panels, _named(sheet.add_axes(box), text)


def _alone(sheet: style.Sheet, figsize: Any, names: list[str]) -> Axes:
    """The Axes of the errors on a sheet that is too small for diagrams."""
    room, (width, height) = style.theme().room, sheet.get_size_inches()
    left, top, right = (room * inches for inches in (0.62, 0.12, 0.8))
    text, bottom = _below(names, (width + left - right) / 2, width)
    inside = width - left - right, height - bottom - top
    check_room(figsize, inside, (width, height))
    box = (left / width, bottom / height, inside[0] / width, inside[1] / height)
    return _named(sheet.add_axes(box), text)


def _below(names: list[str], centre: float, width: float) -> tuple[str, float]:
    """Names around this centre in lines that are not cut off, and inches for them."""
    theme, inches = style.theme(), 2 * min(centre, width - centre) - 0.1
    lines = [curves.broken(text, inches, theme.size("label")) for text in names]
    more = sum(line.count("\n") for line in lines)
    return "\n".join(lines), theme.room * (0.55 + 0.14 * more)


def _named(ax: Axes, text: str) -> Axes:
    style.name_axis(ax, "x", text)
    return ax


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
        theme = style.theme()
        labels.above(ax, text, 1.5, fontsize=theme.points(style.SMALL))
        if first:
            size = theme.points(HEADING)
            labels.above(ax, _heading(bandwidth), 10.5 * theme.room, fontsize=size)


def _errors(ax: Axes, sweep: BandwidthSweep) -> None:
    """The curves of all models, their names, and where their ranking holds."""
    style.dress(ax)
    ax.set_xscale("log")
    ax.set_yscale("function", functions=(_root, np.square))
    theme, at, kernels = style.theme(), sweep.bandwidths, sweep.kernels
    errors = 100 * sweep.errors
    for place, ev in enumerate(sweep.evaluations):
        colour, dash, _ = theme.model(place)
        for which, kernel in enumerate(kernels):
            width, alpha = (1.3, 1.0) if which == 0 else (0.7, 0.7)
            look: Any = {"color": colour, "linestyle": dash, "alpha": alpha}
            look |= {"linewidth": theme.line(width), "gid": f"{ev.name}, {kernel}"}
            ax.plot(at, errors[which, place], label=ev.name, **look)
    highest = float(errors.max(where=np.isfinite(errors), initial=0.01))
    ax.set(xlim=(min(at), max(at)), ylim=(0, 1.08 * highest))
    ax.axvline(PAPER_BANDWIDTH, color=theme.muted, linewidth=0.8, zorder=1.5)
    _number_bandwidths(ax, at)
    if found := _ranking(sweep):
        shade: Any = {"color": theme.shade, "zorder": 0, "linewidth": 0}
        ax.axvspan(*found, gid="ranking", **shade)
    models = sweep.evaluations
    colours = [theme.model(place)[0] for place in range(len(models))]
    figure = ax.get_figure(root=True)
    assert figure is not None
    room = (1 - ax.get_position().x1) * figure.get_figwidth() - 0.05
    labels.at_right_end(ax, [ev.name for ev in models], errors[0, :, -1], colours, room)


def _number_bandwidths(ax: Axes, at: Column) -> None:
    """Ticks of both axes, and what the upright one shows."""
    ticks = [0.005, 0.01, 0.03, 0.05, 0.1, 0.25]
    style.number_ticks(ax, "x", [tick for tick in ticks if min(at) <= tick <= max(at)])
    ax.xaxis.set_ticks([], minor=True)
    style.name_axis(ax, "y", r"$d_\mathrm{CAL}$ ×100")


def _names_of_bandwidths(sweep: BandwidthSweep) -> list[str]:
    """What the axis of bandwidths shows, and what is known of the ranking."""
    first, *others = (kernel.capitalize() for kernel in sweep.kernels)
    thin = f"; thin: {others[0]}" if others else ""
    name, found = f"bandwidth ({first} kernel{thin})", _ranking(sweep)
    if found is None:
        return [name]
    ends = sweep.bandwidths[0], sweep.bandwidths[-1]
    everywhere = ", everywhere" if found == ends else ""
    aside = " (trivial models aside)" if any(map(is_trivial, sweep.evaluations)) else ""
    where = f"from {found[0]:.2g} to {found[1]:.2g}{everywhere}"
    return [name, f"ranking at 0.05{aside} holds {where}"]


def _root(values: Column) -> Column:
    return np.sqrt(np.maximum(values, 0))


def errors_at(
    ev: Evaluation,
    at: Sequence[float] | Column,
    kernel: str,
    divergence: str | None = None,
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


def _ranking(sweep: BandwidthSweep) -> tuple[float, float] | None:
    """Where models that are not trivial, if there are two, rank as they do at 0.05."""
    ranked = [i for i, ev in enumerate(sweep.evaluations) if not is_trivial(ev)]
    if len(ranked) < 2:
        return None
    return ranking_range(sweep.errors[0, ranked], sweep.bandwidths)
