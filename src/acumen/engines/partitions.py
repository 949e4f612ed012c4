"""Partitions of Dask and Spark: each becomes a sketch where it is, and sketches add up."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from operator import add
from typing import Any

import narwhals as nw

from acumen.engines.roles import Roles
from acumen.engines.slices import Slices
from acumen.sketches.sketch import Sketch
from acumen.sketches.storage import to_bytes

FAN_IN = 4
"""Sketches merged by one task."""

NO_ROWS = b""
"""What stands for a sketch without rows."""


def pack(sketch: Sketch) -> bytes:
    """A sketch on its way between workers, where compressing would take too long."""
    contents = sketch.checked()
    return NO_ROWS if contents is None else to_bytes(contents, compressed=False)


def unpack(content: bytes) -> Sketch:
    """The sketch that `pack` packed."""
    return Sketch.from_bytes(content) if content else Sketch()


def sketch_bytes(frames: Iterable[Any], roles: Roles, parts: int = 1) -> bytes:
    """The sketch of frames in memory, as bytes that a worker sends back."""
    slices = Slices(roles, parts)
    for frame in frames:
        slices.add(nw.from_native(frame, eager_only=True))
    return pack(slices.sketch())


def merge_bytes(parts: Sequence[bytes]) -> bytes:
    """The sketch of the rows of several, of which two at a time are in memory."""
    return pack(reduce(add, map(unpack, parts), Sketch()))


def sketch_dask(frame: Any, roles: Roles) -> Sketch:
    """Sketch each partition of a Dask frame on its worker, and merge them in a tree.

    The tree depends on the number of partitions only: a partition that is computed
    again, because its worker was lost, changes no bit.
    """
    delayed = importlib.import_module("dask").delayed
    given = frame[roles.names].to_delayed()
    parts = [delayed(_of_one)(part, roles, len(given)) for part in given]
    while len(parts) > 1:
        groups = range(0, len(parts), FAN_IN)
        parts = [delayed(merge_bytes)(parts[i : i + FAN_IN]) for i in groups]
    return unpack(parts[0].compute())


def _of_one(frame: Any, roles: Roles, parts: int) -> bytes:
    return sketch_bytes([frame], roles, parts)


def sketch_spark(frame: Any, roles: Roles) -> Sketch:
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


def _of_batches(batches: Iterator[Any], roles: Roles) -> bytes:
    arrow = importlib.import_module("pyarrow")
    return sketch_bytes((arrow.Table.from_batches([b]) for b in batches), roles)


def _merged_batches(batches: Iterator[Any]) -> bytes:
    return merge_bytes([part for b in batches for part in b.column(0).to_pylist()])
