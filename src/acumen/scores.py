"""Every metric of an evaluation, from its columns; computed once, named once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from acumen import bins as binning
from acumen import cumulative, intervals, isotonic, smoothing
from acumen.analysis import total_loss
from acumen.columns import Columns
from acumen.ordered import Ordered
from acumen.results import Bins, Corp, Estimate
from acumen.settings import Settings
from acumen.sketch import Sketch


def accuracy(columns: Columns, target: str, level: float) -> Estimate:
    """Share of correct predictions; for a positive class, of p >= 1/2 against it."""
    right = columns.hit
    if target == "positive":
        right = np.where(columns.confidence >= 0.5, right, 1 - right)
    value, n = columns.mean(right), columns.total_weight
    low, high = intervals.wilson(np.array([value]), np.array([n]), level)
    return Estimate(value, (low[0], high[0]), "Wilson")


def corp(sketch: Sketch, ordered: Ordered, name: str = "brier") -> Corp:
    """CORP decomposition of the one-dimensional score."""
    totals, n = sketch.totals[name], sketch.weight
    return isotonic.decompose(ordered, totals.unit_loss / n, name, totals.phi_hit / n)


def debiased_binned(values: Ordered) -> float:
    """Debiased L2 error over equal-mass bins by the cube-root rule."""
    count = binning.count_bins("cube-root", values.total)
    return binning.binned_error(binning.mass_bins(values, count), 2, debias=True)


def top_label_error(columns: Columns, k: int, bins: int, closed: str) -> float:
    """ECE within each predicted class, weighted by the class's share of rows."""
    assert columns.predicted is not None
    errors, weight = binning.errors_within(
        columns, columns.predicted, k, bins, 1, closed
    )
    return float((errors * weight).sum() / weight.sum())


def all_metrics(
    columns: Columns,
    sketch: Sketch,
    ordered: Ordered,
    bins: Bins,
    settings: Settings,
    target: str,
    k: int,
) -> dict[str, Estimate]:
    """All metrics by name."""
    parts = corp(sketch, ordered)
    values = ordered.without_twins()
    relplot = settings.preset == "paper"
    plain: dict[str, Callable[[], float]] = {
        "ece": lambda: binning.binned_error(bins),
        "ace": lambda: binning.average_error(bins),
        "smooth_ece": lambda: (
            smoothing.relplot_error(columns)[0]
            if relplot
            else smoothing.smooth_error_of_sketch(sketch)
        ),
        "mce": lambda: binning.binned_error(bins, "max"),
        "ece_mass": lambda: binning.binned_error(
            binning.mass_bins(values, settings.bins)
        ),
        "ece_debiased": lambda: debiased_binned(values),
        "ks_error": lambda: cumulative.ks_error(ordered),
        "confidence_gap": lambda: binning.mean_gap(bins),
        "auroc": lambda: cumulative.auroc(ordered),
        "mcb": lambda: parts.miscalibration,
        "dsc": lambda: parts.discrimination,
        "unc": lambda: parts.uncertainty,
    }
    if columns.predicted is not None:
        plain["top_label_ece"] = lambda: top_label_error(
            columns, k, settings.bins, settings.closed
        )
    return {
        "accuracy": accuracy(columns, target, settings.level),
        "nll": total_loss(sketch, "log", settings.level),
        "brier": total_loss(sketch, "brier", settings.level),
        **{name: Estimate(compute()) for name, compute in plain.items()},
    }
