"""What every metric function takes: labels, one kind of scores, and options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from acumen.bregman import Divergence
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


def read(
    y: Any, given: Scores, extra: Mapping[str, Divergence] | None = None
) -> tuple[Predictions, Columns]:
    """Read and reduce; `extra` are divergences besides the built-in ones."""
    predictions = read_predictions(y, **given)
    return predictions, reduce_to_columns(predictions, extra)


def with_target(given: Scores, target: str, function: str) -> Scores:
    """The same with the one target a function is about; another is refused."""
    if given.get("target") not in (None, target):
        raise ValueError(f"{function} is about target={target!r}; leave target out.")
    return {**given, "target": target}


def target_of(predictions: Predictions) -> str:
    return "pairs" if predictions.kind == "confidence" else str(predictions.target)
