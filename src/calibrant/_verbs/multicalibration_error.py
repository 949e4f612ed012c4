"""`multicalibration_error`: calibration in every one of many groups that may overlap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import MOST_NAME, RowError, check_number, one_line
from calibrant._base.records import (
    FORECASTS,
    Amounts,
    Estimate,
    Frame,
    Positive,
    Range,
    Record,
    Share,
    Target,
    to_frame,
)
from calibrant._base.text import with_interval
from calibrant._base.views import Told
from calibrant._inputs.arrays import Column, Index, Table, to_numpy
from calibrant._inputs.options import Scores, check_rng, takes_scores, target_of
from calibrant._inputs.predictions import Predictions, read_clusters
from calibrant._rows.columns import Columns
from calibrant._rows.reduce import read
from calibrant._verbs.compare import check_level
from calibrant._verbs.compare_groups import ROWS_A_BIN, bins_of_rows
from calibrant._verbs.features import check_rows

DRAWS, MOST_CELLS = 4000, 2000
"""Draws of the largest deviation, and places (groups by bins) at most."""


class Deviations(NamedTuple):
    """Mean of the residuals of each place, over all rows, and how they vary together."""

    value: Column
    error: Column
    correlation: Table


def deviations(columns: Columns, places: Table, clusters: Index | None) -> Deviations:
    """Residuals of places, which are rows of a table of 0 and 1 and may overlap.

    Where few events were seen, how they vary is known better from the confidences.
    """
    w, h = columns.weights, columns.confidence
    total, r = w.sum(), columns.hit - h
    value = places @ (w * r) / total
    influence = (places * r - value[:, None]) * w / total
    if clusters is not None:
        influence = np.array([np.bincount(clusters, x) for x in influence])
        spread = influence @ influence.T
    else:
        spread = (influence * (columns.squares / w**2)) @ influence.T
    by_model = places @ (columns.squares * h * (1 - h)) / total**2
    scale = np.sqrt(np.maximum(np.diag(spread), 1e-300))
    error = np.maximum(scale, np.sqrt(by_model))
    return Deviations(value, error, spread / np.outer(scale, scale))


def largest_by_chance(
    correlation: Table, draws: int, rng: np.random.Generator
) -> Column:
    """Largest deviation of any place, in standard errors, if there is none."""
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = rng.standard_normal((draws, len(root)))
    return np.abs(normal @ root.T).max(axis=1)


# -- the record ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Multicalibration(Told, Record):
    """How far a model is off in groups that may overlap.

    Attributes
    ----------
    error : Estimate
        The largest of all groups and bins of confidence: how much mean confidence and
        accuracy differ there, times the share of rows there. Its interval holds the
        largest true one.
    p_value : float
        How often a calibrated model looks as bad somewhere.
    where, low, high : str, float, float
        The group, and the range of confidence.
    target, n, level
        What was asked of each row, how many rows there are, and coverage.
    names : tuple of str
        The groups.
    sizes : array
        Rows, or weight, of each.
    gaps : tuple of Estimate
        Accuracy less mean confidence of each group; intervals hold all at once.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, age = rng.random(4000), rng.integers(20, 80, 4000)
    >>> y = rng.random(4000) < np.where(age > 70, p**2, p)
    >>> masks = {"over 50": age > 50, "over 70": age > 70, "under 40": age < 40}
    >>> found = cal.multicalibration_error(y, probs=p, groups=masks)
    >>> found.gaps[1].interval[1] < -0.05, found.p_value < 0.01
    (True, True)
    """

    FIGURE = "group_gaps"

    error: Annotated[Estimate, Range(0, 1)]
    p_value: Share
    where: str
    low: Share
    high: Share
    target: Target
    n: Positive
    level: Annotated[float, Range(0, 1, above=True)]
    names: tuple[str, ...]
    sizes: Amounts
    gaps: tuple[Estimate, ...]

    def _disagreement(self) -> str | None:
        counts = [len(self.names), len(self.sizes), len(self.gaps)]
        told = "has {} names, {} sizes and {} gaps".format(*counts)
        return told if not 0 < min(counts) == max(counts) else None

    def frame(self, kind: str | None = None) -> Frame:
        """One row per group: its size, its gap and the ends of that."""
        ends = [x.interval or (np.nan, np.nan) for x in self.gaps]
        low, high = np.array(ends).T
        columns = {"group": np.array(self.names), "n": self.sizes}
        columns |= {"gap": np.array(self.gaps, float), "low": low, "high": high}
        return to_frame(columns, kind)

    def _heading(self) -> str:
        return (
            f"{len(self.names)} groups that may overlap, {self.n:,.10g} examples  "
            f"[{100 * self.level:g}% intervals, all at once]"
        )

    def _table(self) -> list[list[str]]:
        forecast = self.target in FORECASTS
        what = "observed less forecast" if forecast else "accuracy less confidence"
        rows = [["group", "examples", what]]
        for name, size, gap in zip(self.names, self.sizes, self.gaps, strict=True):
            told = [one_line(name, MOST_NAME), f"{size:,.10g}", with_interval(gap)]
            rows.append(told)
        return rows

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the numbers say, in words that claim no more than they do."""
        return tuple(self._told())

    def _told(self) -> Iterator[str]:
        where = one_line(self.where, MOST_NAME)
        said = "forecasts of" if self.target in FORECASTS else "confidence"
        yield (
            f"Multicalibration error {with_interval(self.error)}: largest in {where} at "
            f"{said} {self.low:.3g} to {self.high:.3g}."
        )
        if self.p_value < 1 - self.level:
            yield f"Not calibrated in all groups (p = {self.p_value:.2g})."
        else:
            yield (
                f"A model calibrated in all groups looks as bad in {self.p_value:.0%} of "
                "all cases."
            )


@takes_scores
def multicalibration_error(
    y: Any,
    *,
    groups: Any,
    bins: int = 10,
    cluster: Any = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
    **given: Unpack[Scores],
) -> Multicalibration:
    r"""Largest deviation from calibration in any of many groups, which may overlap.

    Parameters
    ----------
    groups : mapping of str to array_like, or array_like
        Who is in each group: booleans by name, a frame of them, or an n x groups matrix.
    bins : int
        Bins of confidence, of equal weight, that each group is looked at in.
    cluster : array_like, optional
        The cluster of each row, if rows depend on each other.
    level : float
        Coverage of the intervals.
    rng : int or Generator
        Of the largest deviation by chance.

    Returns
    -------
    Multicalibration
        The error, where it is, and the gap of each group; print it to read it.

    Notes
    -----
    For group g and bin b the deviation is :math:`|E[1_g 1_b (a - h)]|`; a model is
    :math:`\alpha`-multicalibrated if none exceeds :math:`\alpha` (Hebert-Johnson et al.
    2018). Deviations of groups that overlap vary together; the largest by chance is drawn
    from a normal law of their correlations, and all intervals use its quantile.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> p = np.random.default_rng(0).random(1000)
    >>> y = np.random.default_rng(1).random(1000) < p
    >>> halves = np.column_stack([p < 0.5, p > 0.3])
    >>> cal.multicalibration_error(y, probs=p, groups=halves).p_value > 0.05
    True
    """
    check_level(level)
    check_rng(rng)
    check_number(bins, "bins", 1, 100, kind="a whole number")
    predictions, columns = read(y, given)
    check_rows(y, given, cluster=cluster, groups=groups)
    clusters, _ = read_clusters(cluster, predictions)
    names, masks = read_masks(groups, predictions)
    place = bins_of_rows(columns, ROWS_A_BIN, int(bins))
    count = int(place.max()) + 1
    if len(names) * count > MOST_CELLS:
        raise ValueError(
            f"{len(names)} groups in {count} bins are more than {MOST_CELLS} places; give "
            "fewer groups or bins."
        )
    inside = [masks & (place == b) for b in range(count)]
    cells = np.concatenate([masks, *inside]).astype(np.float64)
    found = deviations(columns, cells, clusters)
    worst = largest_by_chance(found.correlation, DRAWS, np.random.default_rng(rng))
    return _record(
        found,
        worst,
        (names, masks),
        (place, columns),
        float(level),
        target_of(predictions),
    )


def _record(
    found: Deviations,
    chance: Column,
    groups: tuple[list[str], NDArray[np.bool_]],
    rows: tuple[Index, Columns],
    level: float,
    target: str,
) -> Multicalibration:
    (names, masks), (place, columns) = groups, rows
    reach = float(np.quantile(chance, level)) * found.error
    size, first = np.abs(found.value), len(names)
    best = first + int(np.argmax(size[first:]))
    ends = (
        max(float((size - reach)[first:].max()), 0.0),
        float((size + reach)[first:].max()),
    )
    bin_of, group_of = divmod(best - first, first)
    h, w = columns.confidence[place == bin_of], columns.weights
    share = masks @ w / w.sum()
    gaps = [
        Estimate(v / s, ((v - r) / s, (v + r) / s), "max-t")
        for v, r, s in zip(found.value[:first], reach, share, strict=False)
    ]
    most = float((size / found.error).max())
    return Multicalibration(
        error=Estimate(float(size[best]), ends, "max-t"),
        p_value=float((1 + (chance >= most).sum()) / (1 + len(chance))),
        where=names[group_of],
        low=float(h.min()),
        high=float(h.max()),
        target=target,
        n=columns.total_weight,
        level=level,
        names=tuple(names),
        sizes=masks @ w,
        gaps=tuple(gaps),
    )


def read_masks(given: Any, rows: Predictions) -> tuple[list[str], NDArray[np.bool_]]:
    """Names of groups, and who is in each, of rows that count: groups by rows."""
    if isinstance(given, Mapping) or hasattr(given, "columns"):
        keys = list(given) if isinstance(given, Mapping) else list(given.columns)
        names, columns = (
            [str(x) for x in keys],
            [to_numpy(given[x], "groups") for x in keys],
        )
    else:
        table = to_numpy(given, "groups")
        table = table[:, None] if table.ndim == 1 else table
        if table.ndim != 2:
            shape = f"got an array of shape {table.shape}"
            raise ValueError(f"groups must have one column for each group, {shape}.")
        names = [f"group {j}" for j in range(table.shape[1])]
        columns = [*table.T]
    n = len(rows.scores)
    for name, column in zip(names, columns, strict=True):
        _check_mask(name, column, n)
    if not names:
        raise ValueError("groups must name one group or more, got none.")
    masks = np.array(columns, bool)
    masks = masks if rows.weight is None else masks[:, rows.weight > 0]
    empty = [name for name, mask in zip(names, masks, strict=True) if not mask.any()]
    if empty:
        raise ValueError(
            f"groups must each have rows; {one_line(empty[0])!r} has none."
        )
    return names, masks


def _check_mask(name: str, column: NDArray[Any], rows: int) -> None:
    if column.shape != (rows,):
        raise ValueError(
            f"groups must have one entry per row; {one_line(name)!r} has shape "
            f"{column.shape} for {rows} rows."
        )
    bad = ~np.isin(column, (0, 1))
    if bad.any():
        rule = f"groups must be true or false ({one_line(name)});"
        raise RowError.at_first(
            rule,
            bad,
            column,
            remedy="Of names, give a mask for each: "
            "groups={name: names == name for name in set(names)}.",
        )
