"""Evidence that grows with the rows: an alarm that may be looked at as often as one likes.

A bet on a row pays exp(l y) / (1 - p + p exp(l)), which a calibrated p expects to be 1.
Rows multiply, so the money of whoever bets on miscalibration is a martingale if there is
none, and passes 1 / alpha with probability alpha at most, whenever one looks (Ville).
Many bets are made at once, each with its share of the money: shifts and slopes of the
log-odds, ranges of confidence, and every period as the first that is off. Shares are fixed
beforehand, so money depends on sums of rows alone, in whatever order they came.

Rows of a cluster may depend on each other, so they must not multiply. But a mean of bets
expects 1, too, however they depend: a cluster is one step, which pays the weighted mean of
what its rows would. Weights are fixed before the labels, so they may be any; rows with
weights but no clusters are put together where their confidences are nearly one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._base.records import Amount, OneOf, Range, Record
from calibrant._inputs.arrays import Column, Index, Table, sigmoid
from calibrant._rows.columns import Columns, log_odds_of

SHIFTS = (0.0, -0.6, -0.25, -0.1, 0.1, 0.25, 0.6)
SLOPES = (0.0, -0.5, -0.25, -0.1, 0.1, 0.25, 0.5)
"""Of the alternatives in log-odds: a + (1 + b) z in place of z, all pairs but (0, 0)."""

RANGES, LOCAL = 5, (-0.4, 0.4)
"""Equal ranges of confidence that may be off alone, and by how much in log-odds."""

SCALES, MOST_STAKED = (1.0, 4.0, 16.0, 64.0), 0.9
"""Of steps of several rows, whose mean hardly varies: how many times it is bet, as long as no
more than so much of the money can be lost."""

FAR = 6.0
"""Log-odds beyond which slopes do not grow: one surprise must not decide."""


class Rows(NamedTuple):
    """Sums of rows of one confidence, and where the null hypothesis has their accuracy."""

    confidence: Column
    mass: Column
    hits: Column
    low: Column
    high: Column


def rows_within(columns: Columns, tolerance: float = 0.0) -> Rows:
    """Rows whose accuracy is within a tolerance of their confidence, by hypothesis."""
    h, w = columns.confidence, columns.weights
    low, high = np.maximum(h - tolerance, 0.0), np.minimum(h + tolerance, 1.0)
    return Rows(h, w, w * columns.hit, low, high)


def bets(confidence: Column) -> Table:
    """What each alternative adds to the log-odds of rows: bets by rows."""
    z = np.clip(log_odds_of(confidence), -FAR, FAR)
    lines = [a + b * z for a in SHIFTS for b in SLOPES if a or b]
    place = np.minimum((confidence * RANGES).astype(np.intp), RANGES - 1)
    local = [np.where(place == i, x, 0.0) for i in range(RANGES) for x in LOCAL]
    return np.array([*lines, *local])


def gains(rows: Rows) -> Column:
    """Logarithm of what each bet makes of 1 by all rows.

    Rows whose accuracy the hypothesis leaves open are judged where it is worst for the
    bet. Sums of rows of nearly one confidence give at most what the rows would: the
    logarithm is concave.

    Examples
    --------
    >>> rows = rows_within(Columns(np.array([0.5]), None, np.array([1.0])))
    >>> first = gains(rows)[0]  # on half the odds of z = 0, so on nothing
    >>> float(first)
    0.0
    """
    bet = bets(rows.confidence)
    m = np.where(bet > 0, rows.high, rows.low)
    return bet @ rows.hits - np.log1p(m * np.expm1(bet)) @ rows.mass


def gains_of_steps(rows: Rows, step: Index) -> Column:
    """The same of rows that depend on each other within steps, for each bet and scale.

    A row pays 1 + s (y - m), where s = (e^l - 1) / (1 - m + m e^l). A step pays 1 plus the
    mean of s (y - m) times a scale that depends on confidences and weights alone: it
    expects 1 at most, whatever the rows of a step have to do with each other, and is
    positive, for the scale is cut where no y could make it less than 1 - `MOST_STAKED`.
    """
    mass, found = np.bincount(step, rows.mass), []
    for bet in bets(rows.confidence):
        m = np.where(bet > 0, rows.high, rows.low)
        stake = np.expm1(bet) / (1 + m * np.expm1(bet))
        worth = np.bincount(step, stake * (rows.hits - m * rows.mass)) / mass
        lost = stake * np.where(stake > 0, m, m - 1) * rows.mass
        most = MOST_STAKED * mass / np.maximum(np.bincount(step, lost), 1e-12 * mass)
        found += [np.log1p(np.minimum(x, most) * worth).sum() for x in SCALES]
    return np.array(found)


def log_evidence(gain: Table) -> Column:
    """Logarithm of all money after each period, from the gains of periods by bets.

    A bet for each period s as the first that is off, with a share of 1 / (s (s + 1)).
    """
    return np.array([_total(gain[:end]) for end in range(1, len(gain) + 1)])


def onset(gain: Table) -> int:
    """The last period from which on most money was made: periods of reference make none."""
    since = _since(gain)
    return int(np.flatnonzero(since == since.max())[-1])


def _since(gain: Table) -> Column:
    """Logarithm of what all bets have made if they began with each period."""
    since = np.cumsum(gain[::-1], axis=0)[::-1]
    return np.logaddexp.reduce(since, axis=1) - log(gain.shape[1])


def _total(gain: Table) -> float:
    first = np.arange(1, len(gain) + 1)
    begun = _since(gain) - np.log(first * (first + 1.0))
    rest = -log(len(gain) + 1)  # kept for periods to come: it neither grows nor shrinks
    return float(np.logaddexp.reduce([*begun, rest]))


# -- no worse than a reference ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """Accuracy as a logistic function of confidence, and how well it is known."""

    theta: NDArray[np.float64]
    covariance: NDArray[np.float64]

    @classmethod
    def fit(cls, columns: Columns) -> Line:
        """By maximum likelihood, with one row more that is as it should be."""
        x = _features(columns.confidence)
        h, w = columns.confidence, columns.weights
        extra = 1.0 / w.sum()
        y, w = (columns.hit + extra * h) / (1 + extra), w * (1 + extra)
        theta = np.array([0.0, 1.0])
        for _ in range(50):
            m = sigmoid(x @ theta)
            information = (x * (w * np.maximum(m * (1 - m), 1e-12))[:, None]).T @ x
            information += 1e-9 * np.eye(2)
            step = np.linalg.solve(information, x.T @ (w * (y - m)))
            theta = theta + step / max(1.0, float(np.abs(step).max()))
            if np.abs(step).max() < 1e-10:
                break
        return cls(theta, np.linalg.inv(information))

    def rows(self, columns: Columns, alpha: float, tolerance: float) -> Rows:
        """Rows whose accuracy is that of the line, by hypothesis.

        It lies in a band that holds all of the true line with probability 1 - alpha
        (Scheffe), widened by the tolerance.
        """
        x = _features(columns.confidence)
        middle = x @ self.theta
        reach = np.sqrt(
            -2 * log(alpha) * np.einsum("ij,jk,ik->i", x, self.covariance, x)
        )
        low, high = sigmoid(middle - reach), sigmoid(middle + reach)
        plain = rows_within(columns)
        return plain._replace(
            low=np.maximum(low - tolerance, 0.0), high=np.minimum(high + tolerance, 1.0)
        )


def _features(confidence: Column) -> Table:
    z = np.clip(log_odds_of(confidence), -2 * FAR, 2 * FAR)
    return np.column_stack([np.ones_like(z), z])


# -- the record ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Alarm(Record):
    """Whether evidence of miscalibration has passed what chance would let it.

    Attributes
    ----------
    alpha : float
        Largest probability of a false alarm, however often one looks and for how long.
    against : {"calibration", "reference"}
        What is assumed until evidence says otherwise: that accuracy equals confidence,
        or that it is what it was in the reference periods.
    tolerance : float
        How far accuracy may be from that before it counts.
    evidence : array
        Natural logarithm of the evidence (an e-process) after each period; 0 is none.
    period, since : str or None
        The first period after which there was an alarm, and since when the model is most
        likely to be off; None without one.

    Examples
    --------
    >>> import calibrant as cal
    >>> day = ["1", "2", "3"] * 40
    >>> found = cal.monitor([0, 0, 1] * 40, probs=[0.9] * 120, period=day)
    >>> found.alarm.period, found.alarm.p_value < 0.01
    ('1', True)
    """

    alpha: Annotated[float, Range(0, 1, above=True)]
    against: Annotated[str, OneOf(("calibration", "reference"))]
    tolerance: Amount
    evidence: Annotated[NDArray[np.float64], Range()]
    period: str | None
    since: str | None

    @property
    def threshold(self) -> float:
        """Natural logarithm of the evidence at which there is an alarm."""
        half = 2 if self.against == "reference" else 1  # the other half is the band's
        return log(half / self.alpha)

    @property
    def p_value(self) -> float:
        """Valid at any time: how probable as much evidence is by chance, at most."""
        return float(np.exp(-max(self.evidence.max(initial=0.0), 0.0)))


def raise_alarm(
    gain: Sequence[Column],
    periods: Sequence[str],
    alpha: float,
    tolerance: float,
    against: str,
) -> Alarm:
    """The alarm of periods, some of which may be the reference and have no gain."""
    table = np.array(gain)
    told = Alarm(alpha, against, tolerance, log_evidence(table), None, None)
    over = np.flatnonzero(told.evidence >= told.threshold)
    if not over.size:
        return told
    first = int(over[0])
    since = periods[onset(table[: first + 1])]
    return Alarm(alpha, against, tolerance, told.evidence, periods[first], since)
