"""A table in HTML: plain markup that a notebook shows in light and in dark."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape as escape_html

from calibrant._base.checks import one_line
from calibrant.table._layout import BOLD, Cell, Note, Row, Table

# Only what a bare page lacks; colours are the reader's own.
TABLE_STYLE = (
    "border-spacing:.8em .2em;border-collapse:separate;margin-left:-.8em;color:inherit;"
    "text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"
)

CAPTION_STYLE = "text-align:left;font-weight:bold;padding-left:.8em"
NAME_STYLE = "text-align:left;font-weight:normal"
NOTES_STYLE = "font-size:.85em;margin:.4em 0 0;padding:0;list-style:none;max-width:60em"

HEADINGS = {
    f"d_{part}": f'<i>d</i><sub style="line-height:0">{part}</sub>'
    for part in ("CAL", "TOT")
}


def escape(text: str) -> str:
    """Text that no browser takes for markup, also inside quotes."""
    return escape_html(one_line(text), quote=True)


def write_html(table: Table) -> str:
    """The table and its notes as one element."""
    name = f' id="{escape(table.label)}"' if table.label else ""
    start = [f'<div class="calibrant-table"{name}>', f'<table style="{TABLE_STYLE}">']
    head = ["<thead>", f"<tr>{_heads(table)}</tr>", "</thead>"]
    body = ["<tbody>", *map(_row, table.rows), "</tbody>", "</table>"]
    return "\n".join([*start, *_caption(table), *head, *body, *_notes(table), "</div>"])


def paragraphs(lines: Iterable[str]) -> str:
    """Lines above a table."""
    return f"<p>{'<br>'.join(map(escape, lines))}</p>"


def write_list(texts: Iterable[str]) -> str:
    """What to know beside a table, as a list."""
    items = [f"<li>{escape(text)}</li>" for text in texts if text]
    if not items:
        return ""
    return f'<ul style="max-width:60em;padding-left:1.2em">{"".join(items)}</ul>'


def _caption(table: Table) -> list[str]:
    text = escape(table.caption)
    return [f'<caption style="{CAPTION_STYLE}">{text}</caption>'] if text else []


def _heads(table: Table) -> str:
    first = f'<th scope="col" style="text-align:left">{table.first}</th>'
    return first + "".join(
        f'<th scope="col" class="calibrant-{heading.key}">'
        f"{HEADINGS.get(heading.label, escape(heading.label))}</th>"
        for heading in table.headings
    )


def _row(row: Row) -> str:
    head = f'<th scope="row" style="{NAME_STYLE}">{escape(row.name)}</th>'
    return f"<tr>{head}{''.join(map(_cell, row.cells))}</tr>"


def _cell(cell: Cell) -> str:
    kind = "best" if cell.best else "trivial" if cell.trivial else ""
    named = f' class="calibrant-{kind}"' if kind else ""
    text = f"<strong>{cell.text}</strong>" if cell.best else cell.text
    mark = _mark(cell.mark) if cell.mark else ""
    interval = f" <small>{cell.interval}</small>" if cell.interval else ""
    return f"<td{named}>{text}{mark}{interval}</td>"


def _notes(table: Table) -> list[str]:
    items = [f"<li>{_note(note)}</li>" for note in table.notes_with(BOLD)]
    if not items:
        return []
    return [f'<ul class="calibrant-notes" style="{NOTES_STYLE}">', *items, "</ul>"]


def _note(note: Note) -> str:
    text = escape(note.text)
    for plain, markup in HEADINGS.items():
        text = text.replace(plain, markup)
    return f"{_mark(note.mark)} {text}" if note.mark else text


def _mark(sign: str) -> str:
    return f'<sup style="line-height:0">{sign}</sup>'
