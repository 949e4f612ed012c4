"""JSON lines, strictly: one object per line, no NaN, no name twice, no change of type.

Read line by line in Python, so that every error can name its line.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
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


def open_jsonl(held: Held) -> Source:
    """Read the first line, which says what each line must have."""
    path = held.path
    with sources.reading(path):
        first = next(_records(held), None)
    if first is None:
        raise FileError(path, "has no rows.")
    entries = tuple(_entry(name, value) for name, value in first[1].items())
    known = {entry.name: entry for entry in entries}

    def blocks(request: Request) -> Iterator[Block]:
        texts = {n: replace(known[n], dtype="any", kind="text") for n in request.text}
        wanted = [(known | texts)[name] for name in request.names]
        with sources.reading(path):
            records = (_some(record, request) for record in _records(held))
            while part := list(islice(records, request.rows)):
                yield {x.name: _column(path, part, x, request.exact) for x in wanted}

    return Source(path, "jsonl", None, entries, blocks)


def _entry(name: str, value: Any) -> Entry:
    if isinstance(value, list):
        numbers = all(_is_number(item) for item in value)
        kind: Kind = "number" if numbers and value else "other"
        return Entry(name, "list", (None, len(value)), kind)
    if _is_number(value):
        word = "number" if value is None else type(value).__name__
        return Entry(name, word, (None,), "number")
    return Entry(name, "text", (None,), "text" if isinstance(value, str) else "other")


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


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = _DECODER.decode(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        problem = f"line {number} is not strict JSON: {sources.one_line(str(error))}."
        raise FileError(path, problem) from error
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
    path: Path, part: list[Numbered], entry: Entry, exact: frozenset[str]
) -> NDArray[Any]:
    values = []
    for number, record in part:
        value = record.get(entry.name, _ABSENT)
        if not _fits(value, entry):
            name = repr(sources.shorten(entry.name))
            what = "missing" if value is _ABSENT else sources.shorten(repr(value), 40)
            first = "text" if entry.kind == "text" else "a number"
            if len(entry.shape) == 2:
                first = f"a list of {entry.shape[1]} numbers"
            rule = f"but the first line has {first}"
            raise FileError(path, f"{name} is {what} in line {number}, {rule}.")
        values.append(value)
    if entry.kind == "number" and entry.name in exact and len(entry.shape) == 1:
        return sources.exactly(values)
    if entry.kind == "number":
        return np.array(values, dtype=np.float64)
    texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
    return np.array(texts, dtype=object)


_ABSENT = object()


def _fits(value: Any, entry: Entry) -> bool:
    if len(entry.shape) == 2:
        fits = isinstance(value, list) and len(value) == entry.shape[1]
        return fits and all(_is_number(item) for item in value)
    if entry.kind == "number" or entry.dtype == "any":
        return _is_number(value) or (entry.kind == "text" and isinstance(value, str))
    return value is None or isinstance(value, str)
