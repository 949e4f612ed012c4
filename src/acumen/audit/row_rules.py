"""Rules for the rows of one model: how many, where, and what their labels are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import sqrt

import numpy as np

from acumen.arrays import Column
from acumen.findings import Finding
from acumen.measures import MEASURES
from acumen.results import Evaluation

Rule = Callable[[Evaluation], Iterator[Finding]]

THIN_BIN, THIN_SHARE = 20, 0.5
"""A bin of fewer rows is thin; thin bins carry an error if half of it is theirs."""

FEW_ROWS, TOO_FEW_ROWS = 1000, 50
HALF = 0.5


def thin_support(ev: Evaluation) -> Iterator[Finding]:
    """Bins of few rows carry the calibration error.

    It does not matter how calibrated a model is where it rarely predicts, and it cannot
    be measured there. If most of ECE comes from bins of fewer than 20 rows, it is mostly
    noise; that is why a density belongs to every calibration curve.
    """
    bins = ev.bins
    filled = bins.count > 0
    count = bins.count[filled]
    size = count * np.abs(bins.accuracy - bins.confidence)[filled]
    share = float(size[count < THIN_BIN].sum() / size.sum()) if size.sum() > 0 else 0.0
    if ev.rows > 1 and share >= THIN_SHARE:
        yield Finding(
            "thin-support",
            "warning",
            (ev.name,),
            f"{100 * share:.0f} % of the ECE of {ev.name} comes from bins of fewer than "
            f"{THIN_BIN} rows.",
            {"share": share, "rows": float(ev.rows)},
            "Use fewer bins or more rows, and show the density beside the curve.",
        )


def too_few_rows(ev: Evaluation) -> Iterator[Finding]:
    """There are few rows for a statement about calibration.

    With fewer than 1,000 rows the intervals of calibration errors are about as wide as
    the errors of common models; below 50 none is given.
    """
    if ev.rows < FEW_ROWS:
        low = ev.rows < TOO_FEW_ROWS
        count = "is 1 row" if ev.rows == 1 else f"are {ev.rows:,} rows"
        yield Finding(
            "too-few-rows",
            "warning" if low else "note",
            (ev.name,),
            f"There {count}: small errors and differences may be chance.",
            {"rows": float(ev.rows)},
            "Quote intervals, or collect more rows.",
        )


def below_chance(ev: Evaluation) -> Iterator[Finding]:
    """Predictions do worse than chance.

    A model that learned anything beats chance. Far below it, labels and columns are
    mostly in different orders, the positive class is the other one, or confidence
    measures doubt. No calibration error makes sense before that is settled.
    """
    key, chance = "accuracy", 1 / ev.k
    if ev.target in ("positive", "pairs"):
        key, chance = "auroc", HALF
    value = ev.metrics.get(key)
    if value is None or not value < chance:
        return
    if key == "auroc":
        high = value + 2 * _auroc_error(ev)
    else:
        high = value.interval[1] if value.interval else float(value)
    if high < chance:
        yield Finding(
            "below-chance",
            "serious",
            (ev.name,),
            f"{ev.name} does worse than chance: {MEASURES[key].label} {value:.3f} where "
            f"guessing gives {chance:.3f}.",
            {key: float(value), "chance": chance},
            "Check the order of the classes (classes=), which class is positive, and "
            "that labels belong to these rows.",
        )


def _auroc_error(ev: Evaluation) -> float:
    """Largest standard error an AUROC near one half can have."""
    hits = float(np.nansum(ev.bins.count * ev.bins.accuracy))
    return sqrt((ev.n + 1) / (12 * max(hits * (ev.n - hits), 1e-300)))


def soft_labels(ev: Evaluation) -> Iterator[Finding]:
    """Labels are distributions, not classes.

    Accuracy is then the mean probability of the predicted class under the labels, and
    the Brier score and log divergence measure the distance to the label distribution:
    they are not comparable with those of hard labels.
    """
    columns = getattr(ev, "columns", None)
    count = getattr(ev, "soft_rows", None)
    if count is None:
        count = 0 if columns is None or columns.hard else _soft(columns.hit)
    if count:
        yield Finding(
            "soft-labels",
            "note",
            (ev.name,),
            f"{ev.name} was evaluated against soft labels ({count:,.10g} rows).",
            {"rows": float(count)},
            "Do not compare its scores with those of hard labels.",
        )


def _soft(hit: Column) -> int:
    return int(((hit > 0) & (hit < 1)).sum())


def renormalised_rows(ev: Evaluation) -> Iterator[Finding]:
    """Rows had to be renormalised to sum to 1.

    Probabilities that do not sum to 1 are rounded, clipped, or not probabilities.
    Renormalising changes confidences, and with them calibration.
    """
    count = getattr(ev, "renormalised_rows", 0)
    if count:
        yield Finding(
            "renormalised-rows",
            "warning" if count > 0.01 * ev.n else "note",
            (ev.name,),
            f"{count:,.10g} of {ev.n:,.10g} rows of {ev.name} did not sum to 1 and were "
            "renormalised.",
            {"rows": float(count), "share": count / ev.n},
            "Save probabilities in double precision, or logits.",
        )


RULES: tuple[Rule, ...] = (
    thin_support,
    too_few_rows,
    below_chance,
    soft_labels,
    renormalised_rows,
)
