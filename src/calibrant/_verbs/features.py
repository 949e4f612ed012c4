"""Features of rows, and a small tree that splits rows where their residuals differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import RowError, one_line
from calibrant._inputs.arrays import Column, Mask, check_indices, to_numpy

CUTS, MOST_CATEGORIES, MOST_FEATURES = 32, 64, 100_000
"""Thresholds tried for a number, names tried for a category, and columns that are read."""


class Feature(NamedTuple):
    """One column: numbers, or the names of categories."""

    name: str
    values: NDArray[Any]
    is_number: bool


ROWS = ("probs", "logits", "confidence", "sample_weight", "frequency")


def check_rows(y: Any, given: Mapping[str, Any], **beside: Any) -> None:
    """Raise unless what is given beside labels and scores has their index, if any has one.

    Of a mapping each column is looked at.

    Examples
    --------
    >>> import pandas as pd
    >>> y, age = pd.Series([1, 0], [3, 4]), pd.Series([20, 30], [4, 3])
    >>> check_rows(y, {"probs": [0.2, 0.9]}, features={"age": age})
    Traceback (most recent call last):
    ValueError: y and features['age'] have different indices: row 0 is 3 in y and 4 in ...
    """
    rows = {"y": y, **{name: given.get(name) for name in ROWS}}
    for name, x in beside.items():
        several = isinstance(x, Mapping)
        rows |= {f"{name}[{k!r}]": x[k] for k in x} if several else {name: x}
    check_indices(**rows)


def read_features(given: Any, rows: int, what: str) -> list[Feature]:
    """Columns of a frame, a mapping or a matrix, or one column, each with a name."""
    named = hasattr(given, "columns") or isinstance(given, Mapping)
    if named:
        names = list(given) if isinstance(given, Mapping) else list(given.columns)
        columns: dict[str, NDArray[Any]] = {}
        for name in names:
            columns |= _columns(str(name), to_numpy(given[name], what))
    else:
        table = to_numpy(given, what)
        wide = table.ndim > 1 and table.size  # what is no column is refused as one
        table = table.reshape(len(table) if wide else table.size, -1 if wide else 1)
        columns = {f"{what}[{j}]": table[:, j] for j in range(table.shape[1])}
    if not 0 < len(columns) <= MOST_FEATURES:
        raise ValueError(
            f"{what} must have 1 to {MOST_FEATURES:,} columns, got {len(columns)}."
        )
    return [_feature(name, column, rows, what) for name, column in columns.items()]


def _columns(name: str, array: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """One column, or those of a matrix: embeddings are one array in a file."""
    if array.ndim < 2 or not array.size:
        return {name: array}
    table = array.reshape(len(array), -1)
    return {f"{name}[{j}]": table[:, j] for j in range(table.shape[1])}


def _feature(name: str, column: NDArray[Any], rows: int, what: str) -> Feature:
    if column.shape != (rows,):
        raise ValueError(
            f"{what} must have one entry per row: {column.shape} for {rows} rows."
        )
    if column.dtype.kind in "biuf":
        numbers = column.astype(np.float64)
        bad = ~np.isfinite(numbers)
        if bad.any():
            rule = f"{what} must be finite numbers, or names ({one_line(name)});"
            raise RowError.at_first(rule, bad, column, remedy="Fill what is missing.")
        return Feature(name, numbers, is_number=True)
    return Feature(name, column.astype(str), is_number=False)


# -- the tree --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Condition:
    """One step down the tree: a number above a threshold or not, a category or not."""

    place: int
    value: Any
    holds: bool

    def of(self, features: Sequence[Feature]) -> Mask:
        """The rows that it holds for."""
        feature = features[self.place]
        is_so = (
            feature.values > self.value
            if feature.is_number
            else feature.values == self.value
        )
        return is_so if self.holds else ~is_so

    def told(self, features: Sequence[Feature]) -> str:
        """The condition in words."""
        feature = features[self.place]
        if feature.is_number:
            return f"{feature.name} {'>' if self.holds else '<='} {self.value:.6g}"
        return f"{feature.name} {'is' if self.holds else 'is not'} {self.value}"


Leaf = tuple[Condition, ...]


def grow(
    features: Sequence[Feature],
    residual: Column,
    weight: Column,
    *,
    leaves: int,
    least: float,
) -> list[Leaf]:
    """A tree of at most so many leaves of at least this weight.

    The leaf is split next whose split explains most of the residuals.

    Examples
    --------
    >>> x = np.repeat([0.0, 1.0], 50)
    >>> found = grow([Feature("x", x, True)], x - 0.5, np.ones(100), leaves=2, least=10)
    >>> [leaf[0].told([Feature("x", x, True)]) for leaf in found]
    ['x <= 0', 'x > 0']
    """
    rows: dict[Leaf, Mask] = {(): np.ones(len(residual), bool)}
    splits: dict[Leaf, Split | None] = {}
    while len(rows) < leaves:
        for leaf in rows.keys() - splits.keys():
            splits[leaf] = _best_split(features, residual, weight, rows[leaf], least)
        found = {leaf: split for leaf in rows if (split := splits[leaf]) is not None}
        if not found:
            break
        leaf = max(found, key=lambda x: found[x].gain)
        own, split = rows.pop(leaf), found[leaf]
        for holds in (False, True):
            step = Condition(split.place, split.value, holds)
            rows[(*leaf, step)] = own & step.of(features)
    return list(rows)


class Split(NamedTuple):
    """How much of the residuals a condition explains, and which one it is."""

    gain: float
    place: int
    value: Any


def _best_split(
    features: Sequence[Feature],
    residual: Column,
    weight: Column,
    own: Mask,
    least: float,
) -> Split | None:
    w, r = weight[own], residual[own]
    found: list[Split] = []
    for place, feature in enumerate(features):
        values = feature.values[own]
        for value, above in _cuts(feature, values):
            mass, total = float(w[above].sum()), float((w * r)[above].sum())
            rest = float(w.sum()) - mass
            if min(mass, rest) >= least:
                other = float((w * r).sum()) - total
                whole = (total + other) ** 2 / (mass + rest)
                gain = total**2 / mass + other**2 / rest - whole
                found.append(Split(gain, place, value))
    best = max(found, key=lambda x: x.gain, default=None)
    return None if best is None or best.gain <= 0 else best


def _cuts(feature: Feature, values: NDArray[Any]) -> Iterator[tuple[Any, Mask]]:
    """Thresholds between values, or the commonest names, and the rows beyond or within."""
    if feature.is_number:
        known = np.unique(values)
        if len(known) > CUTS + 1:
            known = np.unique(np.quantile(values, np.linspace(0, 1, CUTS + 2)))
        cuts = 0.5 * (known[:-1] + known[1:]) if len(known) <= CUTS + 1 else known[1:-1]
        if len(known) == 2:
            cuts = known[:1]
        for cut in cuts:
            yield float(cut), values > cut
        return
    names, count = np.unique(values, return_counts=True)
    for name in names[np.argsort(-count, kind="stable")][:MOST_CATEGORIES]:
        yield str(name), values == name


def leaf_of(features: Sequence[Feature], leaves: Sequence[Leaf]) -> NDArray[np.intp]:
    """The number of the leaf of each row."""
    place = np.zeros(len(features[0].values), np.intp)
    for number, leaf in enumerate(leaves):
        some = np.ones(len(place), bool)
        for condition in leaf:
            some &= condition.of(features)
        place[some] = number
    return place


def name_leaves(features: Sequence[Feature], leaves: Sequence[Leaf]) -> list[str]:
    """What each leaf is called: its conditions, of one feature and sense the last."""
    names = []
    for leaf in leaves:
        last = {
            (x.place, x.holds, None if features[x.place].is_number else x.value): x
            for x in leaf
        }
        names.append(" and ".join(x.told(features) for x in last.values()) or "all")
    return names
