"""`t_cal`: the test for calibration at all resolutions at once."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, log2, sqrt
from typing import Annotated, Any, Unpack

import numpy as np

from calibrant._base.checks import check_number
from calibrant._base.records import Positive, Range, Record, Share, Target
from calibrant._base.views import Printed
from calibrant._inputs.arrays import Column, Index, Table
from calibrant._inputs.options import (
    FEWEST_OF_A_TEST,
    Scores,
    check_rng,
    takes_scores,
    target_of,
)
from calibrant._rows.reduce import read

RESAMPLES, MOST_RESAMPLES = 199, 100_000
SIGNIFICANT, AT_ONCE, ROUND_OFF = 0.05, 4_000_000, 1e-12


def scales(n: float) -> list[int]:
    """Numbers of bins, powers of 2 up to about n squared, as the authors choose them.

    >>> scales(10)
    [2, 4, 8, 16, 32, 64]
    """
    most = ceil(2 * log2(max(n / sqrt(log(max(n, 3.0))), 2.0)))
    return [2**b for b in range(1, most + 1)]


@dataclass(frozen=True, slots=True, eq=False)
class Binned:
    """Rows in order of confidence, and where bins of equal width begin among them."""

    h: Column
    weight: Column
    starts: tuple[Index, ...]

    @classmethod
    def of(cls, h: Column, weight: Column) -> Binned:
        """Cut rows that are in order, at each scale."""
        starts = []
        for m in scales(len(h)):
            place = np.minimum(np.floor(h * m), m - 1)
            starts.append(np.flatnonzero(np.diff(place, prepend=-1.0)))
        return cls(h, weight, tuple(starts))

    def errors(self, residual: Table) -> Table:
        """The debiased squared error at each scale, for each column of residuals."""
        x, before = residual * self.weight[:, None], 0
        found: list[Column] = []
        for first in self.starts:
            if len(first) == before:  # each scale divides the bins of the one before
                found.append(found[-1])
                continue
            before = len(first)
            mass = np.add.reduceat(self.weight, first)[:, None]
            total = np.add.reduceat(x, first, axis=0)
            square = np.add.reduceat(x * x, first, axis=0)
            found.append(((total**2 - square) / mass).sum(axis=0))
        return np.array(found) / self.weight.sum()


@dataclass(frozen=True, slots=True)
class TCal(Printed, Record):
    """The result of `t_cal`.

    Attributes
    ----------
    p_value : float
        Of all scales together: how often a calibrated model has as small a least p-value.
    bins : tuple of int
        The scales: numbers of bins of equal width.
    errors, p_values : tuple of float
        The debiased squared calibration error of each, and how often a calibrated model has
        as large a one.
    n, target : float, str
        Rows, and what was asked of each.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.t_cal([1, 1, 0, 1] * 50, confidence=[0.9] * 200)
    >>> found.p_value < 0.05, round(found.errors[0], 4)  # (0.9 - 0.75)^2 = 0.0225
    (True, 0.0215)
    """

    p_value: Share
    bins: tuple[int, ...]
    errors: tuple[Annotated[float, Range()], ...]
    p_values: tuple[Share, ...]
    n: Positive
    target: Target

    def _disagreement(self) -> str | None:
        same = len(self.bins) == len(self.errors) == len(self.p_values) > 0
        return None if same else "must have an error and a p-value for each scale"

    def __str__(self) -> str:
        worst = self.bins[int(np.argmin(self.p_values))]
        verdict = (
            "Miscalibrated"
            if self.p_value <= SIGNIFICANT
            else "No evidence of miscalibration"
        )
        return (
            f"T-Cal on {self.n:,.10g} examples: {verdict} (p = {self.p_value:.3g} over "
            f"{len(self.errors)} scales, least at {worst} bins)."
        )


@takes_scores
def t_cal(
    y: Any, *, resamples: int = RESAMPLES, rng: Any = 0, **given: Unpack[Scores]
) -> TCal:
    r"""T-Cal: an adaptive test for calibration, at every resolution.

    The debiased squared error of bins of equal width is tested for 2, 4, 8, ... bins, each
    against labels drawn from the forecasts; the least p-value is then held against those of
    the same drawn labels, which corrects for the number of scales.
    It finds defects as narrow as the rows allow, such as a curve that swings around the
    diagonal, which a walk over the confidences (`calibration_test`) and a wide kernel miss.

    Parameters
    ----------
    resamples : int
        Data sets to simulate; no p-value is below ``1 / (resamples + 1)``.
    rng : int or numpy.random.Generator
        Seed of the simulation.

    Notes
    -----
    With rows of bin b as :math:`I_b` and weights 1,

    .. math:: T_m = \frac1n \sum_b \frac{1}{|I_b|} \Bigl[\Bigl(\sum_{i \in I_b} (a_i -
              h_i)\Bigr)^2 - \sum_{i \in I_b} (a_i - h_i)^2\Bigr] ,

    as in the authors' code, to round-off, but for a confidence of exactly 1, which has a bin
    of its own there. They draw confidences, too, with replacement; here these are given and
    labels alone are drawn. There may be one scale more here, for their code rounds down.

    They multiply the least p-value by the number of scales, so that a few hundred data sets
    can never reject. How scales are put together is ours: every drawn data set has a
    p-value at each scale, too, among all of them, and so a least one. The p-value is the
    share of data sets, the observed one included, whose least is as small; among equals
    the larger error counts, in standard deviations at its scale. Under calibration all
    are alike, so the level is exact for any n and any number of data sets.

    References
    ----------
    D. Lee, X. Huang, H. Hassani, E. Dobriban, *T-Cal: an optimal test for the calibration of
    predictive models*, JMLR 2023.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> h = np.linspace(0.2, 0.8, 2000)
    >>> swings = h + 0.15 * np.sin(100 * h)
    >>> hit = np.random.default_rng(0).random(2000) < swings
    >>> cal.t_cal(hit, confidence=h).p_value < 0.05
    True
    >>> cal.calibration_test(hit, confidence=h).p_value < 0.05
    False
    """
    ends = FEWEST_OF_A_TEST, MOST_RESAMPLES
    check_number(resamples, "resamples", *ends, kind="a whole number")
    check_rng(rng)
    predictions, columns = read(y, given)
    if not columns.hard:
        raise ValueError(
            "y must be hard labels for t_cal, which draws them: got soft ones."
        )
    count = np.rint(columns.weights**2 / columns.squares).astype(np.intp)
    rows = np.repeat(np.arange(len(columns)), count)
    rows = rows[np.argsort(columns.confidence[rows], kind="stable")]
    h, one = columns.confidence[rows], (columns.squares / columns.weights)[rows]
    binned = Binned.of(h, one)
    observed = binned.errors((columns.hit[rows] - h)[:, None])
    drawn = _redrawn(binned, resamples, np.random.default_rng(rng))
    p_values, p_value = of_first(np.concatenate([observed, drawn], axis=1))
    return TCal(
        p_value=p_value,
        bins=tuple(scales(len(h))),
        errors=tuple(observed[:, 0].tolist()),
        p_values=tuple(p_values.tolist()),
        n=columns.total_weight,
        target=target_of(predictions),
    )


def _redrawn(binned: Binned, resamples: int, rng: np.random.Generator) -> Table:
    """Errors at each scale of data sets of a calibrated model."""
    found, h = [], binned.h[:, None]
    step = max(1, AT_ONCE // len(h))
    for first in range(0, resamples, step):
        many = min(step, resamples - first)
        found.append(binned.errors((rng.random((len(h), many)) < h) - h))
    return np.concatenate(found, axis=1)


def of_first(errors: Table) -> tuple[Column, float]:
    """P-values of the first of several data sets, at each scale and of all together.

    Examples
    --------
    >>> of_first(np.array([[3.0, 1.0, 2.0, 0.0], [0.0, 3.0, 1.0, 2.0]]))
    (array([0.25, 1.  ]), 0.5)
    """
    p = np.array([_as_large(x) for x in errors])
    least, spread = p.min(axis=0), errors.std(axis=1, keepdims=True)
    off = errors - errors.mean(axis=1, keepdims=True)
    furthest = (off / np.where(spread > 0, spread, 1.0)).max(axis=0)
    further = (least == least[0]) & (furthest >= furthest[0] - ROUND_OFF)
    return p[:, 0], float(np.mean((least < least[0]) | further))


def _as_large(x: Column) -> Column:
    """The share of values that are as large as each, but for round-off."""
    slack = ROUND_OFF * np.abs(x).max()
    return (len(x) - np.searchsorted(np.sort(x), x - slack)) / len(x)
