"""Diagrams and lines of a terminal: styled text, braille, and blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, zip_longest
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import one_line
from calibrant._base.evaluation import Evaluation
from calibrant._base.records import FORECASTS
from calibrant._base.text import printed_gap
from calibrant._views.diagram import GEOMETRY, Band, only
from calibrant.table._layout import fixed
from calibrant.table._text import in_ascii, width

ASCII = str.maketrans("…→─│└░●○", "~>-|+:Oo")
"""Signs of the terminal, each as wide as what stands for it."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line and the name of its style."""

    text: str
    style: str = ""


Line: TypeAlias = tuple[Span, ...]


def plain(line: Line) -> str:
    """The text of a line."""
    return "".join(span.text for span in line)


def spelt(line: Line) -> Line:
    """The line in ASCII, save the letters of names."""
    return tuple(Span(in_ascii(s.text).translate(ASCII), s.style) for s in line)


def cells(signs: Iterable[tuple[str, str]]) -> Line:
    """Signs with their styles as a line; neighbours of one style are joined."""
    groups = groupby(signs, key=lambda pair: pair[1])
    return tuple(Span("".join(sign for sign, _ in g), style) for style, g in groups)


def beside(blocks: Sequence[Sequence[Line]], gap: int = 2) -> list[Line]:
    """Blocks of lines side by side, each as wide as its widest line."""
    *before, last = blocks
    lines: list[Line] = [()] * max(map(len, blocks))
    for block in before:
        wide = gap + max(width(plain(line)) for line in block)
        for row in range(len(lines)):
            line = block[row] if row < len(block) else ()
            lines[row] += (*line, Span(" " * (wide - width(plain(line)))))
    return [line + end for line, end in zip_longest(lines, last, fillvalue=())]


def shorten(text: str, to: int) -> str:
    """Text cut to a width, with a sign that it was."""
    if width(text) <= to:
        return text
    kept = ""
    for letter in text:
        if width(kept + letter) >= to:
            break
        kept += letter
    return kept + "…"


def short_names(names: Sequence[str], to: int) -> list[str]:
    """Names cut to a width; those that would look the same keep their ends, or get numbers.

    Examples
    --------
    >>> short_names(["resnet-seed-1", "resnet-seed-2", "vit"], 10)
    ['resn…eed-1', 'resn…eed-2', 'vit']
    >>> short_names(["resnet-of-50-seed-1", "resnet-of-18-seed-1"], 10)
    ['resne… (1)', 'resne… (2)']
    """
    found = [shorten(name, to) for name in names]
    for cut in (_without_middle, _numbered):
        twice = {text for text in found if found.count(text) > 1}
        found = [
            cut(name, to, place) if text in twice else text
            for place, (name, text) in enumerate(zip(names, found, strict=True), 1)
        ]
    return found


def _without_middle(text: str, to: int, _: int) -> str:
    head = shorten(text, to // 2)
    tail = shorten(text[::-1], to - to // 2 + 1).removesuffix("…")
    return head + tail[::-1]


def _numbered(text: str, to: int, place: int) -> str:
    number = f" ({place})"
    return shorten(text, to - width(number)) + number


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
        for (x0, y0), (x1, y1) in pairwise(zip(x, y, strict=True)):
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
        if bits := self._bits[place]:
            return chr(EMPTY + bits) if unicode else DOTS_IN_ASCII[style], style
        if self._shaded[place]:
            return (BAND if unicode else DOTS_IN_ASCII["band"]), "band"
        return " ", ""


BLOCKS = " ▁▂▃▄▅▆▇█"
SHADES = " .,:;+*#@"


def sparkline(
    histogram: NDArray[np.float64], width: int, *, unicode: bool = True
) -> str:
    """A histogram as blocks whose height is the square root of the weight.

    The root keeps thin tails visible: any weight above 0 shows.
    """
    cells = np.asarray(histogram, float)
    edges = np.linspace(0, len(cells), width + 1)
    below = np.r_[0, cells.cumsum()]
    sums = np.diff(np.interp(edges, np.arange(len(below)), below))
    if sums.max() <= 0:
        return " " * width
    levels = np.ceil(8 * np.sqrt(np.maximum(sums, 0) / sums.max())).astype(int)
    signs = BLOCKS if unicode else SHADES
    return "".join(signs[level] for level in levels)


AXIS = 5
"""Columns left of the picture."""


def band(ev: Evaluation) -> Band:
    """The sharpness band at the places of the paper's curve, centred on the line.

    Its height is density times gap as published, at bandwidth 0.05, which is about the
    width of a character.
    """
    paper, curve = ev.paper_curve, ev.curve
    known = np.isfinite(curve.accuracy)
    middle = paper.accuracy
    if known.sum() > 1:
        at, accuracy = curve.confidence[known], curve.accuracy[known]
        inside = (paper.confidence >= at[0]) & (paper.confidence <= at[-1])
        middle = np.where(inside, np.interp(paper.confidence, at, accuracy), middle)
    return Band.of(paper.confidence, middle, paper.density, paper.sharpness_gap)


def diagram(
    ev: Evaluation, wide: int, tall: int, top: float, *, unicode: bool = True
) -> list[Line]:
    """The diagram of one model, `wide` columns across in all."""
    across = wide - AXIS
    canvas, drawn = Canvas(across, tall), band(ev)
    _draw_band(canvas, drawn, top)
    for x in np.linspace(0, 1, across):
        canvas.dot(x, x / top, "diagonal")
    _draw_curve(canvas, ev, top)
    spark = sparkline(ev.histogram, across, unicode=unicode)
    return [
        (Span(shorten(one_line(ev.name), wide), "title"),),
        (Span(shorten(_sum(ev, drawn, top), wide), "dim"),),
        *_with_axis(canvas.lines(unicode=unicode), top),
        (Span("    └" + "─" * across, "dim"),),
        (Span("  n  ", "dim"), Span(spark, "rows")),
        (Span(" " * AXIS + "0" + said_by(ev).center(across - 2) + "1", "dim"),),
    ]


def said_by(ev: Evaluation) -> str:
    """What a model says of each example: a confidence or, of one class, a forecast."""
    return "forecast" if ev.target in FORECASTS else "confidence"


def _sum(ev: Evaluation, drawn: Band, top: float) -> str:
    parts = ev.decomposition
    numbers = (100 * parts.calibration, printed_gap(parts, 2, 100))
    cal, gap = (fixed(value, 2) for value in numbers)
    cut = f", band to {drawn.top:.1f}" if drawn.top > top else ""
    return f"d_CAL {cal} + gap {gap}{cut}"


def _draw_band(canvas: Canvas, drawn: Band, top: float) -> None:
    low, high = drawn.low / top, drawn.high / top
    for column in range(canvas.width):
        off = np.abs(drawn.confidence - (column + 0.5) / canvas.width)
        at = int(off.argmin())
        if drawn.drawn[at]:
            canvas.shade(column, low[at], high[at])


def _draw_curve(canvas: Canvas, ev: Evaluation, top: float) -> None:
    """Marks for few distinct confidences, hollow where rows are few; else a curve."""
    atoms, curve, enough = ev.atoms, ev.curve, GEOMETRY.enough_rows
    for h, m, n in zip(atoms.confidence, atoms.accuracy, atoms.count, strict=True):
        canvas.put(h, m / top, "●" if n >= enough else "○", "curve")
    if len(atoms.count):
        return
    at, y = curve.confidence, curve.accuracy / top
    solid, thickness = only(y, curve.support >= enough), 1 / (4 * canvas.height)
    canvas.line(at.tolist(), solid.tolist(), "curve")
    canvas.line(at.tolist(), (solid - thickness).tolist(), "curve")
    sparse = np.isfinite(y) & ~np.isfinite(solid)
    for h, m in zip(at[sparse], y[sparse], strict=True):
        canvas.dot(h, m, "curve")


def _with_axis(lines: list[Line], top: float) -> list[Line]:
    """Labels 0, 0.5 and 1 at the left."""
    last = len(lines) - 1
    labels = {min(int((1 - y / top) * len(lines)), last): y for y in (0, 0.5, 1)}
    return [
        (Span(f"{labels[row]:>3g} │" if row in labels else "    │", "dim"), *line)
        for row, line in enumerate(lines)
    ]
