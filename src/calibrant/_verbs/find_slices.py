"""`find_slices`: where a model is off, found on some rows and measured on others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from calibrant._base.checks import check_number
from calibrant._inputs.arrays import Mask, to_numpy
from calibrant._inputs.options import Options, Settings, check_rng, takes_options
from calibrant._inputs.predictions import Predictions, read_predictions
from calibrant._rows.reduce import reduce_to_columns
from calibrant._verbs.compare_groups import Groups, compare_groups
from calibrant._verbs.features import (
    Feature,
    check_rows,
    grow,
    leaf_of,
    name_leaves,
    read_features,
)

LEAST_ROWS = 50
"""Rows of a slice at least, on either side."""


@takes_options
def find_slices(
    y: Any,
    *,
    features: Any,
    probs: Any = None,
    logits: Any = None,
    confidence: Any = None,
    slices: int = 4,
    least: float = 0.05,
    split: float = 0.5,
    classes: Any = None,
    target: str | None = None,
    sample_weight: Any = None,
    frequency: Any = None,
    cluster: Any = None,
    name: str = "model",
    **options: Unpack[Options],
) -> Groups:
    """Find slices of the features in which a model is off, and measure them on other rows.

    Parameters
    ----------
    y, probs, logits, confidence, classes, target, sample_weight, frequency, cluster, name
        As in `evaluate`.
    features : array_like, frame or mapping of str to array_like
        What may tell rows apart: numbers or names of categories.
    slices : int
        How many to look for at most.
    least : float
        Share of the rows that each must have.
    split : float
        Share of the rows, or clusters, to look for slices in; the others measure them.
    **options : Options

    Returns
    -------
    Groups
        The slices as groups, evaluated on rows that had no part in finding them.

    Notes
    -----
    A small tree splits the rows where accuracy less confidence differs most. What was
    found by searching looks worse than it is on the rows that were searched, so nothing is
    said of those. Slices that hold on the other rows do hold.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, age = rng.random(6000), rng.integers(20, 90, 6000)
    >>> y = rng.random(6000) < np.where(age > 70, p**2, p)
    >>> found = cal.find_slices(y, probs=p, features={"age": age}, slices=2)
    >>> [name.split()[:2] for name in found.names]
    [['age', '<='], ['age', '>']]
    >>> found.equality.p_value < 0.001
    True
    """
    settings = Settings.of(options, find_slices)
    check_number(slices, "slices", 2, 50, kind="a whole number")
    check_number(least, "least", 0, 0.5)
    check_number(split, "split", 0.05, 0.95)
    beside = {
        "sample_weight": sample_weight,
        "frequency": frequency,
        "cluster": cluster,
    }
    scores = {"probs": probs, "logits": logits, "confidence": confidence}
    given = {"y": y, **scores, "classes": classes, "target": target, **beside}
    rows = read_predictions(**given)
    if rows.target == "class-wise":
        raise ValueError(
            "find_slices looks at one probability per row, not class-wise."
        )
    check_rows(y, given, features=features)
    columns = read_features(features, len(rows.scores), "features")
    known = _drawn(rows, float(split), settings.rng)
    leaves = _leaves(rows, columns, known, settings, int(slices), float(least))
    if len(leaves) < 2:
        enough = f"{LEAST_ROWS} rows, or {100 * least:g} % of them if that is more,"
        way_out = "pass other features="
        if least * known.sum() > LEAST_ROWS:  # else less of them is no help
            way_out = f"lower least=, or {way_out}"
        raise ValueError(f"no split leaves {enough} on both sides; {way_out}.")
    names = np.array(name_leaves(columns, leaves))[leaf_of(columns, leaves)]
    named = None if rows.kind == "confidence" else rows.classes  # a frame may name them
    part = {"y": y, **scores, **beside, "group": names}
    kept = {key: _some(x, key, ~known) for key, x in part.items()}
    kept |= {"classes": named, "target": target}
    found = compare_groups(**kept, name=name, **options)
    told = f"Slices were found on {int(known.sum()):,} other examples."
    return replace(found, origin=told)


def _some(given: Any, name: str, rows: Mask) -> Any:
    return None if given is None else to_numpy(given, name)[rows]


def _drawn(rows: Predictions, split: float, rng: Any) -> Mask:
    """Rows to look for slices in, whole clusters at a time."""
    check_rng(rng)
    draw = np.random.default_rng(rng)
    n = len(rows.scores)
    counted = np.ones(n, bool) if rows.weight is None else rows.weight > 0
    unit = np.arange(n)
    if rows.clusters is not None:
        unit = np.zeros(n, np.intp)
        unit[counted] = rows.clusters
    chosen = draw.permutation(int(unit.max()) + 1) < split * (int(unit.max()) + 1)
    return chosen[unit]


def _leaves(
    rows: Predictions,
    features: list[Feature],
    known: Mask,
    settings: Settings,
    slices: int,
    least: float,
) -> list[Any]:
    columns = reduce_to_columns(rows, settings.extra, settings.engine)
    counted = slice(None) if rows.weight is None else rows.weight > 0
    some = known[counted]
    seen = [x._replace(values=x.values[counted][some]) for x in features]
    w, r = columns.weights[some], (columns.hit - columns.confidence)[some]
    fewest = max(least * w.sum(), LEAST_ROWS * w.mean())
    return grow(seen, r, w, leaves=slices, least=fewest)
