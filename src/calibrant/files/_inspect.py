"""What is in a file, and how it would be read."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.files import _sources as sources
from calibrant.files._open import Paths, find_files, format_of, open_all
from calibrant.files._plan import Roles, as_roles, make_plan, shape_words
from calibrant.files._sources import Block, Entry, FileError, Request, Source

LOOKED_AT = 10_000  # rows from which ranges and examples are taken
MOST_SHOWN = 40  # entries that are looked at and printed

ID = re.compile(
    r"(?i:(.*[_ .-])?(id|uuid|patient|subject|person|user|question|prompt|game|match"
    r"|session|video|document))|[a-z]+Id",
)
"""Names of columns that say what a row belongs to: patient_id, question, gameId."""

FEWEST_IDS, REPEATS = 10, 1.1
"""Ids are like clusters if there are so many, each with so many rows on average."""


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
    and which option helps. `repeated` are columns of ids that occur more than once in the
    first rows, with the number of distinct ones.
    """

    path: Path
    format: str
    files: int
    rows: int | None
    items: tuple[Item, ...]
    reading: str | None
    problem: str | None
    repeated: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        many = f", the first of {self.files} files" if self.files > 1 else ""
        rows = "" if self.rows is None else f", {self.rows:,} rows"
        lines = [sources.one_line(f"{self.path}: {self.format}{rows}{many}")]
        lines += aligned([item.cells for item in self.items[:MOST_SHOWN]])
        if len(self.items) > MOST_SHOWN:
            lines.append(f"  and {len(self.items) - MOST_SHOWN} more")
        said = f"Reads as: {self.reading}." if self.reading else self.problem
        lines.append(str(said))
        for name in self.repeated:
            column = repr(sources.shorten(name))
            together = f"{column} repeats: rows of one {column} may belong together"
            lines.append(f"{together} (--cluster {column}).")
        return "\n".join(lines)


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
    first = files if format_of(files[0]).together else files[0]
    with closing(open_all(first)) as opened:
        return _contents(next(opened), len(files), as_roles(roles))


def _contents(source: Source, files: int, roles: Roles) -> Contents:
    problem = how = rows = None
    try:
        plan = make_plan(source, roles)
        how, name = plan.sentence, plan.names[0]
        rows = source[name].shape[0] if source.rows is None else source.rows
        if rows is None:
            blocks = source.blocks(Request((name,), LOOKED_AT))
            rows = sum(len(block[name]) for block in blocks)
    except FileError as error:
        problem, how = str(error), None
    seen = _look(source)
    items = tuple(_item(entry, seen.get(entry.name)) for entry in source.entries)
    about = source.path, source.format, files, rows, items, how, problem
    repeated = {x: n for x, n in _repeated(seen).items() if x != roles.cluster}
    return Contents(*about, repeated=repeated)


def repeated_ids(paths: Paths) -> dict[str, int]:
    """Columns of ids that repeat in the first rows of a file, and how many there are.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/model.npz"
    >>> ids = np.arange(60) // 3
    >>> np.savez(path, prob=ids / 60, outcome=ids % 2, patient_id=ids, row_id=range(60))
    >>> repeated_ids(path)
    {'patient_id': 20}
    >>> folder.cleanup()
    """
    with closing(open_all(paths)) as opened:
        source = next(opened)
        named = {entry.name for entry in source.entries if ID.fullmatch(entry.name)}
        return _repeated(_look(source, named)) if named else {}


def _repeated(seen: Block) -> dict[str, int]:
    found = {}
    for name, values in seen.items():
        if ID.fullmatch(name) and values.ndim == 1:
            count = len(set(values.tolist()))
            if count >= FEWEST_IDS and REPEATS * count <= len(values):
                found[name] = count
    return found


def _look(source: Source, wanted: Container[str] | None = None) -> Block:
    """The first rows: of a table at once, of arrays one by one."""
    entries: Sequence[Entry] = source.entries[:MOST_SHOWN]
    if wanted is not None:
        entries = [e for e in source.entries if e.name in wanted]
    first = [e for e in entries if e.kind != "other"]
    usable = [e.name for e in first if e.shape and 0 not in e.shape]
    together = [tuple(usable)] if source.is_table and usable else [(n,) for n in usable]
    seen: Block = {}
    for names in together:
        with suppress(FileError):  # how it would be read says what is wrong
            seen |= next(source.blocks(Request(names, LOOKED_AT, most=LOOKED_AT)), {})
    return seen


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
