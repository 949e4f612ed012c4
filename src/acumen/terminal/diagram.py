"""The calibration-sharpness diagram in a terminal: curve, band, diagonal and rows."""

from __future__ import annotations

from math import isfinite

import numpy as np
from numpy.typing import NDArray

from acumen.results import Evaluation
from acumen.table.cells import fixed, one_line
from acumen.terminal.canvas import Canvas
from acumen.terminal.spans import Line, Span, shorten
from acumen.terminal.sparkline import sparkline

HIGHEST = 1.25
"""Bands are cut here, so that one high band does not flatten every curve."""

LEAST_BAND = 0.015
ENOUGH_ROWS = 20
AXIS = 5
"""Columns left of the picture."""


def band(ev: Evaluation) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper end of the sharpness band, at the places of the paper's curve.

    Its length is density times gap as published, at bandwidth 0.05, which is about the
    width of a character; it is centred on the curve.
    """
    paper, curve = ev.paper_curve, ev.curve
    known = np.isfinite(curve.accuracy)
    middle = paper.accuracy
    if known.sum() > 1:
        at, accuracy = curve.confidence[known], curve.accuracy[known]
        inside = (paper.confidence >= at[0]) & (paper.confidence <= at[-1])
        middle = np.where(inside, np.interp(paper.confidence, at, accuracy), middle)
    with np.errstate(invalid="ignore"):
        length = paper.density * paper.sharpness_gap
        shown = np.isfinite(length) & (length > LEAST_BAND)
    half = np.where(shown, length / 2, np.nan)
    return np.maximum(middle - half, 0), middle + half


def top_of(evaluations: list[Evaluation]) -> float:
    """A height that all diagrams can share."""
    highest = max(_highest(ev) for ev in evaluations)
    return min(HIGHEST, max(1.0, highest))


def _highest(ev: Evaluation) -> float:
    high = band(ev)[1]
    return float(np.nanmax(high)) if np.isfinite(high).any() else 1.0


def diagram(
    ev: Evaluation, wide: int, tall: int, top: float, *, unicode: bool = True
) -> list[Line]:
    """The diagram of one model, `wide` columns across in all."""
    across = wide - AXIS
    canvas = Canvas(across, tall)
    _draw_band(canvas, ev, top)
    for x in np.linspace(0, 1, across):
        canvas.dot(x, x / top, "diagonal")
    _draw_curve(canvas, ev, top)
    spark = sparkline(ev.histogram, across, unicode=unicode)
    return [
        (Span(shorten(one_line(ev.name), wide), "title"),),
        (Span(shorten(_sum(ev, top), wide), "dim"),),
        *_with_axis(canvas.lines(unicode=unicode), top),
        (Span("    └" + "─" * across, "dim"),),
        (Span("rows ", "dim"), Span(spark, "rows")),
        (Span(" " * AXIS + "0" + "confidence".center(across - 2) + "1", "dim"),),
    ]


def _sum(ev: Evaluation, top: float) -> str:
    parts = ev.decomposition
    numbers = (parts.calibration, parts.sharpness_gap)
    cal, gap = (fixed(100 * value, 2) for value in numbers)
    highest = _highest(ev)
    cut = f", band to {highest:.1f}" if highest > top else ""
    return f"d_CAL {cal} + gap {gap}{cut}"


def _draw_band(canvas: Canvas, ev: Evaluation, top: float) -> None:
    low, high = band(ev)
    places = ev.paper_curve.confidence
    for column in range(canvas.width):
        at = int(np.abs(places - (column + 0.5) / canvas.width).argmin())
        if isfinite(high[at]):
            canvas.shade(column, low[at] / top, high[at] / top)


def _draw_curve(canvas: Canvas, ev: Evaluation, top: float) -> None:
    """Marks for few distinct confidences, hollow where rows are few; else a curve."""
    if len(ev.atoms.count):
        points = zip(
            ev.atoms.confidence, ev.atoms.accuracy, ev.atoms.count, strict=True
        )
        for h, accuracy, count in points:
            sign = "●" if count >= ENOUGH_ROWS else "○"
            canvas.put(h, accuracy / top, sign, "curve")
        return
    curve = ev.curve
    solid = np.where(curve.support >= ENOUGH_ROWS, curve.accuracy, np.nan) / top
    thickness = 1 / (4 * canvas.height)
    canvas.line(curve.confidence.tolist(), solid.tolist(), "curve")
    canvas.line(curve.confidence.tolist(), (solid - thickness).tolist(), "curve")
    sparse = np.isfinite(curve.accuracy) & ~np.isfinite(solid)
    for h, accuracy in zip(
        curve.confidence[sparse], curve.accuracy[sparse], strict=True
    ):
        canvas.dot(h, accuracy / top, "curve")


def _with_axis(lines: list[Line], top: float) -> list[Line]:
    """Labels 0, 0.5 and 1 at the left."""
    last = len(lines) - 1
    labels = {min(int((1 - y / top) * len(lines)), last): y for y in (0, 0.5, 1)}
    texts = [
        f"{labels[row]:>3g}" if row in labels else "   " for row in range(last + 1)
    ]
    return [
        (Span(f"{text} │", "dim"), *line)
        for text, line in zip(texts, lines, strict=True)
    ]
