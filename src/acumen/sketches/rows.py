"""Rows on their way into a sketch: their kind, and what is left of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from acumen.arrays import Column, as_scores
from acumen.bregman import BUILT_IN, Divergence
from acumen.columns import Columns
from acumen.predictions import Predictions
from acumen.sketches.contents import Kind
from acumen.targets import reduce_to_columns


def reduced(
    predictions: Predictions,
    divergences: Mapping[str, Divergence],
    loss: Any,
    engine: str,
) -> tuple[Kind, Columns]:
    """The kind of predictions and their columns; `loss` are full losses of pairs."""
    target = "pairs" if predictions.kind == "confidence" else str(predictions.target)
    own = {n: d for n, d in divergences.items() if n not in BUILT_IN}
    if target == "class-wise":
        predictions = replace(predictions, target="top-label")
    columns = reduce_to_columns(predictions, own, engine)
    if loss is not None:
        columns, divergences = with_losses(columns, predictions, loss)
        target = "top-label"
    return Kind(target, predictions.classes, divergences), columns


def with_losses(
    columns: Columns, predictions: Predictions, loss: Any
) -> tuple[Columns, dict[str, Divergence]]:
    """The columns with the full losses given, and the divergences they belong to."""
    given = loss if isinstance(loss, Mapping) else {"brier": loss}
    divergences = known_losses(given)
    losses = {name: _read(given[name], name, predictions) for name in divergences}
    return replace(columns, losses=losses), divergences


def known_losses(given: Mapping[str, Any]) -> dict[str, Divergence]:
    """The divergences of losses by name, of which Brier must be one."""
    if "brier" not in given or not set(given) <= set(BUILT_IN):
        raise ValueError(
            "loss must be the Brier score of each row, or a mapping with 'brier' and "
            f"perhaps 'log'; got {sorted(map(str, given))}."
        )
    return {name: BUILT_IN[name] for name in BUILT_IN if name in given}


def _read(loss: Any, name: str, predictions: Predictions) -> Column:
    values = as_scores(loss, "loss").astype(np.float64)
    n, weight = len(predictions.scores), predictions.weight
    if values.shape != (n,):
        raise ValueError(
            f"loss must have one entry per row: {values.shape} for {n} rows."
        )
    counts = np.ones(n, bool) if weight is None else weight > 0
    bad = ~(values >= 0) & counts
    if name == "brier":
        bad |= np.isinf(values) & counts
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"loss must not be negative ({name}); row {row} is {values[row]} "
            f"({int(bad.sum())} of {n} rows are off)."
        )
    return values[counts]
