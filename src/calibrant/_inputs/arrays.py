"""Arrays from any framework, read without importing the framework they came from."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Column: TypeAlias = NDArray[np.float64]
"""One number per row."""

Table: TypeAlias = NDArray[np.float64]
"""Several numbers per row."""

Index: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]

Matrix: TypeAlias = NDArray[np.floating[Any]]
"""One row per forecast, one column per class; float16, float32 or float64."""


def to_numpy(array: Any, name: str) -> NDArray[Any]:
    """Read an array, a tensor, a data frame or a list; copy only if needed.

    It is anything NumPy reads, or that has ``detach`` (torch), ``to_numpy`` (pandas,
    Polars, PyArrow), ``__array__`` (JAX, xarray) or ``__dlpack__``. Errors name it.
    """
    if isinstance(array, np.ma.MaskedArray):
        if np.ma.is_masked(array):
            raise ValueError(
                f"{name} has masked entries ({int(np.ma.getmaskarray(array).sum())}); "
                "drop those rows or fill them first."
            )
        array = array.data
    if not isinstance(array, np.ndarray):
        array = _from_framework(array, name)
    if array.dtype == object:
        array = _unpack_objects(array)
    if array.dtype.kind == "V":
        raise TypeError(
            f"{name} must hold one value each, not records ({array.dtype})."
        )
    return array


def _from_framework(array: Any, name: str) -> NDArray[Any]:
    try:
        if hasattr(array, "detach"):  # torch: leave the graph, leave the GPU
            array = array.detach().cpu()
            if str(array.dtype) == "torch.bfloat16":  # NumPy has no such type
                array = array.float()
        if hasattr(array, "__array__") or not hasattr(array, "__dlpack__"):
            return np.asarray(array)
        return np.from_dlpack(array)
    except Exception as error:  # an object of the user may raise anything
        raise TypeError(
            f"{name} could not be read as an array ({type(array).__name__}): {error}"
        ) from error


def _unpack_objects(array: NDArray[Any]) -> NDArray[Any]:
    """Open up a column of lists (Arrow list columns); leave other objects be."""
    if array.ndim == 1 and array.size and not np.isscalar(array[0]):
        rows = [np.asarray(row) for row in array]
        if all(row.ndim == 1 and row.shape == rows[0].shape for row in rows):
            return np.stack(rows)
    return array


def numbers_in(array: NDArray[Any], name: str) -> Column:
    """Numbers that came as objects, or one error that says which entry is none."""
    try:
        return array.astype(np.float64)
    except Exception as error:  # an object of the user may raise anything
        raise TypeError(f"{name} must hold real numbers: {error}.") from error


def as_scores(array: Any, name: str) -> Matrix:
    """Read real-valued scores, keeping float16, float32 and float64 as they are."""
    scores = to_numpy(array, name)
    if scores.dtype.kind not in "fiu":
        raise TypeError(
            f"{name} must hold real numbers, got dtype {scores.dtype}. "
            "Convert them first, for example with .astype(float)."
        )
    if scores.dtype not in (np.float16, np.float32, np.float64):
        with np.errstate(over="ignore"):  # infinite then, and refused as that
            return scores.astype(np.float64)
    if not scores.dtype.isnative:
        return scores.astype(scores.dtype.newbyteorder("="))
    return scores


def softplus(x: Column) -> Column:
    """log(1 + e^x) without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def sigmoid(x: Column) -> Column:
    """1 / (1 + e^-x) without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, e) / (1 + e)
