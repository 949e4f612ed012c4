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

from calibrant._inputs.divergences import Divergence, find_divergence
from calibrant._sketch.cells import VALUES, Cells, Totals
from calibrant._sketch.clusters import ClusterSums

Arrays = dict[str, NDArray[Any]]
VERSION = 1
HEADER, DIGEST = "calibrant_sketch", "sha256"
HEADER_OF_0_1 = "acumen_sketch"  # until 0.1.0 the project was called acumen

MOST_BYTES = 1 << 31
"""Size of all arrays beyond which an archive is not one of ours."""


class SketchError(ValueError):
    """A file or bytes that are no sketch, or no longer one."""


def to_bytes(
    about: Mapping[str, Any], cells: Mapping[str, Cells], *, compressed: bool = True
) -> bytes:
    """Cells by title, and what is to be known about them, as an npz archive."""
    arrays: Arrays = {}
    for number, own in enumerate(cells.values()):
        arrays |= {f"{number}.{name}": x for name, x in _arrays_of(own).items()}
    header = {"version": VERSION, **about, "states": list(cells)}
    text = json.dumps(header, allow_nan=False).encode()
    arrays[HEADER] = np.frombuffer(text, np.uint8)
    arrays[DIGEST] = np.frombuffer(_digest(arrays), np.uint8)
    file = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    save(file, allow_pickle=False, **arrays)
    return file.getvalue()


def from_bytes(
    content: bytes, name: str = "these bytes"
) -> tuple[dict[str, Any], dict[str, Cells]]:
    """What `to_bytes` was given, from an npz archive; anything else is refused."""
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
    divergences = {name: find_divergence(name) for name in header["divergences"]}
    titles = enumerate(header["states"])
    return header, {x: _cells(divergences, arrays, f"{i}.") for i, x in titles}


def is_sketch(path: Path) -> bool:
    """Whether a file is the archive of a sketch; its contents are not checked."""
    if path.suffix != ".npz" or not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return False  # damaged: whoever reads it next says so
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


def _arrays_of(cells: Cells) -> Arrays:
    some = np.flatnonzero(cells.low <= cells.high)
    arrays: Arrays = {
        "rows": np.array([cells.rows]),
        "certain": np.array([cells.certain_no, cells.certain_yes]),
        "totals": np.array([total.as_array() for total in cells.totals.values()]),
        "cells": some.astype(np.int32),
        "count": np.array([cells.count]),
        "table": cells.table[:, some].T,
        "ends": np.stack([cells.low[some], cells.high[some]]),
    }
    if cells.squares is not None:
        arrays["squares"] = cells.squares[:, some]
    if (found := cells.clusters) is not None:
        arrays |= {"cluster": found.cluster, "cluster_cell": found.cell}
        arrays |= {"cluster_sums": found.sums, "folded": np.array([found.folded])}
    if cells.within is not None:
        arrays["within"] = cells.within
    if cells.values is not None:
        merged, *waiting = cells.values
        arrays["values"] = merged
        arrays["waiting"] = np.concatenate([merged[:, :0], *waiting], axis=1)
    return arrays


def _cells(
    divergences: Mapping[str, Divergence], archive: Arrays, prefix: str
) -> Cells:
    """The cells whose arrays have names that begin with the prefix."""
    own = archive.keys()
    arrays = {x.removeprefix(prefix): archive[x] for x in own if x.startswith(prefix)}
    cells, some = Cells(divergences, within=arrays.get("within")), arrays["cells"]
    cells.rows = int(arrays["rows"][0])
    cells.certain_no, cells.certain_yes = arrays["certain"].tolist()
    for name, total in zip(divergences, arrays["totals"].tolist(), strict=True):
        whole = len(total) == len(Totals.__slots__)  # in 0.1.0 rows only counted
        cells.totals[name] = (Totals if whole else Totals.of_counted)(*total)
    cells.table[:, some] = arrays["table"].T
    cells.low[some], cells.high[some] = arrays["ends"]
    cells.count = float(arrays["count"][0]) if "count" in arrays else cells.weight
    if "squares" in arrays:
        cells.squares = np.zeros((len(arrays["squares"]), len(cells.low)))
        cells.squares[:, some] = arrays["squares"]
    if "cluster" in arrays:
        cells.clusters = ClusterSums(
            arrays["cluster"],
            arrays["cluster_cell"],
            arrays["cluster_sums"],
            bool(arrays["folded"][0]),
        )
    if "values" in arrays:
        waiting = [arrays["waiting"]] if arrays["waiting"].size else []
        parts = [arrays["values"], *waiting]
        cells.values = [_with_squares(x, len(divergences)) for x in parts]
    return cells


def _with_squares(values: NDArray[Any], losses: int) -> NDArray[Any]:
    """Distinct confidences as we keep them; those of 0.1.0 had no squared weights."""
    if len(values) == 1 + len(VALUES) + losses:
        return values
    first = len(VALUES) - 1
    return np.concatenate([values[:first], values[1:3], values[first:]])
