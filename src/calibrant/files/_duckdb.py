"""Text tables and Parquet, through a DuckDB of our own for each file."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.files import _sources as sources
from calibrant.files._sources import (
    Block,
    Entry,
    FileError,
    Held,
    Kind,
    Place,
    Request,
    Source,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY, THREADS = "320MB", "1"
"""Threads would add memory, not speed: the rows are reduced on every core anyway."""

FOLDER = partial(TemporaryDirectory, prefix="calibrant-", ignore_cleanup_errors=True)


@contextmanager
def database(path: Path) -> Iterator[tuple[DuckDBPyConnection, Path]]:
    """A database that can read one folder, and a folder of its own to write to.

    It is in memory, loads no extension, reaches no network and keeps to a third of a
    gigabyte.
    """
    duckdb = sources.optional(path, "duckdb", "pip install duckdb; or save it as .npz")
    with sources.reading(path), FOLDER() as own:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "preserve_insertion_order": "true",
            "memory_limit": MEMORY,
            "threads": THREADS,
            "temp_directory": own,
        }
        with duckdb.connect(":memory:", config=settings) as connection:
            folders = [f"{path.resolve().parent}/", f"{own}/"]
            spelt = [text(x) for folder in folders for x in (folder, literally(folder))]
            connection.execute(f"SET allowed_directories = [{', '.join(spelt)}]")
            connection.execute("SET disable_parquet_prefetching = true")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            yield connection, Path(own)


def text(value: str) -> str:
    """Text as SQL.

    >>> text("it's; DROP TABLE x")
    "'it''s; DROP TABLE x'"
    """
    return "'" + value.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A name as SQL.

    >>> identifier('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def literally(path: str) -> str:
    """A glob pattern that matches this path only.

    >>> literally("a[1].csv")
    'a[[]1].csv'
    """
    return re.sub(r"([\[*?])", r"[\1]", path)


def file_name(path: Path) -> str:
    """A path as SQL."""
    name = str(path.resolve())
    if (pattern := literally(name)) != name and "\\" in name and os.sep == "/":
        mixed = "has a backslash and one of *?[ in its path, which cannot be told apart"
        raise FileError(path, f"{mixed}; rename it.")
    return text(pattern)


AS_IT_IS = "hive_partitioning = false, union_by_name = false, filename = false"
"""Options of all reading: a folder called ``label=2`` is no column."""

LONGEST_HEADER = 1 << 20

# The database would move a bare TRY_CAST into its CSV reader, which does not try.
WIDE = 256
"""Columns from which on Python reads text tables: the database, which takes half the time
for fewer, needs memory for each of them, and more than it has for a thousand."""

LOOKED_AT = 10_000
"""Rows in which the first values of columns are looked for before the whole file is."""

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
"""Cells that say that there is no number, no cluster or no answer: R, pandas and databases
write them. A class or a group may be called so."""

PRESENT = f"trim({{}}) NOT IN ({', '.join(map(text, MISSING))})"
NUMBER = "TRY_CAST(trim({}) AS DOUBLE)"
TRUTH = "CASE lower(trim({})) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
TRUTHS = {"true": 1.0, "false": 0.0}


def open_delimited(held: Held, mark: str) -> Source:
    """Read the header and first values, which say what is a number and what text.

    Nothing is sniffed: comma (or tab), double quotes, UTF-8 with or without a byte order
    mark, any line ending, a first line of names. Columns go into SQL by number.
    """
    path = held.path
    with sources.reading(path):
        names = _header(path, mark)
    source, wide, width = _source(path, mark, len(names)), len(names) > WIDE, len(names)
    rows = _rows(held, mark, width)
    first = _first_of(rows, width) if wide else _first(path, source, width)
    made = map(_column, range(width), names, first)
    columns = {column.name: column for column in made}
    entries = tuple(Entry(c.name, c.kind, (None,), c.kind) for c in columns.values())
    places = {name: i for i, name in enumerate(names)}

    def blocks(request: Request) -> Iterator[Block]:
        as_text = {n: Column(n, columns[n].digits, "VARCHAR") for n in request.text}
        wanted = _wanted(columns | as_text, request)
        if wide:
            chosen = {column.name: column for column in wanted}
            yield from WideRows(held, mark, places, chosen).blocks(request)
            return
        limited = source if request.most is None else f"{source} LIMIT {request.most}"
        with database(path) as (connection, own):
            there = ParquetRows(connection, path, path, 0, wanted)
            yield from rewritten(there, limited, own, request.rows).blocks(request.rows)

    return Source(path, path.suffix[1:].lower(), None, entries, blocks)


def _first(path: Path, source: str, width: int) -> list[str | None]:
    """The first value of each column that is not missing, be it far down.

    The whole file is read only for columns that have none in its first rows.
    """
    found: list[str | None] = [None] * width
    with database(path) as (connection, _):
        for rows in (f"(SELECT * FROM {source} LIMIT {LOOKED_AT})", source):
            left = [i for i, value in enumerate(found) if value is None]
            listed = [
                f"any_value(c{i}) FILTER ({PRESENT.format(f'c{i}')})" for i in left
            ]
            values = _all(connection, f"SELECT {', '.join(listed)} FROM {rows}")[0]
            for i, value in zip(left, values, strict=True):
                found[i] = value
            if None not in found:
                break
    return found


def _first_of(rows: Iterable[list[str | None]], width: int) -> list[str | None]:
    """The same of rows that Python has read."""
    found: list[str | None] = [None] * width
    left = [*range(width)]
    for row in rows:
        for i in left:
            found[i] = None if is_missing(row[i]) else row[i]
        if not (left := [i for i in left if found[i] is None]):
            break
    return found


def is_missing(cell: str | None) -> bool:
    """Whether a cell of a text table says that there is no value.

    >>> is_missing(""), is_missing("NA"), is_missing("na")
    (True, True, False)
    """
    return cell is None or cell.strip() in MISSING


def _header(path: Path, mark: str) -> tuple[str, ...]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        start = file.read(LONGEST_HEADER)
    if len(start) == LONGEST_HEADER and not {"\n", "\r"} & set(start):
        raise FileError(path, "has a first line of more than a million characters.")
    names = tuple(next(csv.reader(io.StringIO(start, ""), delimiter=mark, strict=True)))
    shown = sources.quoted(names)
    if all(_is_number(name) for name in names):
        raise FileError(path, f"must begin with a line of column names, not {shown}.")
    sources.check_names(path, names)
    if any("\n" in name or "\r" in name for name in names):
        raise FileError(path, "has a line break in the name of a column.")
    others = [other for other in ",;\t|" if other != mark and other in names[0]]
    if len(names) == 1 and others:
        there, ours = ("tab" if x == "\t" else repr(x) for x in (others[0], mark))
        rule = f"columns are separated by {there}, not {ours}; pass --sep {there}"
        raise FileError(path, f"has one column, {shown}: {rule}.")
    return names


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _source(path: Path, mark: str, width: int) -> str:
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(width))
    return (
        f"read_csv({file_name(path)}, columns = {{{columns}}}, auto_detect = false, "
        f"{AS_IT_IS}, "
        f"header = true, delim = {text(mark)}, quote = '\"', escape = '\"', "
        "comment = '', nullstr = '', encoding = 'utf-8', compression = 'none', "
        "strict_mode = true, null_padding = false, ignore_errors = false)"
    )


def _column(number: int, name: str, value: str | None) -> Column:
    """A column whose first value that is not missing says what it holds."""
    if value is None or _is_number(value):
        return Column(name, NUMBER.format(f"c{number}"), "DOUBLE", f"c{number}")
    if value.strip().lower() in TRUTHS:
        return Column(name, TRUTH.format(f"c{number}"), "DOUBLE", f"c{number}")
    return Column(name, f"c{number}", "VARCHAR", f"c{number}")


def _wanted(columns: dict[str, Column], request: Request) -> list[Column]:
    chosen = [columns[name] for name in request.names]
    return [c if c.name in request.exact else replace(c, digits="") for c in chosen]


# -- tables of very many columns ------------------------------------------------------


def _rows(held: Held, mark: str, width: int) -> Iterator[list[str | None]]:
    """Rows of a text table after the first, which has the names; a missing cell is None."""
    bytes_of = io.BufferedReader(Place(held))
    with (
        sources.reading(held.path),
        io.TextIOWrapper(bytes_of, encoding="utf-8-sig", newline="") as file,
    ):
        lines = csv.reader(file, delimiter=mark, strict=True)
        next(lines)
        for row in lines:
            if row and len(row) != width:
                line = f"line {lines.line_num} has {len(row)} columns"
                raise FileError(held.path, f"{line}, and the first line has {width}.")
            if row:
                yield [cell or None for cell in row]


@dataclass(frozen=True, slots=True)
class WideRows:
    """Rows of a text table of so many columns that Python had better read it."""

    held: Held
    mark: str
    places: dict[str, int]
    columns: dict[str, Column]

    def blocks(self, request: Request) -> Iterator[Block]:
        """Ranges of rows, in order."""
        at = {name: self.places[name] for name in self.columns}
        plain = {
            n: i for n, i in at.items() if self.columns[n].sql == NUMBER.format(f"c{i}")
        }
        other = [c for c in self.columns.values() if c.name not in plain or c.digits]
        numbers, cells = list(plain.values()), [at[c.name] for c in other]
        rows = islice(_rows(self.held, self.mark, len(self.places)), request.most)
        picked = ((_floats(row, numbers), [row[i] for i in cells]) for row in rows)
        while part := list(islice(picked, request.rows)):
            table = np.array([floats for floats, _ in part]).T
            block = dict(zip(plain, table, strict=True))
            for i, column in enumerate(other):
                texts = [own[i] for _, own in part]
                block[column.name] = _of_cells(column, texts, block.get(column.name))
            yield block


def _floats(row: list[str | None], places: list[int]) -> NDArray[np.float64]:
    """Cells as numbers; what is none is NaN."""
    cells = [row[i] for i in places]
    try:
        return np.array([float(cell or "nan") for cell in cells])
    except ValueError:
        known = [cell is not None and _is_number(cell) for cell in cells]
        values = zip(cells, known, strict=True)
        return np.array([float(str(cell)) if yes else np.nan for cell, yes in values])


def _of_cells(
    column: Column, cells: list[str | None], numbers: NDArray[Any] | None
) -> NDArray[Any]:
    """What a column holds that is text, true or false, or numbers of many digits."""
    if numbers is not None:
        wide = (np.abs(numbers) >= sources.TOLD_APART) & (np.abs(numbers) <= 1e38)
        texts = [cell if yes else None for cell, yes in zip(cells, wide, strict=True)]
        return sources.with_digits(numbers, np.array(texts, dtype=object))
    if column.kind == "number":
        return np.array([TRUTHS.get((c or "").strip().lower(), np.nan) for c in cells])
    return np.array(cells, dtype=object)


COLUMNS_AT_ONCE, ROWS_AT_ONCE = 64, 1 << 15
"""More columns may need more memory for their pages than the database has; in row groups
of fewer rows, in proportion, pages are shorter."""

LARGE_GROUP = 4
"""Batches in a row group from which on rewriting it is worth the while: lists would be
unpacked from the start of the group for every batch."""

LEAST_GROUP, LARGEST_GROUP = 2048, 1 << 17

NUMBERS = re.compile(
    r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|UINTEGER|FLOAT|DOUBLE|BOOLEAN"
    r"|DECIMAL\(.*\))(\[\d*\])?"
)

PLAIN = ("FLOAT", "DOUBLE", "BOOLEAN")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a Parquet file: what it is called and its type in the database."""

    name: str
    sql: str
    dtype: str
    digits: str = ""  # the SQL of its text, where numbers may have more than a float64

    @property
    def is_list(self) -> bool:
        """Whether each row is a list."""
        return self.dtype.endswith("]")

    @property
    def kind(self) -> Kind:
        """What the column holds."""
        if NUMBERS.fullmatch(self.dtype):
            return "number"
        return "text" if self.dtype == "VARCHAR" or "ENUM(" in self.dtype else "other"

    @property
    def wide(self) -> str:
        """The SQL of the text of numbers that a float64 may have rounded."""
        if not self.digits or self.kind != "number":
            return "NULL"
        wide = f"abs({self.values}) BETWEEN {sources.TOLD_APART} AND 1e38"
        return f"CASE WHEN {wide} THEN trim({self.digits}) END"

    @property
    def values(self) -> str:
        """The SQL of what is fetched: numbers NumPy knows, text, lengths of lists."""
        if self.is_list:
            return f"len({self.sql})"
        if self.kind == "text":
            return f"CAST({self.sql} AS VARCHAR)"
        exact = self.dtype in PLAIN or self.dtype.endswith(("INT", "INTEGER"))
        wide = "HUGE" in self.dtype
        return self.sql if exact and not wide else f"CAST({self.sql} AS DOUBLE)"


def open_parquet(held: Held) -> Source:
    """Read the schema of a Parquet file."""
    path = held.path
    file, table = file_name(path), f"read_parquet({file_name(path)}, {AS_IT_IS})"
    with database(path) as (connection, _):
        rows = _one(connection, f"SELECT num_rows FROM parquet_file_metadata({file})")
        groups = f"SELECT max(row_group_num_rows) FROM parquet_metadata({file})"
        largest = _one(connection, groups) or 0
        found = _all(connection, f"DESCRIBE SELECT * FROM {table}")
        stored = _all(connection, f"SELECT name FROM parquet_schema({file})")
        columns = [_stored(name, dtype) for name, dtype, *_ in found]
        _check_twins(path, columns, {name for (name,) in stored})
        entries = [_with_width(connection, table, column, rows) for column in columns]
    by_name = {column.name: column for column in columns}

    def blocks(request: Request) -> Iterator[Block]:
        chosen = _wanted(by_name, request)
        with database(path) as (connection, own):
            at_once = COLUMNS_AT_ONCE * max(1, min(32, ROWS_AT_ONCE // max(largest, 1)))
            there = ParquetRows(connection, path, path, rows, chosen, at_once)
            large = largest > LARGE_GROUP * request.rows
            if large and request.most is None and any(c.is_list for c in chosen):
                there = rewritten(there, table, own, request.rows)
            yield from there.blocks(request.rows)

    return Source(path, "parquet", rows, tuple(entries), blocks)


def _stored(name: str, dtype: str) -> Column:
    sql = identifier(name)
    rounded = dtype.endswith("HUGEINT") or re.fullmatch(r"DECIMAL\(.*\)", dtype)
    return Column(name, sql, dtype, f"CAST({sql} AS VARCHAR)" if rounded else "")


def rewritten(there: ParquetRows, source: str, own: Path, rows: int) -> ParquetRows:
    """Write the columns wanted as Parquet again, one group per batch.

    Text tables are written too, for they cannot be entered in the middle at all.
    """
    numbered = list(enumerate(there.columns))
    listed = [f"{c.sql} AS c{i}" for i, c in numbered]
    listed += [f"{c.wide} AS w{i}" for i, c in numbered if c.digits]
    stored = own / "rows.parquet"
    group = max(LEAST_GROUP, min(rows, LARGEST_GROUP))
    how = f"{text(str(stored))} (FORMAT parquet, ROW_GROUP_SIZE {group})"
    rows = _one(
        there.connection, f"COPY (SELECT {', '.join(listed)} FROM {source}) TO {how}"
    )
    columns = [
        replace(c, sql=f"c{i}", digits=c.digits and f"w{i}") for i, c in numbered
    ]
    there = replace(there, parquet=stored, rows=int(rows), columns=columns)
    return replace(there, at_once=COLUMNS_AT_ONCE)


def _all(connection: DuckDBPyConnection, query: str) -> list[Any]:
    return connection.execute(query).fetchall()


def _one(connection: DuckDBPyConnection, query: str) -> Any:
    return _all(connection, query)[0][0]


def _with_width(
    connection: DuckDBPyConnection, table: str, column: Column, rows: int
) -> Entry:
    """The entry; of lists the first is looked at, the others must be as long."""
    first = f"SELECT {column.values} FROM {table} LIMIT 1"
    width = _one(connection, first) if column.is_list and rows else None
    shape = (rows, width) if column.is_list else (rows,)
    return Entry(column.name, column.dtype.lower(), shape, column.kind)


def _check_twins(path: Path, columns: list[Column], stored: set[str]) -> None:
    """The database renames the second of two equal names; then it is not in the file."""
    names = tuple(column.name for column in columns)
    for name in names:
        if name not in stored:
            raise FileError(
                path,
                "has two columns of the same name (in upper or lower case), one of them "
                f"read as {sources.shorten(name)!r}; rename one of them.",
            )
    sources.check_names(path, names)


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """Rows in a Parquet file; `path` is the file that errors name."""

    connection: DuckDBPyConnection
    path: Path
    parquet: Path
    rows: int
    columns: list[Column]
    at_once: int = COLUMNS_AT_ONCE

    def blocks(self, rows: int) -> Iterator[Block]:
        """Ranges of rows, in order."""
        for start in range(0, self.rows, rows):
            stop = min(start + rows, self.rows)
            block: Block = {}
            for first in range(0, len(self.columns), self.at_once):
                some = self.columns[first : first + self.at_once]
                block |= self._columns(some, start, stop)
            yield block

    def _columns(self, columns: list[Column], start: int, stop: int) -> Block:
        listed = [f"{c.values} AS c{i}" for i, c in enumerate(columns)]
        listed += [f"{c.wide} AS w{i}" for i, c in enumerate(columns) if c.digits]
        got, block = self._fetch(", ".join(listed), start, stop), Block()
        for i, column in enumerate(columns):
            values = got[f"c{i}"]
            if len(values) != stop - start:
                raise FileError(self.path, "has fewer rows than its header says.")
            if column.is_list:  # end to end, so no Python object for each of them
                width = sources.same_width(self.path, column.name, values, start)
                flat = self._fetch(f"unnest({column.sql}) AS v", start, stop)["v"]
                values = flat.reshape(stop - start, width)
            if column.digits and column.kind == "number":
                values = sources.with_digits(values, got[f"w{i}"])
            block[column.name] = values
        return block

    def _fetch(self, listed: str, start: int, stop: int) -> dict[str, NDArray[Any]]:
        got = self.connection.execute(
            f"SELECT {listed} FROM read_parquet({file_name(self.parquet)}, "
            f"{AS_IT_IS}, file_row_number = true) "
            f"WHERE file_row_number >= {start} AND file_row_number < {stop}"
        ).fetchnumpy()
        return {name: _without_mask(values) for name, values in got.items()}


def _without_mask(values: Any) -> NDArray[Any]:
    """Missing numbers as NaN, missing text as None."""
    if not np.ma.is_masked(values):
        return np.asarray(values)
    numbers = values.dtype.kind in "biuf"
    filled = np.array(values.data, dtype=np.float64 if numbers else object)
    filled[np.ma.getmaskarray(values)] = np.nan if numbers else None
    return filled
