"""Differences of two models in every column, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, sqrt
from typing import Any

import numpy as np

from acumen.arrays import Column
from acumen.contrasts.row_influence import ModelRows, correct, row_values
from acumen.intervals import Interval, quantile
from acumen.measures import MEASURES, Measure
from acumen.results import Estimate, Evaluation
from acumen.uncertainty.standard_errors import error_of_mean

MEANS = ("accuracy", "nll", "brier", "total", "confidence_gap")
"""Measures that are means over rows; the others are so to first order."""

INFLATED = ("ece", "ace", "smooth_ece", "mce", "ece_mass", "ks_error", "mcb")
"""Errors that noise makes larger, the more so the finer a model's confidences are."""

SAME = "the same in every row"


def paired_differences(
    mine: ModelRows, theirs: ModelRows, level: float = 0.95
) -> dict[str, Estimate]:
    """Model less baseline, row by row, in every column both have."""
    columns = known_to_both(mine.evaluation, theirs.evaluation)
    return {m.key: paired_difference(mine, theirs, m, level) for m in columns}


def same_rows(ev: Evaluation, baseline: Evaluation) -> bool:
    """Whether two models saw the same rows, as far as their records tell.

    Pairs carry no labels, only the model's own correctness, so for them it is enough
    that there are as many rows, of the same weights.
    """
    mine, theirs = (getattr(one, "columns", None) for one in (ev, baseline))
    if mine is None or theirs is None:
        return False
    if ev.target == baseline.target == "pairs":
        return np.array_equal(rows_of(ev).weight, rows_of(baseline).weight)
    prints = [getattr(one, "fingerprint", None) for one in (ev, baseline)]
    return prints[0] is not None and prints[0] == prints[1]


def same_clusters(ev: Evaluation, baseline: Evaluation) -> bool:
    """Whether the rows of two models belong together alike, if they do at all."""
    mine, theirs = ev.clusters, baseline.clusters
    if mine is None or theirs is None:
        return mine is theirs
    return np.array_equal(mine, theirs)


def paired_difference(
    mine: ModelRows, theirs: ModelRows, measure: Measure, level: float = 0.95
) -> Estimate:
    """Model less baseline in one column, from the same rows."""
    value = _value(mine.evaluation, theirs.evaluation, measure)
    hard = mine.columns.hard and theirs.columns.hard
    if measure.key == "accuracy" and hard and mine.clusters is None:
        return _of_accuracy(mine, theirs, value, level)
    x, y = row_values(mine, measure.key), row_values(theirs, measure.key)
    if x is None or y is None or not isfinite(value):
        return Estimate(value)
    half = quantile(level) * error_of_mean(x - y, mine.weight, mine.clusters)
    if not half:
        return Estimate(value, (value, value), SAME)
    ends = value - half, value + half
    if measure.key in INFLATED and _may_both_be_0(mine, theirs, measure):
        ends = min(ends[0], 0.0), max(ends[1], 0.0)
    method = "paired" if measure.key in MEANS else "paired, first order"
    suffix = "" if mine.clusters is None else ", clusters"
    return Estimate(value, ends, method + suffix)


def _may_both_be_0(mine: ModelRows, theirs: ModelRows, measure: Measure) -> bool:
    """Whether neither error can be told from 0: how noise inflates them says nothing."""
    found = (measure.of(rows.evaluation) for rows in (mine, theirs))
    return all(x.interval is not None and x.interval[0] <= 0 for x in found)


def _value(ev: Evaluation, base: Evaluation, measure: Measure) -> float:
    return float(measure.of(ev)) - float(measure.of(base))


def _of_accuracy(
    mine: ModelRows, theirs: ModelRows, value: float, level: float
) -> Estimate:
    change = correct(mine) - correct(theirs)
    if not change.any():
        return Estimate(value, (value, value), SAME)
    low, high = _of_shares(change, mine.weight, level)
    return Estimate(value, (min(value, low), max(value, high)), "paired, adjusted")


def rows_of(ev: Evaluation) -> ModelRows:
    """The rows behind an evaluation, which JSON and sketches do not keep."""
    columns = getattr(ev, "columns", None)
    if columns is None:
        raise ValueError(
            f"the rows of {ev.name!r} are gone: it was read from JSON or made of a "
            "sketch. Evaluate it again, or pass paired=False."
        )
    return ModelRows(columns, ev)


def _of_shares(change: Column, weight: Column, level: float) -> Interval:
    """Interval for a difference of paired shares (Bonett and Price 2012).

    One row is added to each kind of change, which keeps coverage where few rows changed.
    """
    n = float(weight.sum()) + 2
    more, less = (float(weight[change == x].sum() + 1) / n for x in (1, -1))
    half = quantile(level) * sqrt((more + less - (more - less) ** 2) / n)
    return more - less - half, more - less + half


def independent_differences(
    ev: Evaluation, baseline: Evaluation
) -> dict[str, Estimate]:
    """Model less baseline where rows differ: the two intervals combined.

    Each end moves by the root of the squared distances of the ends that make it extreme
    (Zou and Donner 2008); where a model has no interval, the difference has none.
    """
    columns = known_to_both(ev, baseline)
    return {m.key: independent_difference(ev, baseline, m) for m in columns}


def independent_difference(
    ev: Evaluation, baseline: Evaluation, measure: Measure
) -> Estimate:
    """Model less baseline in one column, from separate rows."""
    x, y = measure.of(ev), measure.of(baseline)
    value = _value(ev, baseline, measure)
    if x.interval is None or y.interval is None or not isfinite(value):
        return Estimate(value)
    (low_x, high_x), (low_y, high_y) = x.interval, y.interval
    down = sqrt((x - low_x) ** 2 + (high_y - y) ** 2)
    up = sqrt((high_x - x) ** 2 + (y - low_y) ** 2)
    return Estimate(value, (value - down, value + up), "independent rows")


def known_to_both(ev: Evaluation, baseline: Evaluation) -> list[Measure]:
    """Columns that are numbers for both models."""
    both = [(m, m.of(ev), m.of(baseline)) for m in (*MEASURES.values(), GAP)]
    return [m for m, x, y in both if not (np.isnan(x) or np.isnan(y))]


GAP = Measure("confidence_gap", "Confidence gap")


def is_clear(difference: Estimate) -> bool:
    """Whether the interval lies on one side of 0.

    Examples
    --------
    >>> is_clear(Estimate(0.1, (0.05, 0.15))), is_clear(Estimate(0.1, (-0.05, 0.25)))
    (True, False)
    """
    interval = difference.interval
    return interval is not None and (interval[0] > 0 or interval[1] < 0)


def p_value(difference: Estimate, level: float) -> float:
    """Two-sided p-value that belongs to a normal interval; NaN without an interval."""
    from acumen.calibration_tests.walks import normal_tail

    if difference.interval is None:
        return float("nan")
    low, high = difference.interval
    half = 0.5 * (high - low)
    if half == 0:
        return 1.0 if float(difference) == 0 else 0.0
    return normal_tail(abs(0.5 * (low + high)) * quantile(level) / half)


def holm(p_values: Mapping[Any, float], alpha: float) -> set[Any]:
    """Which hypotheses Holm's step-down procedure rejects.

    Examples
    --------
    >>> sorted(holm({"a": 0.001, "b": 0.03, "c": 0.04}, 0.05))
    ['a']
    """
    rejected: set[Any] = set()
    left = len(p_values)
    for name, p in sorted(p_values.items(), key=lambda item: item[1]):
        if not p <= alpha / left:
            break
        rejected.add(name)
        left -= 1
    return rejected
