"""Diagrams and lines of a terminal: styled text, braille, and blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isfinite
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._base.evaluation import Evaluation
from calibrant.table._layout import fixed, one_line
from calibrant.table._text import in_ascii, width

# ----------------------------------------------------------------------------
# A canvas of braille dots: two by four in each character cell.


ASCII = str.maketrans("…→─│└░●○", "~>-|+:Oo")
"""Signs of the terminal, each as wide as what stands for it."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line and the name of its style."""

    text: str
    style: str = ""


Line: TypeAlias = tuple[Span, ...]


def plain(line: Line) -> str:
    """The text of a line.

    Examples
    --------
    >>> plain((Span("a", "best"), Span("b")))
    'ab'
    """
    return "".join(span.text for span in line)


def spelt(line: Line) -> Line:
    """The line in ASCII, save the letters of names.

    Examples
    --------
    >>> plain(spelt((Span("0→1 "), Span("∞", "bad"))))
    '0>1 inf'
    """
    return tuple(Span(in_ascii(s.text).translate(ASCII), s.style) for s in line)


def cells(signs: Iterable[tuple[str, str]]) -> Line:
    """Signs with their styles as a line; neighbours of one style are joined.

    Examples
    --------
    >>> cells([("a", ""), ("b", ""), ("c", "best")])
    (Span(text='ab', style=''), Span(text='c', style='best'))
    """
    groups = groupby(signs, key=lambda pair: pair[1])
    return tuple(Span("".join(sign for sign, _ in g), style) for style, g in groups)


def beside(blocks: Sequence[Sequence[Line]], gap: int = 2) -> list[Line]:
    """Blocks of lines side by side, each as wide as its widest line."""
    tall = max(len(block) for block in blocks)
    lines: list[Line] = [()] * tall
    for place, block in enumerate(blocks):
        wide = (
            max(width(plain(line)) for line in block) if place < len(blocks) - 1 else 0
        )
        for row in range(tall):
            line = block[row] if row < len(block) else ()
            space = Span(" " * (wide + gap - width(plain(line))))
            lines[row] += (*line, space) if wide else line
    return lines


def shorten(text: str, to: int) -> str:
    """Text cut to a width, with a sign that it was.

    Examples
    --------
    >>> shorten("mean replacement", 8), shorten("TS", 8)
    ('mean re…', 'TS')
    """
    if width(text) <= to:
        return text
    kept = ""
    for letter in text:
        if width(kept + letter) >= to:
            break
        kept += letter
    return kept + "…"


DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""Bits of a braille sign, by row and column of the dot."""

EMPTY = 0x2800
DOTS_IN_ASCII = {"diagonal": ".", "curve": "*", "band": ":"}
BAND = "░"


class Canvas:
    """Dots, signs and shading on the unit square, from the lower left corner.

    Where two layers meet in a cell, the later one gives the style.

    Examples
    --------
    >>> from calibrant.terminal._diagram import plain
    >>> canvas = Canvas(4, 2)
    >>> canvas.line([0, 1], [0, 1], "curve")
    >>> [plain(line) for line in canvas.lines()]
    ['  ⡠⠊', '⡠⠊  ']
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._bits = np.zeros((height, width), int)
        self._styles = np.full((height, width), "", object)
        self._signs = np.full((height, width), "", object)
        self._shaded = np.zeros((height, width), bool)

    def dot(self, x: float, y: float, style: str) -> None:
        """Set one dot; outside the square nothing happens."""
        if not (0 <= x <= 1 and 0 <= y <= 1):
            return
        across = round(x * (2 * self.width - 1))
        down = round((1 - y) * (4 * self.height - 1))
        place = down // 4, across // 2
        self._bits[place] |= DOTS[down % 4, across % 2]
        self._styles[place] = style

    def line(self, x: Sequence[float], y: Sequence[float], style: str) -> None:
        """Join points by straight lines; a point that is NaN makes a gap."""
        for (x0, y0), (x1, y1) in zip(
            zip(x, y, strict=True), zip(x[1:], y[1:], strict=True), strict=False
        ):
            if np.isfinite([x0, y0, x1, y1]).all():
                across, down = 2 * self.width * (x1 - x0), 4 * self.height * (y1 - y0)
                steps = int(max(abs(across), abs(down))) + 1
                for t in np.linspace(0, 1, steps + 1):
                    self.dot(x0 + t * (x1 - x0), y0 + t * (y1 - y0), style)

    def put(self, x: float, y: float, sign: str, style: str) -> None:
        """Put a sign in the cell of a point; outside the square nothing happens."""
        if 0 <= x <= 1 and 0 <= y <= 1:
            place = self._row(y), min(int(x * self.width), self.width - 1)
            self._signs[place], self._styles[place] = sign, style

    def shade(self, column: int, low: float, high: float) -> None:
        """Shade a column of cells between two heights."""
        if high >= 0 and low <= 1:
            top, bottom = self._row(min(high, 1.0)), self._row(max(low, 0.0))
            self._shaded[top : bottom + 1, column] = True

    def _row(self, y: float) -> int:
        return min(int((1 - y) * self.height), self.height - 1)

    def lines(self, *, unicode: bool = True) -> list[Line]:
        """The picture, top line first."""
        return [
            cells(self._cell(row, column, unicode) for column in range(self.width))
            for row in range(self.height)
        ]

    def _cell(self, row: int, column: int, unicode: bool) -> tuple[str, str]:  # noqa: FBT001
        place = row, column
        style = self._styles[place]
        if self._signs[place]:
            return self._signs[place], style
        if self._bits[place]:
            return (
                chr(EMPTY + self._bits[place]) if unicode else DOTS_IN_ASCII[style]
            ), style
        if self._shaded[place]:
            return (BAND if unicode else DOTS_IN_ASCII["band"]), "band"
        return " ", ""


# ----------------------------------------------------------------------------
# Where the confidences are, in one line of blocks.


BLOCKS = " ▁▂▃▄▅▆▇█"
SHADES = " .,:;+*#@"


def sparkline(
    histogram: NDArray[np.float64], width: int, *, unicode: bool = True
) -> str:
    """A histogram as blocks whose height is the square root of the weight.

    The root keeps thin tails visible: any weight above 0 shows.

    Examples
    --------
    >>> sparkline(np.array([0, 1, 0, 4, 16.0]), 5)
    ' ▂ ▄█'
    """
    cells = np.asarray(histogram, float)
    edges = np.linspace(0, len(cells), width + 1)
    sums = np.diff(
        np.interp(edges, np.arange(len(cells) + 1), np.r_[0, cells.cumsum()])
    )
    if sums.max() <= 0:
        return " " * width
    levels = np.ceil(8 * np.sqrt(np.maximum(sums, 0) / sums.max())).astype(int)
    signs = BLOCKS if unicode else SHADES
    return "".join(signs[level] for level in levels)


# ----------------------------------------------------------------------------
# The calibration-sharpness diagram in a terminal: curve, band, diagonal and rows.


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
