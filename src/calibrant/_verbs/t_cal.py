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
from calibrant._inputs.options import Scores, check_rng, takes_scores, target_of
from calibrant._rows.reduce import read

RESAMPLES, MOST_RESAMPLES = 199, 100_000
SIGNIFICANT, AT_ONCE = 0.05, 4_000_000


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
        Of all scales together: the least of `p_values` times their number, at most 1.
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
    >>> found = cal.t_cal([1, 1, 0, 1] * 50, confidence=[0.9] * 200, resamples=999)
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
    against labels drawn from the forecasts, and the p-values are corrected for their number.
    It finds defects as narrow as the rows allow, such as a curve that swings around the
    diagonal, which a walk over the confidences (`calibration_test`) and a wide kernel miss.

    Parameters
    ----------
    resamples : int
        Data sets to simulate. With s scales no p-value is below ``s / (resamples + 1)``, so
        it takes some hundreds to find anything.
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
    >>> cal.t_cal(hit, confidence=h, resamples=999).p_value < 0.05
    True
    >>> cal.calibration_test(hit, confidence=h).p_value < 0.05
    False
    """
    check_number(resamples, "resamples", 19, MOST_RESAMPLES, kind="a whole number")
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
    errors = binned.errors((columns.hit[rows] - h)[:, None])
    above = _count_above(binned, errors, resamples, np.random.default_rng(rng))
    p_values = (1 + above) / (resamples + 1)
    return TCal(
        p_value=float(min(len(p_values) * p_values.min(), 1.0)),
        bins=tuple(scales(len(h))),
        errors=tuple(errors[:, 0].tolist()),
        p_values=tuple(p_values.tolist()),
        n=columns.total_weight,
        target=target_of(predictions),
    )


def _count_above(
    binned: Binned, errors: Table, resamples: int, rng: np.random.Generator
) -> Column:
    """How many data sets of a calibrated model have as large an error, at each scale."""
    above, h = np.zeros(len(errors)), binned.h[:, None]
    step = max(1, AT_ONCE // len(h))
    for first in range(0, resamples, step):
        many = min(step, resamples - first)
        drawn = binned.errors((rng.random((len(h), many)) < h) - h)
        above += np.sum(drawn >= errors - 1e-15, axis=1)
    return above
