"""Probability vectors with their labels: all that full calibration reads of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.blocks import log_probabilities
from acumen.inputs import Scores, read_given, with_target
from acumen.targets import reduce_to_columns, spell_out

Table = NDArray[np.float64]
"""One row per forecast, one column per class."""


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Logarithms of n x k probabilities, labels as distributions, and weights."""

    log_probs: Table
    labels: Table
    weight: Column

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def k(self) -> int:
        """Number of classes."""
        return self.labels.shape[1]

    @property
    def probs(self) -> Table:
        """The probabilities."""
        return np.exp(self.log_probs)

    def take(self, rows: NDArray[Any] | slice) -> Vectors:
        """Some of the rows."""
        return Vectors(self.log_probs[rows], self.labels[rows], self.weight[rows])


def read_vectors(y: Any, given: Scores, function: str) -> Vectors:
    """Read and check rows; those of weight 0 are dropped."""
    if given.get("confidence") is not None:
        raise ValueError(f"{function} is about whole vectors: pass probs= or logits=.")
    predictions = read_given(y, with_target(given, "top-label", function))
    if predictions.scores.ndim == 1:
        predictions = spell_out(predictions)
    reduce_to_columns(predictions)  # checks every row that counts
    weight = predictions.weight
    if weight is None:
        weight = np.ones(len(predictions.scores))
    counts = weight > 0
    with np.errstate(divide="ignore"):
        log_probs = log_probabilities(predictions.kind, predictions.scores[counts])
    labels = predictions.labels[counts]
    if not predictions.soft:
        labels = np.eye(predictions.k)[labels]
    return Vectors(log_probs, labels.astype(np.float64), weight[counts])
