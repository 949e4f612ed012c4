"""Tables of models: one set of cells, written as text, Markdown, LaTeX, HTML or CSV."""

from calibrant.table._layout import Cell, Heading, Note, Row, Table
from calibrant.table._table import make_table, table

__all__ = ["Cell", "Heading", "Note", "Row", "Table", "make_table", "table"]
