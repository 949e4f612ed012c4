"""What every metric function takes: labels, one kind of scores, and options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypedDict, TypeVar

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


Function = TypeVar("Function", bound=Callable[..., Any])


def takes_scores(function: Function) -> Function:
    """Show the shared keywords in the signature of a metric, where help() looks."""
    own = inspect.signature(function)
    first, *rest, _ = own.parameters.values()
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
        for name in Scores.__annotations__
    ]
    shown = own.replace(parameters=[first, *shared, *rest])
    function.__signature__ = shown  # type: ignore[attr-defined]
    return function


def read(
    y: Any, given: Scores, extra: Mapping[str, Divergence] | None = None
) -> tuple[Predictions, Columns]:
    """Read and reduce; `extra` are divergences besides the built-in ones."""
    predictions = read_given(y, given)
    return predictions, reduce_to_columns(predictions, extra)


def read_given(y: Any, given: Scores) -> Predictions:
    """Read labels and scores, or say which keyword does not exist."""
    unknown = [name for name in given if name not in Scores.__annotations__]
    if unknown:
        raise TypeError(
            f"unexpected keyword argument {unknown[0]!r}; scores are given as probs=, "
            "logits= or confidence=."
        )
    return read_predictions(y, **given)


def with_target(given: Scores, target: str, function: str) -> Scores:
    """The same with the one target a function is about; another is refused."""
    if given.get("target") not in (None, target):
        raise ValueError(f"{function} is about target={target!r}; leave target out.")
    return {**given, "target": target}


def target_of(predictions: Predictions) -> str:
    return "pairs" if predictions.kind == "confidence" else str(predictions.target)
