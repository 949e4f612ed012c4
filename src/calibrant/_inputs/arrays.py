"""Arrays from any framework, read without importing the framework they came from."""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import shown

Column: TypeAlias = NDArray[np.float64]
"""One number per row."""

Table: TypeAlias = NDArray[np.float64]
"""Several numbers per row."""

Index: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]

Matrix: TypeAlias = NDArray[np.floating[Any]]
"""One row per forecast, one column per class; float16, float32 or float64."""


def distinct(x: NDArray[Any]) -> NDArray[Any]:
    """The values that occur, in order; `np.unique` would load all of `numpy.ma`.

    Examples
    --------
    >>> distinct(np.array([2, 1, 2]))
    array([1, 2])
    """
    x = np.sort(x)
    new = np.ones(len(x), bool)
    np.not_equal(x[1:], x[:-1], out=new[1:])
    return x[new]


def to_numpy(array: Any, name: str) -> NDArray[Any]:
    """Read an array, a tensor, a data frame or a list; copy only if needed.

    It is anything NumPy reads, or that has ``detach`` (torch), ``to_numpy`` (pandas,
    Polars, PyArrow), ``__array__`` (JAX, xarray) or ``__dlpack__``. Errors name it.
    """
    # Whoever has a masked array has loaded `numpy.ma`: loading it to look takes time.
    if "numpy.ma" in sys.modules and isinstance(array, np.ma.MaskedArray):
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
    if array.dtype.name == "bfloat16":  # JAX: NumPy has no such type
        return array.astype(np.float32)
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
            return np.asarray(_in_floats(array))
        return np.from_dlpack(array)
    except Exception as error:  # an object of the user may raise anything
        raise TypeError(
            f"{name} could not be read as an array ({type(array).__name__}): {error}"
        ) from error


def _in_floats(array: Any) -> Any:
    """A pandas frame of nullable or Arrow numbers in floats, as NumPy reads its columns."""
    kinds = array.dtypes if hasattr(array, "columns") and hasattr(array, "loc") else ()
    own = any(not isinstance(x, np.dtype) for x in kinds)
    numbers = own and all(getattr(x, "kind", "O") in "fiu" for x in kinds)
    return array.astype(float) if numbers else array


def _unpack_objects(array: NDArray[Any]) -> NDArray[Any]:
    """Open up a column of lists (Arrow list columns); leave other objects be."""
    if array.ndim == 1 and array.size and not np.isscalar(array[0]):
        rows = [np.asarray(row) for row in array]
        if all(row.ndim == 1 and row.shape == rows[0].shape for row in rows):
            return np.stack(rows)
    return array


def check_indices(**given: Any) -> None:
    """Raise unless all that says which row is which (pandas does) says the same.

    Examples
    --------
    >>> import pandas as pd
    >>> y, p = pd.Series([1, 0], [3, 4]), pd.Series([0.2, 0.9], [4, 3])
    >>> check_indices(y=y, probs=p)
    Traceback (most recent call last):
    ValueError: y and probs have different indices: row 0 is 3 in y and 4 in probs. ...
    """
    indices: dict[str, Any] = {n: getattr(x, "index", None) for n, x in given.items()}
    known = [(name, x) for name, x in indices.items() if hasattr(x, "equals")]
    for name, index in known[1:]:
        first, other = known[0]
        if len(index) == len(other) and not other.equals(index):
            raise ValueError(
                f"{first} and {name} have different indices: "
                f"{_first_difference(other, index, first, name)}. If the index says which "
                f"row is which, align them: {name}.loc[{first}.index]; if their order does, "
                "pass .to_numpy() of both."
            )


def _first_difference(one: Any, other: Any, *names: str) -> str:
    pairs = enumerate(zip(one, other, strict=True))
    row, (a, b) = next(
        (x for x in pairs if x[1][0] != x[1][1]), (0, (one[0], other[0]))
    )
    return f"row {row} is {shown(a)} in {names[0]} and {shown(b)} in {names[1]}"


def as_scores(array: Any, name: str) -> Matrix:
    """Read real-valued scores, keeping float16, float32 and float64 as they are."""
    scores = plain_numbers(to_numpy(array, name))
    if scores.dtype.kind not in "fiu":
        raise _no_scores(scores, name)
    scores = scores.astype(scores.dtype.newbyteorder("="), copy=False)
    if scores.dtype not in (np.float16, np.float32, np.float64):
        with np.errstate(over="ignore"):  # infinite then, and refused as that
            return scores.astype(np.float64)
    return scores


def plain_numbers(array: NDArray[Any], more: Any = ()) -> NDArray[Any]:
    """Numbers that came as objects, as from a list of which each None was left out."""
    if array.dtype != object or not array.size:
        return array
    alike = all(_is_number(x) or isinstance(x, more) for x in array.ravel().tolist())
    return array.astype(np.float64) if alike else array


def _is_number(x: Any) -> bool:
    small = type(x) is int and x.bit_length() < 1000  # or no float holds it
    return small or isinstance(x, float | np.floating)


def _no_scores(given: NDArray[Any], name: str) -> TypeError:
    """The error of scores that are not numbers: the first that is none, and the way out."""
    cells = given.ravel().tolist() or [given.dtype]
    place = next((i for i, x in enumerate(cells) if not _is_number(x)), 0)
    x, row = cells[place], place // (np.atleast_1d(given)[:1].size or 1)
    remedy = "Are labels and scores swapped? Else convert them: .astype(float)."
    if not isinstance(x, str) and str(x) in ABSENT:
        remedy = leave_out(name)
    elif str(x).strip().endswith("%"):
        remedy = f"Convert them: [float(x.rstrip('% ')) / 100 for x in {name}]."
    rule = f"{name} must hold real numbers; row {row} is {shown(x)}."
    return TypeError(f"{rule} {remedy}")


def leave_out(name: str, keep: str = "") -> str:
    """What to do about rows that are NaN or None, be they in an array or a list."""
    keep = keep or f"~np.isnan(np.asarray({name}, float))"
    pairs = ", or pass drop_missing=True to evaluate_pairs" * (name == "confidence")
    every = f"keep = {keep}, and np.asarray(x)[keep] of every argument"
    return f"Leave such rows out: {every}{pairs}."


ROW_SUM_TOLERANCE = {
    "bfloat16": 3e-2,
    "float16": 4e-3,
    "float32": 1e-4,
    "float64": 1e-4,
}
"""How far a row of probabilities may be from summing to 1, by its dtype."""

ABSENT = ("None", "nan", "NaT", "<NA>")
"""How None, NaN, NaT and pandas' NA print, which stand for nothing."""

ROWS_AT_ONCE = 4096


def dtype_of(rows: Matrix) -> str:
    """The dtype rows were computed in: that of the matrix, or bfloat16.

    NumPy has no bfloat16, so it comes as float32, of which it is the upper half.
    """
    if rows.dtype != np.float32:
        return str(rows.dtype.name)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = np.ascontiguousarray(rows[start : start + ROWS_AT_ONCE])
        if (some.view(np.uint32) & 0xFFFF).any():
            return "float32"
    return "bfloat16"


def row_tolerance(rows: Matrix) -> float:
    """How far rows of probabilities may be from summing to 1."""
    return ROW_SUM_TOLERANCE[dtype_of(rows)]


FEW_ROWS, FEW_NUMBERS = 10, 30
"""Below so many rows, or single numbers, logits may look like probabilities by chance."""


def in_unit_interval(column: Column) -> bool:
    """Whether all numbers are in [0, 1], and none is NaN; a part in cache at a time."""
    parts = (column[i : i + (1 << 15)] for i in range(0, len(column), 1 << 15))
    return all(part.min() >= 0 and part.max() <= 1 for part in parts)


def check_logits(scores: Matrix, remedy: str = "Pass probs= instead.") -> None:
    """Raise if logits are probabilities, which would be believed and give nonsense.

    Rows that are all distributions are; so are single numbers that differ, all of them in
    [0, 1]: log-odds of a model lie on both sides of it.
    """
    if scores.ndim == 2 and _are_all_distributions(scores):
        raise no_logits("no number is negative and every row sums to 1", remedy)
    if scores.ndim == 1 and _are_all_shares(scores):
        ends = f"they run from {scores.min():.3g} to {scores.max():.3g}"
        other = "If they are log-odds z, give them as two columns, 0 and z."
        raise no_logits(f"{ends}, and none is outside [0, 1]", f"{remedy} {other}")


MOST_LOGIT = 1e100
TOO_LARGE = f"logits must be at most {MOST_LOGIT:g} in size, or -inf"
"""Numbers beyond it are no log-odds of a model, and their squares overflow."""


def too_large(logits: Matrix) -> Mask:
    """Which rows hold a number that is finite, and too large to be a logit."""
    if logits.dtype != np.float64:
        return np.zeros(len(logits), bool)
    return largest(logits) > MOST_LOGIT


def largest(logits: Matrix) -> Column:
    """The size of numbers that are finite, by row if there are several in one."""
    size = np.where(np.isfinite(logits), np.abs(logits), 0.0).astype(np.float64)
    return size if size.ndim == 1 else size.max(axis=1)


def no_logits(because: str, remedy: str) -> ValueError:
    """The error of logits that are probabilities."""
    return ValueError(f"these logits are probabilities: {because}. {remedy}")


@np.errstate(over="ignore", invalid="ignore")
def _are_all_distributions(scores: Matrix) -> bool:
    """Whether all rows are, or were in half precision; looks at a few first."""
    if len(scores) < FEW_ROWS or scores.size == 0:
        return False
    for part in (scores[:FEW_ROWS], scores):
        off = np.abs(part.sum(axis=1, dtype=np.float64) - 1)
        near = max(row_tolerance(part), ROW_SUM_TOLERANCE["float16"])
        if not (part.min() >= 0 and off.max() <= near):
            return False
    return True


def _are_all_shares(scores: Matrix) -> bool:
    if len(scores) < FEW_NUMBERS:
        return False
    low, high = scores.min(), scores.max()
    return bool(0 <= low < high <= 1)


def softplus(x: Column) -> Column:
    """log(1 + e^x) without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def cross_entropy(a: Column, eta: Column) -> Column:
    """-a log m - (1 - a) log(1 - m) at m = sigmoid(eta), without overflow."""
    sides = a * np.maximum(-eta, 0) + (1 - a) * np.maximum(eta, 0)
    return sides + np.log1p(np.exp(-np.abs(eta)))


def sigmoid(x: Column) -> Column:
    """1 / (1 + e^-x) without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, e) / (1 + e)
