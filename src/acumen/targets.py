"""What is asked of each row: its likeliest class, the positive one, each one, a pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.blocks import ROW_SUM_TOLERANCE, are_distributions
from acumen.bregman import Divergence
from acumen.columns import Columns, sigmoid
from acumen.predictions import Predictions
from acumen.reduction import fill, raise_for_offenders, reduce_rows


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
        return _pairs(predictions)
    if predictions.target == "positive":
        return _positive(predictions)
    if predictions.scores.ndim == 1:
        predictions = spell_out(predictions)
    return reduce_rows(predictions, extra, engine)


def spell_out(predictions: Predictions) -> Predictions:
    """Write down the other class of a binary problem given by one column."""
    z, labels = predictions.scores, predictions.labels
    other = np.zeros_like(z) if predictions.kind == "logits" else 1 - z
    if predictions.soft:
        labels = np.stack([1 - labels, labels], axis=1)
    return replace(predictions, scores=np.stack([other, z], axis=1), labels=labels)


def _pairs(predictions: Predictions) -> Columns:
    h = _unit_interval(predictions, "confidence")
    return _one_dimensional(h, None, predictions.labels, predictions)


def _positive(predictions: Predictions) -> Columns:
    scores = predictions.scores
    z: Column | None
    if scores.ndim == 1 and predictions.kind == "logits":
        z = scores.astype(np.float64)
        _refuse(predictions, ~(z < np.inf), "logits must be finite", z)
        h = sigmoid(z)
    elif scores.ndim == 1:
        h = _unit_interval(predictions, "probs")
        z = None
    else:
        h, z = _second_column(predictions)
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
    most = 1 + (
        ROW_SUM_TOLERANCE[predictions.scores.dtype.name] if name == "probs" else 0
    )
    if h.max() > 1 and h.max() <= most:  # round-off, as a row of a matrix may have
        h = np.minimum(h, 1.0)
    if not (h.min() >= 0 and h.max() <= 1):  # NaN fails too
        outside = ~((h >= 0) & (h <= 1))
        _refuse(predictions, outside, f"{name} must be in [0, 1]", h)
    return h


def _refuse(
    predictions: Predictions, bad: NDArray[np.bool_], rule: str, values: Column
) -> None:
    if predictions.weight is not None:
        bad = bad & (predictions.weight > 0)
    if bad.any():
        row = int(np.argmax(bad))
        hint = " If these are logits, pass logits=." if "probs" in rule else ""
        raise ValueError(
            f"{rule}; row {row} is {float(values[row])!r} ({int(bad.sum())} of "
            f"{len(bad)} rows are off).{hint}"
        )


def _share(soft: NDArray[Any], j: int) -> Column:
    """Soft label of one class; rows sum to 1 only nearly, so it may exceed it."""
    return np.minimum(soft[:, j].astype(np.float64), 1.0)


def _one_dimensional(
    h: Column,
    z: Column | None,
    hit: Column,
    predictions: Predictions,
) -> Columns:
    return Columns(h, z, hit, weight=predictions.weight).without_zero_weights()


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
        top = fill(predictions, {}, "numpy").columns(None)
    for j in range(predictions.k):
        if predictions.kind == "logits":
            h, z = _class_of_logits(predictions, top, j)
        else:
            h, z = _class_of_probs(predictions, top, j)
        labels = predictions.labels
        hit = _share(labels, j) if predictions.soft else (labels == j).astype(float)
        yield _one_dimensional(h, z, hit, predictions)


def _class_of_logits(
    predictions: Predictions, top: Columns, j: int
) -> tuple[Column, Column]:
    # With e = exp(z_j - z_top) and S = 1 + rest, class j has odds e / (S - e). For the
    # top class itself S - e = rest, which the reduction knows without cancellation.
    scores = predictions.scores
    assert top.predicted is not None
    best = scores[np.arange(len(scores)), top.predicted].astype(np.float64)
    with np.errstate(invalid="ignore"):  # rows of weight 0 may hold anything
        gap = scores[:, j].astype(np.float64) - best
    rest = np.exp(-top.log_odds)
    e = np.exp(gap)
    is_top = top.predicted == j
    h = np.where(is_top, top.confidence, e / (1 + rest))
    z = np.where(is_top, top.log_odds, gap - np.log1p(np.maximum(rest - e, 0)))
    return h, z


def _class_of_probs(
    predictions: Predictions, top: Columns, j: int
) -> tuple[Column, Column]:
    assert top.predicted is not None
    h = predictions.scores[:, j].astype(np.float64)
    is_top = top.predicted == j
    h = np.where(is_top, top.confidence, h)
    with np.errstate(divide="ignore"):
        z = np.log(h) - np.log1p(-np.minimum(h, 0.5))
    return h, np.where(is_top, top.log_odds, z)
