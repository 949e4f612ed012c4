"""A canvas of braille dots: two by four in each character cell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acumen.terminal.spans import Line, cells

DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""Bits of a braille sign, by row and column of the dot."""

EMPTY = 0x2800
ASCII = {"diagonal": ".", "curve": "*", "band": ":"}
BAND = "░"


class Canvas:
    """Dots, signs and shading on the unit square, from the lower left corner.

    Where two layers meet in a cell, the later one gives the style.

    Examples
    --------
    >>> from acumen.terminal.spans import plain
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
            return (chr(EMPTY + self._bits[place]) if unicode else ASCII[style]), style
        if self._shaded[place]:
            return (BAND if unicode else ASCII["band"]), "band"
        return " ", ""
