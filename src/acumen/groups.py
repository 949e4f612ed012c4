"""Rows that an evaluation keeps, and the same evaluation for each group of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import to_numpy
from acumen.assembly import evaluate_columns
from acumen.clusters import LEAST_CLUSTERS
from acumen.columns import Columns
from acumen.fingerprints import fingerprint
from acumen.predictions import Predictions
from acumen.results import Evaluation
from acumen.settings import Settings
from acumen.uncertainty.standard_errors import Index

MOST_GROUPS = 200


def keep_rows(
    ev: Evaluation,
    columns: Columns,
    clusters: Index | None,
    predictions: Predictions,
    group: Any,
    settings: Settings,
) -> Evaluation:
    """The same evaluation with its rows, their fingerprint, and one for each group."""
    soft = soft_weight(predictions)
    per_group: dict[str, Evaluation] = {}
    if group is not None:
        names = group_names(group, predictions)
        for name in np.unique(names).tolist():
            own = names == name
            about = settings, ev.name, ev.target, ev.k
            together = None if clusters is None else renumbered(clusters[own], name)
            per_group[name] = evaluate_columns(
                columns.take(own), *about, clusters=together
            )
    return replace(
        ev,
        columns=columns,
        clusters=clusters,
        fingerprint=fingerprint(predictions.labels, predictions.weight),
        soft_rows=soft,
        per_group=per_group,
    )


def renumbered(clusters: Index, group: str) -> Index:
    """The clusters of one group, numbered from 0 on."""
    found, number = np.unique(clusters, return_inverse=True)
    if len(found) < LEAST_CLUSTERS:
        raise ValueError(
            f"group {group!r} has {len(found)} clusters; fewer than {LEAST_CLUSTERS} say "
            "nothing of how clusters differ. Put groups together, or leave group= or "
            "cluster= out."
        )
    return number


def group_names(group: Any, predictions: Predictions) -> NDArray[np.str_]:
    """Names of the groups of the rows that count, as text."""
    names, n = to_numpy(group, "group"), len(predictions.scores)
    if names.shape != (n,):
        raise ValueError(
            f"group must have one entry per row: {names.shape} for {n} rows."
        )
    if predictions.weight is not None:
        names = names[predictions.weight > 0]
    text = names.astype(str)
    if (count := len(np.unique(text))) > MOST_GROUPS:
        raise ValueError(
            f"group has {count} distinct values, more than {MOST_GROUPS}; is it a number "
            "of the row? Put similar ones together."
        )
    return text


def soft_weight(predictions: Predictions) -> float:
    """Weight of rows whose label is a share, not a class."""
    labels = predictions.labels
    if labels.dtype.kind != "f":
        return 0.0
    between = (labels > 0) & (labels < 1)
    soft = between.any(axis=1) if labels.ndim == 2 else between
    weight = predictions.weight
    return float(soft.sum() if weight is None else weight @ soft)
