"""Text tables (.csv, .tsv): every choice explicit, nothing sniffed.

Comma (or tab), double quotes, UTF-8 with or without a byte order mark, any line ending,
and a first line that names the columns. Columns go into SQL by number, not by name.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from acumen.files.database import database, file_name, text
from acumen.files.errors import FileError, quoted, reading
from acumen.files.parquet import Column, ParquetRows, rewritten
from acumen.files.sources import Block, Entry, Kind, Request, Source, check_names

LONGEST_HEADER = 1 << 20
# The database would move a bare TRY_CAST into its CSV reader, which does not try.
NUMBER = "TRY_CAST(trim({}) AS DOUBLE)"
TRUTH = "CASE lower(trim({})) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"


def open_delimited(path: Path, mark: str) -> Source:
    """Read the header and the first row, which says what is a number and what text."""
    with reading(path):
        names = _header(path, mark)
    source = _source(path, mark, len(names))
    with database(path) as (connection, _):
        first = connection.execute(f"SELECT * FROM {source} LIMIT 1").fetchone()
    values = first or (None,) * len(names)
    entries = tuple(map(_entry, names, values))
    columns = {
        name: Column(
            name, _sql(i, value), "DOUBLE" if e.kind == "number" else "VARCHAR"
        )
        for i, (name, value, e) in enumerate(zip(names, values, entries, strict=True))
    }

    def blocks(request: Request) -> Iterator[Block]:
        number = {name: i for i, name in enumerate(names)}
        wanted = [
            replace(columns[name], sql=f"c{number[name]}", dtype="VARCHAR")
            if name in request.text
            else columns[name]
            for name in request.names
        ]
        limited = source if request.most is None else f"{source} LIMIT {request.most}"
        with database(path) as (connection, own):
            there = ParquetRows(connection, path, path, 0, wanted)
            yield from rewritten(there, limited, own, request.rows).blocks(request.rows)

    return Source(path, path.suffix[1:].lower(), None, entries, blocks)


def _header(path: Path, mark: str) -> tuple[str, ...]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        start = file.read(LONGEST_HEADER)
    if len(start) == LONGEST_HEADER and not {"\n", "\r"} & set(start):
        raise FileError(path, "has a first line of more than a million characters.")
    names = tuple(next(csv.reader(io.StringIO(start, ""), delimiter=mark, strict=True)))
    _check_header(path, mark, names)
    return names


def _check_header(path: Path, mark: str, names: tuple[str, ...]) -> None:
    if all(_is_number(name) for name in names):
        raise FileError(
            path, f"must begin with a line of column names, not {quoted(names)}."
        )
    check_names(path, names)
    if any("\n" in name or "\r" in name for name in names):
        raise FileError(path, "has a line break in the name of a column.")
    others = [other for other in ",;\t|" if other != mark and other in names[0]]
    if len(names) == 1 and others:
        raise FileError(
            path,
            f"has one column, {quoted(names)}: it must have {mark!r} between columns, "
            f"not {others[0]!r}.",
        )


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
        f"header = true, delim = {text(mark)}, quote = '\"', escape = '\"', "
        "comment = '', nullstr = '', encoding = 'utf-8', compression = 'none', "
        "strict_mode = true, null_padding = false, ignore_errors = false)"
    )


def _entry(name: str, value: str | None) -> Entry:
    kind: Kind = "number" if value is None or _looks_like(value) else "text"
    return Entry(name, kind, (None,), kind)


def _looks_like(value: str) -> bool:
    return _is_number(value) or value.strip().lower() in ("true", "false")


def _sql(i: int, value: str | None) -> str:
    if value is None or _is_number(value):
        return NUMBER.format(f"c{i}")
    return TRUTH.format(f"c{i}") if _looks_like(value) else f"c{i}"
