"""What every metric function takes: labels, one kind of scores, and options."""

from __future__ import annotations

from typing import Any, TypedDict

from acumen.columns import Columns
from acumen.predictions import Predictions, read_predictions
from acumen.targets import reduce_to_columns


class Scores(TypedDict, total=False):
    """Keywords shared by all metrics."""

    probs: Any
    logits: Any
    confidence: Any
    target: str | None
    classes: Any
    sample_weight: Any


def read(y: Any, given: Scores) -> tuple[Predictions, Columns]:
    predictions = read_predictions(y, **given)
    if predictions.target == "class-wise":
        raise ValueError(
            "target='class-wise' gives one number per class: use classwise_ece, or "
            "evaluate(..., target='class-wise')."
        )
    return predictions, reduce_to_columns(predictions)


def target_of(predictions: Predictions) -> str:
    return "pairs" if predictions.kind == "confidence" else str(predictions.target)
