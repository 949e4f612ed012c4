"""From n x k to n: every row becomes a confidence, a hit and its losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._base.records import FORECASTS
from calibrant._inputs.arrays import Column
from calibrant._inputs.divergences import Divergence


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """All that any estimator reads of n rows.

    `confidence` is h, the probability the forecast gives to the event, and `hit` is a,
    whether it came true, or its share under soft labels. `exact_log_odds` are exact also
    where h rounds to 1; None if the confidence was given as it is and they follow from it.
    `losses` are the full losses by divergence, empty if they are d(a, h) themselves.
    `weight` is the mass f w of each row, f how many rows it stands for and w its
    importance, of mean 1; None counts every row once. `squared` is f w^2, by which the
    noise of rows adds up; None where weights only count. `predicted` is the predicted class
    (top-label only).
    """

    confidence: Column
    exact_log_odds: Column | None
    hit: Column
    losses: Mapping[str, Column] = field(default_factory=dict)
    weight: Column | None = None
    predicted: NDArray[Any] | None = None
    squared: Column | None = None

    def __len__(self) -> int:
        return len(self.confidence)

    @property
    def log_odds(self) -> Column:
        """The logarithm of h / (1 - h); may be infinite."""
        exact = self.exact_log_odds
        return log_odds_of(self.confidence) if exact is None else exact

    def with_log_odds(self) -> Columns:
        """The same with log-odds computed once and kept."""
        return replace(self, exact_log_odds=self.log_odds)

    @property
    def weights(self) -> Column:
        """Weight of each row; ones where none were given."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def total_weight(self) -> float:
        """n, counting each row as often as its weight says."""
        return float(len(self) if self.weight is None else self.weight.sum())

    @property
    def squares(self) -> Column:
        """The sum of squared weights that each row stands for."""
        return self.weights if self.squared is None else self.squared

    @property
    def counts(self) -> Column:
        """How many rows each stands for."""
        if self.weight is None or self.squared is None:
            return self.weights
        squared = np.where(self.squared > 0, self.squared, 1.0)  # too small for a float
        rows = np.where(self.squared > 0, self.weight**2, 1.0) / squared
        return np.asarray(np.rint(rows))

    @property
    def count(self) -> float:
        """How many rows these stand for."""
        if self.weight is None or self.squared is None:
            return self.total_weight
        return float(self.counts.sum())

    @property
    def effective(self) -> float:
        """Number of rows of equal weight that would have as little noise."""
        total = self.total_weight
        return total if self.squared is None else total**2 / float(self.squared.sum())

    @property
    def hard(self) -> bool:
        """Whether every hit is exactly 0 or 1."""
        return bool(np.all((self.hit == 0) | (self.hit == 1)))

    def correct(self, target: str) -> Column:
        """Whether the prediction was right; a positive class is predicted if p > 1/2."""
        if target not in FORECASTS:
            return self.hit
        return np.where(self.confidence > 0.5, self.hit, 1 - self.hit)

    def mean(self, column: Column) -> float:
        """Weighted mean of one number per row."""
        w = self.weight
        return float(column.mean() if w is None else (w * column).sum() / w.sum())

    def loss(self, divergence: Divergence) -> Column:
        """The full loss of each row."""
        given = self.losses.get(divergence.name)
        return self.unit_loss(divergence) if given is None else given

    def unit_loss(self, divergence: Divergence) -> Column:
        """d(a, h), the loss of the confidence problem, exact near h = 1 for log."""
        z = self.log_odds if divergence.logit_slope else self.confidence
        return divergence.unit_loss(self.hit, self.confidence, z)

    def take(self, rows: NDArray[Any] | slice) -> Columns:
        """Some of the rows, by mask, index or slice."""
        optional = self.exact_log_odds, self.weight, self.predicted, self.squared
        z, *others = (None if x is None else x[rows] for x in optional)
        losses = {name: loss[rows] for name, loss in self.losses.items()}
        return Columns(self.confidence[rows], z, self.hit[rows], losses, *others)

    def rescaled(self) -> Columns:
        """The same with weights of mean 1 again, for a part of the rows."""
        if self.weight is None or self.squared is None:
            return self
        factor = self.count / self.total_weight
        weight, squared = self.weight * factor, self.squared * factor**2
        return replace(self, weight=weight, squared=squared)

    def without_zero_weights(self) -> Columns:
        """Drop rows that count for nothing, so that they leave no trace at all."""
        if self.weight is None or self.weight.all():
            return self
        return self.take(self.weight > 0)


def log_odds_of(h: Column) -> Column:
    """The logarithm of h / (1 - h), infinite for 0 and 1."""
    with np.errstate(divide="ignore"):
        return np.log(h) - np.log1p(-h)
