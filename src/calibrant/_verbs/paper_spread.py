"""The paper's ±: how far its estimate moves between random subsamples of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from calibrant._base.checks import check_choice, check_number
from calibrant._base.evaluation import Evaluation
from calibrant._inputs.arrays import Index
from calibrant._inputs.options import PAPER_BANDWIDTH, Settings, check_rng
from calibrant._stats.decomposition import calibration_of_rows

DRAWS, SIZE = 10, 5000
"""The paper averages ten estimates, each from 5,000 rows."""


class PaperSpread(NamedTuple):
    """Mean and standard deviation of estimates from subsamples of the rows.

    The standard deviation is what the paper prints after its ±. It says how much was lost
    by not using all rows; it is no confidence interval.
    """

    mean: float
    spread: float


def paper_spread(
    ev: Evaluation,
    *,
    draws: int = DRAWS,
    size: int = SIZE,
    of: str = "rows",
    rng: int | np.random.Generator = 0,
) -> PaperSpread:
    """The paper's d_CAL as its authors report it: ten subsamples of 5,000 rows.

    Parameters
    ----------
    ev : Evaluation
        Of rows that are still at hand; all of them are in ``ev.paper``.
    draws, size : int
        Number of subsamples, and rows in each.
    of : {"rows", "points"}
        ``"rows"``: each estimate sees its own rows and no other, as the paper says.
        ``"points"``: the curve of all rows is averaged at random rows, as the authors'
        code does.
    rng : int or numpy.random.Generator
        Seed of the subsamples.

    Returns
    -------
    PaperSpread
        Their mean and standard deviation. calibrant's own estimate and its interval are
        ``ev.decomposition.calibration``.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> h = rng.beta(4, 1, 20_000)
    >>> ev = cal.evaluate_pairs(rng.random(20_000) < h**2, h)
    >>> mean, spread = cal.paper_spread(ev)
    >>> abs(mean - ev.paper.calibration) < 3 * spread
    True
    """
    check_choice(of, "of", ("rows", "points"))
    check_number(draws, "draws", 2, 1_000_000, kind="a whole number")
    check_rng(rng)
    if ev.columns is None:
        raise ValueError(
            "ev holds no rows (it was read from a file, or comes from a sketch); "
            "evaluate them again."
        )
    check_number(size, "size", 2, len(ev.columns), kind="a whole number of rows")
    drawn = _draws(len(ev.columns), draws, size, rng, replace=of == "points")
    found = _of_rows(ev, drawn) if of == "rows" else _at_points(ev, drawn)
    values = np.array(list(found))
    return PaperSpread(float(values.mean()), float(values.std(ddof=1)))


def _draws(
    n: int, draws: int, size: int, rng: Any, *, replace: bool
) -> Iterator[Index]:
    source = np.random.default_rng(rng)
    return (source.choice(n, size, replace=replace) for _ in range(draws))


def _of_rows(ev: Evaluation, drawn: Iterator[Index]) -> Iterator[float]:
    settings = Settings(divergence=ev.divergence, bandwidth=PAPER_BANDWIDTH)
    for some in drawn:
        yield float(calibration_of_rows(ev.columns.take(some), settings))


def _at_points(ev: Evaluation, drawn: Iterator[Index]) -> Iterator[float]:
    columns, curve = ev.columns, ev.paper_curve
    settings = Settings(divergence=ev.divergence)
    accuracy = np.interp(columns.confidence, curve.confidence, curve.accuracy)
    error = settings.main.on_unit(accuracy, columns.confidence)
    for some in drawn:
        yield columns.take(some).mean(error[some])
