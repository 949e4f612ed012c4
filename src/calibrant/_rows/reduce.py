"""From n x k to n: one pass over the matrix, for whatever is asked of each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import RowError
from calibrant._base.records import FORECASTS
from calibrant._inputs.arrays import (
    ROW_SUM_TOLERANCE,
    TOO_LARGE,
    Column,
    Mask,
    Matrix,
    dtype_of,
    in_unit_interval,
    largest,
    leave_out,
    row_tolerance,
    sigmoid,
    too_large,
)
from calibrant._inputs.divergences import Divergence
from calibrant._inputs.options import Scores, read_given
from calibrant._inputs.predictions import Predictions
from calibrant._inputs.targets import Target
from calibrant._rows import compiled, engines
from calibrant._rows import losses as row_losses
from calibrant._rows.columns import Columns
from calibrant._rows.engines import over_ranges
from calibrant._rows.losses import are_distributions


def read(
    y: Any, given: Scores, extra: Mapping[str, Divergence] | None = None
) -> tuple[Predictions, Columns]:
    """Read and reduce; `extra` are divergences besides the built-in ones."""
    predictions = read_given(y, given)
    return predictions, reduce_to_columns(predictions, extra)


# -- one pass over the matrix: blocks of rows that fit in cache, on every core -----
#
# Nothing the size of the matrix is ever made: no softmax of the whole, no one-hot. Rows
# that break a rule are found by the same pass and reported together.

BLOCK_BYTES = 1 << 19


class Output:
    """The columns being filled, range by range."""

    def __init__(self, n: int, extra: Mapping[str, Divergence]) -> None:
        self.confidence, self.log_odds, self.hit = np.empty((3, n))
        self.brier, self.log = np.empty((2, n))
        self.predicted = np.empty(n, np.int32)
        self.extra = {name: np.empty(n) for name in extra}

    def columns(
        self, weight: Column | None = None, squared: Column | None = None
    ) -> Columns:
        """The filled columns."""
        losses = {"brier": self.brier, "log": self.log, **self.extra}
        filled = self.confidence, self.log_odds, self.hit, losses
        rest = weight, self.predicted, squared
        return Columns(*filled, *rest).without_zero_weights()


def fill(
    predictions: Predictions, extra: Mapping[str, Divergence], engine: str
) -> Output:
    """Reduce every row to what was said of its likeliest class.

    Ties go to the class with the lower number. `extra` names divergences to compute
    besides Brier and log. Rows of weight 0 are still there, but may break any rule.
    """
    n = len(predictions.scores)
    out = Output(n, extra)
    plain = not (predictions.soft or extra)
    work = partial(_reduce_range, predictions, extra, out)
    if engines.wanted(engine, plain=plain):
        work = partial(reduce_compiled, predictions, out)
    found = over_ranges(work, n, predictions.scores.size)
    raise_for_offenders(predictions, np.concatenate(found))
    if predictions.kind == "logits" and predictions.scores.dtype == np.float64:
        each = predictions.target == "class-wise"
        for seen in [predictions.scores] if each else [out.log, out.log_odds]:
            if (far := too_large(seen)).any():
                _refuse(predictions, far, TOO_LARGE, largest(predictions.scores))
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


def reduce_compiled(
    predictions: Predictions, out: Output, start: int, stop: int
) -> NDArray[Any]:
    """As `_reduce_range` for observed classes; the loop covers the built-in losses."""
    scores = predictions.scores
    dtype = np.dtype(np.float64 if scores.dtype == np.float64 else np.float32)
    logits = predictions.kind == "logits"
    tolerance, k = ROW_SUM_TOLERANCE[scores.dtype.name], scores.shape[1]
    rows, offends = compiled.rows_at_once(scores, dtype), np.zeros(len(scores), bool)
    for first in range(start, stop, rows):
        part = slice(first, min(first + rows, stop))
        labels = compiled.ready(predictions.labels[part], np.int64)
        given = logits, tolerance, k, compiled.ready(scores[part], dtype), labels
        top = out.confidence[part], out.log_odds[part], out.hit[part]
        losses = out.brier[part], out.log[part]
        rest = out.predicted[part], offends[part]
        compiled.loops.reduce(*given, *top, *losses, *rest)
    return np.flatnonzero(offends)


def _reduce_block(
    predictions: Predictions,
    part: slice,
    others: Matrix,
    extra: Mapping[str, Divergence],
    out: Output,
) -> Mask:
    kind, labels = predictions.kind, predictions.labels[part]
    scores = np.ascontiguousarray(predictions.scores[part], dtype=others.dtype)
    if kind == "logits":
        sums = row_losses.sums_of_logits(scores, others)
        out.confidence[part] = 1 / (1 + sums.rest)
    else:
        tolerance = ROW_SUM_TOLERANCE[predictions.scores.dtype.name]
        sums = row_losses.sums_of_probs(scores, others, tolerance)
        out.confidence[part] = np.minimum(sums.top, 1.0)
    out.predicted[part], out.log_odds[part] = sums.best, sums.log_odds
    offends = sums.offends
    if predictions.soft:
        losses, not_soft = row_losses.soft_losses(kind, scores, sums, labels)
        offends = offends | not_soft
    elif kind == "logits":
        losses = row_losses.hard_losses_of_logits(scores, sums, labels)
    else:
        losses = row_losses.hard_losses_of_probs(scores, sums, labels)
    out.hit[part], out.brier[part], out.log[part] = losses
    if extra:
        probs = np.exp(row_losses.log_probabilities(kind, scores))
        for name, divergence in extra.items():
            loss = divergence.between if predictions.soft else divergence.of_labels
            given = (labels, probs) if predictions.soft else (probs, labels)
            out.extra[name][part] = loss(*given)
    return offends


PER_CENT = "If these are per cent, divide them by 100."
AS_LOGITS, EVEN_OUT = "If these are logits, pass logits=", "divide each row by its sum."
SEVERAL = "If several labels can be true at once, pass target='multi-label'."


@np.errstate(over="ignore")
def raise_for_offenders(predictions: Predictions, bad: NDArray[Any]) -> None:
    """Raise one error for all rows that break a rule, if any of them counts."""
    if predictions.weight is not None:
        bad = bad[predictions.weight[bad] > 0]
    bad = bad[_really_offend(predictions, bad)]
    if not bad.size:
        return
    row = predictions.scores[bad[0]].astype(np.float64)
    first, many = int(bad[0]), (bad.size, len(predictions.scores))
    dtype = dtype_of(predictions.scores)
    reason = _reason(predictions.kind, row, dtype)
    if reason is not None and predictions.kind == "logits":
        raise RowError("logits must be finite:", first, reason, *many)
    if reason is not None:
        rule = "probs must be rows of probabilities:"
        per_cent = row.min() >= 0 and abs(row.sum() - 100) <= 1
        remedy = PER_CENT if per_cent else f"{AS_LOGITS}; otherwise {EVEN_OUT}"
        if not per_cent and row.min() >= 0 and row.max() <= 1:
            remedy += f" {SEVERAL}"
        if np.isnan(row).any():
            remedy = leave_out("probs", "~np.isnan(np.sum(probs, axis=1))")
        raise RowError(rule, first, reason, *many, remedy=remedy)
    labels = predictions.labels[first]
    tolerance = ROW_SUM_TOLERANCE[labels.dtype.name]
    rule = "y as soft labels must be non-negative rows that sum to 1"
    reason = f"sums to {labels.sum():.6g}"
    rule, several = f"{rule} (within {tolerance:g}):", np.isin(labels, (0, 1)).all()
    raise RowError(rule, first, reason, *many, remedy=SEVERAL if several else "")


def _really_offend(predictions: Predictions, bad: NDArray[Any]) -> Mask:
    """Which offenders still are when their sums are taken in double precision."""
    if not bad.size or predictions.kind == "logits":
        return np.ones(len(bad), bool)
    rows = predictions.scores[bad].astype(np.float64)
    tolerance = row_tolerance(predictions.scores)
    with np.errstate(invalid="ignore"):  # a row may hold both infinities
        sums = rows.sum(axis=1)
    offends = ~(np.abs(sums - 1) <= tolerance) | ~(rows >= 0).all(axis=1)
    if predictions.soft:
        offends |= ~row_losses.are_distributions(predictions.labels[bad])
    return offends


def _reason(kind: str, row: Column, dtype: str) -> str | None:
    """What is wrong with a row of scores; None if it is its labels."""
    tolerance = ROW_SUM_TOLERANCE[dtype]
    if np.isnan(row).any():
        return f"holds NaN in column {int(np.argmax(np.isnan(row)))}"
    if kind == "logits" and np.isposinf(row).any():
        return f"holds +inf in column {int(np.argmax(row))}"
    if kind == "logits":
        hopeless = "is -inf in every column, so no class is possible"
        return hopeless if np.isneginf(row).all() else None
    if row.min() < 0:
        return f"holds a negative number ({row.min():.6g})"
    if row.max() > 1 + tolerance:
        return f"holds a number above 1 ({row.max():.6g})"
    if abs(row.sum() - 1) > tolerance:
        return f"sums to {row.sum():.6g}, not 1 within {tolerance:g} ({dtype})"
    return None


# -- what is asked of each row: its likeliest class, the positive one, each one ----


def reduce_to_columns(
    predictions: Predictions,
    extra: Mapping[str, Divergence] | None = None,
    engine: str = "auto",
) -> Columns:
    """Reduce predictions to columns for any target but ``"class-wise"``."""
    extra = extra or {}
    if predictions.target == "class-wise":
        raise ValueError(
            "target='class-wise' gives one number per class: use classwise_ece, or "
            "evaluate(..., target='class-wise')."
        )
    if predictions.kind == "confidence":
        h = _unit_interval(predictions, "confidence")
        return _one_dimensional(h, None, predictions.labels, predictions)
    if predictions.target in FORECASTS:
        return _positive(predictions)
    if predictions.scores.ndim == 1:
        predictions = spell_out(predictions)
    weights = predictions.weight, predictions.squared
    out = fill(predictions, extra, engine)
    if predictions.event is None:
        return out.columns(*weights)
    _ask(predictions, predictions.event, out)
    return replace(out.columns(*weights), predicted=None, exact_log_odds=None)


def _ask(predictions: Predictions, event: Target, out: Output) -> None:
    """Put the confidence and the hit of an event in place of those of the top label."""
    n, k = predictions.scores.shape
    rows = max(1, BLOCK_BYTES // (8 * k))
    for first in range(0, n, rows):
        part = slice(first, min(first + rows, n))
        scores = predictions.scores[part].astype(np.float64)
        with np.errstate(all="ignore"):  # rows of weight 0 may hold anything
            p = np.exp(row_losses.log_probabilities(predictions.kind, scores))
        asked = event.ask(p, predictions.labels[part], first)
        out.confidence[part], out.hit[part] = asked


def spell_out(predictions: Predictions) -> Predictions:
    """Write down the other class of a binary problem given by one column."""
    z, labels = predictions.scores, predictions.labels
    other = np.zeros_like(z) if predictions.kind == "logits" else 1 - z
    if predictions.soft:
        labels = np.stack([1 - labels, labels], axis=1)
    return replace(predictions, scores=np.stack([other, z], axis=1), labels=labels)


def _positive(predictions: Predictions) -> Columns:
    scores = predictions.scores
    z: Column | None = None
    if scores.ndim == 1 and predictions.kind == "logits":
        z = scores.astype(np.float64)
        _refuse(predictions, ~(z < np.inf), "logits must be finite", z)
        h = sigmoid(z)
    elif scores.ndim == 1:
        h = _unit_interval(predictions, "probs")
    else:
        h, z = _second_column(predictions)
    if z is not None and predictions.kind == "logits":
        _refuse(predictions, too_large(z), TOO_LARGE, z)
    labels = predictions.labels
    hit = _share(labels, 1) if labels.ndim == 2 else labels.astype(np.float64)
    return _one_dimensional(h, z, hit, predictions)


def _second_column(predictions: Predictions) -> tuple[Column, Column]:
    p = predictions.scores.astype(np.float64)
    with np.errstate(all="ignore"):
        if predictions.kind == "logits":
            z = p[:, 1] - p[:, 0]
            offends = ~np.isfinite(p.max(axis=1))
            h = sigmoid(z)
        else:
            tolerance = ROW_SUM_TOLERANCE[predictions.scores.dtype.name]
            offends = ~(np.abs(p.sum(axis=1) - 1) <= tolerance) | (p < 0).any(axis=1)
            h, z = np.minimum(p[:, 1], 1.0), np.log(p[:, 1]) - np.log(p[:, 0])
    if predictions.soft:
        offends |= ~are_distributions(predictions.labels)
    raise_for_offenders(predictions, np.flatnonzero(offends))
    return h, z


def _unit_interval(predictions: Predictions, name: str) -> Column:
    h = predictions.scores.astype(np.float64, copy=False)
    tolerance = ROW_SUM_TOLERANCE[predictions.scores.dtype.name]
    if name == "probs" and 1 < h.max() <= 1 + tolerance:  # round-off, as in a matrix
        h = np.minimum(h, 1.0)
    if not in_unit_interval(h):
        outside = ~((h >= 0) & (h <= 1))
        _refuse(predictions, outside, f"{name} must be in [0, 1]", h)
    return h


def _refuse(predictions: Predictions, bad: Mask, rule: str, values: Column) -> None:
    if predictions.weight is not None:
        bad = bad & (predictions.weight > 0)
    if bad.any():
        remedy = f"{AS_LOGITS}." if "probs" in rule else ""
        remedy = PER_CENT if _are_per_cent(values) else remedy
        if np.isnan(values[bad.argmax()]):
            remedy = leave_out(predictions.kind)
        raise RowError.at_first(f"{rule};", bad, values, remedy=remedy)


def _are_per_cent(values: Column) -> bool:
    """Whether numbers are in 0..100, and not just a few of them above 1."""
    values = values[~np.isnan(values)]
    return bool(
        len(values) and values.min() >= 0 and values.max() <= 100 and values.mean() > 1
    )


def _share(soft: NDArray[Any], j: int) -> Column:
    """Soft label of one class; rows sum to 1 only nearly, so it may exceed it."""
    return np.minimum(soft[:, j].astype(np.float64), 1.0)


def _one_dimensional(
    h: Column, z: Column | None, hit: Column, predictions: Predictions
) -> Columns:
    weight, squared = predictions.weight, predictions.squared
    return Columns(h, z, hit, weight=weight, squared=squared).without_zero_weights()


def each_class(
    predictions: Predictions, top: Columns | None = None
) -> Iterator[Columns]:
    """Columns of every class against the rest, one class at a time.

    The loss of a class is one-dimensional; for Brier the losses of all classes add up
    to the full loss. `top` are the top-label columns of all rows, weight 0 included.
    """
    if predictions.scores.ndim == 1:
        predictions = spell_out(predictions)
    if top is None:
        top = fill(predictions, {}, "auto").columns()
    for j in range(predictions.k):
        yield columns_of_class(predictions, top, j)


def columns_of_class(predictions: Predictions, top: Columns, j: int) -> Columns:
    """Those of one class, whose number is `j`."""
    h, z = _one_class(predictions, top, j)
    labels = predictions.labels
    hit = _share(labels, j) if predictions.soft else (labels == j).astype(float)
    return _one_dimensional(h, z, hit, predictions)


def _one_class(predictions: Predictions, top: Columns, j: int) -> tuple[Column, Column]:
    """Confidence and log-odds of a class; of the top one as the reduction knows them."""
    assert top.predicted is not None
    scores, is_top = predictions.scores, top.predicted == j
    h = scores[:, j].astype(np.float64)
    # With e = exp(z_j - z_top) and S = 1 + rest, class j has odds e / (S - e). For the
    # top class itself S - e = rest, which the reduction knows without cancellation.
    with np.errstate(all="ignore"):  # rows of weight 0 may hold anything
        if predictions.kind == "logits":
            best = scores[np.arange(len(scores)), top.predicted].astype(np.float64)
            gap, rest = h - best, np.exp(-top.log_odds)
            e = np.exp(gap)
            h, z = e / (1 + rest), gap - np.log1p(np.maximum(rest - e, 0))
        else:
            z = np.log(h) - np.log1p(-np.minimum(h, 0.5))
    return np.where(is_top, top.confidence, h), np.where(is_top, top.log_odds, z)
