"""Tables of models: one set of cells, written as text, Markdown, LaTeX, HTML or CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from calibrant._base.checks import check_choice
from calibrant._base.comparison import as_comparison
from calibrant.table._footnotes import Shown
from calibrant.table._footnotes import footnotes as notes_of
from calibrant.table._html import write_html
from calibrant.table._latex import write_latex
from calibrant.table._layout import Row, Style, Table, cells_of, choose
from calibrant.table._text import write_csv, write_frame, write_markdown, write_text

FORMATS: dict[str, Callable[[Table], Any]] = {
    "text": write_text,
    "markdown": write_markdown,
    "latex": write_latex,
    "html": write_html,
    "csv": write_csv,
    "frame": write_frame,
}


def table(
    models: Any,
    format: str = "text",  # noqa: A002
    *,
    columns: str | Sequence[str] | None = None,
    percent: bool = True,
    digits: int = 2,
    intervals: bool = False,
    best: bool = True,
    footnotes: bool = True,
    caption: str | None = None,
    label: str | None = None,
) -> Any:
    r"""Write models and their numbers as a table.

    The best of each column is bold (in text, starred), and so is what equals it as
    printed. A model with (nearly) one confidence for all rows is never the best in a
    calibration column: where its error is the lowest, a dagger says that this is trivial.

    Parameters
    ----------
    models : Comparison, Evaluation or list of Evaluation
        What to show, one row each.
    format : {"text", "markdown", "latex", "html", "csv", "frame"}
        LaTeX needs the package booktabs. CSV and frame hold the numbers as measured,
        whatever `percent` and `digits` say.
    columns : str or sequence of str, optional
        Names of columns, or a set: ``"paper"`` (the default: the paper's columns, d_CAL
        and sharpness gap), ``"study"`` (with what recalibration did), ``"effects"``
        (that alone) or ``"all"``.
    percent : bool
        Whether shares, errors and scores are written x100.
    digits : int
        Digits after the point.
    intervals : bool
        Whether intervals are shown, where there are any.
    best, footnotes : bool
        Whether to mark the best, and whether to say below what to watch out for.
    caption, label : str, optional
        Title of the table, and its name: for ``\ref`` in LaTeX, the id in HTML.

    Returns
    -------
    str or frame
        The table. A frame is one of Polars or pandas, or a dict of arrays.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.table import table
    >>> careful = cal.evaluate_pairs([1, 1, 0, 1], [0.9, 0.8, 0.3, 0.8], name="careful")
    >>> bold = cal.evaluate_pairs([1, 1, 0, 1], [0.9, 0.9, 0.8, 0.9], name="bold")
    >>> names = ["accuracy", "ece", "brier"]
    >>> print(table([careful, bold], columns=names, footnotes=False))
    Model      Acc     ECE   Brier
    -------------------------------
    careful  75.00*  20.00*   4.50*
    bold     75.00*  27.50   16.75
    """
    check_choice(format, "format", tuple(FORMATS))
    made = make_table(
        models,
        Style(percent, digits, intervals, best),
        columns=columns,
        footnotes=footnotes,
        caption=caption or "",
        label=label or "",
    )
    return FORMATS[format](made)


def make_table(
    models: Any,
    style: Style,
    *,
    columns: str | Sequence[str] | None = None,
    footnotes: bool = True,
    caption: str = "",
    label: str = "",
) -> Table:
    """The cells that every format writes."""
    comparison, style = as_comparison(models), style.checked()
    chosen = choose(columns, comparison)
    by_column = [cells_of(column, comparison, style) for column in chosen]
    by_model = zip(*by_column, strict=True)
    rows = tuple(map(Row, comparison.names, by_model))
    keys = tuple(column.key for column in chosen)
    notes = notes_of(Shown(comparison, keys, rows, style)) if footnotes else ()
    headings = tuple(column.heading for column in chosen)
    return Table(headings, rows, notes, caption, label, style.intervals)
