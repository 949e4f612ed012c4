"""JSON, strictly: an object per example, no NaN, no name twice, no change of type.

Lines are read one by one in Python, so that every error can name its line; an array of
objects, or an object of arrays, is read at once.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any, NoReturn

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

LONGEST_LINE = 1 << 24
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


FIRST = 100
"""Objects that are looked at to say what each may have: the first may lack something."""

LARGEST = 1 << 28
"""Bytes of an array of objects, which is read at once."""


def open_jsonl(held: Held) -> Source:
    """Read the first lines, which say what each line must have."""
    return _source(held.path, "jsonl", lambda: _records(held))


def open_json(held: Held) -> Source:
    """Read an array of objects, or an object of arrays of the same length."""
    path = held.path
    if held.size > LARGEST:
        lines = "save one object per line, as .jsonl, which is read in pieces"
        raise FileError(path, f"is larger than {LARGEST >> 20} MB; {lines}.")
    with sources.reading(path), io.BufferedReader(Place(held)) as file:
        found = _decoded(path, file.read().removeprefix(BYTE_ORDER_MARK), "the file")
    records = _of_arrays(path, found) if isinstance(found, dict) else found
    if not isinstance(records, list) or not all(isinstance(x, dict) for x in records):
        raise FileError(path, 'must be an array of objects, [{"label": 1, ...}, ...].')
    return _source(path, "json", lambda: enumerate(records, 1))


def _of_arrays(path: Path, found: dict[str, Any]) -> list[dict[str, Any]]:
    """An object of arrays, one for each name, as an array of objects."""
    arrays = {name: x for name, x in found.items() if isinstance(x, list)}
    lengths = {name: len(x) for name, x in arrays.items()}
    if not arrays or len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name!r}: {n}" for name, n in [*lengths.items()][:6])
        rule = "an object must hold arrays of the same length, one per column"
        raise FileError(path, f"{rule}; it has {{{shown}}}.")
    rows = zip(*arrays.values(), strict=True)
    return [dict(zip(arrays, row, strict=True)) for row in rows]


def _source(path: Path, given: str, read: Callable[[], Iterable[Numbered]]) -> Source:
    first: dict[str, Any] = {}
    with sources.reading(path):
        for _, record in islice(read(), FIRST):
            first |= {n: x for n, x in record.items() if first.get(n) is None}
    if not first:
        raise FileError(path, "has no rows.")
    entries = tuple(_entry(name, value) for name, value in first.items())
    known = {entry.name: entry for entry in entries}

    def blocks(request: Request) -> Iterator[Block]:
        texts = {n: replace(known[n], dtype="any", kind="text") for n in request.text}
        wanted = [(known | texts)[name] for name in request.names]
        with sources.reading(path):
            records = (_some(record, request) for record in read())
            while part := list(islice(records, request.rows)):
                yield {x.name: _column(path, part, x, request) for x in wanted}

    return Source(path, given, None, entries, blocks)


def _entry(name: str, value: Any) -> Entry:
    if isinstance(value, list):
        numbers = all(_is_number(item) for item in value)
        kind: Kind = "number" if numbers and value else "other"
        return Entry(name, "list", (None, len(value)), kind)
    if _is_number(value):
        word = "number" if value is None else type(value).__name__
        return Entry(name, word, (None,), "number")
    if isinstance(value, str):
        return Entry(name, "text", (None,), "text")
    return Entry(
        name, "objects" if isinstance(value, dict) else "list", (None,), "other"
    )


def _is_number(value: Any) -> bool:
    """Whether JSON has a number, true, false or null here."""
    return value is None or isinstance(value, bool | int | float)


Numbered = tuple[int, dict[str, Any]]


def _records(held: Held) -> Iterator[Numbered]:
    """Objects with the numbers of their lines; blank lines are passed by."""
    path = held.path
    with io.BufferedReader(Place(held)) as file:
        for number in count(1):
            if not (line := file.readline(LONGEST_LINE)):
                return
            if number == 1:
                line = line.removeprefix(BYTE_ORDER_MARK)
            if len(line) == LONGEST_LINE:
                raise FileError(path, f"line {number} is longer than 16 MB.")
            if line.strip():
                yield number, _record(path, number, line)


def _some(numbered: Numbered, request: Request) -> Numbered:
    """What is asked for of a line; the rest, which may be long, is let go."""
    number, record = numbered
    return number, {name: record[name] for name in request.names if name in record}


def _decoded(path: Path, content: bytes, what: str) -> Any:
    try:
        return _DECODER.decode(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        problem = f"{what} is not strict JSON: {sources.one_line(str(error))}."
        raise FileError(path, problem) from error


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    record = _decoded(path, line, f"line {number}")
    if not isinstance(record, dict):
        raise FileError(path, f"line {number} must be an object: {{...}}.")
    return record


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a name occurs twice")
    return record


_DECODER = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_no_twins)


def _column(
    path: Path, part: list[Numbered], entry: Entry, request: Request
) -> NDArray[Any]:
    values = []
    for number, record in part:
        value = record.get(entry.name, None if request.missing else _ABSENT)
        if value is None and request.missing and len(entry.shape) == 2:
            value = [None] * int(entry.shape[1] or 0)
        if not _fits(value, entry):
            raise _misfit(path, number, entry, value)
        values.append(value)
    if entry.kind == "number" and entry.name in request.exact and len(entry.shape) == 1:
        return sources.exactly(values)
    if entry.kind == "number":
        return np.array(values, dtype=np.float64)
    texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
    return np.array(texts, dtype=object)


def _misfit(path: Path, number: int, entry: Entry, value: Any) -> FileError:
    name = repr(sources.shorten(entry.name))
    where = f"{'item' if path.suffix == '.json' else 'line'} {number}"
    if value is _ABSENT:
        way_out = "--drop-missing leaves such examples out"
        return FileError(path, f"{name} is missing in {where}; {way_out}.")
    first = "text" if entry.kind == "text" else "a number"
    if len(entry.shape) == 2:
        first = f"a list of {entry.shape[1]} numbers"
    what = sources.shorten(repr(value), 40)
    return FileError(path, f"{name} is {what} in {where}, but the first is {first}.")


_ABSENT = object()


def _fits(value: Any, entry: Entry) -> bool:
    if len(entry.shape) == 2:
        fits = isinstance(value, list) and len(value) == entry.shape[1]
        return fits and all(_is_number(item) for item in value)
    if entry.kind == "number" or entry.dtype == "any":
        return _is_number(value) or (entry.kind == "text" and isinstance(value, str))
    return value is None or isinstance(value, str)
