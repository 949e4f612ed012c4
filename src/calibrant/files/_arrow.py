"""Arrow files and streams (.arrow, .feather), through PyArrow if it is installed."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.files import _sources as sources
from calibrant.files._sources import Block, Entry, Held, Kind, Place, Request, Source

FILE_MARK = b"ARROW1"


def open_arrow(held: Held) -> Source:
    """Read the schema of an Arrow file."""
    path = held.path
    with _reader(path) as reader:  # names are decoded only when they are asked for
        entries = tuple(_entry(field) for field in reader.schema)
    sources.check_names(path, tuple(entry.name for entry in entries))
    with sources.reading(path):
        surveyed = list(_survey(held))
    largest = max((size for _, size in surveyed), default=0)
    sources.check_expansion(path, "a record batch", largest, held.size)
    rows_in_all = sum(rows for rows, _ in surveyed)

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

    return Source(path, "arrow", rows_in_all, entries, blocks)


SCHEMA, DICTIONARY = 1, 2


def _survey(held: Held) -> Iterator[tuple[int, int]]:
    """Rows of each record batch and the bytes it unpacks to, from headers alone.

    Messages follow each other: a mark and a length, a header in the form of flatbuffers,
    a body. Until Arrow 0.15 there was no mark.
    """
    at = 8 if Place(held).read(6) == FILE_MARK else 0
    while len(first := Place(held, at).read(8)) == 8:
        mark, size = struct.unpack("<iI", first)
        start = at + (8 if mark == -1 else 4)
        if not 0 < (size := size if mark == -1 else mark) <= held.size - start:
            return
        header = Header(Place(held, start).read(size))
        message = header.read("I", 0)
        kind, body = header.byte(message, 1), start + size
        if kind != SCHEMA and (batch := header.table(message, 2)):
            if kind == DICTIONARY:
                batch = header.table(batch, 1)
            rows = 0 if kind == DICTIONARY else header.number(batch, 0)
            yield rows, sum(_unpacked(held, header, batch, body))
        at = body + max(header.number(message, 3), 0)


def _unpacked(held: Held, header: Header, batch: int, body: int) -> Iterator[int]:
    """Bytes of each buffer of a batch; one that is packed begins with their number."""
    packed, buffers = header.place(batch, 3), header.table(batch, 2)
    for i in range(header.read("I", buffers) if buffers else 0):
        offset, length = (header.read("q", buffers + 4 + 16 * i + x) for x in (0, 8))
        said = Place(held, max(body + offset, 0)).read(8) if packed and length else b""
        yield max(length, int.from_bytes(said, "little", signed=True))


class Header(bytes):
    """A flatbuffer: tables whose fields are found by their number; 0 is nowhere."""

    def read(self, form: str, at: int) -> int:
        """The number at a place."""
        return int(struct.unpack_from(f"<{form}", self, at)[0])

    def place(self, table: int, field: int) -> int:
        """Where a field is."""
        fields = table - self.read("i", table)
        there = 4 + 2 * field < self.read("H", fields)
        offset = self.read("H", fields + 4 + 2 * field) if there else 0
        return table + offset if offset else 0

    def table(self, table: int, field: int) -> int:
        """Where the table, or list, is that a field points to."""
        at = self.place(table, field)
        return at + self.read("I", at) if at else 0

    def number(self, table: int, field: int) -> int:
        """A field that is a 64-bit number."""
        at = self.place(table, field)
        return self.read("q", at) if at else 0

    def byte(self, table: int, field: int) -> int:
        """A field that is a byte."""
        at = self.place(table, field)
        return self[at] if at else 0


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
