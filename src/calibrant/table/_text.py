"""Tables as plain text, Markdown, CSV and frames."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterator, Sequence
from textwrap import wrap

import numpy as np

from calibrant._base.checks import one_line
from calibrant._base.records import Frame, to_frame
from calibrant.table._layout import (
    BOLD,
    DAGGER,
    INFINITE,
    MISSING,
    Cell,
    Note,
    Table,
)

# ----------------------------------------------------------------------------
# A table as plain text: aligned columns, a star on the best.


ASCII = str.maketrans({INFINITE: "inf", MISSING: "-", DAGGER: "+", "×": "x", "Δ": "d"})

NOTE_WIDTH = 88
BEST = "*"


def width(text: str) -> int:
    r"""Columns that text takes on a terminal: wide signs take two, accents none."""
    zero = ("Mn", "Me", "Cf")
    return sum(
        0
        if unicodedata.category(sign) in zero
        else 1 + (unicodedata.east_asian_width(sign) in "WF")
        for sign in text
    )


def in_ascii(text: str) -> str:
    """Our own signs in ASCII; letters of names stay."""
    return text.translate(ASCII)


def pad(text: str, to: int, *, left: bool = False) -> str:
    """Fill up with spaces: on the right, or on the left."""
    space = " " * (to - width(text))
    return space + text if left else text + space


def cell_text(cell: Cell, room: int = 0) -> str:
    """Number, mark and interval; places for mark and interval are kept."""
    sign = BEST if cell.best else cell.mark or " "
    return f"{cell.text}{sign}" + (f" {cell.interval:<{room}}" if room else "")


def grid(table: Table) -> list[list[str]]:
    """Heading and rows as texts, first column first."""
    lines = [[table.first], *([one_line(row.name)] for row in table.rows)]
    for place, heading in enumerate(table.headings):
        cells = [row.cells[place] for row in table.rows]
        room = max(len(cell.interval) for cell in cells)
        column = [f"{heading.short} ", *(cell_text(cell, room) for cell in cells)]
        for line, text in zip(lines, column, strict=True):
            line.append(text)
    return lines


def aligned(lines: list[list[str]], gap: str = "  ") -> list[str]:
    """Names to the left, numbers to the right."""
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    return [gap.join(padded(line, widths)).rstrip() for line in lines]


def padded(texts: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Texts filled up to their widths: the first on the right, others on the left."""
    pairs = enumerate(zip(texts, widths, strict=True))
    return [pad(text, to, left=place > 0) for place, (text, to) in pairs]


def legend(table: Table) -> tuple[Note, ...]:
    """The notes, and what the star means."""
    return table.notes_with(Note("best of its column", BEST))


def note_lines(notes: Sequence[Note], columns: int = NOTE_WIDTH) -> list[str]:
    """Notes, wrapped, each behind its mark."""
    lines = []
    for note in notes:
        start = f"{note.mark} " if note.mark else ""
        text = one_line(f"{start}{note.text}")
        indent = " " * width(start)
        lines += _wrapped(text, columns, indent)
    return lines


def _wrapped(text: str, columns: int, indent: str) -> list[str]:
    """Lines of a text; a number and its per cent sign stay on one."""
    kept = text.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = wrap(kept, columns, subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}%", " %") for line in lines]


def write_text(table: Table, *, unicode: bool = True) -> str:
    """The table as text; without Unicode, our own signs are spelt in ASCII."""
    spell = str if unicode else in_ascii
    # Words are longer than signs, so they are spelt before they are aligned.
    head, *rows = aligned([[spell(text) for text in line] for line in grid(table)])
    rule = "-" * max(map(width, (head, *rows)))
    notes = [spell(line) for line in note_lines(legend(table))]
    caption = [spell(one_line(table.caption)), ""] if table.caption else []
    return "\n".join([*caption, head, rule, *rows, *([""] if notes else []), *notes])


# ----------------------------------------------------------------------------
# A table in Markdown, with pipes, as GitHub and Jupyter read it.


def escape(text: str) -> str:
    r"""Text that no reader of Markdown takes for markup."""
    return re.sub(r"([\\`*_{}\[\]<>#|~$&!^])", r"\\\1", one_line(text))


def write_markdown(table: Table) -> str:
    """The table in Markdown."""
    head = [table.first, *(escape(heading.label) for heading in table.headings)]
    body = [[escape(r.name), *(_cell(c) for c in r.cells)] for r in table.rows]
    widths = [max(3, *map(width, column)) for column in zip(head, *body, strict=True)]
    rule = [":" + "-" * (widths[0] - 1), *("-" * (to - 1) + ":" for to in widths[1:])]
    lines = [_line(line, widths) for line in (head, rule, *body)]
    if table.caption:
        lines = [f"**{escape(table.caption)}**", "", *lines]
    if notes := table.notes_with(BOLD):
        lines += ["", *(f"- {_note(note)}" for note in notes)]
    return "\n".join(lines)


def _line(texts: list[str], widths: list[int]) -> str:
    return f"| {' | '.join(padded(texts, widths))} |"


def _cell(cell: Cell) -> str:
    text = f"**{cell.text}**" if cell.best else cell.text
    interval = f" {escape(cell.interval)}" if cell.interval else ""
    return f"{text}{cell.mark}{interval}"


def _note(note: Note) -> str:
    return escape(f"{note.mark} {note.text}" if note.mark else note.text)


# ----------------------------------------------------------------------------
# A table for programs: numbers as measured, as CSV or as a frame.


def write_csv(table: Table) -> str:
    """The table as CSV (RFC 4180): full precision, never x100.

    Texts are quoted, numbers are not. A name that a spreadsheet would run as a formula
    gets an apostrophe in front: the file is made for spreadsheets, and a name is not
    worth running code. The frame and JSON keep every name as it is.
    """
    columns = {**table.apart, **dict(_columns(table))}
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    writer.writerow(["model", *columns])
    for row, *values in zip(table.rows, *columns.values(), strict=True):
        writer.writerow([as_text(row.name), *values])
    return text.getvalue()


def as_text(name: str) -> str:
    """A name that no spreadsheet takes for a formula.

    Examples
    --------
    >>> as_text("=1+1"), as_text("ViT + TS")
    ("'=1+1", 'ViT + TS')
    """
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name


def write_frame(table: Table) -> Frame:
    """The table as a frame of pandas, else of Polars, else a dict of arrays, as installed."""
    names = np.array([row.name for row in table.rows])
    numbers = {key: np.array(values) for key, values in _columns(table)}
    return to_frame({"model": names, **table.apart, **numbers})


def _columns(table: Table) -> Iterator[tuple[str, list[float]]]:
    """Values by name; if the table shows intervals, their ends too."""
    for place, heading in enumerate(table.headings):
        cells = [row.cells[place] for row in table.rows]
        yield heading.key, [cell.value for cell in cells]
        if table.intervals:
            yield f"{heading.key}_low", [cell.low for cell in cells]
            yield f"{heading.key}_high", [cell.high for cell in cells]
