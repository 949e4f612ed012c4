"""Every metric of an evaluation, from its columns; computed once, named once."""

from __future__ import annotations

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
    equal_mass = binning.mass_bins(values, settings.bins)
    plain = {
        "ece": binning.binned_error(bins),
        "ace": binning.average_error(bins),
        "smooth_ece": smooth_error(columns, sketch, settings),
        "mce": binning.binned_error(bins, "max"),
        "ece_mass": binning.binned_error(equal_mass),
        "ece_debiased": debiased_binned(values),
        "ks_error": cumulative.ks_error(ordered),
        "confidence_gap": binning.mean_gap(bins),
        "auroc": cumulative.auroc(ordered),
        "mcb": parts.miscalibration,
        "dsc": parts.discrimination,
        "unc": parts.uncertainty,
    }
    if columns.predicted is not None:
        within = columns, columns.predicted, k, settings.bins, 1, settings.closed
        errors, weight = binning.errors_within(*within)
        plain["top_label_ece"] = float((errors * weight).sum() / weight.sum())
    return {
        "accuracy": accuracy(columns, target, settings.level),
        "nll": total_loss(sketch, "log", settings.level),
        "brier": total_loss(sketch, "brier", settings.level),
        **{name: Estimate(value) for name, value in plain.items()},
    }


def smooth_error(columns: Columns, sketch: Sketch, settings: Settings) -> float:
    """SmoothECE, or relplot's under the paper's preset."""
    if settings.preset == "paper":
        return smoothing.relplot_error(columns)[0]
    return smoothing.smooth_error_of_sketch(sketch)
