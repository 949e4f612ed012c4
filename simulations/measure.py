"""What calibrant says of one data set, through its public functions."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

import calibrant as cal

from .worlds import Column, Rows, World, rival

Found = tuple[float, tuple[float, float] | None]
"""A number and its interval, if it has one."""

NOTHING: Found = (np.nan, None)

ENDS = ("low", "high")
NEXT_TO = 0.002
"""Confidences as close as this have one accuracy, where rows have few values."""

CHEAP = ("d_brier", "d_log", "brier", "log", "accuracy")
"""What `interval=None` gives an interval to."""

RESAMPLED = ("gap_brier", "gap_log", "ece", "smooth_ece", "ace", "mce", "auroc")
PAIRED = ("paired_brier", "paired_log", "paired_d_brier", "paired_ece")
CURVE = ("ise", "ise_paper", "pointwise", "simultaneous")
"""Squared error of the curve and of the paper's, and shares of places in its bands."""

RIVALS = ("bins", "paper_brier", "paper_log")
"""d_CAL by debiased bins, and the paper's direct estimate."""

QUANTITIES = (*CHEAP, *RESAMPLED, *PAIRED, *RIVALS, *CURVE)


def measure(world: World, rows: Rows, wanted: Iterable[str]) -> dict[str, Found]:
    """Every quantity wanted; where calibrant refuses the rows, nothing."""
    wanted = set(wanted)
    try:
        found = _measured(world, rows, wanted)
    except ValueError:  # too few rows or clusters
        found = {}
    return {name: found.get(name, NOTHING) for name in wanted}


def _measured(world: World, rows: Rows, wanted: set[str]) -> dict[str, Found]:
    cheap = wanted.isdisjoint({*RESAMPLED, "paired_ece"})
    ev = evaluate(rows, rows.confidence, "model", "auto" if not cheap else None)
    found = _own(ev)
    if world.rare:
        found |= dict.fromkeys(("ace", "mce"), NOTHING)  # of bins that no row falls in
    if not wanted.isdisjoint(PAIRED):
        other = evaluate(rows, rival(rows.confidence), "rival", ev.settings["interval"])
        found |= _differences(cal.compare(ev, other).differences["rival"])
    if not wanted.isdisjoint(CURVE):
        found |= curve_errors(world, rows, ev)
    if "bins" in wanted and not rows.given:
        found["bins"] = debiased_bins(rows.confidence, rows.hit), None
    return found


def evaluate(rows: Rows, h: Column, name: str, interval: str | None) -> cal.Evaluation:
    """A model with confidences h of these rows."""
    return cal.evaluate_pairs(rows.hit, h, name=name, interval=interval, **rows.given)


def _own(ev: cal.Evaluation) -> dict[str, Found]:
    found = {name: _found(ev.metrics.get(name)) for name in (*RESAMPLED, "accuracy")}
    for name, parts in ev.decompositions.items():
        found[f"d_{name}"] = _found(parts.calibration)
        found[name] = _found(parts.total)
        found[f"gap_{name}"] = _found(parts.sharpness_gap)
    for name, parts in ev.paper_decompositions.items():
        found[f"paper_{name}"] = float(parts.calibration), None
    return found


def _differences(found: dict) -> dict[str, Found]:
    names = {"brier": "brier", "log": "nll", "d_brier": "calibration", "ece": "ece"}
    return {f"paired_{ours}": _found(found.get(x)) for ours, x in names.items()}


def _found(estimate: cal.Estimate | None) -> Found:
    return NOTHING if estimate is None else (float(estimate), estimate.interval)


# -- curve ---------------------------------------------------------------------------


def curve_errors(world: World, rows: Rows, ev: cal.Evaluation) -> dict[str, Found]:
    """Mean squared error at the rows, and shares of places inside the bands."""
    truth = world.truth_at(rows.confidence)
    curve, paper = ev.curve, ev.paper_curves["brier"]
    found = {
        "ise": _squared_error(curve, rows.confidence, truth),
        "ise_paper": _squared_error(paper, rows.confidence, truth),
    }
    here = _among(curve.confidence, rows.confidence)
    m = world.truth_at(curve.confidence)
    inside = _inside(m, curve.low, curve.high)[here & np.isfinite(curve.low)]
    if len(inside):
        found["pointwise"] = float(inside.mean()), None
    low, high = (getattr(curve, f"band_{x}", curve.low * np.nan) for x in ENDS)
    inside = _inside(m, low, high)[here & np.isfinite(low)]
    if len(inside):
        found["simultaneous"] = float(inside.all()), None
    return found


def _inside(m: Column, low: Column, high: Column) -> NDArray[np.bool_]:
    return (low <= m + 1e-9) & (m <= high + 1e-9)


def _among(places: Column, h: Column) -> NDArray[np.bool_]:
    """Places between rows; if these have few values, only places next to one."""
    low, high = np.quantile(h, (0.005, 0.995))
    values = np.unique(h[(h >= low) & (h <= high)])
    if len(values) > len(h) / 2:
        return (places >= low) & (places <= high)
    after = np.minimum(np.searchsorted(values, places), len(values) - 1)
    before = np.maximum(after - 1, 0)
    away = np.minimum(abs(values[after] - places), abs(values[before] - places))
    return away <= NEXT_TO


def _squared_error(curve: cal.Curve, h: Column, truth: Column) -> Found:
    known = np.isfinite(curve.accuracy)
    if not known.any():
        return NOTHING
    drawn = np.interp(h, curve.confidence[known], curve.accuracy[known])
    return float(np.mean((drawn - truth) ** 2)), None


# -- a rival estimate ------------------------------------------------------------------


def debiased_bins(h: Column, hit: Column) -> float:
    """d_CAL (Brier) by equal-mass bins, the cube root of n of them, less their noise."""
    order = np.argsort(h, kind="stable")
    h, hit = h[order], hit[order].astype(float)
    count = int(np.ceil(len(h) ** (1 / 3)))
    edges = np.unique(h[np.arange(1, count) * len(h) // count])
    place = np.searchsorted(edges, h, side="right")
    n, gap = np.bincount(place).astype(float), np.bincount(place, hit - h)
    p = np.bincount(place, hit) / np.maximum(n, 1)
    some = n > 1
    squares = (gap[some] / n[some]) ** 2 - (p * (1 - p))[some] / (n[some] - 1)
    return float(n[some] @ squares / len(h))
