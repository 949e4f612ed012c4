"""The calibration-sharpness diagram in the modern style: one model on one Axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from acumen import intervals
from acumen.arrays import Column
from acumen.columns import sigmoid
from acumen.plot import logit_scale, style
from acumen.plot.reading import Band, View
from acumen.plot.support import doubtful, only, spans, trusted

TIGHT, ROOMY = [0.0, 0.5, 1.0], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


@dataclass(frozen=True, slots=True)
class Look:
    """Choices that all panels of a figure share.

    `ends` are the ends of a log-odds axis, None on the probability scale. `top` ends the
    y axis. `roomy` panels get more ticks and thicker lines.
    """

    top: float
    band_scale: float = 1.0
    interval: bool = True
    ends: tuple[float, float] | None = None
    roomy: bool = True

    def place(self, confidence: Column) -> Column:
        """Where a confidence is drawn; the log-odds axis has no place for 0 and 1."""
        return confidence if self.ends is None else np.clip(confidence, 1e-9, 1 - 1e-9)


def find_band(view: View, look: Look) -> Band:
    """The band of a view, on the scale of the figure."""
    if look.ends is not None:
        return logit_scale.band(view, look.band_scale)
    return view.band(look.band_scale)


def draw(ax: Axes, view: View, look: Look) -> None:
    """Draw back to front: band, diagonal, interval, line, atoms."""
    style.dress(ax)
    band = find_band(view, look)
    _band(ax, band)
    at = sigmoid(np.linspace(-19, 19, 401)) if look.ends else np.array([0.0, 1.0])
    ax.plot(at, at, zorder=3, gid="diagonal", **style.DIAGONAL)
    if look.interval:
        _ribbon(ax, view, look)
    _line(ax, view, look)
    _atoms(ax, view, look)
    _axes(ax, look)
    _mark_what_is_cut(ax, band, look.top)
    _mark_infinite(ax, band, view)


def _band(ax: Axes, band: Band) -> None:
    at = band.confidence
    fill = {"color": style.BAND, "linewidth": 0, "zorder": 2, "gid": "band"}
    ax.fill_between(at, band.low, band.high, where=band.drawn, **fill)  # type: ignore[arg-type]
    edge = {"color": style.BAND_EDGE, "linewidth": 0.6, "zorder": 2.1}
    ax.plot(at, only(band.low, band.drawn), gid="band-low", **edge)  # type: ignore[arg-type]
    ax.plot(at, only(band.high, band.drawn), gid="band-high", **edge)  # type: ignore[arg-type]


def _ribbon(ax: Axes, view: View, look: Look) -> None:
    curve, sure = view.curve, trusted(view)
    if np.isfinite(curve.low[sure]).any():
        ax.fill_between(
            look.place(curve.confidence),
            curve.low,
            curve.high,
            where=sure,
            color=style.RIBBON,
            alpha=style.RIBBON_ALPHA,
            linewidth=0,
            zorder=3.5,
            gid="interval",
        )


def _line(ax: Axes, view: View, look: Look) -> None:
    curve = view.curve
    width = 1.5 if look.roomy else 1.2
    ax.plot(
        look.place(curve.confidence),
        only(curve.accuracy, trusted(view)),
        color=style.CURVE,
        linewidth=width,
        zorder=4,
        gid="accuracy",
    )
    ax.plot(
        look.place(curve.confidence),
        only(curve.accuracy, doubtful(view)),
        color=style.CURVE,
        linewidth=0.7 * width,
        linestyle=(0, (1, 1.6)),
        zorder=3.8,
        gid="accuracy-doubtful",
    )


def _atoms(ax: Axes, view: View, look: Look) -> None:
    """Each repeated confidence, at its plain accuracy, with its Wilson interval."""
    atoms, ev = view.ev.atoms, view.ev
    if len(atoms.count) == 0:
        return
    at = (
        atoms.confidence if look.ends is None else np.clip(atoms.confidence, *look.ends)
    )
    if look.interval:
        level = float(ev.settings["level"])
        low, high = intervals.wilson(atoms.accuracy, atoms.count, level)
        ax.vlines(at, low, high, color=style.CURVE, linewidth=0.8, zorder=4.5)
    size = (4 if look.roomy else 3) + 40 * np.sqrt(atoms.count / ev.n)
    ax.scatter(
        at,
        atoms.accuracy,
        s=size if look.roomy else 0.6 * size,
        facecolor="white",
        edgecolor=style.CURVE,
        linewidth=0.9,
        zorder=5,
        clip_on=False,
        gid="atoms",
    )


def _axes(ax: Axes, look: Look) -> None:
    ticks = ROOMY if look.roomy else TIGHT
    ax.set_ylim(0, look.top)
    if look.top > 2:
        ticks = [float(tick) for tick in range(int(look.top) + 1)]
    style.number_ticks(ax, "y", ticks)
    if look.ends is not None:
        logit_scale.use(ax, look.ends, roomy=look.roomy)
        return
    ax.set_xlim(0, 1)
    style.number_ticks(ax, "x", ROOMY if look.roomy else TIGHT)


def _mark_what_is_cut(ax: Axes, band: Band, top: float) -> None:
    """A dotted edge where the band leaves the axes, with its true top beside it."""
    over = band.drawn & (band.high > top * (1 + 1e-9))
    if not over.any():
        return
    edge = only(np.full_like(band.high, top), over)
    dots = (0, (1.2, 1.2))
    ax.plot(
        band.confidence,
        edge,
        color=style.CURVE,
        linewidth=1.2,
        linestyle=dots,
        zorder=6,
        clip_on=False,
        gid="cut",
    )
    first, last = spans(over)[0][0], spans(over)[-1][1]
    transform = ax.transData.transform
    x = [transform((band.confidence[i], 0))[0] for i in (first, last)]
    left, right = ax.transAxes.inverted().transform([(x[0], 0), (x[1], 0)])[:, 0]
    before = left > 0.4
    ax.annotate(
        f"band to {band.top:.2f} ↑" if before else f"↑ band to {band.top:.2f}",
        (left if before else right, 1),
        xycoords="axes fraction",
        xytext=(-4 if before else 4, -1.5),
        textcoords="offset points",
        ha="right" if before else "left",
        va="top",
        fontsize=style.SMALL,
        color=style.CURVE,
        zorder=7,
    )


def _mark_infinite(ax: Axes, band: Band, view: View) -> None:
    """Hatch, to the full height, where the loss and so the gap are infinite."""
    if not band.infinite.any():
        return
    ax.fill_between(
        band.confidence,
        0,
        1,
        where=band.infinite,
        transform=ax.get_xaxis_transform(),
        facecolor="none",
        edgecolor=style.BAND_EDGE,
        hatch="////",
        linewidth=0,
        zorder=1.5,
        gid="infinite",
    )
    ax.text(
        0.03,
        0.985,
        f"∞ loss: {view.ev.infinite_rows:,.10g} rows",
        transform=ax.transAxes,
        va="top",
        fontsize=style.SMALL,
        color=style.CURVE,
        zorder=7,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85},
    )
