"""Risk and coverage: the errors left if only the most confident examples are accepted.

AURC is the mean risk over all numbers of accepted examples (Geifman et al. 2019), the
excess is what it is above that of a perfect order, and AUGRC the area under the share of
examples that are accepted and wrong (Traub et al. 2024). Examples of equal confidence are
accepted in random order, and their risk is what is expected of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log

import numpy as np

from calibrant._inputs.arrays import Column
from calibrant._sketch.ordered import Ordered
from calibrant._stats import closed_forms
from calibrant._stats.closed_forms import NOTHING, Interval, Mean, Surprises
from calibrant._stats.standard_errors import Influence, Rows

AREAS = ("aurc", "excess_aurc", "augrc")


AT_ONCE = 1 << 16
"""Steps whose sums stay in cache: beside the rows an area takes no memory."""


@dataclass(frozen=True, eq=False)
class Steps:
    """Distinct confidences from the highest on: the weight and the hits at each.

    If they are a part, `accepted` is the weight before it, and `wrong` that of its errors.
    """

    weight: Column
    hits: Column
    accepted: float = 0.0
    wrong: float = 0.0

    @classmethod
    def of(cls, ordered: Ordered) -> Steps:
        """Of examples in increasing order of their confidence."""
        return cls(ordered.weight[::-1], ordered.hits[::-1])

    @cached_property
    def n(self) -> float:
        """Total weight."""
        return float(self.weight.sum())

    @cached_property
    def errors(self) -> Column:
        """Weight of what is wrong at each confidence."""
        return np.maximum(self.weight - self.hits, 0.0)

    @cached_property
    def sums(self) -> Column:
        """Of errors, of the risk, and of what is accepted and wrong, over examples."""
        found, accepted = np.zeros(3), 0.0
        for first in range(0, len(self.weight), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            part = Steps(self.weight[some], self.hits[some], accepted, float(found[0]))
            found += part._own_sums()
            accepted += part.n
        return found

    def _own_sums(self) -> Column:
        risk = self.errors + self.tilt * self.harmonic
        each = self.errors, risk, self.weight * self._halfway
        return np.array([column.sum() for column in each])

    @property
    def _halfway(self) -> Column:
        """Errors up to the middle of each step."""
        return self.wrong + np.cumsum(self.errors) - 0.5 * self.errors

    @property
    def error_rate(self) -> float:
        """Risk where all examples are accepted."""
        return min(float(self.sums[0]) / self.n, 1.0)

    @cached_property
    def rate(self) -> Column:
        """Share of errors at each confidence."""
        return self.errors / self.weight

    @cached_property
    def before(self) -> Column:
        """Weight of all that is more confident."""
        return self.accepted + np.cumsum(self.weight) - self.weight

    @cached_property
    def tilt(self) -> Column:
        """Errors before a step, less those there would be at the rate of the step."""
        before = self.wrong + np.cumsum(self.errors) - self.errors
        return before - self.rate * self.before

    @cached_property
    def harmonic(self) -> Column:
        """The sum of 1 / accepted over the examples of a step."""
        found = 1 / (self.before + 1)
        several = np.flatnonzero(self.weight != 1)
        before = self.before[several] + 1
        found[several] = _digamma(before + self.weight[several]) - _digamma(before)
        return found

    def value(self, key: str) -> float:
        """One of the areas."""
        if key == "augrc":
            return float(self.sums[2]) / self.n**2
        area = float(self.sums[1]) / self.n
        if key == "aurc":
            return min(max(area, 0.0), 1.0)  # beyond them by round-off
        return min(max(area - self.least, 0.0), 1.0)

    @property
    def least(self) -> float:
        """AURC of as many errors in a perfect order: all of them are the last."""
        wrong = self.error_rate * self.n
        kept = max(self.n - wrong, 0.0)
        if wrong == 0 or kept == 0:
            return self.error_rate
        last = Steps(np.array([kept, wrong]), np.array([kept, 0.0]))
        return last.value("aurc")

    def influence(self, key: str) -> Influence:
        """Of an example on an area, linear in its hit; in increasing order."""
        constant, per_error = self._moved(key)
        return Influence((constant + per_error)[::-1], -per_error[::-1])

    def _moved(self, key: str) -> tuple[Column, Column]:
        """What an example at each step adds, and what it adds if it is an error."""
        w, after = self.weight, self.before + self.weight
        if key == "augrc":
            return self._halfway / self.n, (self.n - after + 0.5 * w) / self.n
        H, share = self.harmonic, self.before / w
        per_error = 1 - share * H + _later(H)
        own = self.rate * share * H + self.tilt / (after + 0.5)
        pushed = self.tilt * (1 / (after + 0.5) - 1 / (self.before + 0.5))
        if key == "excess_aurc":
            per_error += log(max(1 - self.error_rate, 1 / (self.n + 1)))
        return own + _later(pushed - self.rate * H), per_error


SHIFT = 10.0
"""From here on the series of the digamma function is exact to double precision."""

SERIES = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)


def _digamma(x: Column) -> Column:
    """The digamma function from 1 on; SciPy's takes longer to load than an evaluation."""
    far, series = x + SHIFT, np.zeros_like(x)
    square = 1 / (far * far)
    for c in reversed(SERIES):
        series = (series + c) * square
    found = np.log(far) - 0.5 / far + series
    for step in np.arange(SHIFT):
        found -= 1 / (x + step)
    return found


def _later(column: Column) -> Column:
    """The sum over all later steps."""
    return column.sum() - np.cumsum(column)


def interval(
    rows: Rows, steps: Steps, value: float, key: str, level: float
) -> tuple[Interval, str]:
    """Interval of an area: Student's, or where errors are few that of their costs."""
    influence = steps.influence(key)
    se, errors = rows.standard_error(influence), _errors(rows.ordered, influence)
    mean = Mean(value, se, rows.df, errors, NOTHING, rows.per_cluster)
    low, high = closed_forms.mean_interval(mean, level)
    return (max(low, 0.0), min(high, 1.0)), mean.method.removesuffix(", clusters")


def _errors(ordered: Ordered, influence: Influence) -> Surprises:
    """Errors, each at what it adds to an area; where one may come next is as claimed."""
    weight, squared, n = ordered.weight, ordered.squared, ordered.total
    seen = np.maximum(weight - ordered.hits, 0.0)
    chance = np.maximum(1 - ordered.confidence, 1 / n)
    cost = np.maximum(-influence.slope, 0.0)
    rows = chance, weight, squared, seen, seen * (squared / weight)
    return Surprises.of(*rows, cost, n)
