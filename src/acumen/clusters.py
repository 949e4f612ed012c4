"""Clusters: which rows belong together, such as those of one patient or one game."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import to_numpy
from acumen.predictions import Predictions

LEAST_CLUSTERS = 10


def read_clusters(cluster: Any, predictions: Predictions) -> NDArray[np.intp] | None:
    """Number the clusters of the rows that count, from 0 on; None if none are given."""
    if cluster is None:
        return None
    names, n = to_numpy(cluster, "cluster"), len(predictions.scores)
    if names.shape != (n,):
        raise ValueError(
            f"cluster must have one entry per row: {names.shape} for {n} rows."
        )
    missing = _missing(names)
    if missing.any():
        raise ValueError(
            f"cluster must name a cluster for each row; row {int(missing.argmax())} "
            "has none. Give rows that belong to no other a cluster of their own."
        )
    if predictions.weight is not None:
        names = names[predictions.weight > 0]
    if names.dtype == object:
        names = names.astype(str)
    found, number = np.unique(names, return_inverse=True)
    if len(found) < LEAST_CLUSTERS:
        raise ValueError(
            f"cluster has {len(found)} distinct values; fewer than {LEAST_CLUSTERS} say "
            "nothing of how clusters differ. Leave cluster out, or use smaller ones."
        )
    return number


def _missing(names: NDArray[Any]) -> NDArray[np.bool_]:
    if names.dtype.kind == "f":
        return np.isnan(names)
    absent = names.dtype == object
    return np.array(
        [absent and str(x) in ("None", "nan", "NaT", "<NA>") for x in names]
    )
