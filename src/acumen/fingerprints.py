"""Which rows a number is about: a short hash, and rows that two sets share."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIGEST = 16
MOSTLY = 0.5
"""Scores must tell rows apart at least this often, or equal rows mean nothing."""


def fingerprint(labels: Any, weight: Any = None) -> str:
    """Hash of labels and weights in their order: the same for equal values.

    Types do not matter, nor do rows of weight 0, nor whether weights of 1 are spelt out.

    Examples
    --------
    >>> fingerprint([0, 1, 1])
    '42a84923c908a9d6ec107c8e67e58ad0'
    >>> fingerprint([0.0, 1.0, 1.0, 5.0], [1, 1, 1, 0]) == fingerprint([0, 1, 1])
    True
    """
    y = np.asarray(labels).astype(np.float64) + 0.0  # -0.0 is 0
    w = np.ones(len(y)) if weight is None else np.asarray(weight).astype(np.float64)
    y, w = y[w > 0], w[w > 0]
    state = blake2b(str(y.shape).encode(), digest_size=DIGEST)
    state.update(np.ascontiguousarray(y, "<f8").tobytes())
    if not np.all(w == 1):
        state.update(np.ascontiguousarray(w, "<f8").tobytes())
    return state.hexdigest()


def shared_rows(fit_scores: Any, fit_y: Any, test_scores: Any, test_y: Any) -> int:
    """Rows to test on that also occur among the rows to fit on, scores and label alike.

    Only rows that occur once in their set count: scores of few distinct values agree by
    chance. If most rows are not of that kind, nothing can be said, and 0 is returned.

    Examples
    --------
    >>> shared_rows([[0.1, 0.9], [0.3, 0.7]], [1, 0], [[0.3, 0.7], [0.2, 0.8]], [0, 1])
    1
    """
    fit, test = _single(fit_scores, fit_y), _single(test_scores, test_y)
    if len(fit) < MOSTLY * len(fit_y) or len(test) < MOSTLY * len(test_y):
        return 0
    return len(np.intersect1d(fit, test, assume_unique=True))


def _single(scores: Any, y: Any) -> NDArray[Any]:
    """Rows that occur once, as strings of bytes that can be compared."""
    codes = np.asarray(y)
    if codes.dtype.kind not in "biuf":
        codes = np.array([hash(label) for label in codes.tolist()], np.float64)
    parts = [np.asarray(x, np.float64).reshape(len(codes), -1) for x in (scores, codes)]
    table = np.ascontiguousarray(np.concatenate(parts, axis=1) + 0.0)
    rows = table.view(np.dtype((np.void, table.itemsize * table.shape[1])))[:, 0]
    found, count = np.unique(rows, return_counts=True)
    return found[count == 1]
