"""Figures in words, for those who cannot see them; every number is the record's."""

from __future__ import annotations

from math import isfinite

import numpy as np

from acumen.arrays import check_choice
from acumen.results import Curve, Decomposition, Evaluation
from acumen.words import number

NEARLY = 0.01
"""A curve this close to the diagonal is said to follow it."""

FEW = 20.0
"""Places with fewer rows nearby are not spoken of."""


def describe_diagram(ev: Evaluation, style: str = "modern") -> str:
    """What a calibration-sharpness diagram shows, in one paragraph.

    Examples
    --------
    >>> import acumen as ac
    >>> ev = ac.evaluate_pairs([1, 0, 1, 1] * 25, [0.75] * 100, name="constant")
    >>> print(describe_diagram(ev)[:97])
    Calibration-sharpness diagram of constant: 100 rows, accuracy (share correct) against confidence.
    """
    check_choice(style, "style", ("modern", "paper"))
    paper = style == "paper"
    parts = ev.paper if paper else ev.decomposition
    curve = ev.paper_curve if paper else ev.curve
    sentences = [
        _subject(ev),
        _rows(ev),
        _line(ev, curve),
        _score(ev, parts),
        _band(ev),
        _warnings(ev),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _subject(ev: Evaluation) -> str:
    what = {
        "top-label": "accuracy of the predicted class",
        "positive": "share of the positive class",
        "class-wise": "share of each class, all classes together,",
        "pairs": "accuracy (share correct)",
    }[ev.target]
    return (
        f"Calibration-sharpness diagram of {ev.name}: {ev.n:,.10g} rows, {what} against "
        "confidence."
    )


def _rows(ev: Evaluation) -> str:
    """Where the rows are."""
    atoms = len(ev.atoms.count)
    if atoms == 1:
        return f"Every row has the confidence {ev.atoms.confidence[0]:.3g}."
    low, middle, high = (_quantile(ev, share) for share in (0.05, 0.5, 0.95))
    text = (
        f"Half of the rows have a confidence of at least {middle:.3g}, and nine in ten"
    )
    text += f" lie between {low:.3g} and {high:.3g}."
    if atoms:
        text += f" There are only {atoms} distinct confidences."
    return text


def _quantile(ev: Evaluation, share: float) -> float:
    """A quantile of the confidence, interpolated in the histogram."""
    below = np.concatenate([[0.0], np.cumsum(ev.histogram)])
    edges = np.linspace(0, 1, len(below))
    return float(np.interp(share * below[-1], below, edges))


def _line(ev: Evaluation, curve: Curve) -> str:
    """How the curve lies to the diagonal, where rows support it."""
    atoms = ev.atoms
    if len(atoms.count) == 1:
        return f"The accuracy there is {number(atoms.accuracy[0], 3)}."
    seen = np.isfinite(curve.accuracy) & (curve.support >= min(FEW, ev.n / 10))
    if not seen.any():
        return "There are too few rows for a curve."
    h, m = curve.confidence[seen], curve.accuracy[seen]
    off = m - h
    worst = int(np.argmax(np.abs(off)))
    side = _side(off)
    ends = f"from {m[0]:.2f} at confidence {h[0]:.2f} to {m[-1]:.2f} at {h[-1]:.2f}"
    far = f"furthest at confidence {h[worst]:.2f}, where it is {m[worst]:.2f}"
    return f"The curve runs {ends} and {side}, {far}."


def _side(off: np.ndarray) -> str:
    above, below = off.max(), -off.min()
    if max(above, below) < NEARLY:
        return "follows the diagonal"
    if below < NEARLY:
        return "lies above the diagonal (under-confident)"
    if above < NEARLY:
        return "lies below the diagonal (over-confident)"
    return "crosses the diagonal"


def _score(ev: Evaluation, parts: Decomposition) -> str:
    cal = f"a calibration error of {number(parts.calibration)}"
    if parts.calibration.interval is not None and isfinite(parts.calibration):
        low, high = (number(end) for end in parts.calibration.interval)
        level = 100 * float(ev.settings["level"])
        cal += f" ({level:g}% {parts.calibration.method} interval {low} to {high})"
    name = {"brier": "Brier score", "log": "log loss"}.get(
        parts.divergence, parts.divergence
    )
    gap = number(parts.sharpness_gap)
    return (
        f"The {name} of {number(parts.total)} is {cal} plus a sharpness gap of {gap}."
    )


def _band(ev: Evaluation) -> str:
    curve = ev.paper_curve
    height = curve.density * curve.sharpness_gap
    if np.isinf(height).any():
        return "The band of the sharpness gap has no end where the loss is infinite."
    widest = int(np.nanargmax(height))
    return (
        f"The band of the sharpness gap is widest at confidence "
        f"{curve.confidence[widest]:.2f}, where it is {height[widest]:.2f} high."
    )


def _warnings(ev: Evaluation) -> str:
    if ev.divergence == "log" and ev.infinite_rows:
        return f"The loss of {ev.infinite_rows:,.10g} rows is infinite."
    return ""
