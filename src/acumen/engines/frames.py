"""The sketch of any data frame, from pandas to a cluster."""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import narwhals as nw

from acumen.compiled import fast
from acumen.engines.filling import contents_of
from acumen.engines.grouping import group_rows
from acumen.engines.partitions import sketch_dask, sketch_spark
from acumen.engines.roles import Roles, read_roles
from acumen.engines.slices import Slices
from acumen.engines.terms import Reading, read_classes, read_pairs, read_positive
from acumen.sketches.sketch import Sketch

MOST_IN_ENGINE = 32
"""Classes up to which an engine reduces the columns itself; more come as batches."""


def sketch_frame(
    frame: Any,
    *,
    label: str | None = None,
    probs: str | Sequence[str] | None = None,
    confidence: str | None = None,
    correct: str | None = None,
    loss: str | Mapping[str, str] | None = None,
    weight: str | None = None,
    group: str | None = None,
    target: str | None = None,
    classes: Sequence[Hashable] | None = None,
) -> Sketch:
    """The sketch of the rows of a data frame, in memory or not.

    Parameters
    ----------
    frame : data frame, or iterable of data frames or record batches
        pandas, Polars (lazy frames are streamed), PyArrow, DuckDB relations, Dask and
        PySpark. Lazy engines run one query; only sums leave them.
    label, probs : str, or sequence of str
        The columns of the true class and of the probabilities: one per class, as a list
        or a pattern such as ``"p_*"``; one of lists; or one of the positive class.
    confidence, correct : str
        Instead of these, the columns of stated confidence and whether it was right.
    loss : str or mapping, optional
        The column of the full Brier score of each pair, or ``{"brier": ..., "log": ...}``,
        as in `Sketch.update_pairs`.
    weight, group : str, optional
        The columns of frequency weights and of subgroups.
    target, classes
        As in `evaluate`.

    Returns
    -------
    Sketch
        To be evaluated, saved, or added to others.

    Examples
    --------
    >>> import acumen as ac
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"conf": [0.9, 0.6, 0.7], "right": [True, True, False]})
    >>> sketch = ac.sketch_frame(rows, confidence="conf", correct="right")
    >>> round(ac.evaluate(sketch).metrics["brier"], 3)
    0.22
    """
    asked: dict[str, Any] = {
        "label": label,
        "probs": probs,
        "confidence": confidence,
        "correct": correct,
        "loss": loss,
        "weight": weight,
        "group": group,
        "target": target,
        "classes": classes,
    }
    known = _as_narwhals(frame)
    if known is None:
        return _sketch_each(frame, asked)
    schema = known.collect_schema()
    roles = read_roles(schema.names(), **asked)
    if isinstance(known, nw.DataFrame):
        return _sketch_eager([known], roles)
    return _sketch_lazy(known, roles, schema)


def _as_narwhals(frame: Any) -> nw.DataFrame[Any] | nw.LazyFrame[Any] | None:
    """The frame as narwhals knows it; None if it is not one frame."""
    if type(frame).__name__ == "RecordBatch":
        frame = importlib.import_module("pyarrow").Table.from_batches([frame])
    found = nw.from_native(frame, pass_through=True)
    return found if isinstance(found, nw.DataFrame | nw.LazyFrame) else None


def _sketch_each(frames: Any, asked: dict[str, Any]) -> Sketch:
    """The sketch of frames or record batches that come one after the other."""
    if not isinstance(frames, Iterable):
        raise TypeError(
            f"frame must be a data frame, or an iterable of them, got "
            f"{type(frames).__name__}."
        )
    slices: Slices | None = None
    for frame in frames:
        known = _as_narwhals(frame)
        if not isinstance(known, nw.DataFrame):
            raise TypeError(
                "an iterable must give data frames in memory or record batches, got "
                f"{type(frame).__name__}."
            )
        slices = slices or Slices(read_roles(known.columns, **asked))
        slices.add(known)
    return Sketch() if slices is None else slices.sketch()


def _sketch_eager(frames: Iterable[nw.DataFrame[Any]], roles: Roles) -> Sketch:
    slices = Slices(roles)
    for frame in frames:
        slices.add(frame)
    return slices.sketch()


def _sketch_lazy(
    frame: nw.LazyFrame[Any], roles: Roles, schema: Mapping[str, Any]
) -> Sketch:
    engine = frame.implementation
    if engine.is_dask():
        return sketch_dask(frame.to_native(), roles)
    if _had_better_stream(frame):
        return _sketch_eager(_batches(frame.select(roles.names)), roles)
    if (reading := _reading(roles, schema)) is not None:
        grouped = group_rows(frame, reading, roles, short=_is_short(roles, schema))
        if not len(grouped.cell):
            return Sketch()
        return Sketch.of(contents_of(roles.kind, grouped))
    if engine.is_pyspark() or engine.is_pyspark_connect():
        return sketch_spark(frame.to_native(), roles)
    return _sketch_eager(_batches(frame.select(roles.names)), roles)


def _had_better_stream(frame: nw.LazyFrame[Any]) -> bool:
    """Whether rows had better come as batches than be grouped where they are.

    DuckDB runs in this process, and a compiled loop over its batches takes less than half
    the time of its group-by.
    """
    batches = fast.installed() and find_spec("pyarrow") is not None
    return frame.implementation.is_duckdb() and batches


def _reading(roles: Roles, schema: Mapping[str, Any]) -> Reading | None:
    """How an engine reads the rows; None if it had better give them as they are."""
    if roles.pairs:
        whole = not schema[str(roles.correct)].is_float()
        return read_pairs(roles, whole=whole)
    k, dtype = len(roles.probs), "float32" if _is_short(roles, schema) else "float64"
    if isinstance(schema[roles.probs[0]], nw.List | nw.Array) or k > MOST_IN_ENGINE:
        return None
    if k == 1 and roles.kind.target == "positive":
        return read_positive(roles, dtype)
    if k > 1 and roles.kind.target == "top-label" and (k > 2 or roles.target):
        return read_classes(roles, dtype)
    return None


def _is_short(roles: Roles, schema: Mapping[str, Any]) -> bool:
    """Whether confidences have single precision."""
    columns = roles.probs or (str(roles.confidence),)
    return all(schema[name] == nw.Float32 for name in columns)


def _batches(frame: nw.LazyFrame[Any]) -> Iterator[nw.DataFrame[Any]]:
    """The rows of a lazy frame as frames in memory, one after the other."""
    native = frame.to_native()
    if frame.implementation.is_polars():
        found = native.collect_batches(maintain_order=False, engine="streaming")
    elif frame.implementation.is_duckdb():
        arrow = importlib.import_module("pyarrow")
        newer = hasattr(native, "to_arrow_reader")  # it was called otherwise before
        reader = native.to_arrow_reader if newer else native.fetch_arrow_reader
        found = (arrow.Table.from_batches([b]) for b in reader(1 << 17))
    else:
        found = [frame.collect().to_native()]
    for part in found:
        yield nw.from_native(part, eager_only=True)
