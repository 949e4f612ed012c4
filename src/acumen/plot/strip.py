"""The strip under a diagram: where the rows are."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from acumen.columns import sigmoid
from acumen.plot import logit_scale, style
from acumen.plot.reading import View
from acumen.results import Evaluation

BARS = 48
MOSTLY = 0.5
"""A bar or stem that holds this share of the rows says so."""


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
        lower = [box.x0, box.y0, box.width, share * box.height]
        upper = (share + 0.04) * box.height
        ax.set_position((box.x0, box.y0 + upper, box.width, box.height - upper))
        strip = figure.add_axes((lower[0], lower[1], lower[2], lower[3]), sharex=ax)
    ax.tick_params(labelbottom=False)
    return strip


def draw(ax: Axes, view: View, ends: tuple[float, float] | None) -> None:
    """Stems for few distinct confidences, else a density or a fine histogram."""
    style.dress(ax, grid=False, hide=("top", "right", "left"))
    ev = view.ev
    if len(ev.atoms.count):
        _stems(ax, ev, ends)
    elif ends is not None:
        _log_odds_bars(ax, ev)
    elif view.adaptive:
        _bars(ax, ev)
    else:
        _density(ax, view)
    ax.set_yticks([])


def _stems(ax: Axes, ev: Evaluation, ends: tuple[float, float] | None) -> None:
    at = ev.atoms.confidence
    at = at if ends is None else np.clip(at, *ends)
    share = ev.atoms.count / ev.n
    ax.vlines(at, 0, share, color=style.DENSITY_EDGE, linewidth=1.4, gid="rows")
    ax.plot(
        at,
        share,
        "o",
        markersize=2.2,
        color=style.DENSITY_EDGE,
        clip_on=False,
        gid="rows-tops",
    )
    ax.set_ylim(0, 1.15 * share.max())
    peak = int(share.argmax())
    _name_peak(ax, float(at[peak]), float(share[peak]))


def _bars(ax: Axes, ev: Evaluation) -> None:
    share = ev.histogram.reshape(BARS, -1).sum(axis=1) / ev.n
    edges = np.linspace(0, 1, BARS + 1)
    _stairs(ax, share, edges)
    peak = int(share.argmax())
    side = peak if edges[peak] > 0.4 else peak + 1
    _name_peak(ax, float(edges[side]), float(share[peak]))


def _log_odds_bars(ax: Axes, ev: Evaluation) -> None:
    edges = np.clip(
        logit_scale.cell_edges(ev)[::2], -logit_scale.FURTHEST, logit_scale.FURTHEST
    )
    share = ev.log_odds_histogram.reshape(-1, 2).sum(axis=1) / ev.n
    inside = np.diff(edges) > 0
    first, last = int(np.argmax(inside)), len(inside) - int(np.argmax(inside[::-1]))
    kept = share[first:last].copy()
    kept[0] += share[:first].sum()
    kept[-1] += share[last:].sum()
    _stairs(ax, kept, sigmoid(edges[first : last + 1]))


def _stairs(ax: Axes, share: np.ndarray, edges: np.ndarray) -> None:
    ax.stairs(share, edges, fill=True, color=style.DENSITY, linewidth=0, gid="rows")
    ax.stairs(share, edges, color=style.DENSITY_EDGE, linewidth=0.7)
    ax.set_ylim(0, 1.12 * float(share.max()))


def _density(ax: Axes, view: View) -> None:
    curve = view.curve
    ax.fill_between(curve.confidence, curve.density, color=style.DENSITY, linewidth=0)
    ax.plot(
        curve.confidence,
        curve.density,
        color=style.DENSITY_EDGE,
        linewidth=0.8,
        gid="density",
    )
    ax.set_ylim(0, 1.12 * float(np.nanmax(curve.density)))


def _name_peak(ax: Axes, at: float, share: float) -> None:
    if share < MOSTLY:
        return
    left = at > 0.4
    ax.annotate(
        "all rows" if share > 1 - 1e-9 else f"{share:.0%} of rows",
        (at, 0.72),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if left else 4, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=style.SMALL,
        color=style.DENSITY_EDGE,
    )
