"""JSON, strictly: an object per example, no NaN, no name twice, no change of type.

Lines are read one by one in Python, so that every error can name its line; an array of
objects, or an object of arrays, is read at once.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count, islice
from math import inf
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from calibrant.files import _sources as sources
from calibrant.files._harness import harness_of
from calibrant.files._harness_base import Harness
from calibrant.files._sources import (
    OPTIONS,
    Block,
    Entry,
    FileError,
    Held,
    Kind,
    Numbered,
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
    path = held.path
    with sources.reading(path):
        harness = _harness_in(record for _, record in _records(held, LENIENT))
    if harness is None:
        with _of_no_harness():
            return source_of_records(path, "jsonl", lambda: _records(held))
    return source_of_records(
        path, harness.name, lambda: harness.rows(path, _records(held, LENIENT)), harness
    )


def _harness_in(records: Iterable[Any]) -> Harness | None:
    """The harness that wrote one of the first records: the very first may be damaged."""
    given = iter(records)
    found = harness_of(next(given, None))
    with suppress(FileError):  # who reads it says so
        return found or next(filter(None, map(harness_of, islice(given, FIRST))), None)
    return None


def open_json(held: Held) -> Source:
    """Read an array of objects, an object of arrays of the same length, or a log."""
    path = held.path
    if held.size > LARGEST:
        lines = "save one object per line, as .jsonl, which is read in pieces"
        with _of_no_harness():
            raise FileError(path, f"is larger than {LARGEST >> 20} MB; {lines}.")
    with sources.reading(path), io.BufferedReader(Place(held)) as file:
        content = file.read().removeprefix(BYTE_ORDER_MARK)
    found = decoded(path, content, "the file", LENIENT)
    if harness := _harness_in(found if isinstance(found, list) else [found]):
        with sources.reading(path):
            rows = list(harness.rows(path, found))
        return source_of_records(path, harness.name, lambda: rows, harness)
    with _of_no_harness():
        return _open_table(path, decoded(path, content, "the file"))


@contextmanager
def _of_no_harness() -> Iterator[None]:
    """Say of errors that a file of other content has them."""
    try:
        yield
    except FileError as error:
        error.of_no_harness = True
        raise


def _open_table(path: Path, found: Any) -> Source:
    records = _of_arrays(path, found) if isinstance(found, dict) else found
    if not isinstance(records, list) or not all(isinstance(x, dict) for x in records):
        raise FileError(path, 'must be an array of objects, [{"label": 1, ...}, ...].')
    return source_of_records(path, "json", lambda: enumerate(records, 1))


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


def source_of_records(
    path: Path,
    given: str,
    read: Callable[[], Iterable[Numbered]],
    harness: Harness | None = None,
) -> Source:
    """A table of objects, which `read` gives again and again, from the first."""
    first: dict[str, Any] = {}
    with sources.reading(path):
        for _, record in islice(read(), FIRST):
            first |= {n: x for n, x in record.items() if _is_blank(first.get(n))}
    if not first:
        raise FileError(path, "has no rows.")
    ragged = harness is not None
    entries = tuple(_entry(name, value, ragged) for name, value in first.items())
    known = {entry.name: entry for entry in entries}

    def blocks(request: Request) -> Iterator[Block]:
        texts = {n: replace(known[n], dtype="any", kind="text") for n in request.text}
        wanted = [(known | texts)[name] for name in request.names]
        with sources.reading(path):
            records = (_some(record, request) for record in read())
            while part := list(islice(records, request.rows)):
                yield {x.name: _column(path, part, x, request) for x in wanted}

    def options_in(name: str) -> tuple[Any, ...]:
        with sources.reading(path):
            return _options((record.get(name) for _, record in read()), known[name])

    roles = {} if harness is None else harness.roles_in(path, first)
    return Source(
        path,
        given,
        None,
        entries,
        blocks,
        roles=roles,
        ragged=ragged,
        sure=harness is not None and harness.sure,
        options_in=options_in,
    )


def _options(values: Iterable[Any], entry: Entry) -> tuple[Any, ...]:
    """All options there are: names of objects, or places in lists."""
    names: dict[Any, None] = {}
    for value in values:
        if entry.dtype == OPTIONS:
            names |= dict.fromkeys(value if isinstance(value, dict) else ())
        elif isinstance(value, list):
            names |= dict.fromkeys(range(len(value)))
    return tuple(names)


def _entry(name: str, value: Any, ragged: bool) -> Entry:  # noqa: FBT001
    if isinstance(value, list):
        numbers = all(_is_number(item) for item in value)
        kind: Kind = "number" if numbers and value else "other"
        return Entry(name, "list", (None, None if ragged else len(value)), kind)
    if _is_number(value):
        word = "number" if value is None else type(value).__name__
        return Entry(name, word, (None,), "number")
    if isinstance(value, str):
        return Entry(name, "text", (None,), "text")
    if isinstance(value, dict) and value and all(map(_is_number, value.values())):
        return Entry(name, OPTIONS, (None, len(value)), "other")
    return Entry(name, "objects", (None,), "other")


def _is_number(value: Any) -> bool:
    """Whether JSON has a number, true, false or null here."""
    return value is None or isinstance(value, bool | int | float)


def _is_blank(value: Any) -> bool:
    """Whether nothing stands here: null, or text without a sign."""
    return value is None or (isinstance(value, str) and not value.strip())


def _no_constant(word: str) -> NoReturn:
    way_out = "; write null where there is no number" if word == "NaN" else ""
    raise ValueError(f"{word} is not JSON{way_out}")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a name occurs twice")
    return record


STRICT = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_no_twins)
LENIENT = json.JSONDecoder(object_pairs_hook=_no_twins)
"""Harnesses write NaN and Infinity where Python has them."""


def _records(held: Held, decoder: json.JSONDecoder = STRICT) -> Iterator[Numbered]:
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
                yield number, _record(path, number, line, decoder)


def _some(numbered: Numbered, request: Request) -> Numbered:
    """What is asked for of a line; the rest, which may be long, is let go."""
    number, record = numbered
    return number, {name: record[name] for name in request.names if name in record}


def decoded(
    path: Path, content: bytes, what: str, decoder: json.JSONDecoder = STRICT
) -> Any:
    """What JSON says; `what` of the file it is."""
    try:
        return decoder.decode(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        problem = f"{what} is not strict JSON: {sources.one_line(str(error))}."
        raise FileError(path, problem) from error


def _record(
    path: Path, number: int, line: bytes, decoder: json.JSONDecoder
) -> dict[str, Any]:
    record = decoded(path, line, f"line {number}", decoder)
    if not isinstance(record, dict):
        raise FileError(path, f"line {number} must be an object: {{...}}.")
    return record


def _column(
    path: Path, part: list[Numbered], entry: Entry, request: Request
) -> NDArray[Any]:
    values = []
    options = request.options
    differ = entry.shape[-1] is None or entry.dtype == OPTIONS
    if len(entry.shape) == 2 and (options or differ):
        options = options or _options((x.get(entry.name) for _, x in part), entry)
        entry = replace(entry, shape=(None, len(options)), kind="number")
    for number, record in part:
        value = record.get(entry.name, None if request.missing else _ABSENT)
        if entry.kind == "number" and _is_blank(value):
            value = None
        if value is None and request.missing and len(entry.shape) == 2:
            value = [None] * int(entry.shape[1] or 0)
        elif options and len(entry.shape) == 2:
            value = _in_places(value, options)
        if not _fits(value, entry):
            raise _misfit(path, number, entry, value)
        values.append(value)
    if entry.kind == "number" and entry.name in request.exact and len(entry.shape) == 1:
        return sources.exactly(values)
    if entry.kind == "number":
        return np.array(values, dtype=np.float64)
    texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
    return np.array(texts, dtype=object)


def _in_places(value: Any, options: tuple[Any, ...]) -> Any:
    """Scores in the order of the options; -inf for those that a question does not have."""
    if isinstance(options[0], str) != isinstance(value, dict) or not value:
        return value  # which is none
    if isinstance(value, list):
        value = dict(enumerate(value))
    if not isinstance(value, dict):
        return value
    found = [value.get(option) for option in options]
    return [-inf if x is None else x for x in found]


PLACES = {".json": "item", ".eval": "sample"}


def _misfit(path: Path, number: int, entry: Entry, value: Any) -> FileError:
    name = repr(sources.shorten(entry.name))
    where = f"{PLACES.get(path.suffix, 'line')} {number}"
    if value is _ABSENT or value is None:
        way_out = "--drop-missing leaves such examples out"
        return FileError(path, f"{name} is missing in {where}; {way_out}.")
    first = "text" if entry.kind == "text" else "a number"
    what, way_out = sources.shorten(repr(value), 40), ""
    if len(entry.shape) == 2:
        first = f"a list of {entry.shape[1]} numbers"
        if isinstance(value, list) and all(map(_is_number, value)):
            way_out = "; if questions differ in their number of options, pass --ragged"
    said = f"{name} is {what} in {where}, but the first is {first}{way_out}."
    return FileError(path, said)


_ABSENT = object()


def _fits(value: Any, entry: Entry) -> bool:
    if len(entry.shape) == 2:
        fits = isinstance(value, list) and len(value) == entry.shape[1]
        return fits and all(_is_number(item) for item in value)
    if entry.dtype == "float" and isinstance(value, bool):
        return False  # true is no confidence
    if entry.kind == "number" or entry.dtype == "any":
        return _is_number(value) or (entry.kind == "text" and isinstance(value, str))
    return value is None or isinstance(value, str)
