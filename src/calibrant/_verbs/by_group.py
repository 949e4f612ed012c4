"""`by_group` and `macro_average`: groups side by side, and each counted once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import isfinite, sqrt
from typing import Any

from calibrant._base.checks import check_kind
from calibrant._base.comparison import Comparison
from calibrant._base.evaluation import Evaluation
from calibrant._base.records import Estimate

MOVER = "MOVER"
"""Method of variance estimates recovery: ends of a sum from those of its parts."""


def by_group(ev: Evaluation) -> Comparison:
    """The groups of a model as if each were a model, to draw and tabulate side by side.

    Examples
    --------
    >>> import calibrant as cal
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7], group=[*"aabb"])
    >>> cal.by_group(ev).names
    ('a', 'b')
    """
    return Comparison(tuple(replace(x, name=n) for n, x in _groups(ev).items()))


def macro_average(ev: Evaluation) -> dict[str, Estimate]:
    """The mean of every metric over groups, such as tasks, each counted once.

    The numbers of `ev` itself are the *micro* average: examples count once, so large
    tasks count more.

    Parameters
    ----------
    ev : Evaluation
        Made with ``group=``.

    Returns
    -------
    dict of str to Estimate
        By the names of ``ev.metrics``, and ``calibration`` and ``sharpness_gap`` of the
        decomposition. Groups are taken to be independent: an interval is found from those
        of the groups (Donner and Zou, 2012), unless clusters reach over several groups.

    Examples
    --------
    >>> import calibrant as cal
    >>> right, sure = [1, 0, 1, 1, 1, 1], [0.9, 0.4, 0.8, 0.7, 0.9, 0.6]
    >>> ev = cal.evaluate_pairs(right, sure, group=[*"aabbbb"])
    >>> round(ev.metrics["accuracy"], 3), float(cal.macro_average(ev)["accuracy"])
    (0.833, 0.75)
    """
    parts = list(_groups(ev).values())
    own = [part.n_clusters or 0 for part in parts]
    apart = ev.n_clusters is None or sum(own) == ev.n_clusters
    found = {
        key: _mean([part.metrics[key] for part in parts], intervals=apart)
        for key in ev.metrics
        if all(key in part.metrics for part in parts)
    }
    for key in ("calibration", "sharpness_gap"):
        values = [getattr(part.decomposition, key) for part in parts]
        numbers = [x if isinstance(x, Estimate) else Estimate(x) for x in values]
        found[key] = _mean(numbers, intervals=apart)
    return found


def natural(name: str) -> list[Any]:
    """Sorts names by the numbers in them: group 2 before group 10.

    Examples
    --------
    >>> sorted(["group 10", "group 2", "Group 1"], key=natural)
    ['Group 1', 'group 2', 'group 10']
    """
    parts = enumerate(re.split(r"(\d+)", name))
    # As texts of their lengths: a number may have any number of digits.
    short = ((i % 2, x.lstrip("0") if i % 2 else x.casefold()) for i, x in parts)
    return [*((len(x), x) if digits else x for digits, x in short), name]


def _groups(ev: Evaluation) -> dict[str, Evaluation]:
    check_kind(ev, Evaluation, "ev")
    if not ev.per_group:
        raise ValueError("ev has no groups; pass group= to evaluate or evaluate_pairs.")
    return dict(ev.per_group)


def _mean(values: Sequence[Estimate], *, intervals: bool) -> Estimate:
    """The mean; the distance of each end is the root of the squares of theirs."""
    count = len(values)
    mean = sum(float(x) for x in values) / count
    ends = [x.interval for x in values if x.interval is not None]
    if not intervals or len(ends) < count or not isfinite(mean):
        return Estimate(mean)
    down, up = (
        sqrt(
            sum(
                (float(x) - end[side]) ** 2 for x, end in zip(values, ends, strict=True)
            )
        )
        for side in (0, 1)
    )
    low, high = mean - down / count, mean + up / count
    below = [
        float(x) < end[0] or float(x) > end[1]
        for x, end in zip(values, ends, strict=True)
    ]
    return Estimate(mean) if any(below) else Estimate(mean, (low, high), MOVER)
