"""The log-odds axis, which spreads out the confidences of saturated models."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from acumen.arrays import Column
from acumen.columns import sigmoid
from acumen.plot.reading import LEAST_BAND, Band, View
from acumen.results import Evaluation
from acumen.sums import LOG_ODDS_REACH

FURTHEST = 18.5
"""Log-odds of 1 - 1e-8: an axis ends there, and what lies beyond sits on its end."""

SMOOTHING = 2.0
"""Standard deviation of the density's kernel, in cells of the histogram."""

NINES = 1 - 10.0 ** -np.arange(1, 9)
TICKS = np.concatenate([1 - NINES[::-1], [0.5], NINES])


def log_odds(h: Column) -> Column:
    """Log-odds, cut at the ends of the axis."""
    inside = np.clip(h, sigmoid(np.array(-FURTHEST)), sigmoid(np.array(FURTHEST)))
    return np.log(inside) - np.log1p(-inside)


def cell_edges(ev: Evaluation) -> Column:
    """Edges of the log-odds histogram."""
    return np.linspace(-LOG_ODDS_REACH, LOG_ODDS_REACH, len(ev.log_odds_histogram) + 1)


def density(ev: Evaluation) -> tuple[Column, Column]:
    """Places and density of rows, per unit of log-odds."""
    edges = cell_edges(ev)
    at, width = 0.5 * (edges[:-1] + edges[1:]), edges[1] - edges[0]
    taps = np.exp(-0.5 * (np.arange(-8, 9) / SMOOTHING) ** 2)
    inside = np.clip(at, -FURTHEST, FURTHEST)
    cut = np.histogram(inside, edges, weights=ev.log_odds_histogram)[0]
    smooth = np.convolve(cut, taps / taps.sum(), mode="same")
    return at, smooth / (width * cut.sum())


def band(view: View, scale: float) -> Band:
    """The sharpness gap per unit of log-odds, so that its area is still the gap."""
    z, mass = density(view.ev)
    curve = view.curve
    known = np.isfinite(curve.accuracy)
    place = log_odds(curve.confidence[known])
    middle = np.interp(z, place, curve.accuracy[known])
    gap = np.interp(z, place, np.nan_to_num(curve.sharpness_gap[known], posinf=-1e9))
    infinite = (gap < -1e3) & (mass > 0)
    height = scale * mass * np.where(infinite, np.nan, gap)
    drawn = np.nan_to_num(height) > LEAST_BAND
    return Band(sigmoid(z), middle, height, drawn, infinite)


def limits(evs: list[Evaluation]) -> tuple[float, float]:
    """Confidences between which all but a thousandth of the rows lie, for all models."""
    ends = []
    for ev in evs:
        share = np.cumsum(ev.log_odds_histogram) / ev.log_odds_histogram.sum()
        first, last = np.searchsorted(share, [0.001, 0.999])
        edges = cell_edges(ev)
        ends.append((edges[first] - 0.6, edges[min(last + 1, len(share))] + 0.6))
    low = max(min(low for low, _ in ends), -FURTHEST)
    high = min(max(high for _, high in ends), FURTHEST)
    low = min(low, high - 4)  # a single confidence gets some room, too
    high = max(high, low + 4)
    return float(sigmoid(np.array(low))), float(sigmoid(np.array(high)))


def use(ax: Axes, ends: tuple[float, float], *, roomy: bool) -> None:
    """Give an Axes the log-odds scale, with ticks people can read."""
    ax.set_xscale("logit")
    ax.set_xlim(*ends)
    room = 0.02 * float(np.diff(log_odds(np.array(ends)))[0])  # for half a label
    z, (low, high) = log_odds(TICKS), log_odds(np.array(ends))
    shown = np.flatnonzero((z >= low) & (z <= high - room)).tolist()
    step = -(-len(shown) // (7 if roomy else 4))
    kept = [place for place in shown if (place - len(NINES)) % step == 0]
    ax.xaxis.set_ticks(TICKS[kept], [_label(float(TICKS[place])) for place in kept])
    ax.xaxis.set_ticks([], minor=True)


def _label(place: float) -> str:
    """A probability; from the third nine on as a power of ten."""
    if min(place, 1 - place) > 0.005:
        return f"{place:g}"
    power = round(np.log10(min(place, 1 - place)))
    return f"{'1−' if place > 0.5 else ''}$10^{{{power}}}$"
