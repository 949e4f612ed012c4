"""Which rows a study fits on and which it tests on: given, split, or cross-fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Matrix, as_number, as_scores, to_numpy
from acumen.fingerprints import shared_rows

PAPER_SPLIT = 0.2
COLUMNS_OF_A_ROW = 16


class Sample(NamedTuple):
    """Scores, labels and weights of some rows."""

    scores: Matrix
    y: NDArray[Any]
    weight: NDArray[Any] | None

    def select(self, rows: Any) -> Sample:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return Sample(self.scores[rows], self.y[rows], weight)


@dataclass(frozen=True, slots=True, eq=False)
class StudyRows:
    """Rows to test on and, for each part of them, rows to fit on.

    `parts` are pairs of rows to fit on and places in `test` that they are for. `whole`
    are the rows that the recalibrators to keep are fitted on. `shared` counts rows of two
    given sets that are in both.
    """

    kind: Literal["logits", "probs"]
    test: Sample
    parts: tuple[tuple[Sample, Any], ...]
    whole: Sample
    protocol: str
    shared: int = 0


def read_study_rows(
    y: Any,
    y_test: Any,
    *,
    logits: Any,
    probs: Any,
    sample_weight: Any,
    split: float | None,
    folds: int | None,
    rng: Any,
) -> StudyRows:
    """Read scores and labels, and decide who is fitted on what."""
    if (logits is None) == (probs is None):
        raise TypeError(
            "pass exactly one of logits= and probs=; the two are never told apart by "
            "looking at the numbers."
        )
    kind: Literal["logits", "probs"] = "probs" if logits is None else "logits"
    given = probs if logits is None else logits
    if y_test is not None:
        if split is not None or folds is not None:
            raise ValueError(
                "split and folds divide one set of rows; y_test is a second."
            )
        return _two_sets(kind, given, y, y_test, sample_weight)
    if split is not None and folds is not None:
        raise ValueError("split and folds exclude each other; pass one of them.")
    sample = _sample(given, y, sample_weight, kind)
    if folds is not None:
        return _cross_fitted(kind, sample, folds, rng)
    return _split(kind, sample, PAPER_SPLIT if split is None else split, rng)


def _two_sets(kind: Any, given: Any, y: Any, y_test: Any, weight: Any) -> StudyRows:
    fit_scores, test_scores = _pair(given, kind)
    fit_weight, test_weight = (None, None)
    if weight is not None:
        fit_weight, test_weight = _pair(weight, "sample_weight")
    fit = _sample(fit_scores, y, fit_weight, kind)
    test = _sample(test_scores, y_test, test_weight, kind)
    if fit.scores.shape[1:] != test.scores.shape[1:]:
        raise ValueError(
            f"{kind} must have the same columns in both sets: {fit.scores.shape} to fit "
            f"on, {test.scores.shape} to test on."
        )
    words = f"fitted on {len(fit.y):,} rows, tested on {len(test.y):,} others"
    shared = shared_rows(_some(fit.scores), fit.y, _some(test.scores), test.y)
    return StudyRows(kind, test, ((fit, slice(None)),), fit, words, shared)


def _some(scores: Matrix) -> Matrix:
    """Enough columns to know a row again."""
    return scores if scores.ndim == 1 else scores[:, :COLUMNS_OF_A_ROW]


def _pair(given: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise TypeError(
            f"with y_test, {name} must be a pair ({name} of y, {name} of y_test)."
        )
    return given[0], given[1]


def _sample(scores: Any, y: Any, weight: Any, kind: str) -> Sample:
    if isinstance(scores, tuple) and len(scores) == 2 and np.ndim(scores[0]) == 2:
        raise TypeError(
            f"{kind} is a pair, which needs y_test, the labels of the second."
        )
    matrix, labels = as_scores(scores, kind), to_numpy(y, "y")
    if weight is not None:
        weight = to_numpy(weight, "sample_weight")
    for name, column in (("y", labels), ("sample_weight", weight)):
        if column is not None and len(column) != len(matrix):
            raise ValueError(
                f"{name} must have one entry per row of {kind}: {len(column)} against "
                f"{len(matrix)} rows."
            )
    return Sample(matrix, labels, weight)


def _split(kind: Any, sample: Sample, split: float, rng: Any) -> StudyRows:
    n = len(sample.y)
    share = as_number(split)
    count = round(share * n) if 0 < share < 1 else 0
    if not 0 < count < n:
        raise ValueError(
            f"split must be the share of rows to fit on, and leave rows on both sides; "
            f"got {split!r} for {n} rows."
        )
    order = _order(n, rng)
    fit, test = sample.select(order[:count]), sample.select(order[count:])
    drawn = "the first rows" if rng is None else "drawn at random"
    words = (
        f"fitted on {count:,} rows ({100 * count / n:.3g} %, {drawn}), "
        f"tested on the other {n - count:,}"
    )
    return StudyRows(kind, test, ((fit, slice(None)),), fit, words)


def _cross_fitted(kind: Any, sample: Sample, folds: Any, rng: Any) -> StudyRows:
    n = len(sample.y)
    if isinstance(folds, bool) or not isinstance(folds, int) or not 2 <= folds <= n:
        raise ValueError(f"folds must be a whole number from 2 to {n}; got {folds!r}.")
    parts = tuple(
        (sample.select(np.flatnonzero(fold != number)), np.flatnonzero(fold == number))
        for fold in (_folds(sample.y, folds, rng),)
        for number in range(folds)
    )
    words = f"cross-fitted on {n:,} rows in {folds} folds: each row is tested unseen"
    return StudyRows(kind, sample, parts, sample, words)


def _folds(y: NDArray[Any], folds: int, rng: Any) -> NDArray[np.intp]:
    """Fold of each row; every class is spread over the folds as evenly as it goes."""
    order = _order(len(y), rng)
    labels = y if y.ndim == 1 else y.argmax(axis=1)
    _, codes = np.unique(labels, return_inverse=True)
    order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(len(y), np.intp)
    fold[order] = np.arange(len(y)) % folds
    return fold


def _order(n: int, rng: Any) -> NDArray[np.intp]:
    """A random order of the rows, or the order they are in."""
    return np.arange(n) if rng is None else np.random.default_rng(rng).permutation(n)
