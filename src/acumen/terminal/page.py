"""What the terminal shows: table, findings and diagrams, made to fit a width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isinf

from acumen.comparison import EFFECTS, Comparison
from acumen.table import Cell, Note, Table, make_table
from acumen.table.cells import one_line
from acumen.table.columns import choose
from acumen.table.footnotes import names
from acumen.table.numbers import Style
from acumen.table.text import NOTE_WIDTH, grid, in_ascii, legend, note_lines, pad, width
from acumen.terminal.diagram import diagram, top_of
from acumen.terminal.spans import Line, Span, beside, plain, shorten, spelt
from acumen.terminal.sparkline import sparkline
from acumen.words import head_lines, remarks

FIRST_TO_GO = ("ace", "smooth_ece", "nll", "fit_seconds", "ece", "impossible", "tied")
"""Columns that a narrow terminal does without, in this order."""

GAP = "  "
SPARK, PANEL, GAP_OF_PANELS, TALL, MOST_ROWS = 16, 38, 2, 11, 3


def page(comparison: Comparison, columns: int, *, unicode: bool = True) -> list[Line]:
    """Everything, line by line."""
    scores = Comparison(comparison.evaluations)
    parts: list[list[Line]] = [
        [(Span(text, "dim"),) for text in _wrapped(head_lines(comparison), columns)],
        list(_table(scores, columns, unicode=unicode)),
    ]
    if comparison.effects:
        title: Line = (Span("What recalibration did", "title"),)
        effects = _table(comparison, columns, EFFECTS, unicode=unicode)
        parts.append([title, *effects])
    parts.append(list(_notes(remarks(comparison), columns)))
    parts += _diagrams(comparison, columns, unicode=unicode)
    lines: list[Line] = []
    for part in filter(None, parts):
        lines += [(), *part] if lines else part
    return lines if unicode else [spelt(line) for line in lines]


def _wrapped(lines: Sequence[str], columns: int) -> list[str]:
    return note_lines([Note(line) for line in lines], columns)


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
    lines = [
        tuple(Span(text, style) for text, style in line)
        for line in _styled(table, unicode=unicode)
    ]
    room = width(plain(lines[0])) + len(GAP) + SPARK
    if "brier" in kept and room <= columns:
        lines = [
            (*line, Span(GAP + text, style))
            for line, (text, style) in zip(
                lines, _sparks(comparison, unicode=unicode), strict=True
            )
        ]
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
    rows = tuple(
        replace(row, name=shorten(one_line(row.name), longest)) for row in table.rows
    )
    return replace(table, rows=rows)


def _styled(table: Table, *, unicode: bool) -> list[list[tuple[str, str]]]:
    """Aligned texts with styles, the heading first."""
    spell = str if unicode else in_ascii
    texts = [[spell(text) for text in line] for line in grid(table)]
    widths = [max(map(width, column)) for column in zip(*texts, strict=True)]
    styles = [
        ["title"] * (len(table.headings) + 1),
        *(["name", *(_style(cell) for cell in row.cells)] for row in table.rows),
    ]
    return [
        [
            (_padded(text, to, place), style)
            for place, (text, to, style) in enumerate(
                zip(line, widths, chosen, strict=True)
            )
        ]
        for line, chosen in zip(texts, styles, strict=True)
    ]


def _padded(text: str, to: int, place: int) -> str:
    return pad(text, to) if place == 0 else GAP[1:] + pad(text, to, left=True)


def _style(cell: Cell) -> str:
    if cell.best:
        return "best"
    return "trivial" if cell.trivial else "bad" if isinf(cell.value) else ""


def _sparks(comparison: Comparison, *, unicode: bool) -> list[tuple[str, str]]:
    lines = [sparkline(ev.histogram, SPARK, unicode=unicode) for ev in comparison]
    return [
        ("confidence 0→1".ljust(SPARK), "title"),
        *((line, "rows") for line in lines),
    ]


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
    top = top_of(shown)
    wide = min(48, (columns + GAP_OF_PANELS) // in_a_row - GAP_OF_PANELS)
    panels = [diagram(ev, wide, TALL, top, unicode=unicode) for ev in shown]
    for start in range(0, len(panels), in_a_row):
        yield beside(panels[start : start + in_a_row], GAP_OF_PANELS)
    key = [Note("sharpness band, as published at bandwidth 0.05", "░")]
    if len(comparison) > len(shown):
        key.append(Note(f"Not drawn: {names(comparison.names[len(shown) :])}."))
    yield list(_notes(key, columns))
