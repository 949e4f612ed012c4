"""A table as plain text: aligned columns, a star on the best."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from textwrap import wrap

from acumen.table.cells import DAGGER, INFINITE, MISSING, Cell, Note, Table, one_line

ASCII = str.maketrans(
    {INFINITE: "inf", MISSING: "-", DAGGER: "+", "×": "x", "Δ": "d"},
)
NOTE_WIDTH = 88
BEST = "*"


def width(text: str) -> int:
    r"""Columns that text takes on a terminal: wide signs take two, accents none.

    Examples
    --------
    >>> width("ViT"), width("模型"), width("e\u0301")
    (3, 4, 1)
    """
    zero = ("Mn", "Me", "Cf")
    return sum(
        0
        if unicodedata.category(sign) in zero
        else 1 + (unicodedata.east_asian_width(sign) in "WF")
        for sign in text
    )


def in_ascii(text: str) -> str:
    """Our own signs in ASCII; letters of names stay.

    Examples
    --------
    >>> in_ascii("∞ and 0.12†")
    'inf and 0.12+'
    """
    return text.translate(ASCII)


def pad(text: str, to: int, *, left: bool = False) -> str:
    """Fill up with spaces: on the right, or on the left."""
    space = " " * (to - width(text))
    return space + text if left else text + space


def cell_text(cell: Cell, room: int = 0) -> str:
    """Number, mark and interval; places for mark and interval are kept.

    Examples
    --------
    >>> cell_text(Cell(0.1, "10.00", best=True)), cell_text(Cell(0.2, "20.00"))
    ('10.00*', '20.00 ')
    """
    sign = BEST if cell.best else cell.mark or " "
    return f"{cell.text}{sign}" + (f" {cell.interval:<{room}}" if room else "")


def grid(table: Table) -> list[list[str]]:
    """Heading and rows as texts, first column first."""
    lines = [["Model"], *([one_line(row.name)] for row in table.rows)]
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
    return [
        gap.join(
            pad(text, to, left=place > 0)
            for place, (text, to) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def legend(table: Table) -> tuple[Note, ...]:
    """The notes, and what the star means."""
    best = (Note("best of its column", BEST),) if table.has_best else ()
    return (*best, *table.notes) if table.notes else ()


def note_lines(notes: Sequence[Note], columns: int = NOTE_WIDTH) -> list[str]:
    """Notes, wrapped, each behind its mark."""
    lines = []
    for note in notes:
        start = f"{note.mark} " if note.mark else ""
        text = one_line(f"{start}{note.text}")
        indent = " " * width(start)
        lines += wrap(text, columns, subsequent_indent=indent, break_on_hyphens=False)
    return lines


def write_text(table: Table, *, unicode: bool = True) -> str:
    """The table as text; without Unicode, our own signs are spelt in ASCII."""
    spell = str if unicode else in_ascii
    # Words are longer than signs, so they are spelt before they are aligned.
    head, *rows = aligned([[spell(text) for text in line] for line in grid(table)])
    rule = "-" * max(map(width, (head, *rows)))
    notes = [spell(line) for line in note_lines(legend(table))]
    caption = [spell(one_line(table.caption)), ""] if table.caption else []
    return "\n".join([*caption, head, rule, *rows, *([""] if notes else []), *notes])
