"""Scores as they are given: arrays, tensors or data frames, of one column or several."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Matrix, as_scores, to_numpy

LOOKS_LIKE_PROBS = 10
"""From this many rows on, logits that are all distributions are refused."""


def read_scores(scores: Any) -> Matrix:
    """Read scores; some messages begin with the words that scikit-learn's checks know."""
    if hasattr(scores, "toarray"):  # NumPy would read it as a single object
        raise TypeError(
            "scores is a sparse matrix; a score per class is needed: pass .toarray()."
        )
    array = to_numpy(scores, "scores")
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: scores has dtype {array.dtype}.")
    if array.dtype == object:
        array = array.astype(np.float64)  # or NumPy says which entry is no number
    given = as_scores(array, "scores")
    if given.ndim not in (1, 2):
        raise ValueError(f"scores must be 1-D or 2-D, got shape {given.shape}.")
    if given.ndim == 2 and given.shape[1] == 0:
        raise ValueError(
            f"scores has 0 feature(s) (shape={given.shape}) while a minimum of 1 is "
            "required: one score per class."
        )
    return given


def flat_if_single(given: Matrix) -> Matrix:
    """One column is the positive class of a binary problem."""
    return given[:, 0] if given.ndim == 2 and given.shape[1] == 1 else given


def width(given: Matrix) -> int:
    return 1 if given.ndim == 1 else given.shape[1]


def names_as_array(names: tuple[Hashable, ...]) -> NDArray[Any]:
    """Class names as an array: of numbers or text if they all are, else of objects."""
    kinds = {type(name) for name in names}
    if len(kinds) == 1 and kinds <= {int, float, bool, str}:
        return np.array(names)
    array = np.empty(len(names), object)
    array[:] = names
    return array


def look_like_probs(given: Matrix) -> bool:
    """Whether all rows are distributions; looks at a few first."""
    if len(given) < LOOKS_LIKE_PROBS:
        return False
    for part in (given[:LOOKS_LIKE_PROBS], given):
        off = np.abs(part.sum(axis=1, dtype=np.float64) - 1)
        if not (part.min() >= 0 and off.max() <= 1e-4):
            return False
    return True


def column_names(scores: Any) -> NDArray[Any] | None:
    """Column names of a data frame, if all are text."""
    names = list(getattr(scores, "columns", ()))
    if names and all(isinstance(name, str) for name in names):
        return np.array(names, object)
    return None


def check_column_names(seen: NDArray[Any] | None, fitted: NDArray[Any] | None) -> None:
    if seen is None or fitted is None or np.array_equal(seen, fitted):
        return
    raise ValueError(
        "The feature names should match those that were passed during fit: columns were "
        f"{fitted.tolist()[:5]}, and now are {seen.tolist()[:5]}."
    )
