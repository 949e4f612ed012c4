"""`grouping_loss` and `loss_parts`: how much of the sharpness gap is not chance.

d_TOT = d_CAL + grouping loss + irreducible loss (Kull and Flach 2015). Rows of one
confidence may differ in what is likely for them; what features show of that is a lower
bound of the grouping loss (Perez-Lebel et al. 2023). Regions of the features are learned
on some rows, and how much accuracy differs between them is measured on others, at equal
confidence, less what noise alone would make of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Annotated, Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import check_choice, check_length, check_number
from calibrant._base.records import (
    Amounts,
    Estimate,
    Frame,
    Positive,
    Range,
    Record,
    Shares,
    Target,
    to_frame,
)
from calibrant._base.text import number, with_interval
from calibrant._base.views import Told
from calibrant._inputs.arrays import Column, Index, Mask, Table, to_numpy
from calibrant._inputs.divergences import BUILT_IN, Divergence, find_divergence
from calibrant._inputs.options import Scores, check_rng, takes_scores, target_of
from calibrant._inputs.predictions import Predictions, read_clusters, soft_weight
from calibrant._rows.columns import Columns
from calibrant._rows.reduce import read
from calibrant._stats.closed_forms import quantile
from calibrant._stats.standard_errors import error_of_mean
from calibrant._verbs.compare import check_level, ends_of
from calibrant._verbs.compare_groups import bins_of_rows
from calibrant._verbs.evaluate import evaluate
from calibrant._verbs.features import Feature, check_rows, grow, leaf_of, read_features

BINS, ROWS_A_CELL, MOST_REGIONS = 30, 30, 200
"""Level sets at most, rows of a region in one on average, and regions that are given."""

LEAST_UNITS = 200
"""Independent rows in a level set at least: its line takes two of them."""

MANY = 30
"""Columns from which on a linear fit takes the place of a tree."""

METHODS = ("auto", "tree", "ridge")


# -- how much accuracy differs between regions, at equal confidence --------------------


class Cells(NamedTuple):
    """Regions within bins of confidence: what was expected, what was seen, and noise.

    `noise` is the variance of `seen` about its mean, after the line of the bin was
    fitted; `whole` what it would be without. `one` is what a single row counts of a cell.
    """

    share: Column
    confidence: Column
    expected: Column
    seen: Column
    noise: Column
    whole: Column
    one: Column


def line_of_bins(columns: Columns, bins: Index) -> tuple[Column, Column]:
    """Accuracy as a line of confidence within each bin, and the spread about its middle.

    Of each row: what the line says, and how far its confidence is from the middle of the
    bin, over the root of the sum of squares.
    """
    h, a, w = columns.confidence, columns.hit, columns.weights
    mass = np.bincount(bins, w)
    middle, level = (np.bincount(bins, w * x) / mass for x in (h, a))
    apart = h - middle[bins]
    squares = np.bincount(bins, w * apart**2)
    slope = np.bincount(bins, w * apart * a) / np.maximum(squares, 1e-300)
    slope = np.where(squares > 1e-12 * mass, slope, 0.0)
    root = np.sqrt(np.where(squares > 1e-12 * mass, squares, np.inf))
    return level[bins] + slope[bins] * apart, apart / root[bins]


def cells_of(
    columns: Columns, bins: Index, region: Index, clusters: Index | None
) -> tuple[Cells, Index, Column]:
    """Cells of two rows, or clusters, or more; the cell of each row (-1: none), residuals."""
    fit, apart = line_of_bins(columns, bins)
    w, r = columns.weights, columns.hit - fit
    _, cell = np.unique(bins * (region.max() + 1) + region, return_inverse=True)
    mass = np.bincount(cell, w)
    mean, h, expected = (
        np.bincount(cell, w * x) / mass for x in (r, columns.confidence, fit)
    )
    apart_of = np.bincount(cell, w * apart)
    first = np.unique(cell, return_index=True)[1]
    of_bin = np.bincount(bins, w)[bins[first]]
    leverage = np.minimum(mass / of_bin + apart_of**2 / mass, 1.0)
    whole = _noise(columns, cell, r - mean[cell], clusters) / mass**2
    known = np.isfinite(whole)
    place = np.where(known, np.cumsum(known) - 1, -1)[cell]
    share, noise = mass / w.sum(), whole * (1 - leverage)
    one = np.bincount(cell, columns.squares) / mass**2
    found = Cells(share, h, expected, expected + mean, noise, whole, one)
    return (
        Cells(*(x[known] for x in found)),
        place,
        np.where(place >= 0, r - mean[cell], 0.0),
    )


def _noise(columns: Columns, cell: Index, r: Column, clusters: Index | None) -> Column:
    """Variance of the weighted sum of each cell; NaN where it has a single row."""
    w, w2 = columns.weights, columns.squares
    if clusters is None:
        mass = np.bincount(cell, w)
        one = np.bincount(cell, w2) / mass**2
        sums = np.bincount(cell, w2 * r**2)
        return np.where(one < 1 - 1e-9, sums / np.maximum(1 - one, 1e-9), np.nan)
    pairs, place = np.unique(
        cell * (clusters.max() + 1) + clusters, return_inverse=True
    )
    sums, owner = np.bincount(place, w * r) ** 2, pairs // (clusters.max() + 1)
    count, total = np.bincount(owner), np.bincount(owner, sums)
    return np.where(count > 1, total * count / np.maximum(count - 1, 1), np.nan)


ROUNDING = 1e-15
"""A loss that is smaller is the rounding of none."""


class Explained(NamedTuple):
    """The loss that regions explain, and its variance: what grows with it, and the rest."""

    value: float
    growing: float
    fixed: float

    def interval(self, level: float) -> tuple[float, float]:
        """Values from which this one is no further than their own standard errors allow.

        The variance is taken as a line of the value; as that of a share, it is not the
        same at both ends.
        """
        z, least = quantile(level), sqrt(self.fixed)
        size = max(self.value, least)
        rise = z * z * self.growing / size if size > ROUNDING else 0.0
        middle = self.value + rise / 2
        reach = sqrt(rise**2 / 4 + rise * max(self.value, 0.0) + z * z * self.fixed)
        return max(middle - reach, 0.0), max(middle + reach, 0.0)


def explained(
    cells: Cells,
    place: Index,
    residual: Column,
    columns: Columns,
    divergence: Divergence,
    clusters: Index | None,
) -> Explained:
    """Divergence of what was seen from what was expected, less what noise makes of it."""
    c = _inside(cells.expected, cells)
    seen = np.clip(cells.seen, 0.0, 1.0)
    each = np.maximum(divergence.on_unit(seen, c), 0.0) - _bias(divergence, cells, c)
    value = float(cells.share @ each)
    inside = place >= 0
    m = _shrunk(cells, c)  # the derivative of log has no bound at 0 and 1
    slope = divergence.derivative_1d(m) - divergence.derivative_1d(c)
    bend = _second_derivative(divergence, m)
    share = columns.weights / columns.weights.sum()
    steep = slope / np.sqrt(1 - cells.one)  # residuals are those of a fitted mean
    first = np.where(inside, steep[place] * residual, 0.0) * share
    moves = np.where(inside, each[place] - value, -value) * share
    if clusters is None:
        ratio = columns.squares / columns.weights**2
        main, mix = float(ratio @ first**2), float(ratio @ moves**2)
    else:
        main, mix = (
            float((np.bincount(clusters, x) ** 2).sum()) for x in (first, moves)
        )
    hidden = np.maximum(m * (1 - m) * cells.one - cells.whole, 0.0)  # rare in a cell
    main += float((cells.share**2 * slope**2 * hidden).sum())
    noise = float((cells.share**2 * bend**2 * cells.noise * cells.whole).sum())
    if divergence.by_pairs:  # slopes of others, of shares drawn in, are not inflated
        main = max(main - noise, 0.0)
    return Explained(value, main + mix, 0.5 * noise)


def _bias(divergence: Divergence, cells: Cells, c: Column) -> Column:
    """What noise adds to the divergence: exactly for Brier, else as of 0 and 1 outcomes.

    To second order half the second derivative times the variance; for log, where cells
    may be small beside how sharply it bends, to the next order, too.
    """
    if divergence.by_pairs:
        return cells.noise
    m = _shrunk(cells, c)
    left = cells.noise / np.maximum(cells.whole, 1e-300)
    noise = np.maximum(cells.noise, m * (1 - m) * cells.one * left)
    bias = 0.5 * _second_derivative(divergence, m) * noise
    return bias + divergence.logit_slope * (1 / (m * (1 - m)) - 1) * cells.one**2 / 12


def _shrunk(cells: Cells, c: Column) -> Column:
    """What was seen, with one row more of what was expected."""
    return _inside((cells.seen + cells.one * c) / (1 + cells.one), cells)


def _inside(share: Column, cells: Cells) -> Column:
    """Shares that so few rows can tell from 0 and 1."""
    return np.clip(share, cells.one / 4, 1 - cells.one / 4)


def _second_derivative(divergence: Divergence, c: Column) -> Column:
    step = 1e-4 * np.minimum(c, 1 - c)
    more, less = (divergence.derivative_1d(c + s) for s in (step, -step))
    return (more - less) / (2 * step)


# -- regions ---------------------------------------------------------------------------


def _given_regions(explain: Any, kept: Mask | slice, rows: int) -> Index | None:
    """Regions that were given as such: one name or whole number per row."""
    if isinstance(explain, dict) or hasattr(explain, "columns"):
        return None
    names = to_numpy(explain, "explain")
    if names.ndim != 1 or names.dtype.kind == "f":
        return None
    check_length(names, rows, "explain")
    region = np.unique(names[kept].astype(str), return_inverse=True)[1]
    if (count := int(region.max()) + 1) > MOST_REGIONS:
        raise ValueError(
            f"explain has {count:,} distinct values, more than {MOST_REGIONS} regions; give "
            "numbers as floats or as a column, explain=x[:, None], to have them cut."
        )
    return region


def _folds(rows: int, clusters: Index | None, folds: int, rng: Any) -> Index:
    unit = np.arange(rows) if clusters is None else clusters
    count = int(unit.max()) + 1
    if count < folds:
        there = f"folds={folds} needs as many rows, or clusters; there are {count}"
        raise ValueError(f"{there}. Give more rows, or regions as explain=.")
    return (np.random.default_rng(rng).permutation(count) % folds)[unit]


def learned_regions(
    features: list[Feature],
    columns: Columns,
    bins: Index,
    train: Mask,
    regions: int,
    method: str,
) -> Index:
    """Regions of all rows, learned from the residuals of some."""
    some = columns.take(train)
    known = np.unique(bins[train], return_inverse=True)[1]
    r = some.hit - line_of_bins(some, known)[0]
    w = some.weights
    if method == "tree":
        both = [*features, Feature("confidence", columns.confidence, is_number=True)]
        seen = [x._replace(values=x.values[train]) for x in both]
        least = max(w.sum() / (5 * regions), ROWS_A_CELL * w.mean())
        return leaf_of(both, grow(seen, r, w, leaves=regions, least=least))
    table = np.column_stack([x.values for x in features])
    score = _ridge(table, r, w, train)
    edges = np.quantile(score[train], np.linspace(0, 1, regions + 1)[1:-1])
    return np.searchsorted(edges, score, side="right")


def _ridge(table: Table, r: Column, w: Column, train: Mask) -> Column:
    """A linear score whose penalty is that of least generalised cross-validation."""
    root = np.sqrt(w / w.mean())
    middle = np.average(table[train], axis=0, weights=w)
    spread = np.sqrt(np.average((table[train] - middle) ** 2, axis=0, weights=w))
    x = (table - middle) / np.where(spread > 0, spread, 1.0)
    u, s, v = np.linalg.svd(x[train] * root[:, None], full_matrices=False)
    along, n = u.T @ (root * r), len(r)
    best, chosen = np.inf, s**2
    for penalty in n * np.logspace(-4, 2, 19):
        shrink = s**2 / (s**2 + penalty)
        rest = ((root * r) ** 2).sum() - ((2 * shrink - shrink**2) * along**2).sum()
        loss = float(rest / (1 - shrink.sum() / n) ** 2)
        if loss < best:
            best, chosen = loss, s / (s**2 + penalty)
    return x @ (v.T @ (chosen * along))


# -- the record ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class LossParts(Told, Record):
    """d_TOT as calibration error, grouping loss and what remains.

    Attributes
    ----------
    divergence, target, n, level
        The score that is split, what was asked of each row, how many rows there are, and
        coverage.
    total, calibration : Estimate
        d_TOT and d_CAL, as in `evaluate`; of soft labels d_TOT with the irreducible part.
    grouping : Estimate
        At least so much of the sharpness gap is what the model lumps together, and a
        better one could remove. Debiased, so it may be slightly negative.
    irreducible : Estimate or None
        The part that no model can remove, known of soft labels only.
    method : str
        Where regions come from.
    share, confidence, expected, seen : arrays
        Each region at each level of confidence: its share of the rows, mean confidence,
        the accuracy of its level, and its own.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> half = np.repeat(["a", "b"], 2000)  # calibrated at 0.5, but lumps two kinds
    >>> y = rng.random(4000) < np.where(half == "a", 0.3, 0.7)
    >>> parts = cal.loss_parts(y, probs=np.full(4000, 0.5), explain=half)
    >>> round(parts.grouping, 2)  # (0.7 - 0.5) ** 2
    0.04
    >>> parts.grouping.interval[0] > 0.03
    True
    """

    FIGURE = "loss_parts"

    divergence: str
    target: Target
    n: Positive
    level: Annotated[float, Range(0, 1, above=True)]
    total: Annotated[Estimate, Range(0, infinite=True)]
    calibration: Annotated[Estimate, Range(unknown=True, infinite=True)]
    grouping: Annotated[Estimate, Range(unknown=True, infinite=True)]
    irreducible: Annotated[Estimate, Range(0)] | None
    method: str
    share: Amounts
    confidence: Shares
    expected: Annotated[NDArray[np.float64], Range()]
    seen: Annotated[NDArray[np.float64], Range()]

    @property
    def rest(self) -> float:
        """What is left of d_TOT: irreducible, or not shown by these features."""
        known = 0.0 if self.irreducible is None else float(self.irreducible)
        return (
            float(self.total) - float(self.calibration) - float(self.grouping) - known
        )

    @property
    def share_of_gap(self) -> Estimate:
        """The grouping loss as a share of the sharpness gap."""
        gap = float(self.total) - float(self.calibration)
        ends = self.grouping.interval
        scaled = None if ends is None else (ends[0] / gap, ends[1] / gap)
        return Estimate(float(self.grouping) / gap, scaled, self.grouping.method)

    def frame(self, kind: str | None = None) -> Frame:
        """One row per part: its value and interval."""
        rows = [(name, *ends_of(value)) for name, value in self._parts()]
        names, values, low, high = zip(*rows, strict=True)
        columns: dict[str, Any] = {
            "part": names,
            "value": values,
            "low": low,
            "high": high,
        }
        return to_frame({x: np.array(y) for x, y in columns.items()}, kind)

    def _parts(self) -> Iterator[tuple[str, Estimate]]:
        yield "calibration error", self.calibration
        yield "grouping loss", self.grouping
        if self.irreducible is not None:
            yield "irreducible", self.irreducible
        else:
            yield "rest", Estimate(self.rest)
        yield "total", self.total

    def _heading(self) -> str:
        return (
            f"{self.divergence} loss of {self.n:,.10g} examples, {self.method}  "
            f"[{100 * self.level:g}% intervals]"
        )

    def _table(self) -> list[list[str]]:
        rows = [["part", "loss", "share of d_TOT"]]
        for name, value in self._parts():
            share = f"{float(value) / float(self.total):.1%}" if self.total > 0 else "-"
            rows.append([name, with_interval(value), share])
        return rows

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the numbers say, in words that claim no more than they do."""
        return tuple(self._told())

    def _told(self) -> Iterator[str]:
        ends, share = self.grouping.interval, self.share_of_gap
        if self.irreducible is not None:
            yield (
                f"Labels are shares: {number(self.grouping)} of the sharpness gap is lost by "
                f"grouping, {number(self.irreducible)} is chance."
            )
        elif ends is not None and ends[0] > 0:
            low = (share.interval or (0.0, 0.0))[0]
            yield (
                f"At least {low:.1%} of the sharpness gap (most likely {share:.1%}) is not "
                "chance: examples of one confidence differ, these features show how, and a "
                "better model could use it."
            )
        else:
            yield self._nothing_shown
        if self.irreducible is None and ends is not None:
            yield "A lower bound: what other features would show, and chance, is in the rest."

    @property
    def _nothing_shown(self) -> str:
        """Why no grouping loss is claimed: without an interval there are no regions."""
        if self.grouping.interval is None:
            return (
                "No regions were found: too few examples, or these features tell nothing "
                "that the confidence does not."
            )
        return (
            f"No grouping loss was shown on these {self.n:,.10g} examples: what these "
            "features tell beyond the confidence may be nothing, or too little to be seen."
        )


@takes_scores
def grouping_loss(
    y: Any,
    *,
    explain: Any,
    divergence: Any = "brier",
    method: str = "auto",
    regions: int = 8,
    folds: int = 2,
    cluster: Any = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
    **given: Unpack[Scores],
) -> Estimate:
    """Lower bound of the grouping loss: what the model lumps together, as features show.

    Parameters
    ----------
    explain : array_like, frame or mapping of str to array_like
        What may tell rows of one confidence apart: features or embeddings (numbers, or
        names of categories), or regions: one name or whole number per row, taken as they
        are.
    divergence : str or Divergence
        ``"brier"``, ``"log"``, or your own.
    method : {"auto", "tree", "ridge"}
        How regions of features are found: by a small tree, or by a linear score, as suits
        embeddings; by default the tree, up to 30 columns.
    regions : int
        How many to find.
    folds : int
        Regions are learned without the rows they are measured on, in so many parts.
    cluster : array_like, optional
        The cluster of each row, if rows depend on each other.
    level : float
        Coverage of the interval.
    rng : int or Generator
        Of the folds.

    Returns
    -------
    Estimate
        The bound and its interval; 0 without one, if no regions are found. `loss_parts`
        gives it beside the other parts.

    Notes
    -----
    Within bins of confidence a line is fitted to the outcomes, and regions are compared
    with it. What noise adds to the divergence is taken off: for Brier exactly, for others
    to second order. The interval is of what these regions explain; its lower end is a
    lower bound of the grouping loss at that level.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(6000, 2))
    >>> q = 1 / (1 + np.exp(-x.sum(axis=1)))
    >>> y = rng.random(6000) < q
    >>> p = 1 / (1 + np.exp(-0.85 * x[:, 0]))  # a model that does not see the second
    >>> found = cal.grouping_loss(y, probs=p, explain=x)
    >>> found.interval[0] > 0.015
    True
    """
    main, how = _checked(divergence, method, regions, folds, level, rng)
    rows = _Rows.of(y, given, main, cluster, explain)
    return _explained_by(rows, main, explain, how, float(level)).grouping


def _checked(
    divergence: Any, method: str, regions: int, folds: int, level: float, rng: Any
) -> tuple[Divergence, How]:
    check_level(level)
    check_rng(rng)
    check_choice(method, "method", METHODS)
    check_number(regions, "regions", 2, 100, kind="a whole number")
    check_number(folds, "folds", 2, 20, kind="a whole number")
    return find_divergence(divergence), How(method, int(regions), int(folds), rng)


class How(NamedTuple):
    """How regions are found."""

    method: str
    regions: int
    folds: int
    rng: Any


class _Rows(NamedTuple):
    """What was read of the rows."""

    predictions: Predictions
    columns: Columns
    clusters: Index | None

    @classmethod
    def of(
        cls, y: Any, given: Scores, main: Divergence, cluster: Any, explain: Any
    ) -> _Rows:
        own = {} if main.name in BUILT_IN else {main.name: main}
        predictions, columns = read(y, given, own)
        check_rows(y, given, cluster=cluster, explain=explain)
        return cls(predictions, columns, read_clusters(cluster, predictions)[0])


@takes_scores
def loss_parts(
    y: Any,
    *,
    explain: Any = None,
    votes: int | None = None,
    divergence: Any = "brier",
    method: str = "auto",
    regions: int = 8,
    folds: int = 2,
    cluster: Any = None,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
    **given: Unpack[Scores],
) -> LossParts:
    """Split d_TOT into calibration error, grouping loss and what remains.

    Parameters
    ----------
    explain, divergence, method, regions, folds, cluster, level, rng
        As in `grouping_loss`. Without `explain` labels must be soft: shares, such as
        those of several people's votes, in which all that the model lumps together shows.
    votes : int, optional
        How many votes each share is of: noise of so few is taken off (Brier only).

    Returns
    -------
    LossParts
        Print it to read it; ``.plot()`` draws it.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> q = np.repeat([0.2, 0.6], 500)
    >>> parts = cal.loss_parts(q, confidence=np.full(1000, 0.4))
    >>> round(parts.grouping, 3), round(parts.irreducible, 3), round(parts.total, 3)
    (0.04, 0.2, 0.24)
    """
    main, how = _checked(divergence, method, regions, folds, level, rng)
    rows = _Rows.of(y, given, main, cluster, explain)
    said: Any = {"divergence": main, "level": level, "interval": None}
    parts = evaluate(y, **given, cluster=cluster, **said).decomposition
    known = parts.total, parts.calibration
    own: dict[str, Any] = {"total": known[0], "irreducible": None}
    if explain is None:
        own = _of_shares(rows, main, known, votes, float(level))
        bound = Bound(own.pop("grouping"), "labels are shares", *np.empty((4, 0)))
    else:
        if votes is not None:
            raise ValueError(
                "votes applies to soft labels without explain=; leave it out."
            )
        bound = _explained_by(rows, main, explain, how, float(level))
    return LossParts(
        divergence=main.name,
        target=target_of(rows.predictions),
        n=rows.columns.total_weight,
        level=float(level),
        calibration=known[1],
        **own,
        **bound._asdict(),
    )


class Bound(NamedTuple):
    """The grouping loss that regions explain, and the regions themselves."""

    grouping: Estimate
    method: str
    share: Column
    confidence: Column
    expected: Column
    seen: Column


def _explained_by(
    rows: _Rows, divergence: Divergence, explain: Any, how: How, level: float
) -> Bound:
    """What regions explain, given or learned."""
    predictions, columns, clusters = rows
    weight = predictions.weight
    kept: Any = slice(None) if weight is None else weight > 0
    given = _given_regions(explain, kept, len(predictions.scores))
    if given is not None:
        count = int(given.max()) + 1
        bins = _level_sets(rows, divergence, count)
        whole = np.ones(len(columns), bool)
        return _measured(
            rows, divergence, bins, [(whole, given)], level, f"{count} regions as given"
        )
    features = read_features(explain, len(predictions.scores), "explain")
    features = [x._replace(values=x.values[kept]) for x in features]
    method = _method(features, how.method)
    bins = _level_sets(rows, divergence, how.regions * how.folds)
    fold = _folds(len(columns), clusters, how.folds, how.rng)
    parts = []
    for test in (fold == k for k in range(how.folds)):
        about = columns, bins, ~test, how.regions, method
        parts.append((test, learned_regions(features, *about)))
    return _measured(rows, divergence, bins, parts, level, f"regions of a {method}")


def _level_sets(rows: _Rows, divergence: Divergence, cells: int) -> Index:
    """Bins of confidence with enough independent rows for so many cells each.

    Twice as many where the divergence bends sharply, as that of the log loss.
    """
    cells *= 1 if divergence.by_pairs else 2
    columns, clusters = rows.columns, rows.clusters
    units = columns.effective if clusters is None else float(clusters.max() + 1)
    least = max(ROWS_A_CELL * cells, LEAST_UNITS)
    return bins_of_rows(columns, least * columns.effective / units, BINS)


def _method(features: list[Feature], method: str) -> str:
    numbers = all(x.is_number for x in features)
    if method == "ridge" and not numbers:
        raise ValueError("method='ridge' takes numbers; use method='tree' for names.")
    if method != "auto":
        return method
    return "ridge" if len(features) > MANY and numbers else "tree"


def _measured(
    rows: _Rows,
    divergence: Divergence,
    bins: Index,
    parts: list[tuple[Mask, Index]],
    level: float,
    told: str,
) -> Bound:
    """The bound, averaged over parts, each measured on rows its regions did not see."""
    columns, clusters = rows.columns, rows.clusters
    total, cells = np.zeros(3), []
    for test, region in parts:
        some, own = columns.take(test), None
        if clusters is not None:
            own = np.unique(clusters[test], return_inverse=True)[1]
        place = np.unique(bins[test], return_inverse=True)[1]
        seen, cell, residual = cells_of(some, place, region[test], own)
        if not len(seen.share):
            raise ValueError(
                "no region has two rows, or clusters, at one level of confidence; give "
                "more rows or fewer regions."
            )
        part = explained(seen, cell, residual, some, divergence, own)
        share = some.total_weight / columns.total_weight
        total += np.array([share, share**2, share**2]) * part
        cells.append(seen._replace(share=share * seen.share))
    joined = [np.concatenate(x) for x in zip(*cells, strict=True)]
    found = Cells(*joined)
    drawn = found.share, found.confidence, found.expected, found.seen
    if all(region[test].max() == region[test].min() for test, region in parts):
        return Bound(Estimate(0.0), told, *drawn)  # else round-off would decide
    whole = Explained(*total.tolist())
    how = "cross-fitted" if len(parts) > 1 else "normal"
    return Bound(Estimate(whole.value, whole.interval(level), how), told, *drawn)


def _of_shares(
    rows: _Rows,
    divergence: Divergence,
    known: tuple[Estimate, Estimate],
    votes: int | None,
    level: float,
) -> dict[str, Estimate]:
    """Of soft labels: all that is not calibration is grouping, and chance is known."""
    predictions, columns, clusters = rows
    if soft_weight(predictions) == 0:
        raise ValueError(
            "without explain= labels must be soft, shares between 0 and 1; give features, "
            "embeddings or regions as explain=."
        )
    noise, factor = _uncertainty(predictions, columns, divergence), 1.0
    if votes is not None:
        check_number(votes, "votes", 2, kind="a whole number")
        if not divergence.by_pairs:
            raise ValueError(
                "votes is known for divergence='brier' only; leave it out."
            )
        factor = votes / (votes - 1)
    loss = columns.loss(divergence)
    values = {"irreducible": factor * noise, "total": loss + noise}
    values["grouping"] = loss - (factor - 1) * noise
    found = {key: _mean(x, columns, clusters, level) for key, x in values.items()}
    gap, off = found["grouping"], float(known[1])
    low, high = gap.interval or (np.nan, np.nan)
    found["grouping"] = Estimate(float(gap) - off, (low - off, high - off), gap.method)
    return found


def _uncertainty(
    predictions: Predictions, columns: Columns, divergence: Divergence
) -> Column:
    """Mean loss of the best forecast of a single outcome, for each row."""
    labels = predictions.labels
    if labels.ndim == 2 and predictions.target == "top-label":
        q = labels if predictions.weight is None else labels[predictions.weight > 0]
        with np.errstate(all="ignore"):
            corners = divergence.phi(np.eye(q.shape[1]))
            return q @ corners - divergence.phi(np.asarray(q, np.float64))
    a = columns.hit
    ends = divergence.phi_1d(np.array([0.0, 1.0]))
    return (1 - a) * ends[0] + a * ends[1] - divergence.phi_1d(a)


def _mean(
    values: Column, columns: Columns, clusters: Index | None, level: float
) -> Estimate:
    value = columns.mean(values)
    reach = quantile(level) * error_of_mean(
        values, columns.weight, clusters, columns.squared
    )
    return Estimate(value, (value - reach, value + reach), "normal")
