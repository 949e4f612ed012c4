"""A table for programs: numbers as measured, as CSV or as a frame."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import numpy as np

from acumen.encoding import Frame, to_frame
from acumen.table.cells import Table


def write_csv(table: Table) -> str:
    """The table as CSV (RFC 4180): full precision, never x100.

    Texts are quoted, numbers are not. A name that a spreadsheet would run as a formula
    gets an apostrophe in front: the file is made for spreadsheets, and a name is not
    worth running code. The frame and JSON keep every name as it is.
    """
    columns = dict(_columns(table))
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
    """The table as a Polars or pandas frame, or a dict of arrays without either."""
    names = np.array([row.name for row in table.rows])
    numbers = {key: np.array(values) for key, values in _columns(table)}
    return to_frame({"model": names, **numbers})


def _columns(table: Table) -> Iterator[tuple[str, list[float]]]:
    """Values by name; if the table shows intervals, their ends too."""
    for place, heading in enumerate(table.headings):
        cells = [row.cells[place] for row in table.rows]
        yield heading.key, [cell.value for cell in cells]
        if table.intervals:
            yield f"{heading.key}_low", [cell.low for cell in cells]
            yield f"{heading.key}_high", [cell.high for cell in cells]
