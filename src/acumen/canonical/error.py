"""The canonical calibration error: how right whole probability vectors are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Self, Unpack

import numpy as np

from acumen import intervals
from acumen.arrays import check_choice
from acumen.canonical.field import Field
from acumen.canonical.gains import GAINS
from acumen.canonical.start import tempered
from acumen.canonical.vectors import Vectors, read_vectors
from acumen.encoding import number
from acumen.estimators.adaptive import LEAST_ROWS
from acumen.inputs import Scores, takes_scores
from acumen.records import Estimate, Record
from acumen.settings import Settings
from acumen.uncertainty.standard_errors import error_of_mean

MOST_CLASSES = 10
MOST_ROWS = 20_000
"""All pairs of rows are compared; of more rows, so many are drawn."""


@dataclass(frozen=True, slots=True)
class CanonicalError(Record):
    """The calibration error of whole probability vectors.

    Attributes
    ----------
    divergence : str
        ``"brier"`` (summed over classes) or ``"log"``.
    k : int
        Number of classes.
    n : float
        Total weight; the number of rows without weights.
    rows, rows_used : int
        Rows, and those compared with each other: all, up to 20,000.
    calibration : Estimate
        The debiased error, unclipped: slightly negative is possible.
    held_out : float
        What the local recalibration gains on rows left out of it: lower on average.
    plugin : float
        How far it moves them, which noise inflates.
    standard_error : float
        Of `held_out`.
    bandwidths : pair of float
        Widths of the kernel, each for the half of the rows that had no say in it: a
        distance between square roots of probabilities.

    Examples
    --------
    >>> import acumen as ac
    >>> p = [[0.5, 0.3, 0.2], [0.2, 0.6, 0.2]] * 30
    >>> found = ac.canonical_calibration_error([0, 1, 2] * 20, probs=p)
    >>> found.rows_used, bool(found.held_out < found.calibration)
    (60, True)
    """

    divergence: str
    k: int
    n: float
    rows: int
    rows_used: int
    calibration: Estimate
    held_out: float
    plugin: float
    standard_error: float
    bandwidths: tuple[float, float]

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Restore what ``to_dict`` gave."""
        restored = dict(given)
        for name in ("n", "held_out", "plugin", "standard_error"):
            restored[name] = number(given[name])
        restored["bandwidths"] = tuple(number(x) for x in given["bandwidths"])
        restored["calibration"] = Estimate.from_dict(given["calibration"])
        return cls(**restored)

    def __str__(self) -> str:
        rows = f"{self.rows:,} rows"
        if self.rows_used < self.rows:
            rows += f", {self.rows_used:,} of them compared"
        text = f"full d_CAL ({self.divergence}, {self.k} classes, {rows})"
        ends = self.calibration.interval
        shown = "" if ends is None else f" [{ends[0]:.5f}, {ends[1]:.5f}]"
        return f"{text}: {self.calibration:.5f}{shown}, held out {self.held_out:.5f}"


@takes_scores
def canonical_calibration_error(
    y: Any,
    *,
    divergence: str = "brier",
    level: float = 0.95,
    rng: Any = 0,
    **given: Unpack[Scores],
) -> CanonicalError:
    r"""Calibration error of the whole probability vector, for up to ten classes.

    It asks for the labels of all rows that got the same vector, not just the same
    confidence, and is never less than the confidence calibration error.

    Parameters
    ----------
    y : array_like
        Labels.
    divergence : {"brier", "log"}
        Whose calibration error; Brier is summed over classes.
    level : float
        Coverage of the interval.
    rng : int or numpy.random.Generator
        Seed of folds, and of the rows drawn where there are more than 20,000.
    **given
        One of ``probs=`` and ``logits=``, and optionally ``classes=`` and
        ``sample_weight=``, as in `acumen.evaluate`.

    Returns
    -------
    CanonicalError
        The debiased error with its interval, and what it is made of.

    Notes
    -----
    Rows are first tempered, by a temperature fitted without their fold. What remains of
    the residual is averaged over other rows with a Gaussian kernel of the Hellinger
    distance, of the width, among nine, that predicts the labels of left-out rows of the
    other half best. The estimate is the loss this saves on left-out rows plus the noise
    it pays for, as in one dimension; a calibrated model gets about 0 on average. What
    the kernel smooths away is missed, and not in the interval: the more classes and the
    fewer rows, the more of what no temperature explains.

    Examples
    --------
    >>> import numpy as np, acumen as ac
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 2000)
    >>> true = np.sqrt(p) / np.sqrt(p).sum(axis=1, keepdims=True)
    >>> y = (true.cumsum(axis=1) > rng.random((2000, 1))).argmax(axis=1)
    >>> found = ac.canonical_calibration_error(y, probs=p)
    >>> low, high = found.calibration.interval
    >>> bool(low < ((true - p) ** 2).sum(axis=1).mean() < high)
    True
    """
    check_choice(divergence, "divergence", tuple(GAINS))
    settings = Settings(divergence=divergence, level=level, rng=rng).checked()
    vectors = read_vectors(y, given, "canonical_calibration_error")
    if vectors.k > MOST_CLASSES:
        raise ValueError(
            f"canonical_calibration_error takes at most {MOST_CLASSES} classes, got "
            f"{vectors.k}: with more, rows have no neighbours. Use target='class-wise'."
        )
    return error_of_vectors(vectors, settings)


def error_of_vectors(vectors: Vectors, settings: Settings) -> CanonicalError:
    """The error of checked rows."""
    rng = np.random.default_rng(settings.rng)
    n, rows = float(vectors.weight.sum()), len(vectors)
    if rows > MOST_ROWS:
        drawn = rng.choice(rows, MOST_ROWS, replace=False)
        vectors = vectors.take(np.sort(drawn))
    name = settings.main.name
    field = Field(vectors, tempered(vectors, rng), GAINS[name])
    found, widths = field.cross_fitted_gains(rng)
    weight = vectors.weight
    held_out, noise, size = (float(weight @ x / weight.sum()) for x in found[:3])
    value, interval, se = held_out + noise, None, np.inf
    if isfinite(held_out):
        se = error_of_mean(found.held_out, weight)
        if len(vectors) >= LEAST_ROWS:
            interval = intervals.score(value, se, size, noise, settings.level)
    return CanonicalError(
        divergence=name,
        k=vectors.k,
        n=n,
        rows=rows,
        rows_used=len(vectors),
        calibration=Estimate(value, interval, intervals.named("score", interval)),
        held_out=held_out,
        plugin=size,
        standard_error=se,
        bandwidths=widths,
    )
