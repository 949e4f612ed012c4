"""Arrow files and streams (.arrow, .feather), through PyArrow if it is installed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.files import _sources as sources
from calibrant.files._sources import Block, Entry, Held, Kind, Request, Source

FILE_MARK = b"ARROW1"


def open_arrow(held: Held) -> Source:
    """Read the schema of an Arrow file."""
    path = held.path
    with _reader(path) as reader:  # names are decoded only when they are asked for
        entries = tuple(_entry(field) for field in reader.schema)
    sources.check_names(path, tuple(entry.name for entry in entries))

    def blocks(request: Request) -> Iterator[Block]:
        names, rows, text = request.names, request.rows, request.text
        first = 0
        for batch in _batches(path):
            for start in range(0, batch.num_rows, rows):
                part = batch.slice(start, rows)
                at = first + start
                with sources.reading(path):
                    yield {name: _numpy(path, part, name, at, text) for name in names}
            first += batch.num_rows

    return Source(path, "arrow", None, entries, blocks)


@contextmanager
def _reader(path: Path) -> Iterator[Any]:
    way_out = "pip install 'calibrant[arrow]'; or save it as .parquet"
    arrow = sources.optional(path, "pyarrow", way_out)
    ipc = importlib.import_module("pyarrow.ipc")
    with sources.reading(path), arrow.OSFile(str(path), "rb") as file:
        with path.open("rb") as start:
            is_file = start.read(len(FILE_MARK)) == FILE_MARK
        with (ipc.open_file if is_file else ipc.open_stream)(file) as reader:
            yield reader


def _batches(path: Path) -> Iterator[Any]:
    """The record batches, each checked in full, for the bytes may be anyone's."""
    with _reader(path) as reader:
        if hasattr(reader, "num_record_batches"):
            parts = (reader.get_batch(i) for i in range(reader.num_record_batches))
        else:
            parts = iter(reader)
        for batch in parts:
            batch.validate(full=True)
            yield batch


def _entry(field: Any) -> Entry:
    types = importlib.import_module("pyarrow").types
    inner = field.type
    shape: tuple[int | None, ...] = (None,)
    if types.is_fixed_size_list(inner):
        inner, shape = inner.value_type, (None, field.type.list_size)
    elif types.is_list(inner) or types.is_large_list(inner):
        inner, shape = inner.value_type, (None, None)
    elif types.is_dictionary(inner):
        inner = inner.value_type
    kind: Kind = "other"
    if types.is_floating(inner) or types.is_integer(inner) or types.is_boolean(inner):
        kind = "number"
    elif types.is_string(inner) or types.is_large_string(inner):
        kind = "text" if len(shape) == 1 else "other"
    return Entry(field.name, str(field.type), shape, kind)


def _numpy(
    path: Path, batch: Any, name: str, start: int, text: frozenset[str]
) -> NDArray[Any]:
    arrow = importlib.import_module("pyarrow")
    compute = importlib.import_module("pyarrow.compute")
    column = batch.column(batch.schema.get_field_index(name))
    if arrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if name in text and not arrow.types.is_string(column.type):
        column = column.cast(arrow.string())
    if not arrow.types.is_nested(column.type):
        return _plain(arrow, column)
    lengths = compute.list_value_length(column).cast(arrow.float64())
    lengths = lengths.to_numpy(zero_copy_only=False)
    width = sources.same_width(path, name, lengths, start)
    return _plain(arrow, column.flatten()).reshape(len(column), width)


def _plain(arrow: Any, column: Any) -> NDArray[Any]:
    """Missing numbers as NaN, missing text as None."""
    if arrow.types.is_boolean(column.type):
        column = column.cast(arrow.uint8())
    if column.null_count and arrow.types.is_integer(column.type):
        column = column.cast(arrow.float64())
    return np.asarray(column.to_numpy(zero_copy_only=False))
