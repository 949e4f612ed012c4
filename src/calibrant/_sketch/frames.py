"""The sketch of any data frame, from pandas to a cluster."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from importlib.util import find_spec
from operator import add
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import RowError, missing
from calibrant._inputs.predictions import read_predictions
from calibrant._rows import engines
from calibrant._rows.reduce import reduce_to_columns
from calibrant._sketch import cells, query
from calibrant._sketch.sketch import Sketch

Arrays = dict[str, NDArray[Any]]


def side_by_side(arrays: Arrays, names: tuple[str, ...]) -> NDArray[Any]:
    """Columns as those of a matrix, one after the other in memory; a single one as it is."""
    if len(names) == 1:
        return arrays[names[0]]
    return np.stack([arrays[name] for name in names]).T


def _array(column: nw.Series[Any]) -> NDArray[Any]:
    """The values of a column; those of lists as a matrix."""
    if not isinstance(column.dtype, nw.List | nw.Array):
        return query.array_of(column)
    if column.implementation.is_polars():
        native = column.to_native()
        nested = native.list if isinstance(column.dtype, nw.List) else native.arr
        lengths, flat = nested.len().to_numpy(), native.explode().to_numpy()
    else:
        compute = importlib.import_module("pyarrow.compute")
        lists = column.to_arrow()
        lengths = compute.list_value_length(lists).to_numpy(zero_copy_only=False)
        flat = lists.flatten().to_numpy(zero_copy_only=False)
    if not (lengths == lengths[:1]).all():  # that of a missing list is NaN
        raise ValueError(
            f"{column.name!r} must hold lists of one length, got {np.min(lengths):g} to "
            f"{np.max(lengths):g}."
        )
    return flat.reshape(len(column), -1)


# -- frames in memory: their columns go to a sketch as arrays, a slice at a time --------

PIECE, LISTS = 1 << 20, 1 << 14
"""Rows that are made arrays at a time: of numbers, and of lists of any length."""

ROWS, NUMBERS = 160_000, 1 << 21
"""Most rows of a slice, more than the distinct confidences that are kept, so that it soon
shows whether they are; and most numbers in its probabilities."""


class Slices:
    """Rows of frames in memory, added one frame after the other."""

    def __init__(self, roles: query.Roles) -> None:
        self.roles, self.rows = roles, 0
        self._sketch = Sketch(target=roles.target, classes=roles.classes)
        self._tally: query.Tally | None = None
        self._first: list[nw.DataFrame[Any]] = []

    def add(self, frame: nw.DataFrame[Any]) -> None:
        """Add the rows of a frame; the first few wait until they fill a slice."""
        if self.rows:
            self._add_frame(frame)
            return
        self._first.append(frame)
        if sum(map(len, self._first)) >= ROWS:
            self._add_first()

    def _add_first(self) -> None:
        first, self._first = self._first, []
        if len(first) > 1 and all(x.schema == first[0].schema for x in first):
            first = [nw.concat(first)]
        for frame in first:
            self._add_frame(frame)

    def _add_frame(self, frame: nw.DataFrame[Any]) -> None:
        compiled = engines.wanted()
        for part in _slices(frame, self.roles):
            try:
                self._add(part, compiled=compiled)
            except RowError as error:
                raise error.shifted(self.rows) from error
            self.rows += len(next(iter(part.values())))

    def sketch(self) -> Sketch:
        """The sketch of all rows so far."""
        self._add_first()
        if self._tally is None:
            return self._sketch
        kind = self._sketch.kind or self.roles.kind
        return self._sketch + query.sketch_of(kind, self._tally.grouped())

    def _add(self, part: Arrays, *, compiled: bool) -> None:
        roles = self.roles
        tallied = self._tallied_pairs if roles.pairs else self._tallied_top
        if compiled and self._is_for_tally(part) and tallied(part):
            return
        kept = ("sample_weight", "frequency", "cluster", "group")
        rest: dict[str, Any] = {x: _get(part, getattr(roles, x)) for x in kept}
        if roles.pairs:
            losses = {name: part[column] for name, column in roles.losses.items()}
            pair = _get(part, roles.correct), _get(part, roles.confidence)
            self._sketch.update_pairs(*pair, loss=losses or None, **rest)
        else:
            probs = side_by_side(part, roles.probs)
            self._sketch.update(_get(part, roles.y), probs=probs, **rest)

    def _is_for_tally(self, part: Arrays) -> bool:
        """Whether rows are plain, and too many confidences distinct to be kept."""
        roles, kind = self.roles, self._sketch.kind
        named = roles.group is not None or roles.cluster is not None
        if roles.weighted or named or "log" in roles.losses:
            return False
        if self._tally is not None:
            return True
        if not (roles.pairs or query.can_tally(kind or roles.kind)):
            return False
        if kind is None:
            return _many_distinct(part, roles)
        return self._sketch.cells.values is None

    def _tallied_pairs(self, part: Arrays) -> bool:
        """Add the rows to the tally, unless some are not plain, or wrong."""
        roles = self.roles
        h, hit = part[str(roles.confidence)], part[str(roles.correct)]
        loss = _get(part, roles.losses.get("brier"))
        if self._tally is None:
            names = query.WITH_LOG if loss is None else query.WITH_BRIER
            self._tally = query.Tally(names)
        return self._tally.add_pairs(h, hit, loss)

    def _tallied_top(self, part: Arrays) -> bool:
        roles, probs = self.roles, side_by_side(part, self.roles.probs)
        predictions = read_predictions(
            part[str(roles.y)], probs=probs, classes=roles.classes, target=roles.target
        )
        if predictions.soft:
            return False
        if self._tally is None:
            self._tally = query.Tally(query.OF_TOP, predictions.k)
        if not self._tally.add_probs(predictions):
            reduce_to_columns(predictions)  # raises, or they are fine
        return True


def _slices(frame: nw.DataFrame[Any], roles: query.Roles) -> Iterator[Arrays]:
    lists = any(isinstance(frame.schema[x], nw.List | nw.Array) for x in roles.probs)
    rows = LISTS if lists else PIECE
    step = min(ROWS, NUMBERS // max(len(roles.probs), 1))
    for first in range(0, len(frame), rows):
        piece = frame[first : first + rows] if len(frame) > rows else frame
        arrays = {name: _array(piece[name]) for name in roles.names}
        for start in range(0, len(piece), step):
            yield {name: x[start : start + step] for name, x in arrays.items()}


def _many_distinct(part: Arrays, roles: query.Roles) -> bool:
    """Whether there are more distinct confidences than a sketch keeps."""
    chosen = [part[name] for name in roles.probs or (str(roles.confidence),)]
    plain, most = all(x.dtype.kind in "fiub" for x in chosen), cells.MOST_VALUES
    largest = np.maximum.reduce(chosen) if plain and len(chosen) > 1 else chosen[0]
    return plain and len(largest) > most and len(np.unique(largest)) > most


def _get(part: Arrays, name: str | None) -> NDArray[Any] | None:
    return None if name is None else part[name]


# -- partitions of Dask and Spark: each becomes a sketch where it is, and they add up ---

FAN_IN = 4
"""Sketches merged by one task."""


def pack(sketch: Sketch) -> bytes:
    """A sketch on its way between workers, uncompressed; one without rows is empty."""
    return b"" if sketch.checked() is None else sketch.packed(compressed=False)


def unpack(content: bytes) -> Sketch:
    """The sketch that `pack` packed."""
    return Sketch.from_bytes(content) if content else Sketch()


def sketch_bytes(frames: Iterable[Any], roles: query.Roles) -> bytes:
    """The sketch of frames in memory, as bytes that a worker sends back."""
    known = (nw.from_native(frame, eager_only=True) for frame in frames)
    return pack(_sketch_eager(known, roles))


def merge_bytes(parts: Sequence[bytes]) -> bytes:
    """The sketch of the rows of several, of which two at a time are in memory."""
    return pack(reduce(add, map(unpack, parts), Sketch()))


def sketch_dask(frame: Any, roles: query.Roles) -> Sketch:
    """Sketch each partition of a Dask frame on its worker, and merge them in a tree.

    The tree depends on the number of partitions only: a partition that is computed
    again, because its worker was lost, changes no bit.
    """
    delayed = importlib.import_module("dask").delayed
    given = frame[roles.names].to_delayed()
    parts = [delayed(sketch_bytes)([part], roles) for part in given]
    while len(parts) > 1:
        groups = range(0, len(parts), FAN_IN)
        parts = [delayed(merge_bytes)(parts[i : i + FAN_IN]) for i in groups]
    return unpack(parts[0].compute())


def sketch_spark(frame: Any, roles: query.Roles) -> Sketch:
    """Sketch the Arrow batches of each Spark partition on its executor; merge here."""
    sketches = frame.select(*roles.names).mapInArrow(
        partial(_in_arrow, work=partial(_of_batches, roles=roles)), "sketch binary"
    )
    if (count := frame.rdd.getNumPartitions()) > FAN_IN:
        fewer = sketches.repartition(-(-count // FAN_IN))
        merge = partial(_in_arrow, work=_merged_batches)
        sketches = fewer.mapInArrow(merge, "sketch binary")
    return unpack(merge_bytes([bytes(row["sketch"]) for row in sketches.collect()]))


def _in_arrow(
    batches: Iterator[Any], work: Callable[[Iterator[Any]], bytes]
) -> Iterator[Any]:
    arrow = importlib.import_module("pyarrow")
    found = arrow.array([work(batches)], arrow.binary())
    yield arrow.RecordBatch.from_arrays([found], ["sketch"])


def _of_batches(batches: Iterator[Any], roles: query.Roles) -> bytes:
    return sketch_bytes(map(_as_table, batches), roles)


def _as_table(batch: Any) -> Any:
    return importlib.import_module("pyarrow").Table.from_batches([batch])


def _merged_batches(batches: Iterator[Any]) -> bytes:
    return merge_bytes([part for b in batches for part in b.column(0).to_pylist()])


# -- the sketch of any data frame -------------------------------------------------------

MOST_IN_QUERY = 32
"""Classes up to which a query reduces the columns itself; more come as batches."""


def sketch_frame(
    frame: Any,
    *,
    y: str | None = None,
    probs: str | Sequence[str] | None = None,
    confidence: str | None = None,
    correct: str | None = None,
    loss: str | Mapping[str, str] | None = None,
    sample_weight: str | None = None,
    frequency: str | None = None,
    cluster: str | None = None,
    group: str | None = None,
    target: str | None = None,
    classes: Sequence[Hashable] | None = None,
) -> Sketch:
    """The sketch of the rows of a data frame, in memory or not.

    Parameters
    ----------
    frame : data frame, or iterable of data frames or record batches
        pandas, Polars (lazy frames are streamed), PyArrow, DuckDB relations, Dask and
        PySpark. Of lazy frames only sums leave the engine, or rows come in batches.
    y, probs : str, or sequence of str
        The columns of the true class and of the probabilities: one per class, as a list
        or a pattern such as ``"p_*"``; one of lists; or one of the positive class.
    confidence, correct : str
        Instead of these, the columns of stated confidence and whether it was right.
    loss : str or mapping, optional
        The column of the full Brier score of each pair, or ``{"brier": ..., "log": ...}``,
        as in `Sketch.update_pairs`.
    sample_weight, frequency, cluster, group : str, optional
        The columns of importance weights (free of unit), of counts (how many rows a row
        stands for), of clusters (rows that depend on each other) and of subgroups. With
        clusters the rows come to the sketch in batches, wherever they are.
    target, classes
        As in `evaluate`.

    Returns
    -------
    Sketch
        To be evaluated, saved, or added to others.

    Examples
    --------
    >>> import calibrant as cal
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"conf": [0.9, 0.6, 0.7], "right": [True, True, False]})
    >>> sketch = cal.sketch_frame(rows, confidence="conf", correct="right")
    >>> round(cal.evaluate(sketch).metrics["brier"], 3)
    0.22
    """
    asked: dict[str, Any] = {"y": y, "probs": probs, "confidence": confidence}
    asked |= {"correct": correct, "loss": loss, "sample_weight": sample_weight}
    asked |= {"frequency": frequency, "cluster": cluster, "group": group}
    asked |= {"target": target, "classes": classes}
    try:
        return _sketch(frame, asked)
    except ModuleNotFoundError as error:  # PyArrow, for columns of lists and batches
        raise missing(error, f"a {type(frame).__name__} of these columns") from None


def _sketch(frame: Any, asked: dict[str, Any]) -> Sketch:
    known = _as_narwhals(frame)
    if known is None:
        return _sketch_each(frame, asked)
    schema = known.collect_schema()
    roles = query.read_roles(schema.names(), asked)
    if isinstance(known, nw.DataFrame):
        return _sketch_eager([known], roles)
    return _sketch_lazy(known, roles, schema)


def _as_narwhals(frame: Any) -> nw.DataFrame[Any] | nw.LazyFrame[Any] | None:
    """The frame as narwhals knows it; None if it is not one frame."""
    if type(frame).__name__ == "RecordBatch":
        frame = _as_table(frame)
    try:
        found = nw.from_native(frame, pass_through=True)
    except Exception:  # noqa: BLE001 - an object of the user may raise anything
        return None
    return found if isinstance(found, nw.DataFrame | nw.LazyFrame) else None


def _sketch_each(frames: Any, asked: dict[str, Any]) -> Sketch:
    """The sketch of frames or record batches that come one after the other."""
    if not isinstance(frames, Iterable) or getattr(frames, "shape", None) == ():
        raise TypeError(
            f"frame must be a data frame, or an iterable of them, got "
            f"{type(frames).__name__}."
        )
    slices: Slices | None = None
    for frame in frames:
        known = _as_narwhals(frame)
        if not isinstance(known, nw.DataFrame):
            raise TypeError(
                "frame, if an iterable, must give data frames in memory or record "
                f"batches, got {type(frame).__name__}."
            )
        slices = slices or Slices(query.read_roles(known.columns, asked))
        slices.add(known)
    return Sketch() if slices is None else slices.sketch()


def _sketch_eager(frames: Iterable[nw.DataFrame[Any]], roles: query.Roles) -> Sketch:
    slices = Slices(roles)
    for frame in frames:
        slices.add(frame)
    return slices.sketch()


def _sketch_lazy(
    frame: nw.LazyFrame[Any], roles: query.Roles, schema: Mapping[str, Any]
) -> Sketch:
    library = frame.implementation
    if library.is_dask():
        return sketch_dask(frame.to_native(), roles)
    if streams(frame):
        return _sketch_eager(_batches(frame.select(roles.names)), roles)
    if (reading := _reading(roles, schema)) is not None:
        grouped = query.group_rows(
            frame, reading, roles, short=_is_short(roles, schema)
        )
        some = len(grouped.cell) > 0
        return query.sketch_of(roles.kind, grouped) if some else Sketch()
    if library.is_pyspark() or library.is_pyspark_connect():
        return sketch_spark(frame.to_native(), roles)
    return _sketch_eager(_batches(frame.select(roles.names)), roles)


def streams(frame: nw.LazyFrame[Any]) -> bool:
    """Whether rows of an engine that runs in this process had better come in batches.

    A compiled loop over them takes less than half the time of its group-by.
    """
    arrow = frame.implementation.is_duckdb() and find_spec("pyarrow") is not None
    return engines.wanted() and (arrow or hasattr(frame.to_native(), "collect_batches"))


def _reading(roles: query.Roles, schema: Mapping[str, Any]) -> query.Reading | None:
    """How a query reads the rows; None if the frame had better give them as they are."""
    if roles.cluster is not None:
        return None
    if roles.pairs:
        return query.read_pairs(roles, whole=not schema[str(roles.correct)].is_float())
    k, dtype = len(roles.probs), "float32" if _is_short(roles, schema) else "float64"
    if isinstance(schema[roles.probs[0]], nw.List | nw.Array) or k > MOST_IN_QUERY:
        return None
    if k == 1 and roles.kind.target == "positive":
        return query.read_positive(roles, dtype)
    if k > 1 and roles.kind.target == "top-label" and (k > 2 or roles.target):
        return query.read_classes(roles, dtype)
    return None


def _is_short(roles: query.Roles, schema: Mapping[str, Any]) -> bool:
    """Whether confidences have single precision."""
    columns = roles.probs or (str(roles.confidence),)
    return all(schema[name] == nw.Float32 for name in columns)


def _batches(frame: nw.LazyFrame[Any]) -> Iterator[nw.DataFrame[Any]]:
    """The rows of a lazy frame as frames in memory, one after the other."""
    native = frame.to_native()
    if frame.implementation.is_polars():
        if hasattr(native, "collect_batches"):
            found = native.collect_batches(maintain_order=True, engine="streaming")
        else:  # Polars before 1.34 gives the rows at once
            found = [native.collect(engine="streaming")]
    elif frame.implementation.is_duckdb():
        newer = hasattr(native, "to_arrow_reader")  # it was called otherwise before
        reader = native.to_arrow_reader if newer else native.fetch_arrow_reader
        found = map(_as_table, reader(1 << 17))
    else:
        found = [frame.collect().to_native()]
    for part in found:
        yield nw.from_native(part, eager_only=True)
