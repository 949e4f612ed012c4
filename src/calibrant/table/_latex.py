"""A table in LaTeX: booktabs is the only package it needs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from calibrant._base.checks import one_line
from calibrant.table._layout import BOLD, Cell, Note, Row, Table

SPELT = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # The quotes by number: as letters, packages for some languages read them as commands.
    '"': r"\symbol{34}",
    "`": r"\symbol{96}",
    "[": "{[}",  # at the start of a row it would be an argument of \\
    "]": "{]}",
    "*": "{*}",  # the same
    "∞": r"$\infty$",
    "†": r"$^\dagger$",
    "×": r"$\times$",
    "–": r"\textendash{}",
    "Δ": r"$\Delta$",
}

HEADINGS = {
    "d_CAL": r"$d_{\mathrm{CAL}}$",
    "d_TOT": r"$d_{\mathrm{TOT}}$",
    "SmoothECE": "Smooth ECE",
}


def escape(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    Letters beyond ASCII are kept: pdfLaTeX knows the European ones, XeLaTeX and
    LuaLaTeX all.
    """
    spelt = "".join(SPELT.get(sign, sign) for sign in one_line(text))
    # Two hyphens, commas or quotes in a row would become one sign.
    return re.sub(r"([-,'])(?=\1)", r"\1{}", spelt)


def write_latex(table: Table) -> str:
    """The table as a float, with its notes and caption below."""
    heads = [table.first, *(_heading(heading.label) for heading in table.headings)]
    lines = [
        r"\begin{table}[tb]",
        r"  \centering\small\setlength{\tabcolsep}{3pt}",
        rf"  \begin{{tabular}}{{@{{}}l{'r' * len(table.headings)}@{{}}}}",
        r"    \toprule",
        f"    {_line(heads)}",
        r"    \midrule",
        *(f"    {line}" for row in table.rows for line in _lines(row)),
        r"    \bottomrule",
        r"  \end{tabular}",
        *_notes(table),
        *([f"  \\caption{{{escape(table.caption)}}}"] if table.caption else []),
        *([f"  \\label{{{_label(table.label)}}}"] if table.label else []),
        r"\end{table}",
    ]
    return "\n".join(lines)


def _line(texts: list[str]) -> str:
    return " & ".join(texts) + r" \\"


def _lines(row: Row) -> Iterator[str]:
    """A model, and its intervals below: beside the values they are wider than a page."""
    yield _line([escape(row.name), *map(_cell, row.cells)])
    if any(cell.interval for cell in row.cells):
        yield _line(["", *map(_interval, row.cells)]) + "[2pt]"


def _heading(label: str) -> str:
    """A label; one of several words stands on two lines, since pages are narrow."""
    text = HEADINGS.get(label, escape(label))
    if " " not in text:
        return text
    first, rest = text.split(" ", 1)
    return rf"\begin{{tabular}}[b]{{@{{}}r@{{}}}}{first}\\{rest}\end{{tabular}}"


def _number(text: str) -> str:
    """A number with a minus sign instead of a hyphen."""
    return escape(text).replace("-", "$-$")


def _cell(cell: Cell) -> str:
    text = _number(cell.text)
    if cell.best:
        text = rf"\textbf{{{text}}}"
    mark = rf"\rlap{{{escape(cell.mark)}}}" if cell.mark else ""  # keeps digits aligned
    return f"{text}{mark}"


def _interval(cell: Cell) -> str:
    return rf"{{\scriptsize {_number(cell.interval)}}}" if cell.interval else ""


def _notes(table: Table) -> list[str]:
    texts = [f"    {_note(note)}" for note in table.notes_with(BOLD)]
    if not texts:
        return []
    return [r"  \par\smallskip", r"  \parbox{\linewidth}{\footnotesize", *texts, "  }"]


def _note(note: Note) -> str:
    text = escape(note.mark + note.text)
    for part in ("d_CAL", "d_TOT"):
        text = text.replace(escape(part), HEADINGS[part])
    return re.sub(r"(?<![\w$-])-(?=\d)", "$-$", text)  # a minus, not a hyphen


def _label(label: str) -> str:
    """A label that can be referred to; there is no way to escape the others."""
    strange = re.search(r"[^\w:./+ -]", label)
    if strange or not label.isascii():
        raise ValueError(
            "label must be made of letters, digits, spaces and any of : . / + - _ for "
            f"LaTeX, got {label!r}."
        )
    return label
