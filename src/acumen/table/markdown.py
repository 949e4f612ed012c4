"""A table in Markdown, with pipes, as GitHub and Jupyter read it."""

from __future__ import annotations

import re

from acumen.table.cells import Cell, Note, Table, one_line
from acumen.table.text import pad, width


def escape(text: str) -> str:
    r"""Text that no reader of Markdown takes for markup.

    Examples
    --------
    >>> print(escape("a|b *c* <img>"))
    a\|b \*c\* \<img\>
    """
    return re.sub(r"([\\`*_{}\[\]<>#|~$&!^])", r"\\\1", one_line(text))


def write_markdown(table: Table) -> str:
    """The table in Markdown."""
    head = ["Model", *(escape(heading.label) for heading in table.headings)]
    body = [[escape(r.name), *(_cell(c) for c in r.cells)] for r in table.rows]
    widths = [max(3, *map(width, column)) for column in zip(head, *body, strict=True)]
    rule = [":" + "-" * (widths[0] - 1), *("-" * (to - 1) + ":" for to in widths[1:])]
    lines = [_line(line, widths) for line in (head, rule, *body)]
    if table.caption:
        lines = [f"**{escape(table.caption)}**", "", *lines]
    if table.notes:
        best = (Note("Bold: best of its column."),) if table.has_best else ()
        lines += ["", *(f"- {_note(note)}" for note in (*best, *table.notes))]
    return "\n".join(lines)


def _line(texts: list[str], widths: list[int]) -> str:
    cells = [
        pad(text, to, left=place > 0)
        for place, (text, to) in enumerate(zip(texts, widths, strict=True))
    ]
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    text = f"**{cell.text}**" if cell.best else cell.text
    interval = f" {escape(cell.interval)}" if cell.interval else ""
    return f"{text}{cell.mark}{interval}"


def _note(note: Note) -> str:
    return escape(f"{note.mark} {note.text}" if note.mark else note.text)
