"""Labels of rows to fit on: which column each belongs to, and what classes are called."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import to_numpy


def read_labels(y: Any) -> NDArray[Any]:
    """Labels as an array; numbers that came as objects are numbers."""
    labels = to_numpy(y, "y")
    if labels.dtype == object and all(isinstance(x, Real) for x in labels.flat):
        return np.array(labels.tolist())
    return labels


def class_names(
    labels: NDArray[Any], k: int, classes: Sequence[Hashable] | None
) -> Sequence[Hashable] | None:
    """Names of the k columns, or None if labels are column numbers.

    Given names are taken as they are. Otherwise labels 0..k-1 are column numbers, of
    which some may be missing. Any other labels must be exactly k distinct ones, which
    then name the columns in sorted order, as in scikit-learn's ``classes_``.
    """
    if classes is not None:
        return classes
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(
            f"y must be 1-D for fitting, got shape {labels.shape}. To fit on soft labels, "
            "repeat each row once per class with its share as sample_weight."
        )
    if labels.size == 0 or _are_column_numbers(labels, k):
        return None
    return _sorted_names(labels, k)


def _are_column_numbers(labels: NDArray[Any], k: int) -> bool:
    if labels.dtype.kind not in "iubf":
        return False
    inside = (labels >= 0) & (labels < k)  # NaN is not
    return bool(inside.all() and (labels == np.floor(labels)).all())


def _sorted_names(labels: NDArray[Any], k: int) -> list[Hashable]:
    if labels.dtype.kind == "f":
        _check_labels_are_classes(labels)
    try:
        distinct = np.unique(labels)
    except TypeError as error:
        raise TypeError(
            "Unknown label type: y holds labels that cannot be sorted; pass "
            "classes=[...], the names of the classes in column order."
        ) from error
    if len(distinct) != k:
        some = ", ".join(repr(label) for label in distinct[:3].tolist())
        raise ValueError(
            f"y holds {len(distinct)} distinct labels ({some}, ...), and scores has {k} "
            "classes. Labels are column numbers 0..k-1, or exactly one name per column; "
            "otherwise pass classes=[...], the names in column order."
        )
    return distinct.tolist()


def _check_labels_are_classes(labels: NDArray[Any]) -> None:
    """Refuse labels that are not classes at all, in words scikit-learn users know."""
    if not np.isfinite(labels).all():
        row = int(np.argmin(np.isfinite(labels)))
        raise ValueError(f"y contains NaN or infinity: row {row} is {labels[row]}.")
    whole = labels == np.floor(labels)
    if not whole.all():
        row = int(np.argmin(whole))
        raise ValueError(
            f"Unknown label type: y must hold classes; row {row} is {labels[row]}, and "
            "classes are whole numbers or names."
        )
