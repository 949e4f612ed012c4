"""Columns of frames in memory, as arrays."""

from __future__ import annotations

import importlib
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


def arrays_of(frame: nw.DataFrame[Any], names: list[str]) -> Arrays:
    """The values of columns; those of lists as a matrix."""
    return {name: _array(frame[name]) for name in names}


def side_by_side(arrays: Arrays, names: tuple[str, ...]) -> NDArray[Any]:
    """Columns as those of a matrix, one after the other in memory; a single one as it is."""
    if len(names) == 1:
        return arrays[names[0]]
    return np.stack([arrays[name] for name in names]).T


def _array(column: nw.Series[Any]) -> NDArray[Any]:
    nested = isinstance(column.dtype, nw.List | nw.Array)
    return _matrix(column) if nested else column.to_numpy()


def _matrix(column: nw.Series[Any]) -> NDArray[Any]:
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
