"""Sketches as bytes: an npz archive without pickle, with a version and a checksum."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._base.records import Amount, RecordError, Target, decode, read_json, told
from calibrant._base.write import SKETCHES
from calibrant._inputs.divergences import BRIER, LOG, Divergence, find_divergence
from calibrant._inputs.predictions import MOST_CLUSTER_GROUPS
from calibrant._sketch.cells import (
    CLASS_BINS,
    MOMENTS,
    OF_ROWS,
    SQUARES,
    VALUES,
    Cells,
    Totals,
)
from calibrant._sketch.clusters import FIELDS, ClusterSums
from calibrant._sketch.grid import (
    LOG_ODDS_CELLS,
    LOG_ODDS_REACH,
    ORDER,
    STEPS,
    cell_number,
)

Arrays = dict[str, NDArray[Any]]
VERSION = 1
HEADER, HEADER_OF_0_1 = SKETCHES
DIGEST = "sha256"

MOST_BYTES = 1 << 31
"""Size of all arrays beyond which an archive is not one of ours."""


MOST_SHRUNK = 1100
"""Times that deflate makes anything smaller: what claims to be more is not there."""


@dataclass(frozen=True, slots=True)
class Header:
    """What is to be known about the cells of a sketch; titles of cells are `states`."""

    version: int
    target: Target
    classes: tuple[Any, ...]
    divergences: tuple[str, ...]
    parts: tuple[str, ...]
    soft_rows: Amount
    states: tuple[str, ...]

    def _disagreement(self) -> str | None:
        for name in ("classes", "divergences", "parts", "states"):
            given = getattr(self, name)
            if len({*given}) < len(given) or None in given:
                return f"must have distinct {name}"
        groups = [title for title in self.states if title.startswith("group ")]
        wise = self.target == "class-wise"
        classes = [f"class {j}" for j in range(len(self.classes) * wise)]
        unknown = self.target == "top-label" and not self.classes
        if not {"brier"} <= {*self.divergences} or len(self.classes) + 2 * unknown < 2:
            return "must have two classes or more, and the score 'brier'"
        if list(self.states) != ["rows", *groups, *classes]:
            return "must have the states 'rows', those of groups, and those of classes"
        return None


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
    content: bytes, name: str = "this content"
) -> tuple[Header, dict[str, Cells]]:
    """What `to_bytes` was given, from an npz archive; anything else is refused.

    The digest shows what was damaged. What was made up may have a digest, too: sums that
    no rows have are refused, and sums that contradict each other.
    """
    with told(name):
        arrays = _read_archive(content)
        found = arrays.pop(DIGEST, np.empty(0, np.uint8)).tobytes()
        header_name = HEADER_OF_0_1 if HEADER_OF_0_1 in arrays else HEADER
        if header_name not in arrays:
            not_ours = "is no sketch; it was not written by calibrant.Sketch"
            raise RecordError("", not_ours)
        if found != _digest(arrays):
            damaged = (
                "does not match, so the sketch is damaged. Make it again from its rows"
            )
            raise RecordError("checksum", damaged)
        header = _header(read_json(arrays.pop(header_name).tobytes()))
        divergences = _divergences(header)
        states = _states(header, arrays)
        cells = {x: _cells(divergences, own, x) for x, own in states.items()}
        if said := _misfit(header, cells):
            raise RecordError("", said)
        return header, cells


def _header(given: Any) -> Header:
    if isinstance(given, dict) and given.get("version", VERSION) != VERSION:
        said = f"was written in version {given['version']!r} of the format, and this"
        raise RecordError("", f"{said} calibrant reads version {VERSION}")
    found: Header = decode(Header, given, "header")
    return found


def _divergences(header: Header) -> dict[str, Divergence]:
    try:
        return {name: find_divergence(name) for name in header.divergences}
    except ValueError as error:
        raise RecordError(
            "header.divergences", f"is off: {error}".rstrip(".")
        ) from None


def _states(header: Header, arrays: Arrays) -> dict[str, Arrays]:
    """Arrays by title and name, of which none is left over."""
    found: dict[str, Arrays] = {title: {} for title in header.states}
    titles = {str(number): title for number, title in enumerate(header.states)}
    for full, array in arrays.items():
        number, _, name = full.partition(".")
        if number not in titles:
            raise RecordError(full, "belongs to nothing in the header")
        found[titles[number]][name] = array
    return found


def is_sketch(path: Path) -> bool:
    """Whether a file is the archive of a sketch; its contents are not checked."""
    if path.suffix != ".npz" or not path.is_file() or not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return False  # damaged: whoever reads it next says so
    return any(f"{header}.npy" in names for header in (HEADER, HEADER_OF_0_1))


def _read_archive(content: bytes) -> Arrays:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > MOST_BYTES:
                raise RecordError("", "is larger than any sketch, so it is none")
            if len({member.filename for member in members}) < len(members):
                raise RecordError("", "has two arrays of one name")
            return {
                x.filename.removesuffix(".npy"): _member(archive, x) for x in members
            }
    except RecordError:
        raise
    except Exception as error:
        said = "is no sketch, or one that is cut short or damaged"
        raise RecordError("", f"{said} ({type(error).__name__})") from error


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """An array of an archive; room is made for what is there, not for what it claims."""
    plain = member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if not plain or member.file_size > MOST_SHRUNK * (member.compress_size + 1):
        raise RecordError(member.filename, "claims to be more than it can hold")
    content = archive.read(member)
    file = io.BytesIO(content)
    read_header = HEADERS[np.lib.format.read_magic(file)]
    shape, by_column, dtype = read_header(file)
    if dtype.hasobject or prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise RecordError(member.filename, f"is no array of shape {shape} and {dtype}")
    array: NDArray[Any] = np.frombuffer(content, dtype, offset=file.tell())
    return array.reshape(shape, order="F" if by_column else "C").copy("K")


HEADERS: dict[tuple[int, int], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


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


def _cells(divergences: Mapping[str, Divergence], arrays: Arrays, title: str) -> Cells:
    """The cells of which these are the arrays, if rows can have such sums."""
    _check_shapes(arrays, len(divergences), title)
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
    with np.errstate(all="ignore"):
        if said := _impossible(cells, some):
            raise RecordError(title, said)
    return cells


def _with_squares(values: NDArray[Any], losses: int) -> NDArray[Any]:
    """Distinct confidences as we keep them; those of 0.1.0 had no squared weights."""
    if len(values) == 1 + len(VALUES) + losses:
        return values
    first = len(VALUES) - 1
    return np.concatenate([values[:first], values[1:3], values[first:]])


# -- what sums of rows can be ----------------------------------------------------------

OFF = 1e-6
"""Share of the weight by which sums that should agree may differ by round-off."""

MOST_COUNTED = 1e100
"""More rows than anybody has; of no more the cube is a number."""

MOST_SQUARED = 1e150
"""Sum of losses up to which that of their squares is a number."""

TOGETHER = (
    ("squares",),
    ("within",),
    ("values", "waiting"),
    ("cluster", "cluster_cell", "cluster_sums", "folded"),
)
"""Arrays that are there together or not at all."""


def _check_shapes(arrays: Arrays, scores: int, title: str) -> None:
    """Raise an error unless arrays are there and have the types and sizes they should."""
    kept = 1 + len(VALUES) + scores
    m, pairs = (arrays[x].size if x in arrays else 0 for x in ("cells", "cluster"))
    expected: dict[str, tuple[str, tuple[tuple[int, ...] | int | None, ...]]] = {
        "rows": ("i8", (1,)),
        "certain": ("f8", (2,)),
        "totals": ("f8", (scores, (5, len(Totals.__slots__)))),
        "cells": ("i4", (m,)),
        "table": ("f8", (m, len(MOMENTS) * 5 + 2 * scores * 5 + len(OF_ROWS) + scores)),
        "ends": ("f8", (2, m)),
        "count": ("f8", (1,)),
        "squares": ("f8", (len(SQUARES), m)),
        "within": ("f8", (None, CLASS_BINS)),
        "values": ("f8", ((kept - 2, kept), None)),
        "waiting": ("f8", ((kept - 2, kept), None)),
        "cluster": ("u8", (pairs,)),
        "cluster_cell": ("i8", (pairs,)),
        "cluster_sums": ("f8", (len(FIELDS) + scores, pairs)),
        "folded": ("b1", (1,)),
    }
    optional = {name for names in (*TOGETHER, ("count",)) for name in names}
    for name in sorted({*arrays} - {*expected} | {*expected} - {*arrays} - optional):
        raise RecordError(
            f"{title}.{name}", "is missing" if name in expected else "is extra"
        )
    for names in TOGETHER:
        if len({name in arrays for name in names}) > 1:
            raise RecordError(title, f"must have all of {', '.join(names)}, or none")
    for name, array in arrays.items():
        kind, shape = expected[name]
        sizes = [(x,) if isinstance(x, int) else x for x in shape]
        fits = array.ndim == len(sizes) and all(
            allowed is None or size in allowed
            for size, allowed in zip(array.shape, sizes, strict=True)
        )
        if not fits or array.dtype != np.dtype(f"<{kind}"):
            found = f"{array.dtype} of shape {array.shape}"
            raise RecordError(f"{title}.{name}", f"is of another kind: {found}")
        known = np.isfinite(array) | ((array == np.inf) if name == "totals" else False)
        if not known.all():
            raise RecordError(f"{title}.{name}", "must be finite")
    some = arrays["cells"]
    if m and (some[0] < 0 or some[-1] >= STEPS or (np.diff(some) <= 0).any()):
        raise RecordError(
            f"{title}.cells", f"must increase, from 0 to at most {STEPS - 1}"
        )


def _impossible(cells: Cells, some: NDArray[Any]) -> str | None:
    """Which sums no rows have, or contradict others."""
    w = cells["weight_0"][some]
    if cells.rows < 0 or (cells.rows > 0) != (len(some) > 0) or (w <= 0).any():
        return "must have rows, and cells of positive weight, or neither"
    for what, holds in chain(
        _within_cells(cells, some, w),
        _of_totals(cells, float(w.sum())),
        _of_squares(cells, some, w),
        _of_values(cells, some, w),
        _of_clusters(cells),
    ):
        if not np.all(holds):
            return f"is impossible: {what}"
    return None


Claims = Iterator[tuple[str, Any]]
"""What would be wrong, and where it is not; after the first that is, none is asked for."""


def _within_cells(cells: Cells, some: NDArray[Any], w: NDArray[Any]) -> Claims:
    low, high, near = cells.low[some], cells.high[some], OFF * w
    hit, hit2, h = (cells[x][some] for x in ("hit_0", "hit2", "h"))
    r1, r2, r3, r4 = (cells[x][some] for x in ("r1", "r2", "r3", "r4"))
    yield "confidences outside 0 to 1", (low >= 0) & (low <= high) & (high <= 1)
    inside = (cell_number(low) == some) & (cell_number(high) == some)
    yield "confidences outside their cell", inside
    yield "hits below 0 or above the weight", (hit >= -near) & (hit <= w + near)
    yield "squared hits above the hits", (hit2 >= -near) & (hit2 <= hit + near)
    yield (
        "a mean confidence outside the ends of its cell",
        (h >= low * w - near) & (h <= high * w + near),
    )
    yield "residuals that are not hits less confidences", abs(r1 - hit + h) <= near
    yield "squared residuals below 0 or too large", (r2 >= -near) & (r2 <= w + near)
    yield "cubed residuals that are too large", abs(r3) <= r2 + near
    yield "fourth powers of residuals too large", (r4 >= -near) & (r4 <= r2 + near)
    yield "log-odds beyond the grid", abs(cells["z"][some]) <= LOG_ODDS_REACH * w + near
    for j in range(ORDER):
        for name, whole in (("weight", w), ("hit", hit)):
            moment = cells[f"{name}_{j}"][some]
            yield f"moments of the {name} too large", abs(moment) <= whole / 2**j + near
    yield from _of_scores(cells, some, w)


def _of_scores(cells: Cells, some: NDArray[Any], w: NDArray[Any]) -> Claims:
    near = OFF * w
    for name, divergence in cells.divergences.items():
        lost, loss = (cells[f"{name}_{x}"][some] for x in ("infinite", "loss_0"))
        slope = cells[f"{name}_slope_0"][some]
        yield f"a {name} loss below 0", loss >= -near
        yield (
            f"infinite {name} losses above the weight",
            (lost >= 0) & (lost <= w + near),
        )
        sized = [("loss", loss)]
        if divergence is BRIER:
            sized.append(("slope", slope))
            off = abs(slope - 2 * cells["h"][some])
            yield f"{name} sums of another score", off <= near
        if divergence is LOG:  # its slopes are of one sign, but in the cell of 1/2
            z = abs(cells["finite_z"][some])
            sized.append(("slope", z + 0.1 * w))
            off = abs(slope - cells["finite_z"][some])
            yield f"{name} sums of another score", off <= near + OFF * z
        for part, whole in sized:
            for j in range(1, ORDER):
                moment = abs(cells[f"{name}_{part}_{j}"][some])
                least = near + OFF * abs(whole)
                yield f"moments of {name} too large", moment <= whole / 2**j + least


def _of_totals(cells: Cells, weight: float) -> Claims:
    near = OFF * weight
    certain = cells.certain_no, cells.certain_yes
    yield (
        "certain rows above the weight",
        min(certain) >= 0 and sum(certain) <= weight + near,
    )
    yield "fewer rows than were counted", cells.rows <= cells.count * (1 + OFF)
    yield "more rows than there can be", cells.count <= MOST_COUNTED
    for name, total in cells.totals.items():
        yield from _of_total(cells, name, total, weight)
    if cells.within is not None:
        both = float(cells.within.sum()), float(cells["r1"].sum())
        yield (
            "residuals by class that are not those of the cells",
            (abs(both[0] - both[1]) <= near),
        )


def _of_total(cells: Cells, name: str, total: Totals, weight: float) -> Claims:
    """What must hold of the sums of one loss."""
    near = OFF * weight
    loss, most = float(cells[f"{name}_loss_0"].sum()), total.loss2 * weight
    off = near + OFF * abs(loss)
    yield (
        f"a {name} loss that is not that of the cells",
        abs(total.loss - loss) <= off,
    )
    yield (
        f"a mean {name} loss above that of its squares",
        (total.loss * total.loss <= most + off * (off + 2 * abs(loss))),
    )
    parts = [getattr(total, x) for x in Totals.__slots__ if x != "unit_loss"]
    yield f"an infinite {name} loss", np.isfinite(parts) | (loss > MOST_SQUARED)
    yield f"a {name} loss below 0", total.unit_loss >= -near and total.loss >= -near
    if cells.divergences[name] is BRIER:
        r2, hit2 = float(cells["r2"].sum()), float(cells["hit2"].sum())
        yield (
            "a Brier loss that is not that of the residuals",
            (abs(total.unit_loss - r2) <= near and abs(total.phi_hit - hit2) <= near),
        )
    if cells.squares is None:
        same = total.w2_loss == total.loss and total.w2_loss2 == total.loss2
        yield f"squared weights of the {name} loss, where rows only count", same
    else:
        least = min(total.w2_loss, total.w2_loss2) >= -near * weight
        first = total.w2_loss <= weight * total.loss * (1 + OFF) + near * weight
        second = total.w2_loss2 <= weight * total.loss2 * (1 + OFF) + near * weight
        yield (
            f"squared weights of the {name} loss above the square",
            (least and first and second),
        )


def _of_squares(cells: Cells, some: NDArray[Any], w: NDArray[Any]) -> Claims:
    if cells.squares is None:
        weight = float(w.sum())
        yield (
            "a count that is not the weight",
            abs(cells.count - weight) <= OFF * weight,
        )
        return
    w2, w2r, w2r2, w3r2 = cells.squares[:, some]
    near = OFF * w2
    yield "squared weights above the square", (w2 > 0) & (w2 <= w * w * (1 + OFF))
    yield "squared weights with residuals above 1", abs(w2r) <= w2 + near
    yield (
        "squared weights with residuals above 1",
        (w2r2 >= -near) & (w2r2 <= w2 + near),
    )
    yield (
        "cubed weights above those of the squares",
        (w3r2 >= 0) & (w3r2 <= w * w2r2 + near * w),
    )
    yield "more effective rows than rows", cells.effective <= cells.count * (1 + OFF)


def _of_values(cells: Cells, some: NDArray[Any], w: NDArray[Any]) -> Claims:
    if cells.values is None:
        return
    merged = cells.values[0][0]
    table = np.concatenate(cells.values, axis=1)
    h, weight = table[0], table[1]
    yield "distinct confidences out of order", np.diff(merged) > 0
    yield "distinct confidences outside 0 to 1", (h >= 0) & (h <= 1)
    yield "distinct confidences without weight", weight > 0
    yield "hits above the weight of a confidence", table[2] <= weight * (1 + OFF)
    names = ("weight_0", "hit_0", "hit2", "z", "finite_z")
    losses = (f"{name}_loss_0" for name in cells.divergences)
    places = [*range(1, 6), *range(1 + len(VALUES), len(table))]
    cell = cell_number(h)
    for place, name in zip(places, (*names, *losses), strict=True):
        sums, own = np.bincount(cell, table[place], len(cells.low)), cells[name]
        near = np.zeros_like(own)
        near[some] = OFF * w
        yield (
            f"{name} of confidences and cells that differ",
            (abs(sums - own) <= near + OFF * abs(own)),
        )


def _of_clusters(cells: Cells) -> Claims:
    if (found := cells.clusters) is None:
        return
    weight, hits, residual, h = found.sums[:4]
    near, later = OFF * weight, found.cluster[1:] > found.cluster[:-1]
    same = found.cluster[1:] == found.cluster[:-1]
    yield "clusters out of order", later | (same & (np.diff(found.cell) > 0))
    inside = (found.cell >= 0) & (found.cell < LOG_ODDS_CELLS)
    yield "cells of clusters outside the grid", inside
    most = MOST_CLUSTER_GROUPS
    few = found.cluster.max(initial=0) < most if found.folded else found.count <= most
    yield "more clusters than are told apart", few
    yield "clusters without weight", weight > 0
    yield "hits of clusters above the weight", (hits >= -near) & (hits <= weight + near)
    yield "residuals of clusters that are none", abs(residual - hits + h) <= near
    known, scores = cells.log_odds_sums, len(cells.divergences)
    both = zip(
        (*found.sums[:2], *found.sums[5:]), (*known[:2], *known[-scores:]), strict=True
    )
    for sums, own in both:
        whole = np.bincount(found.cell, sums, LOG_ODDS_CELLS)
        yield (
            "clusters that are not those of the cells",
            (abs(whole - own) <= OFF * (abs(own) + cells.weight)),
        )


def _misfit(header: Header, cells: Mapping[str, Cells]) -> str | None:
    """What is wrong with cells that are right one by one."""
    whole, k = cells["rows"], len(header.classes)
    predicts = header.target in ("top-label", "class-wise")
    groups = [own for title, own in cells.items() if title.startswith("group ")]
    classes = [own for title, own in cells.items() if title.startswith("class ")]
    near = OFF * whole.weight
    if not whole.rows or header.soft_rows > whole.weight + near:
        return "must have rows, and no more of soft labels than there are"
    for own in (whole, *groups):
        if own.within is not None and not (predicts and len(own.within) == k):
            return (
                f"must have residuals by class of {k} classes, if classes are predicted"
            )
        if (own.clusters is None) != (whole.clusters is None) and own.rows:
            return "must have clusters in all of its groups, or in none"
    if sum(own.rows for own in groups) > whole.rows:
        return "has groups of more rows than there are"
    rest = whole["weight_0"] - sum(own["weight_0"] for own in groups)
    if (rest < -OFF * whole["weight_0"]).any():
        return "has groups of more weight than there is"
    if any(
        x.rows != whole.rows or abs(x.weight - whole.weight) > near for x in classes
    ):
        return "must have every row in the sums of each class"
    if header.target in ("pairs", "positive"):
        off = abs(whole["brier_loss_0"] - whole["r2"]) > OFF * whole["weight_0"]
        return (
            "has a Brier loss that is not that of the residuals" if off.any() else None
        )
    return None
