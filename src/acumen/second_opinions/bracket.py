"""The bracket of d_CAL: a lower bound, the debiased estimate, and the in-sample value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, Unpack

import numpy as np

from acumen import intervals
from acumen.analysis import adaptive_error, find_cells, sketch_for
from acumen.arrays import Column, as_number, check_choice
from acumen.bregman import BRIER
from acumen.clusters import read_clusters
from acumen.columns import Columns
from acumen.encoding import number
from acumen.estimators.bins import debiased_square
from acumen.inputs import Scores, read, takes_scores, target_of
from acumen.ordered import order
from acumen.records import Estimate, Record
from acumen.scores import corp, debiased_bins
from acumen.second_opinions.cross_fitting import Index, assign_folds, held_out_gains
from acumen.settings import Settings
from acumen.uncertainty.standard_errors import error_of_mean

FOLDS = 5
LEAST_FOLDS = 3
"""One to test on, and two to choose a method by."""


@dataclass(frozen=True, slots=True)
class Bracket(Record):
    """Three values of one calibration error, and a second opinion.

    Attributes
    ----------
    divergence, target : str
        Whose calibration error, and what was asked of each row.
    n : float
        Rows, or total weight.
    lower : Estimate
        Held-out gain of the recalibration chosen among the other rows: on average not
        above d_CAL. Its interval is that of the mean gain.
    debiased : Estimate
        The headline of `acumen.evaluate`.
    plugin : float
        In-sample gain of isotonic recalibration, the miscalibration of `acumen.corp`: on
        average not below d_CAL, if accuracy increases with confidence.
    second_opinion : float or None
        Brier: the debiased squared error over equal-mass bins, the square of
        ``metrics["ece_debiased"]`` where positive. None for log.
    gains : dict of str to Estimate
        Held-out gain of each recalibration: a lower bound each.
    standard_errors : dict of str to float
        Of `gains`, and of ``"lower"``.
    chosen : tuple of str
        The recalibration behind `lower`, by fold; ``"none"`` leaves rows as they are.

    Examples
    --------
    >>> import acumen as ac
    >>> found = ac.calibration_bracket([1, 1, 0, 1] * 25, confidence=[0.9] * 100)
    >>> round(found.debiased, 4), round(found.plugin, 4)  # 0.15 squared is 0.0225
    (0.0208, 0.0225)
    """

    divergence: str
    target: str
    n: float
    lower: Estimate
    debiased: Estimate
    plugin: float
    second_opinion: float | None
    gains: Mapping[str, Estimate]
    standard_errors: Mapping[str, float]
    chosen: tuple[str, ...]

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Restore what ``to_dict`` gave."""
        opinion = given["second_opinion"]
        errors = given["standard_errors"].items()
        restored = {
            "n": number(given["n"]),
            "plugin": number(given["plugin"]),
            "second_opinion": None if opinion is None else number(opinion),
            "gains": {k: Estimate.from_dict(x) for k, x in given["gains"].items()},
            "standard_errors": {name: number(x) for name, x in errors},
            "chosen": tuple(given["chosen"]),
        }
        for name in ("lower", "debiased"):
            restored[name] = Estimate.from_dict(given[name])
        return cls(**{**given, **restored})

    def __str__(self) -> str:
        rows = [("lower bound", self.lower), ("debiased", self.debiased)]
        rows += [("in-sample", Estimate(self.plugin))]
        if self.second_opinion is not None:
            rows += [("debiased bins", Estimate(self.second_opinion))]
        rows += [(f"gain of {name}", gain) for name, gain in self.gains.items()]
        head = f"d_CAL, {self.divergence}, {self.target}, {self.n:,.10g} rows"
        return "\n".join([head, *(_line(name, value) for name, value in rows)])


def _line(name: str, value: Estimate) -> str:
    line = f"  {name:<17} {value:9.5f}"
    if value.interval is None:
        return line
    return f"{line}  [{value.interval[0]:.5f}, {value.interval[1]:.5f}]"


@takes_scores
def calibration_bracket(
    y: Any,
    *,
    divergence: str = "brier",
    folds: int = FOLDS,
    cluster: Any = None,
    level: float = 0.95,
    rng: Any = 0,
    **given: Unpack[Scores],
) -> Bracket:
    r"""Bracket d_CAL between a cross-fitted lower bound and the in-sample value.

    Parameters
    ----------
    y : array_like
        Labels, or correctness if ``confidence=`` is given.
    divergence : {"brier", "log"}
        Whose calibration error.
    folds : int
        Parts of the rows, each held out once; 3 or more.
    cluster : array_like, optional
        The cluster of each row, if rows depend on each other. The rows of a cluster
        stay in one fold, and standard errors are as large as clusters ask for.
    level : float
        Coverage of the intervals.
    rng : int or numpy.random.Generator
        Seed of the folds.
    **given
        One of ``probs=``, ``logits=`` and ``confidence=``, and optionally ``target=``,
        ``classes=`` and ``sample_weight=``, as in `acumen.evaluate`. A row of weight 2
        stays in one fold.

    Returns
    -------
    Bracket
        The three values, the gain of each recalibration, and debiased bins beside them.

    Notes
    -----
    Recalibrating by any map g changes the mean score by at most d_CAL, which the true
    accuracy attains [1]_:

    .. math:: d_{CAL} \ge E\,[d_\varphi(a, h) - d_\varphi(a, g(h))] .

    Platt scaling, isotonic regression and local Platt scaling are fitted without one
    fold and tested on it. `lower` takes for each fold the one that does best when the
    other folds predict each other, or none; so nothing tested had a say in the choice.

    The isotonic fit on all rows gains, on the same rows, at least as much as any other
    increasing map, so at least as much as the true accuracy if that increases. All three
    values are estimates: on few rows their order may differ.

    References
    ----------
    .. [1] E. Berta, D. Holzmüller, M. I. Jordan and F. Bach, *Rethinking early
       stopping: refine, then calibrate*, 2025.

    Examples
    --------
    >>> import numpy as np, acumen as ac
    >>> rng = np.random.default_rng(0)
    >>> h = rng.uniform(0.5, 1, 4000)
    >>> hit = rng.random(4000) < 0.5 + 0.5 * (h - 0.5)  # d_CAL = 1/48 = 0.0208
    >>> found = ac.calibration_bracket(hit, confidence=h)
    >>> found.lower < found.debiased < found.plugin
    True
    """
    check_choice(divergence, "divergence", ("brier", "log"))
    settings = Settings(divergence=divergence, level=level, rng=rng).checked()
    if not as_number(folds) >= LEAST_FOLDS or folds % 1:
        raise ValueError(
            f"folds must be a whole number from {LEAST_FOLDS} on, got {folds!r}."
        )
    predictions, columns = read(y, given)
    clusters = read_clusters(cluster, predictions)
    return bracket_columns(columns, settings, folds, target_of(predictions), clusters)


def bracket_columns(
    columns: Columns,
    settings: Settings,
    folds: int,
    target: str,
    clusters: Index | None = None,
) -> Bracket:
    """The bracket of rows reduced to columns."""
    main, level = settings.main, settings.level
    fold = assign_folds(
        len(columns), clusters, folds, np.random.default_rng(settings.rng)
    )
    found = held_out_gains(columns, main, fold, folds)
    every = {"lower": found.best, **found.gains}
    errors = {n: _error(x, columns.weight, clusters) for n, x in every.items()}
    means = {n: _mean(columns, x, errors[n], level) for n, x in every.items()}
    sketch, ordered = sketch_for(columns, settings), order(columns)
    cells, local = find_cells(columns, sketch)
    seen = cells if main is BRIER else local
    headline = adaptive_error(seen, sketch, main.name, level)
    square = debiased_square(debiased_bins(ordered.without_twins()))
    return Bracket(
        divergence=main.name,
        target=target,
        n=columns.total_weight,
        lower=means.pop("lower"),
        debiased=Estimate(headline.value, headline.interval, headline.method),
        plugin=corp(sketch, ordered, main.name).miscalibration,
        second_opinion=square if main is BRIER else None,
        gains=means,
        standard_errors=errors,
        chosen=found.chosen,
    )


def _error(gains: Column, weight: Column | None, clusters: Index | None) -> float:
    if not np.isfinite(gains).all():
        return np.inf
    return error_of_mean(gains, weight, clusters)


def _mean(columns: Columns, gains: Column, error: float, level: float) -> Estimate:
    value = columns.mean(gains)
    if not np.isfinite(value):
        return Estimate(value)
    return Estimate(value, intervals.normal(value, error, level), "normal, held out")
