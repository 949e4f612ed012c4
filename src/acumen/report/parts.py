"""Views of parts: classes one against the rest, or groups of rows the caller names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen.comparison import Comparison, as_comparison
from acumen.encoding import plain
from acumen.plot.reading import view
from acumen.plot.support import doubtful, trusted
from acumen.report.binary import base64_of
from acumen.results import Estimate, Evaluation

MOST_PARTS = 24
"""More classes than these are not shown one by one, but the worst of them are."""

NOTHING = 65535
"""Stands for NaN among whole numbers that stand for shares of 65534."""


def class_view(comparison: Comparison) -> dict[str, Any] | None:
    """Each class against the rest, for models evaluated class by class."""
    first = comparison[0].per_class
    labels = [part.name for part in first]
    if not labels or any([p.name for p in ev.per_class] != labels for ev in comparison):
        return None
    by_class = [[ev.per_class[i] for ev in comparison] for i in range(len(labels))]
    chosen = sorted(range(len(labels)), key=lambda i: _error(by_class[i]))[:MOST_PARTS]
    if len(labels) <= MOST_PARTS:
        chosen = list(range(len(labels)))
        note = ""
    else:
        note = (
            f"{MOST_PARTS} of {len(labels):,} classes: those of the largest "
            "calibration error."
        )
    return {
        "kind": "class",
        "heading": "Each class against the rest",
        "note": note,
        "names": [labels[i] for i in chosen],
        "models": [
            [_part(by_class[i][m]) for i in chosen] for m in range(len(comparison))
        ],
    }


def _error(evs: Sequence[Evaluation]) -> float:
    """Sorts by the largest calibration error of any model, worst first."""
    errors = [float(ev.decomposition.calibration) for ev in evs]
    return -max((x for x in errors if isfinite(x)), default=float("-inf"))


def group_view(
    comparison: Comparison, groups: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """The same models on some of the rows, by name of the group."""
    if not groups:
        return None
    read = {str(name): as_comparison(models) for name, models in groups.items()}
    for name, models in read.items():
        if models.names != comparison.names:
            raise ValueError(
                f"groups must hold the models {', '.join(comparison.names)}; the group "
                f"{name!r} holds {', '.join(models.names)}."
            )
    return {
        "kind": "group",
        "heading": "Groups of rows",
        "note": "",
        "names": list(read),
        "models": [
            [_part(group[m]) for group in read.values()] for m in range(len(comparison))
        ],
    }


def _part(ev: Evaluation) -> dict[str, Any]:
    parts = ev.decomposition
    numbers = {
        "rows": ev.n,
        "accuracy": float(ev.metrics.get("accuracy", nan)),
        "ece": float(ev.metrics.get("ece", nan)),
        "calibration": interval_of(parts.calibration),
        "sharpness_gap": float(parts.sharpness_gap),
        "total": float(parts.total),
    }
    seen = view(ev)
    curve = seen.curve
    columns = (curve.confidence, curve.accuracy, curve.low, curve.high)
    return plain(
        {
            **numbers,
            "curve": base64_of(np.concatenate(list(map(shares, columns))), "<u2"),
            "state": state_of(trusted(seen), doubtful(seen)),
        }
    )


def interval_of(value: Estimate) -> list[float]:
    """A number and the ends of its interval, which are NaN if it has none."""
    low, high = value.interval or (nan, nan)
    return [float(value), low, high]


def state_of(sure: NDArray[np.bool_], faint: NDArray[np.bool_]) -> str:
    """One digit per place: 2 where a line is drawn, 1 where it is dotted, else 0.

    Examples
    --------
    >>> state_of(np.array([True, False, False]), np.array([False, True, False]))
    '210'
    """
    return "".join(map(str, np.where(sure, 2, np.where(faint, 1, 0))))


def shares(values: NDArray[np.float64]) -> NDArray[np.uint16]:
    """Numbers of [0, 1] in 16 bits: fine enough to draw, too coarse to quote.

    Examples
    --------
    >>> shares(np.array([0.0, 0.5, 1.0, np.nan])).tolist()
    [0, 32767, 65534, 65535]
    """
    scaled = np.clip(values, 0, 1) * (NOTHING - 1)
    return np.where(np.isnan(scaled), NOTHING, scaled.round()).astype(np.uint16)
