"""`by_group` and `macro_average`: groups side by side, and each counted once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from math import isfinite, nan, sqrt
from typing import Any, ClassVar

from calibrant._base.checks import MOST_NAME, check_kind, one_line
from calibrant._base.comparison import Comparison
from calibrant._base.evaluation import Evaluation
from calibrant._base.records import Estimate
from calibrant._base.text import with_interval

MOVER = "MOVER"
"""Method of variance estimates recovery: ends of a sum from those of its parts."""


class SideBySide(Comparison):
    """Groups of one model, which have no example in common."""

    _each: ClassVar = "group"


def by_group(ev: Evaluation) -> Comparison:
    """The groups of a model as if each were a model, to draw and tabulate side by side.

    Examples
    --------
    >>> import calibrant as cal
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7], group=[*"aabb"])
    >>> cal.by_group(ev).names
    ('a', 'b')
    """
    return SideBySide(tuple(replace(x, name=n) for n, x in _groups(ev).items()))


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
        of the groups (Donner and Zou, 2012), unless clusters reach over several groups;
        where there is none, ``method`` says why.

    Examples
    --------
    >>> import calibrant as cal
    >>> right, sure = [1, 0, 1, 1, 1, 1], [0.9, 0.4, 0.8, 0.7, 0.9, 0.6]
    >>> ev = cal.evaluate_pairs(right, sure, group=[*"aabbbb"])
    >>> round(ev.metrics["accuracy"], 3), float(cal.macro_average(ev)["accuracy"])
    (0.833, 0.75)
    """
    parts = _groups(ev)
    own = [part.n_clusters or 0 for part in parts.values()]
    apart = ev.n_clusters is None or sum(own) == ev.n_clusters
    found = {
        key: _mean({x: part.metrics[key] for x, part in parts.items()}, intervals=apart)
        for key in ev.metrics
        if all(key in part.metrics for part in parts.values())
    }
    for key in ("calibration", "sharpness_gap"):
        values = {x: getattr(part.decomposition, key) for x, part in parts.items()}
        numbers = {
            name: x if isinstance(x, Estimate) else Estimate(x)
            for name, x in values.items()
        }
        found[key] = _mean(numbers, intervals=apart)
    return found


def with_reason(value: Estimate) -> str:
    """A mean over groups with its interval, or with why there is none."""
    why = f" ({value.method})" if value.interval is None and value.method else ""
    return f"{with_interval(value)}{why}"


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


def _mean(values: Mapping[str, Estimate], *, intervals: bool) -> Estimate:
    """The mean; the distance of each end is the root of the squares of theirs.

    Where the interval of a group begins at 0, as that of an error which noise inflates, all
    of its value may be noise of one sign: such values are taken off as they are.
    """
    count, numbers = len(values), [float(x) for x in values.values()]
    mean = sum(numbers) / count
    if not isfinite(mean):
        return Estimate(mean)
    if why := _without_interval(values) if intervals else OVER_GROUPS:
        return Estimate(mean, None, f"no interval: {why}")
    ends = [x.interval or (nan, nan) for x in values.values()]
    known = [(x, low, high) for x, (low, high) in zip(numbers, ends, strict=True)]
    up = sqrt(sum((x - high) ** 2 for x, _, high in known))
    down = sqrt(sum((x - low) ** 2 for x, low, _ in known if low != 0))
    down += sum(x for x, low, _ in known if low == 0)
    return Estimate(mean, (mean - down / count, mean + up / count), MOVER)


OVER_GROUPS = "clusters reach over several groups"


def _without_interval(values: Mapping[str, Estimate]) -> str:
    """Why the intervals of groups make none of their mean; empty if they do."""
    for name, value in values.items():
        if value.interval is None:
            return f"group {one_line(name, MOST_NAME)!r} has none"
        if not value.interval[0] <= float(value) <= value.interval[1]:
            return f"in group {one_line(name, MOST_NAME)!r} it lies outside its own"
    return ""
