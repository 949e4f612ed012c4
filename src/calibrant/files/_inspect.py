"""What is in a file, and how it would be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.files import _sources as sources
from calibrant.files._open import Paths, find_files, format_of, open_all
from calibrant.files._plan import Roles, make_plan, shape_words
from calibrant.files._sources import Block, Entry, FileError, Request, Source

LOOKED_AT = 10_000  # rows from which ranges and examples are taken
MOST_SHOWN = 40  # entries that are looked at and printed


@dataclass(frozen=True, slots=True)
class Item:
    """One array or column: its type and shape, and a look at its first rows."""

    name: str
    dtype: str
    shape: str
    low: float | None = None
    high: float | None = None
    example: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """What is printed, in columns."""
        span = "" if self.low is None else f"{self.low:.6g} to {self.high:.6g}"
        name = repr(sources.shorten(self.name, 40))
        return name, self.dtype, self.shape, span, self.example


@dataclass(frozen=True, slots=True)
class Contents:
    """What `inspect` found.

    `reading` says how the file would be read, or is None; then `problem` says why not
    and which option helps.
    """

    path: Path
    format: str
    files: int
    rows: int | None
    items: tuple[Item, ...]
    reading: str | None
    problem: str | None

    def __str__(self) -> str:
        many = f", the first of {self.files} files" if self.files > 1 else ""
        rows = "" if self.rows is None else f", {self.rows:,} rows"
        lines = [sources.one_line(f"{self.path}: {self.format}{rows}{many}")]
        lines += aligned([item.cells for item in self.items[:MOST_SHOWN]])
        if len(self.items) > MOST_SHOWN:
            lines.append(f"  and {len(self.items) - MOST_SHOWN} more")
        said = f"Reads as: {self.reading}." if self.reading else self.problem
        return "\n".join([*lines, str(said)])


def aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of cells below each other; what a file holds must not break a line."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        line = "  ".join(map(str.ljust, row, widths))
        shown = "".join(c if c.isprintable() else " " for c in line)
        lines.append(f"  {shown.rstrip()}")
    return lines


def inspect(paths: Paths, roles: Roles | None = None) -> Contents:
    """Say what is in a file (the first, of several) and how it would be read.

    Ranges and examples are those of the first 10,000 rows.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/model.npz"
    >>> np.savez(path, prob=[0.9, 0.2, 0.7], outcome=[1, 0, 1])
    >>> inspect(path).reading
    "probs 'prob', label 'outcome'"
    >>> folder.cleanup()
    """
    files = find_files(paths)
    source = next(iter(open_all(files if format_of(files[0]).together else files[0])))
    problem = how = rows = None
    try:
        plan = make_plan(source, roles or Roles())
        how, name = plan.sentence, plan.names[0]
        rows = source[name].shape[0] if source.rows is None else source.rows
        if rows is None:
            blocks = source.blocks(Request((name,), LOOKED_AT))
            rows = sum(len(block[name]) for block in blocks)
    except FileError as error:
        problem, how = str(error), None
    items = tuple(_items(source))
    return Contents(source.path, source.format, len(files), rows, items, how, problem)


def _items(source: Source) -> Iterator[Item]:
    """Entries with a look at their rows: of a table at once, of arrays one by one."""
    first = [e for e in source.entries[:MOST_SHOWN] if e.kind != "other"]
    usable = [e.name for e in first if e.shape and 0 not in e.shape]
    together = [tuple(usable)] if source.is_table and usable else [(n,) for n in usable]
    seen: Block = {}
    for names in together:
        with suppress(FileError):  # how it would be read says what is wrong
            seen |= next(source.blocks(Request(names, LOOKED_AT, most=LOOKED_AT)), {})
    for entry in source.entries:
        yield _item(entry, seen.get(entry.name))


def _item(entry: Entry, values: NDArray[Any] | None) -> Item:
    dtype = "text" if entry.kind == "text" else sources.shorten(entry.dtype, 30)
    if values is None or not len(values):
        return Item(entry.name, dtype, shape_words(entry))
    low = high = None
    example = sources.shorten(str(values[0]), 40)
    if values.ndim > 1:
        more = ", …" if values[0].size > 3 else ""
        numbers = ", ".join(f"{x:.4g}" for x in values[0].ravel()[:3])
        example = f"[{numbers}{more}]"
    if values.dtype.kind in "biuf" and not np.isnan(values).all():
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return Item(entry.name, dtype, shape_words(entry), low, high, example)
