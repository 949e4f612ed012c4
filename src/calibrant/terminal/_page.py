"""The page in a terminal: table, findings and diagrams, made to fit a width."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isinf
from typing import Any, TextIO

from calibrant._base.checks import check_choice, check_number, one_line, shown
from calibrant._base.comparison import PRINTED_EFFECTS, Comparison, as_shown
from calibrant._base.records import Finding
from calibrant._views.diagram import shared_top
from calibrant._views.words import can_show, head_lines, remarks
from calibrant.table._layout import Cell, Note, Style, Table, choose
from calibrant.table._table import make_table, names
from calibrant.table._text import (
    NOTE_WIDTH,
    grid,
    in_ascii,
    legend,
    note_lines,
    padded,
    width,
)
from calibrant.terminal._diagram import (
    BAND,
    BLOCKS,
    Line,
    Span,
    band,
    beside,
    diagram,
    plain,
    said_by,
    short_names,
    sparkline,
    spelt,
)

FIRST_TO_GO = ("ace", "smooth_ece", "nll", "ece", "impossible", "tied")
"""Columns that a narrow terminal does without, in this order."""

GAP = "  "
SPARK, PANEL, GAP_OF_PANELS, TALL, MOST_ROWS = 16, 38, 2, 11, 3


def page(
    comparison: Comparison,
    found: Sequence[Finding],
    columns: int,
    *,
    unicode: bool = True,
) -> list[Line]:
    """Everything, line by line; `found` is what the audit found."""
    scores = replace(comparison, effects={})
    head = note_lines([Note(text) for text in head_lines(comparison)], columns)
    parts: list[list[Line]] = [
        [(Span(text, "dim"),) for text in head],
        list(_table(scores, columns, unicode=unicode)),
    ]
    if comparison.effects:
        title: Line = (Span("What recalibration did", "title"),)
        effects = _table(comparison, columns, PRINTED_EFFECTS, unicode=unicode)
        parts.append([title, *effects])
    parts.append(list(_notes(remarks(comparison, found), columns)))
    parts += _diagrams(comparison, columns, unicode=unicode)
    lines: list[Line] = []
    for part in filter(None, parts):
        lines += [(), *part] if lines else part
    return lines if unicode else [spelt(line) for line in lines]


# -- table ------------------------------------------------------------------------


def _table(
    comparison: Comparison,
    columns: int,
    keys: Sequence[str] | None = None,
    *,
    unicode: bool,
) -> Iterator[Line]:
    """Heading, rule, rows and notes; columns go until the rest fits."""
    keys = keys or [column.key for column in choose(None, comparison)]
    kept, gone = _fitting(comparison, list(keys), columns, unicode=unicode)
    table = _with_short_names(make_table(comparison, Style(), columns=kept), columns)
    lines = [tuple(Span(*x) for x in line) for line in _styled(table, unicode=unicode)]
    room = width(plain(lines[0])) + len(GAP) + SPARK
    if "brier" in kept and room <= columns:
        sparks = _sparks(comparison, unicode=unicode)
        lines = [(*line, end) for line, end in zip(lines, sparks, strict=True)]
    yield lines[0]
    yield (Span("─" * width(plain(lines[0])), "dim"),)
    yield from lines[1:]
    yield ()
    narrow = [Note(f"Too narrow to show: {', '.join(gone)}.")] if gone else []
    yield from _notes([*narrow, *legend(table)], columns)


def _fitting(
    comparison: Comparison, keys: list[str], columns: int, *, unicode: bool
) -> tuple[list[str], list[str]]:
    """Names of the columns that fit, and short labels of those that do not."""
    gone = []
    for key in (None, *FIRST_TO_GO):
        if key in keys:
            label = make_table(comparison, Style(), columns=[str(key)]).headings[0]
            gone.append(label.short)
            keys = [other for other in keys if other != key]
        table = make_table(comparison, Style(), columns=keys, footnotes=False)
        head = _styled(_with_short_names(table, columns), unicode=unicode)[0]
        if sum(width(text) for text, _ in head) <= columns or len(keys) == 1:
            break
    return keys, gone


def _with_short_names(table: Table, columns: int) -> Table:
    longest = max(10, min(columns // 4, 32))
    names = short_names([one_line(row.name) for row in table.rows], longest)
    rows = zip(table.rows, names, strict=True)
    return replace(table, rows=tuple(replace(row, name=name) for row, name in rows))


def _styled(table: Table, *, unicode: bool) -> list[list[tuple[str, str]]]:
    """Aligned texts with styles, the heading first."""
    spell = str if unicode else in_ascii
    texts = [[spell(text) for text in line] for line in grid(table)]
    widths = [max(map(width, column)) for column in zip(*texts, strict=True)]
    aligned = [padded(line, widths) for line in texts]
    styles = [
        ["title"] * (len(table.headings) + 1),
        *(["name", *(_style(cell) for cell in row.cells)] for row in table.rows),
    ]
    spaced = [[line[0], *(GAP[1:] + text for text in line[1:])] for line in aligned]
    pairs = zip(spaced, styles, strict=True)
    return [list(zip(line, chosen, strict=True)) for line, chosen in pairs]


def _style(cell: Cell) -> str:
    if cell.best:
        return "best"
    return "trivial" if cell.trivial else "bad" if isinf(cell.value) else ""


def _sparks(comparison: Comparison, *, unicode: bool) -> list[Span]:
    lines = [sparkline(ev.histogram, SPARK, unicode=unicode) for ev in comparison]
    head = Span(GAP + f"{said_by(comparison[0])} 0→1".ljust(SPARK), "title")
    return [head, *(Span(GAP + line, "rows") for line in lines)]


# -- notes and diagrams -----------------------------------------------------------


def _notes(notes: Sequence[Note], columns: int) -> Iterator[Line]:
    """Findings behind a sign, conventions dimmed."""
    for note in notes:
        sign = note.mark or ("!" if note.finding else "")
        lines = note_lines([replace(note, mark=sign)], min(columns, NOTE_WIDTH))
        if not note.finding:
            yield from ((Span(line, "dim"),) for line in lines)
            continue
        yield Span(lines[0][: len(sign)], "finding"), Span(lines[0][len(sign) :])
        yield from ((Span(line),) for line in lines[1:])


def _diagrams(
    comparison: Comparison, columns: int, *, unicode: bool
) -> Iterator[list[Line]]:
    """Rows of diagrams with one height for all."""
    in_a_row = min(len(comparison), max(1, (columns + GAP_OF_PANELS) // PANEL))
    shown = list(comparison)[: MOST_ROWS * in_a_row]
    titles = [one_line(ev.name) for ev in shown]
    top = shared_top(map(band, shown))
    wide = min(48, (columns + GAP_OF_PANELS) // in_a_row - GAP_OF_PANELS)
    named = zip(shown, short_names(titles, wide), strict=True)
    titled = [replace(ev, name=title) for ev, title in named]
    panels = [diagram(ev, wide, TALL, top, unicode=unicode) for ev in titled]
    for start in range(0, len(panels), in_a_row):
        yield beside(panels[start : start + in_a_row], GAP_OF_PANELS)
    key = [
        Note("sharpness band (paper's estimator, bandwidth 0.05)", "░"),
        Note(f"number of examples at each {said_by(shown[0])}, as a square root", "n"),
    ]
    if len(comparison) > len(shown):
        key.append(Note(f"Not drawn: {names(comparison.names[len(shown) :])}."))
    yield list(_notes(key, columns))


# -- text with or without colour --------------------------------------------------

LEAST_WIDTH, MOST_WIDTH = 40, 10_000
SIGNS = f"∞†–×Δ→…●○─│└⠿{BAND}{BLOCKS}"

CODES = {
    "title": "1",
    "dim": "2",
    "best": "1;32",
    "trivial": "33",
    "bad": "31",
    "finding": "1;33",
    "rows": "34",
    "band": "31",
    "curve": "1;91",
    "diagonal": "2",
}
"""Escape codes of styles: bold, dim, and the 16 colours of the reader's theme."""


def render(
    models: Any,
    *,
    width: int | None = None,
    colour: bool | None = None,
    unicode: bool | None = None,
    file: TextIO | None = None,
) -> str:
    """Draw models for a terminal.

    Signs carry the meaning, and colour repeats it: the best of a column has a star, what
    is trivial a dagger, the band is shaded.

    Parameters
    ----------
    models : Comparison, Evaluation or list of Evaluation
        What to show.
    width : int, optional
        Columns to fill, at least 40; those of the terminal if not said, else 80.
    colour : bool, optional
        Whether to write escape codes. If not said, only to a terminal; ``NO_COLOR`` and
        ``FORCE_COLOR`` are heeded.
    unicode : bool, optional
        Whether braille, blocks and signs may be used; if not said, what the encoding of
        `file` can show decides.
    file : text stream, optional
        Where the text will go: standard output if not said. Nothing is written to it.

    Returns
    -------
    str
        The lines, without an end of line after the last.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.terminal import render
    >>> ev = cal.evaluate_pairs([1, 1, 0, 1], [0.9, 0.8, 0.3, 0.8], name="forecaster")
    >>> print(render(ev, width=60, colour=False).splitlines()[0])
    1 model, 4 examples
    """
    stream = _stream(file)
    columns = shutil.get_terminal_size().columns if width is None else width
    check_number(columns, "width", 1, MOST_WIDTH, kind="a whole number of columns")
    for name, flag in {"colour": colour, "unicode": unicode}.items():
        check_choice(flag, name, (True, False, None))
    if unicode is None:
        unicode = can_show(stream, SIGNS)
    comparison, columns = as_shown(models), max(int(columns), LEAST_WIDTH)
    lines = page(comparison, comparison.audit(), columns, unicode=unicode)
    text = "\n".join(_painted(line, _codes(stream, colour=colour)) for line in lines)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)  # names may hold anything


def show(models: Any, *, file: TextIO | None = None, **options: Any) -> None:
    """Write models to a terminal; options of `render`."""
    stream = _stream(file)
    stream.write(render(models, file=file, **options) + "\n")


def _stream(file: Any) -> TextIO:
    """Where text goes: standard output, or the stream that was given."""
    found: Any = sys.stdout if file is None else file
    if not (hasattr(found, "write") and hasattr(found, "isatty")):
        raise TypeError(f"file must be a text stream, got {shown(found)}.")
    return found


def _codes(stream: TextIO, *, colour: bool | None) -> Mapping[str, str]:
    """Codes of the styles a stream can show; none if it is to be plain text."""
    wanted = os.environ.get("FORCE_COLOR") or stream.isatty()
    if colour is False or (colour is None and not wanted):
        return {}
    if colour or not os.environ.get("NO_COLOR"):
        return CODES
    plain = {style: code.split(";")[0] for style, code in CODES.items()}
    return {style: code for style, code in plain.items() if code in ("1", "2")}


def _painted(line: Line, codes: Mapping[str, str]) -> str:
    """A line as text, without spaces at its end."""
    left, parts = len(plain(line).rstrip()), []
    for span in line:
        text, code = span.text[: max(left, 0)], codes.get(span.style)
        left -= len(span.text)
        parts.append(f"\x1b[{code}m{text}\x1b[0m" if code and text else text)
    return "".join(parts)
