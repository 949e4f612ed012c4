"""One model on one Axes: line, band and ribbon, with the strip of examples below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from calibrant._base.checks import check_choice
from calibrant._base.evaluation import Evaluation
from calibrant._base.measures import some_of
from calibrant._inputs.arrays import Column, sigmoid
from calibrant._sketch.grid import LOG_ODDS_REACH
from calibrant._stats import closed_forms
from calibrant._views.diagram import Band, View, along, axis_words, only, spans
from calibrant.plot import _style as style

# -- the log-odds axis, which spreads out the confidences of saturated models --------

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
    middle = along(z, place, curve.accuracy[known])
    gap = along(z, place, np.nan_to_num(curve.sharpness_gap[known], posinf=-1e9))
    gap = np.where(gap < -1e3, np.inf, gap)
    return Band.of(sigmoid(z), middle, mass, gap, scale, mass > 0)


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


# -- the strip under a diagram: where the examples are ------------------------------------

BARS = 48

MOSTLY = 0.5
"""A bar or stem that holds this share of the rows says so."""


def draw_strip(ax: Axes, view: View, ends: tuple[float, float] | None) -> None:
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
    at, colour = ev.atoms.confidence, style.theme().colours.density_edge
    at = at if ends is None else np.clip(at, *ends)
    share = ev.atoms.count / ev.n
    ax.vlines(at, 0, share, color=colour, linewidth=1.4, gid="rows")
    look: dict[str, Any] = {"markersize": 2.2 * style.theme().room, "color": colour}
    ax.plot(at, share, "o", clip_on=False, gid="rows-tops", **look)
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
    edges = np.clip(cell_edges(ev)[::2], -FURTHEST, FURTHEST)
    share = ev.log_odds_histogram.reshape(-1, 2).sum(axis=1) / ev.n
    inside = np.diff(edges) > 0
    first, last = int(np.argmax(inside)), len(inside) - int(np.argmax(inside[::-1]))
    kept = share[first:last].copy()
    kept[0] += share[:first].sum()
    kept[-1] += share[last:].sum()
    _stairs(ax, kept, sigmoid(edges[first : last + 1]))


def _stairs(ax: Axes, share: np.ndarray, edges: np.ndarray) -> None:
    c = style.theme().colours
    ax.stairs(share, edges, fill=True, color=c.density, linewidth=0, gid="rows")
    ax.stairs(share, edges, color=c.density_edge, linewidth=0.7)
    ax.set_ylim(0, 1.12 * float(share.max()))


def _density(ax: Axes, view: View) -> None:
    at, density, c = view.curve.confidence, view.curve.density, style.theme().colours
    ax.fill_between(at, density, color=c.density, linewidth=0)
    ax.plot(at, density, color=c.density_edge, linewidth=0.8, gid="density")
    ax.set_ylim(0, 1.12 * float(np.nanmax(density)))


def _name_peak(ax: Axes, at: float, share: float) -> None:
    if share < MOSTLY:
        return
    left, theme = at > 0.4, style.theme()
    text = "all examples" if share > 1 - 1e-9 else f"{share:.0%} of examples"
    beside: Any = {"xytext": (-4 if left else 4, 0), "ha": "right" if left else "left"}
    beside |= {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    look: Any = {"fontsize": theme.points(style.SMALL)}
    look["color"] = theme.colours.density_edge
    ax.annotate(text, (at, 0.72), va="center", **beside, **look)


# -- the diagram in the modern style ---------------------------------------------------

Shown = bool | str
"""Whether bands of the accuracy are drawn, or which of them: a key of `GIDS`."""


@dataclass(frozen=True, slots=True)
class Look:
    """Choices that all panels of a figure share.

    `ends` are the ends of a log-odds axis, None on the probability scale. `top` ends the
    y axis. `roomy` panels get more ticks and thicker lines.
    """

    top: float
    band_scale: float = 1.0
    interval: Shown = True
    ends: tuple[float, float] | None = None
    roomy: bool = True

    def place(self, confidence: Column) -> Column:
        """Where a confidence is drawn; the log-odds axis has no place for 0 and 1."""
        return confidence if self.ends is None else np.clip(confidence, 1e-9, 1 - 1e-9)


def find_band(view: View, look: Look) -> Band:
    """The band of a view, on the scale of the figure."""
    if look.ends is not None:
        return band(view, look.band_scale)
    return view.band(look.band_scale)


def draw(ax: Axes, view: View, look: Look) -> None:
    """Draw back to front: band, diagonal, interval, line, atoms."""
    style.dress(ax)
    theme = style.theme()
    band = find_band(view, look)
    _band(ax, band)
    at = sigmoid(np.linspace(-19, 19, 401)) if look.ends else np.array([0.0, 1.0])
    ax.plot(at, at, zorder=3, gid="diagonal", **theme.diagonal)
    place = look.place(view.curve.confidence)
    width = theme.line(1.5 if look.roomy else 1.2)
    draw_ribbons(ax, view, place, look.interval)
    draw_lines(ax, view, place, view.curve.accuracy, (width, 0.7 * width), "accuracy")
    atoms = view.ev.atoms.confidence
    atoms = atoms if look.ends is None else np.clip(atoms, *look.ends)
    draw_atoms(ax, view.ev, atoms, interval=bool(look.interval), roomy=look.roomy)
    _axes(ax, look)
    _mark_what_is_cut(ax, band, look.top)
    _mark_infinite(ax, band, view)


def _band(ax: Axes, band: Band) -> None:
    at, c = band.confidence, style.theme().colours
    fill: Any = {"color": c.band, "linewidth": 0, "zorder": 2, "gid": "band"}
    fill["label"] = "sharpness gap × density"
    ax.fill_between(at, band.low, band.high, where=band.drawn, **fill)
    edge: Any = {"color": c.band_edge, "linewidth": 0.6, "zorder": 2.1}
    ax.plot(at, only(band.low, band.drawn), gid="band-low", **edge)
    ax.plot(at, only(band.high, band.drawn), gid="band-high", **edge)


def draw_ribbons(
    ax: Axes, view: View, at: Column, interval: Shown, less: Column | float = 0.0
) -> Column:
    """The bands of the accuracy, `less` some, where rows are near: wide, then narrow.

    What was drawn is returned: all ends.
    """
    sure, drawn = view.trusted(), [np.empty(0)]
    for kind, (low, high) in ribbons(view, interval).items():
        ends = np.stack([low, high]) - less
        look: Any = {**style.theme().ribbons[kind], "gid": GIDS[kind], "where": sure}
        look["label"] = f"{100 * float(view.ev.settings['level']):g}% {kind}"
        ax.fill_between(at, *ends, **look)
        drawn.append(ends[:, sure].ravel())
    return np.concatenate(drawn)


GIDS = {"simultaneous": "interval-everywhere", "pointwise": "interval"}


def ribbons(view: View, interval: Shown) -> dict[str, tuple[Column, Column]]:
    """Lower and upper ends of the bands that were asked for and are known, by kind."""
    check_choice(interval, "interval", (True, False, *GIDS))
    curve, sure = view.curve, view.trusted()
    ends = {
        "simultaneous": (curve.band_low, curve.band_high),
        "pointwise": (curve.low, curve.high),
    }
    wanted = ends if interval is True else [interval]
    return {
        kind: pair
        for kind, pair in ends.items()
        if kind in wanted and np.isfinite(pair[0][sure]).any()
    }


def draw_diagonal(ax: Axes) -> None:
    """Where accuracy equals confidence."""
    ax.plot([0, 1], [0, 1], zorder=3, gid="diagonal", **style.theme().diagonal)


def draw_lines(
    ax: Axes, view: View, at: Column, y: Column, widths: tuple[float, float], gid: str
) -> None:
    """Values along the curve: drawn where rows are near, dotted where they are few."""
    sure, doubtful, theme = view.trusted(), view.doubtful(), style.theme()
    solid: Any = {
        "linewidth": widths[0],
        "gid": gid,
        "label": axis_words(view.ev)["hit"],
    }
    ax.plot(at, only(y, sure), **solid, **theme.sure)
    dotted = {"linewidth": widths[1], "gid": f"{gid}-doubtful", **theme.doubtful}
    ax.plot(at, only(y, doubtful), **dotted)


def draw_atoms(
    ax: Axes,
    ev: Evaluation,
    at: Column,
    less: Column | float = 0.0,
    *,
    interval: bool,
    roomy: bool = True,
) -> Column:
    """Each repeated confidence at its accuracy, with its Wilson interval, `less` some.

    What was drawn is returned: the values, and the ends of intervals.
    """
    atoms, theme = ev.atoms, style.theme()
    drawn = [atoms.accuracy - less]
    if len(atoms.count) == 0:
        return drawn[0]
    if interval:
        level = float(ev.settings["level"])
        low, high = closed_forms.wilson(atoms.accuracy, atoms.count, level)
        drawn += [low - less, high - less]
        whisker: Any = {"color": theme.curve, "linewidth": 0.8, "zorder": 4.5}
        ax.vlines(at, low - less, high - less, **whisker)
    size = (4 if roomy else 3) + 40 * np.sqrt(atoms.count / ev.n)
    look: dict[str, Any] = {"facecolor": theme.ground, "edgecolor": theme.curve}
    look |= {"linewidth": 0.9, "zorder": 5, "clip_on": False, "gid": "atoms"}
    ax.scatter(at, drawn[0], s=theme.room**2 * (size if roomy else 0.6 * size), **look)
    return np.concatenate(drawn)


def _axes(ax: Axes, look: Look) -> None:
    across, up = (style.unit_ticks(ax, axis) for axis in "xy")
    if not look.roomy:
        across = up = style.TIGHT
    ax.set_ylim(0, look.top)
    style.number_ticks(ax, "y", range(int(look.top) + 1) if look.top > 2 else up)
    if look.ends is not None:
        use(ax, look.ends, roomy=look.roomy)
        return
    ax.set_xlim(0, 1)
    style.number_ticks(ax, "x", across)


def _mark_what_is_cut(ax: Axes, band: Band, top: float) -> None:
    """A dotted edge where the band leaves the axes, with its true top beside it."""
    over = band.drawn & (band.high > top * (1 + 1e-9))
    if not over.any():
        return
    edge, theme = only(np.full_like(band.high, top), over), style.theme()
    dots: Any = {"color": theme.curve, "linewidth": 1.2, "linestyle": (0, (1.2, 1.2))}
    ax.plot(band.confidence, edge, zorder=6, clip_on=False, gid="cut", **dots)
    first, last = spans(over)[0][0], spans(over)[-1][1]
    transform = ax.transData.transform
    x = [transform((band.confidence[i], 0))[0] for i in (first, last)]
    left, right = ax.transAxes.inverted().transform([(x[0], 0), (x[1], 0)])[:, 0]
    _name_top(ax, band.top, float(left), float(right))


def _name_top(ax: Axes, top: float, left: float, right: float) -> None:
    """How high a band goes that is cut between these places: beside it, or on it."""
    theme, figure = style.theme(), ax.get_figure(root=True)
    assert figure is not None
    size, text = theme.points(style.SMALL), f"band to {top:.2f}"
    wide = ax.get_position().width * figure.get_figwidth()
    need = (style.width_of(f"{text} ↑", size) + 6 / 72) / wide
    look: Any = {"fontsize": size, "color": theme.curve, "zorder": 7}
    look |= {"va": "top", "gid": "top", "xycoords": "axes fraction"}
    look["bbox"] = {"facecolor": theme.ground, "edgecolor": "none", "pad": 0.5}
    if left >= need:
        shown, at, off, side = f"{text} ↑", left, -4, "right"
    elif 1 - right >= need:
        shown, at, off, side = f"↑ {text}", right, 4, "left"
    else:  # as wide as the panel: the name stands on it, a little lower
        shown, at, off, side = f"{text} ↑", 1.0, -3, "right"
    look["bbox"]["alpha"] = 0.0 if at < 1 else 0.7
    beside: Any = {"xytext": (off, -1.5 if at < 1 else -3), "ha": side}
    ax.annotate(shown, (at, 1), textcoords="offset points", **beside, **look)


def _mark_infinite(ax: Axes, band: Band, view: View) -> None:
    """Hatch, to the full height, where the loss and so the gap are infinite."""
    if not band.infinite.any():
        return
    theme = style.theme()
    where: Any = {"where": band.infinite, "transform": ax.get_xaxis_transform()}
    hatch: Any = {"facecolor": "none", "edgecolor": theme.colours.band_edge}
    look: Any = {"linewidth": 0, "zorder": 1.5, "gid": "infinite", "hatch": "////"}
    ax.fill_between(band.confidence, 0, 1, **where, **hatch, **look)
    box = {"facecolor": theme.ground, "edgecolor": "none", "pad": 1, "alpha": 0.85}
    text = f"∞ loss: {some_of(view.ev, view.ev.infinite_rows)}"
    look = {"fontsize": theme.points(style.SMALL), "color": theme.curve, "bbox": box}
    ax.text(0.03, 0.985, text, transform=ax.transAxes, va="top", zorder=7, **look)
