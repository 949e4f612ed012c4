"""Sketches as bytes: an npz archive without pickle, with a version and a checksum."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._inputs.divergences import find_divergence
from calibrant._sketch.cells import Cells, Contents, Kind, State, Totals, Values

Arrays = dict[str, NDArray[Any]]
VERSION = 1
HEADER, DIGEST = "calibrant_sketch", "sha256"
HEADER_OF_0_1 = "acumen_sketch"  # until 0.1.0 the project was called acumen

MOST_BYTES = 1 << 31
"""Size of all arrays beyond which an archive is not one of ours."""


class SketchError(ValueError):
    """A file or bytes that are no sketch, or no longer one."""


def to_bytes(contents: Contents, *, compressed: bool = True) -> bytes:
    """The contents of a sketch as an npz archive."""
    kind, states = contents.kind, _states(contents)
    arrays: Arrays = {}
    for number, state in enumerate(states.values()):
        arrays |= {f"{number}.{name}": x for name, x in _arrays_of(state).items()}
    header = {
        "version": VERSION,
        "target": kind.target,
        "classes": [_plain(name) for name in kind.classes],
        "divergences": list(kind.divergences),
        "states": list(states),
        "parts": sorted(contents.parts),
        "soft_rows": contents.soft_rows,
    }
    text = json.dumps(header, allow_nan=False).encode()
    arrays[HEADER] = np.frombuffer(text, np.uint8)
    arrays[DIGEST] = np.frombuffer(_digest(arrays), np.uint8)
    file = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    save(file, allow_pickle=False, **arrays)
    return file.getvalue()


def from_bytes(content: bytes, name: str = "these bytes") -> Contents:
    """The contents of a sketch from an npz archive; anything else is refused."""
    arrays = _read_archive(content, name)
    found = arrays.pop(DIGEST, np.empty(0, np.uint8)).tobytes()
    header_name = HEADER_OF_0_1 if HEADER_OF_0_1 in arrays else HEADER
    if header_name not in arrays:
        raise SketchError(f"{name}: no sketch; it was not written by calibrant.Sketch.")
    if found != _digest(arrays):
        raise SketchError(
            f"{name}: the checksum does not match, so the sketch is damaged. Make it "
            "again from its rows."
        )
    header = json.loads(arrays[header_name].tobytes())
    if header["version"] != VERSION:
        raise SketchError(
            f"{name}: written in version {header['version']} of the format, and this "
            f"calibrant reads version {VERSION}."
        )
    return _contents(header, arrays)


def read_file(path: Path) -> Contents:
    """The contents of a sketch from its file."""
    return from_bytes(path.read_bytes(), str(path))


def is_sketch(path: Path) -> bool:
    """Whether a file is the archive of a sketch; its contents are not checked."""
    if path.suffix != ".npz" or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        return any(f"{header}.npy" in names for header in (HEADER, HEADER_OF_0_1))


def _read_archive(content: bytes, name: str) -> Arrays:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > MOST_BYTES:
                raise SketchError(f"{name}: larger than any sketch, so it is none.")
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return dict(archive)
    except SketchError:
        raise
    except Exception as error:
        raise SketchError(
            f"{name}: no sketch, or one that is cut short or damaged "
            f"({type(error).__name__})."
        ) from error


def _digest(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    total = sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(array.tobytes())
    return total.digest()


def _states(contents: Contents) -> dict[str, State]:
    """All states by name: of all rows, of groups, of classes."""
    groups = {f"group {name}": state for name, state in contents.groups.items()}
    classes = {f"class {j}": state for j, state in enumerate(contents.per_class)}
    return {"rows": contents.state, **groups, **classes}


def _contents(header: dict[str, Any], arrays: Arrays) -> Contents:
    divergences = {name: find_divergence(name) for name in header["divergences"]}
    kind = Kind(header["target"], tuple(header["classes"]), divergences)
    found = Contents(kind, kind.empty())
    found.parts, found.soft_rows = set(header["parts"]), header["soft_rows"]
    for number, title in enumerate(header["states"]):
        own = {
            name.partition(".")[2]: array
            for name, array in arrays.items()
            if name.startswith(f"{number}.")
        }
        state, (what, _, name) = _state(kind, own), title.partition(" ")
        if what == "rows":
            found.state = state
        elif what == "group":
            found.groups[name] = state
        else:
            found.per_class.append(state)
    return found


def _arrays_of(state: State) -> Arrays:
    cells = state.cells
    some = np.flatnonzero(cells.low <= cells.high)
    arrays: Arrays = {
        "rows": np.array([cells.rows]),
        "certain": np.array([cells.certain_no, cells.certain_yes]),
        "totals": np.array([total.as_array() for total in cells.totals.values()]),
        "cells": some.astype(np.int32),
        "table": cells.table[some],
        "ends": np.stack([cells.low[some], cells.high[some]]),
    }
    if state.within is not None:
        arrays["within"] = state.within
    if state.values is not None:
        arrays["values"] = state.values.table
        arrays["waiting"] = np.concatenate(
            [state.values.table[:, :0], *state.values.waiting], axis=1
        )
    return arrays


def _state(kind: Kind, arrays: Arrays) -> State:
    cells, some = Cells(kind.divergences), arrays["cells"]
    cells.rows = int(arrays["rows"][0])
    cells.certain_no, cells.certain_yes = arrays["certain"].tolist()
    for name, total in zip(kind.divergences, arrays["totals"].tolist(), strict=True):
        cells.totals[name] = Totals(*total)
    cells.table[some] = arrays["table"]
    cells.low[some], cells.high[some] = arrays["ends"]
    values = None
    if "values" in arrays:
        values = Values(kind.divergences)
        values.table = arrays["values"]
        values.waiting = [arrays["waiting"]] if arrays["waiting"].size else []
    return State(cells, values, arrays.get("within"))


def _plain(name: Any) -> Any:
    value = name.item() if isinstance(name, np.generic) else name
    if not isinstance(value, str | int | float | bool):
        raise TypeError(
            f"classes must be text or numbers to be saved, got {name!r}. Name them so."
        )
    return value
