"""One pass over the matrix: blocks of rows that fit in cache, on every core.

Nothing the size of the matrix is ever made: no softmax of the whole, no one-hot. Rows
that break a rule are found by the same pass and reported together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen import blocks
from acumen.arrays import Column, Matrix
from acumen.blocks import ROW_SUM_TOLERANCE
from acumen.bregman import Divergence
from acumen.columns import Columns
from acumen.compiled import fast
from acumen.compiled.threads import over_ranges
from acumen.predictions import Predictions

BLOCK_BYTES = 1 << 19


class Output:
    """The columns being filled, range by range."""

    def __init__(self, n: int, extra: Mapping[str, Divergence]) -> None:
        self.confidence, self.log_odds, self.hit, self.brier, self.log = np.empty(
            (5, n)
        )
        self.predicted = np.empty(n, np.int32)
        self.extra = {name: np.empty(n) for name in extra}

    def columns(self, weight: Column | None) -> Columns:
        """The filled columns."""
        losses = {"brier": self.brier, "log": self.log, **self.extra}
        return Columns(
            self.confidence, self.log_odds, self.hit, losses, weight, self.predicted
        ).without_zero_weights()


def reduce_rows(
    predictions: Predictions, extra: Mapping[str, Divergence], engine: str = "auto"
) -> Columns:
    """Reduce every row to what was said of its likeliest class.

    Ties go to the class with the lower number. `extra` names divergences to compute
    besides Brier and log.
    """
    return fill(predictions, extra, engine).columns(predictions.weight)


def fill(
    predictions: Predictions, extra: Mapping[str, Divergence], engine: str
) -> Output:
    """Run the pass; rows of weight 0 are still there, but may break any rule."""
    n = len(predictions.scores)
    out = Output(n, extra)
    plain = not (predictions.soft or extra)
    work: Callable[[int, int], NDArray[Any]]
    if fast.wanted(engine, predictions.scores, plain=plain):
        work = fast.range_reducer(predictions, out)
    else:

        def work(start: int, stop: int) -> NDArray[Any]:
            return _reduce_range(predictions, extra, out, start, stop)

    found = over_ranges(work, n, predictions.scores.size)
    raise_for_offenders(predictions, np.concatenate(found))
    return out


def _reduce_range(
    predictions: Predictions,
    extra: Mapping[str, Divergence],
    out: Output,
    start: int,
    stop: int,
) -> NDArray[Any]:
    """Reduce rows start..stop; return the numbers of rows that break a rule."""
    scores = predictions.scores
    work_type = np.float64 if scores.dtype == np.float64 else np.float32
    rows = max(1, BLOCK_BYTES // (scores.shape[1] * np.dtype(work_type).itemsize))
    buffer = np.empty((min(rows, stop - start), scores.shape[1]), work_type)
    bad = [np.empty(0, np.intp)]
    with np.errstate(all="ignore"):  # offenders are found by what they leave behind
        for first in range(start, stop, rows):
            part = slice(first, min(first + rows, stop))
            others = buffer[: part.stop - first]
            offends = _reduce_block(predictions, part, others, extra, out)
            if offends.any():
                bad.append(first + np.flatnonzero(offends))
    return np.concatenate(bad)


def _reduce_block(
    predictions: Predictions,
    part: slice,
    others: Matrix,
    extra: Mapping[str, Divergence],
    out: Output,
) -> NDArray[np.bool_]:
    kind, labels = predictions.kind, predictions.labels[part]
    scores = np.ascontiguousarray(predictions.scores[part], dtype=others.dtype)
    if kind == "logits":
        sums = blocks.sums_of_logits(scores, others)
        out.confidence[part] = 1 / (1 + sums.rest)
    else:
        tolerance = ROW_SUM_TOLERANCE[predictions.scores.dtype.name]
        sums = blocks.sums_of_probs(scores, others, tolerance)
        out.confidence[part] = np.minimum(sums.top, 1.0)
    out.predicted[part], out.log_odds[part] = sums.best, sums.log_odds
    offends = sums.offends
    if predictions.soft:
        losses, not_soft = blocks.soft_losses(kind, scores, sums, labels)
        offends = offends | not_soft
    elif kind == "logits":
        losses = blocks.hard_losses_of_logits(scores, sums, labels)
    else:
        losses = blocks.hard_losses_of_probs(scores, sums, labels)
    out.hit[part], out.brier[part], out.log[part] = losses
    if extra:
        probs = np.exp(blocks.log_probabilities(kind, scores))
        for name, divergence in extra.items():
            loss = divergence.between if predictions.soft else divergence.of_labels
            given = (labels, probs) if predictions.soft else (probs, labels)
            out.extra[name][part] = loss(*given)
    return offends


def raise_for_offenders(predictions: Predictions, bad: NDArray[Any]) -> None:
    """Raise one error for all rows that break a rule, if any of them counts."""
    if predictions.weight is not None:
        bad = bad[predictions.weight[bad] > 0]
    bad = bad[_really_offend(predictions, bad)]
    if not bad.size:
        return
    row = predictions.scores[bad[0]].astype(np.float64)
    many = f"({bad.size} of {len(predictions.scores)} rows are off)"
    if predictions.kind == "logits":
        if (reason := _logits_reason(row)) is not None:
            raise ValueError(f"logits must be finite: row {bad[0]} {reason} {many}.")
    elif (reason := _probs_reason(row, predictions.scores.dtype)) is not None:
        raise ValueError(
            f"probs must be rows of probabilities: row {bad[0]} {reason} {many}. If "
            "these are logits, pass logits=; otherwise divide each row by its sum."
        )
    labels = predictions.labels[bad[0]]
    raise ValueError(
        f"y as soft labels must be non-negative rows that sum to 1 (within "
        f"{ROW_SUM_TOLERANCE[labels.dtype.name]:g}): row {bad[0]} sums to "
        f"{labels.sum():.6g} {many}."
    )


def _really_offend(predictions: Predictions, bad: NDArray[Any]) -> NDArray[np.bool_]:
    """Which offenders still are when their sums are taken in double precision."""
    if not bad.size or predictions.kind == "logits":
        return np.ones(len(bad), bool)
    rows = predictions.scores[bad].astype(np.float64)
    tolerance = ROW_SUM_TOLERANCE[predictions.scores.dtype.name]
    offends = ~(np.abs(rows.sum(axis=1) - 1) <= tolerance) | ~(rows >= 0).all(axis=1)
    if predictions.soft:
        offends |= ~blocks.are_distributions(predictions.labels[bad])
    return offends


def _logits_reason(row: Column) -> str | None:
    if np.isnan(row).any():
        return f"holds NaN in column {int(np.argmax(np.isnan(row)))}"
    if np.isposinf(row).any():
        return f"holds +inf in column {int(np.argmax(row))}"
    if np.isneginf(row).all():
        return "is -inf in every column, so no class is possible"
    return None


def _probs_reason(row: Column, dtype: np.dtype[Any]) -> str | None:
    if np.isnan(row).any():
        return f"holds NaN in column {int(np.argmax(np.isnan(row)))}"
    if row.min() < 0:
        return f"holds a negative number ({row.min():.6g})"
    if row.max() > 1 + ROW_SUM_TOLERANCE[dtype.name]:
        return f"holds a number above 1 ({row.max():.6g})"
    if abs(row.sum() - 1) > ROW_SUM_TOLERANCE[dtype.name]:
        tolerance = ROW_SUM_TOLERANCE[dtype.name]
        return f"sums to {row.sum():.6g}, not 1 within {tolerance:g} ({dtype.name})"
    return None
