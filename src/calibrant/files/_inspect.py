"""What is in a file, and how it would be read."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.files import _sources as sources
from calibrant.files._harness import HARNESS_NAMES
from calibrant.files._open import Paths, find_files, format_of, open_all
from calibrant.files._plan import Plan, Roles, as_roles, make_plan, shape_words
from calibrant.files._read import DELIMITED, is_empty, lacking, numbers_of, options_in
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
    missing: int = 0

    @property
    def cells(self) -> tuple[str, ...]:
        """What is printed, in columns."""
        span = "" if self.low is None else f"{self.low:.6g} to {self.high:.6g}"
        name = repr(sources.shorten(self.name, 40))
        missing = f"{self.missing:,}" if self.missing else ""
        return name, self.dtype, self.shape, span, self.example, missing


HEADINGS = ("name", "type", "shape", "range", "first", "missing")


@dataclass(frozen=True, slots=True)
class Contents:
    """What `inspect` found.

    `reading` says how the file would be read, or is None; then `problem` says why not
    and which option helps. `repeated` are columns of ids that occur more than once in the
    first rows, with the number of distinct ones. `looked_at` is the number of rows that
    ranges are of, if not all. `incomplete` says whether a column that would be read has
    missing values.
    """

    path: Path
    format: str
    files: int
    rows: int | None
    items: tuple[Item, ...]
    reading: str | None
    problem: str | None
    repeated: Mapping[str, int] = field(default_factory=dict)
    looked_at: int | None = None
    incomplete: bool = False

    def __str__(self) -> str:
        many = f", the first of {self.files} files" if self.files > 1 else ""
        rows = "" if self.rows is None else f", {self.rows:,} examples"
        named = self.format in HARNESS_NAMES and "log-prob" not in self.format
        by = "written by " if named else ""
        lines = [sources.one_line(f"{self.path}: {by}{self.format}{rows}{many}")]
        lines += aligned([HEADINGS, *(item.cells for item in self.items[:MOST_SHOWN])])
        if len(self.items) > MOST_SHOWN:
            lines.append(f"  and {len(self.items) - MOST_SHOWN} more")
        if self.looked_at is not None:
            lines.append(f"Range and missing: of the first {self.looked_at:,} rows.")
        said = f"Reads as: {self.reading}." if self.reading else self.problem
        lines.append(str(said))
        if self.incomplete:
            empty = ", if a cell is empty or NA" * (self.format in DELIMITED)
            said = f"--drop-missing leaves them out{empty}"
            lines.append(f"Examples with a missing value: {said}.")
        for name in self.repeated:
            column = repr(sources.shorten(name))
            together = f"{column} repeats: examples with the same one may be dependent"
            lines.append(f"{together} (--cluster {column}).")
        return "\n".join(lines)


def aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of cells below each other; what a file holds must not break a line.

    A column without a cell is left out, with its heading.
    """
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    rows = [*zip(*columns, strict=True)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        line = "  ".join(map(str.ljust, row, widths))
        shown = "".join(c if c.isprintable() else " " for c in line)
        lines.append(f"  {shown.rstrip()}")
    return lines


def inspect(paths: Paths, roles: Roles | None = None) -> Contents:
    """Say what is in a file (the first, of several) and how it would be read.

    Ranges and missing values are those of the first 10,000 rows, which is said if there
    are more.

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
    asked = as_roles(roles)
    with closing(open_all(first, asked.sep)) as opened:
        return _contents(next(opened), len(files), asked)


def _contents(source: Source, files: int, roles: Roles) -> Contents:
    problem = how = rows = None
    used: Container[str] = source.names
    options: tuple[Any, ...] = ()
    try:
        plan = make_plan(source, roles)
        options = options_in(source.path, roles) if roles.ragged else ()
        used = plan.names
        how, name = f"{plan.sentence}{_options(source, plan, roles)}", plan.names[0]
        rows = source[name].shape[0] if source.rows is None else source.rows
        if rows is None:
            asked = Request((name,), LOOKED_AT, _spelt(source, roles), missing=True)
            blocks = source.blocks(replace(asked, options=options))
            rows = sum(len(block[name]) for block in blocks)
    except FileError as error:
        problem, how = str(error), None
    seen = _look(source, spelt=_spelt(source, roles), options=options)
    read = max(map(len, seen.values()), default=0)
    if rows is None and source.is_table and 0 < read < LOOKED_AT:
        rows = read
    entries: Sequence[Entry] = source.entries
    if options:  # of which the first example need not have all
        entries = [
            replace(e, shape=(*e.shape[:1], *[None] * (len(e.shape) - 1)))
            for e in entries
        ]
    if roles.spelt:
        seen, entries = _with_numbers(source, seen, roles)
    items = tuple(_item(entry, seen.get(entry.name), rows) for entry in entries)
    partly = LOOKED_AT if read >= LOOKED_AT and rows != read else None
    about = source.path, source.format, files, rows, items, how, problem
    repeated = {x: n for x, n in _repeated(seen).items() if x != roles.cluster}
    lacks = any(item.missing and item.name in used for item in items)
    return Contents(*about, repeated=repeated, looked_at=partly, incomplete=lacks)


def _options(source: Source, plan: Plan, roles: Roles) -> str:
    """Which options there are, where questions may differ in theirs."""
    name = plan.scores[0]
    differ = roles.ragged or source.ragged or source[name].dtype == sources.OPTIONS
    if not differ or source.options_in is None or len(source[name].shape) == 1:
        return ""
    found = source.options_in(name)
    names = sorted(x for x in found if isinstance(x, str))  # the others have numbers
    named = f" ({sources.quoted(names)})" if names else ""
    return f", up to {len(found)} options{named}"


def _with_numbers(
    source: Source, seen: Block, roles: Roles
) -> tuple[Block, list[Entry]]:
    """What was seen, where text that is numbers in the spelling of the roles is numbers."""
    seen, entries = dict(seen), []
    for given in source.entries:
        entry, cells = given, seen.get(given.name)
        if entry.kind == "text" and cells is not None and cells.ndim == 1:
            found = numbers_of(cells, roles)
            empty = np.array([is_empty(cell) for cell in cells], bool)
            if not empty.all() and not np.isnan(found[~empty]).any():
                seen[entry.name] = found
                entry = replace(entry, dtype="number", kind="number")
        entries.append(entry)
    return seen, entries


def repeated_ids(paths: Paths, sep: str | None = None) -> dict[str, int]:
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
    with closing(open_all(paths, sep)) as opened:
        source = next(opened)
        named = {entry.name for entry in source.entries if ID.fullmatch(entry.name)}
        return _repeated(_look(source, named)) if named else {}


COUNTS = ("count", "counts", "n")
"""Names of columns that may say how many examples a row stands for."""


def unread_counts(
    path: Path, read: Container[str], sep: str | None = None
) -> str | None:
    """A column that may count the examples of each row, beside those that are `read`.

    It is called so and holds whole numbers, but those of the rows.
    """
    seen: Block = {}
    with suppress(FileError), closing(open_all(path, sep)) as opened:
        source = next(opened)
        named = {x for x in source.names if x.lower() in COUNTS and x not in read}
        seen = _look(source, named) if named and source.is_table else {}
    for name, values in seen.items():
        if values.ndim == 1 and values.dtype.kind in "iuf" and (values > 1).any():
            whole = (values >= 0) & (values == np.floor(values))
            if (whole | np.isnan(values)).all() and (np.diff(values) != 1).any():
                return name
    return None


def _repeated(seen: Block) -> dict[str, int]:
    found = {}
    for name, values in seen.items():
        if ID.fullmatch(name) and values.ndim == 1:
            count = len(set(values.tolist()))
            if count >= FEWEST_IDS and REPEATS * count <= len(values):
                found[name] = count
    return found


def _spelt(source: Source, roles: Roles) -> frozenset[str]:
    """Columns of text that may be numbers as the roles spell them, among which are plain ones."""
    texts = (e for e in source.entries if e.kind == "text" and len(e.shape) == 1)
    return frozenset(e.name for e in texts if roles.spelt and source.is_table)


def _look(
    source: Source,
    wanted: Container[str] | None = None,
    spelt: frozenset[str] = frozenset(),
    options: tuple[Any, ...] = (),
) -> Block:
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
            few = Request(names, LOOKED_AT, spelt, most=LOOKED_AT, missing=True)
            seen |= next(source.blocks(replace(few, options=options)), {})
    return seen


def _item(entry: Entry, values: NDArray[Any] | None, rows: int | None) -> Item:
    dtype = "text" if entry.kind == "text" else sources.shorten(entry.dtype, 30)
    if entry.shape and entry.shape[0] is None and rows is not None:
        entry = replace(entry, shape=(rows, *entry.shape[1:]))
    shape = shape_words(entry)
    if values is None or not len(values):
        return Item(entry.name, dtype, shape)
    low = high = None
    known = values[~np.isneginf(values)] if values.dtype.kind in "biuf" else values[:0]
    if known.size and not np.isnan(known).all():
        low, high = float(np.nanmin(known)), float(np.nanmax(known))
    missing = int(lacking(values).sum())
    return Item(entry.name, dtype, shape, low, high, _first(values, dtype), missing)


def _first(values: NDArray[Any], dtype: str) -> str:
    """The first value, or the first numbers of the first list."""
    if values.ndim > 1:
        more = ", …" if values[0].size > 3 else ""
        return f"[{', '.join(f'{x:.4g}' for x in values[0].ravel()[:3])}{more}]"
    if lacking(values).all():
        return ""
    first = values[~lacking(values)][:1].tolist()[0]
    if values.dtype.kind in "fiu" and dtype.startswith("bool"):
        return {0: "false", 1: "true"}.get(first, "")
    shown = f"{first:.6g}" if isinstance(first, float) else str(first)
    return sources.shorten(shown, 40)
