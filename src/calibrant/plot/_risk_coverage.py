"""`risk_coverage`: errors left among the accepted, by how many are accepted."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from calibrant._verbs.risk_coverage import RiskCoverage
from calibrant._verbs.risk_coverage import risk_coverage as of
from calibrant.plot import _curves as curves
from calibrant.plot import _style as style

BETWEEN = np.linspace(0, 1, 201)[1:]
"""Coverages at which the curve is drawn beside its own: between ties it is no straight line."""


@style.in_style
def risk_coverage(
    models: Any,
    *,
    interval: bool = True,
    legend: bool = True,
    figsize: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the risk among the accepted against the share that is accepted.

    Parameters
    ----------
    models : RiskCoverage, Evaluation, Comparison, or a sequence of either
        Up to 8 models. Evaluations must have their rows at hand.
    interval : bool
        Whether to draw the pointwise intervals.
    legend, figsize, ax
        As in `calibration_sharpness`.

    Returns
    -------
    Axes
        Lower is better. The thin level line is the error rate: what every coverage would
        have if all confidences were equal.

    Examples
    --------
    >>> import calibrant as cal, calibrant.plot
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, 0.7] * 30)
    >>> calibrant.plot.risk_coverage(ev).get_xlabel()
    'coverage: share accepted'
    """
    found = curves.curves_of(models, RiskCoverage, of)
    names = curves.names_of(found)
    own = ax is None
    ax = curves.axes_of(ax, figsize, (len(found) + 2) * legend)
    style.dress(ax)
    for place, (one, name) in enumerate(zip(found, names, strict=True)):
        at = np.union1d(one.coverage, BETWEEN)
        risk, *ends = one.risk_at(at)
        curves.draw_model(ax, place, at, risk, ends if interval else None, name)
        _error_rate(ax, place, one)
    _name_axes(ax, found)
    handles = [*_handles(found, names)]
    handles += [curves.band_handle(found[0].level)] if interval else []
    alt = " ".join(map(_in_words, found, names))
    curves.finish(ax, handles, alt, own=own, legend=legend)
    return ax


def _error_rate(ax: Axes, place: int, found: RiskCoverage) -> None:
    """Where the curve would be if all confidences were equal."""
    colour = style.theme().model(place)[0]
    look: Any = {"linewidth": 0.7, "linestyle": (0, (1, 2)), "zorder": 3}
    ax.axhline(found.error_rate, color=colour, gid="error rate", **look)


def _name_axes(ax: Axes, found: list[RiskCoverage]) -> None:
    top = max(float(x.high[x.coverage >= 0.05].max()) for x in found)
    ax.set(xlim=(0, 1), ylim=(0, min(1.08 * max(top, 1e-3), 1.0)))
    style.number_ticks(ax, "x", style.unit_ticks(ax, "x"))
    style.name_axis(ax, "x", "coverage: share accepted")
    style.name_axis(ax, "y", "risk: share of errors")


def _handles(found: list[RiskCoverage], names: list[str]) -> list[Any]:
    texts = [f"{n}: AURC ×100 {_area(x)}" for n, x in zip(names, found, strict=True)]
    level: Any = {"linewidth": 0.7, "linestyle": (0, (1, 2))}
    rate = Line2D([], [], color=style.theme().muted, **level)
    rate.set_label("error rate = AURC of one confidence for all")
    return [*curves.model_handles(texts), rate]


def _area(found: RiskCoverage) -> str:
    low, high = found.aurc.interval or (None, None)
    ends = (
        "" if low is None or high is None else f" [{100 * low:.2f}, {100 * high:.2f}]"
    )
    return f"{100 * found.aurc:.2f}{ends}"


def _in_words(found: RiskCoverage, name: str) -> str:
    return (
        f"Risk by coverage of {name}: AURC {found.aurc:.4f}, error rate "
        f"{found.error_rate:.4f}, {1 - found.accuracy_at(0.5):.4f} at half coverage."
    )
