"""Every metric of an evaluation, from its columns; computed once, named once."""

from __future__ import annotations

import numpy as np

from calibrant._base.records import Bins, Corp, Estimate
from calibrant._inputs.options import Settings
from calibrant._rows.columns import Columns
from calibrant._sketch.cells import Sums
from calibrant._sketch.ordered import Ordered, order
from calibrant._stats import bins as binning
from calibrant._stats import closed_forms, smooth_ece
from calibrant._stats.close_pairs import LEAST_ROWS
from calibrant._stats.decomposition import total_loss
from calibrant._stats.intervals import Sample, share, with_intervals
from calibrant._stats.standard_errors import Index, Rows, clustered_error


def accuracy(columns: Columns, target: str, level: float) -> Estimate:
    """Share of correct predictions; for a positive class, of p >= 1/2 against it."""
    right = columns.hit
    if target == "positive":
        right = np.where(columns.confidence >= 0.5, right, 1 - right)
    return share_of(columns.mean(right), columns.total_weight, level)


def share_of(value: float, n: float, level: float) -> Estimate:
    """A share of n rows with its interval."""
    low, high = closed_forms.wilson(np.array([value]), np.array([n]), level)
    return Estimate(value, (low[0], high[0]), "Wilson")


def corp(sketch: Sums, ordered: Ordered, name: str = "brier") -> Corp:
    """CORP decomposition of the one-dimensional score."""
    totals, n = sketch.totals[name], sketch.weight
    return binning.decompose(ordered, totals.unit_loss / n, name, totals.phi_hit / n)


def debiased_bins(values: Ordered) -> Bins:
    """Equal-mass bins by the cube-root rule, for the debiased L2 error."""
    return binning.mass_bins(values, binning.count_bins("cube-root", values.total))


def sample_of(
    columns: Columns, sketch: Sums, settings: Settings, clusters: Index | None = None
) -> Sample:
    """The rows in order, in bins, and all else that metrics and intervals read."""
    ordered = order(columns)
    values = ordered.without_twins()
    bins = binning.width_bins(ordered, settings.bins, settings.closed)
    return Sample(
        rows=Rows(columns, ordered, clusters),
        values=Rows(columns, values, clusters),
        sketch=sketch,
        width_bins=bins,
        mass_bins=binning.mass_bins(values, settings.bins),
        debiased_bins=debiased_bins(values),
        corp=corp(sketch, ordered),
        groups=bins_within_classes(columns, bins, settings.closed),
        level=settings.level,
        resamples=int(settings.resamples),
        rng=np.random.default_rng(settings.rng),
    )


def all_metrics(
    sample: Sample, settings: Settings, target: str, k: int
) -> dict[str, Estimate]:
    """All metrics by name, with intervals if they are wanted and rows are enough."""
    metrics = _averages(sample, target)
    metrics |= {name: Estimate(x) for name, x in _plain(sample, settings, k).items()}
    if settings.interval is None or sample.sketch.weight < LEAST_ROWS:
        return metrics
    metrics = with_intervals(metrics, sample)
    if settings.preset == "paper":  # relplot's SmoothECE is another number
        metrics["smooth_ece"] = Estimate(metrics["smooth_ece"])
    if sample.rows.clusters is not None:
        metrics |= _clustered_averages(metrics, sample, target)
    return metrics


def _averages(sample: Sample, target: str) -> dict[str, Estimate]:
    """Accuracy and mean losses, which always have an interval."""
    sketch, level = sample.sketch, sample.level
    losses = {"nll": "log", "brier": "brier"}
    return {
        "accuracy": accuracy(sample.rows.columns, target, level),
        **{
            metric: total_loss(sketch, name, level)
            for metric, name in losses.items()
            if name in sketch.divergences
        },
    }


def _plain(sample: Sample, settings: Settings, k: int) -> dict[str, float]:
    """Metrics that are numbers only, in the order of the record."""
    bins, ordered, parts = sample.width_bins, sample.rows.ordered, sample.corp
    columns = sample.rows.columns
    found = {
        "ece": binning.binned_error(bins),
        "ace": binning.average_error(bins),
        "smooth_ece": smooth_error(columns, sample.sketch, settings),
        "mce": binning.binned_error(bins, "max"),
        "ece_mass": binning.binned_error(sample.mass_bins),
        "ece_debiased": binning.binned_error(sample.debiased_bins, 2, debias=True),
        "ks_error": binning.ks_error(ordered),
        "confidence_gap": binning.mean_gap(bins),
        "auroc": binning.auroc(ordered),
        "mcb": parts.miscalibration,
        "dsc": parts.discrimination,
        "unc": parts.uncertainty,
    }
    if columns.predicted is not None:
        within = columns, columns.predicted, k, settings.bins, 1, settings.closed
        errors, weight = binning.errors_within(*within)
        found["top_label_ece"] = float((errors * weight).sum() / weight.sum())
    return found


def bins_within_classes(columns: Columns, bins: Bins, closed: str) -> Index | None:
    """Number of each row's predicted class and equal-width bin; None without classes."""
    if columns.predicted is None:
        return None
    side = "left" if closed == "right" else "right"
    place = np.searchsorted(bins.upper[:-1], columns.confidence, side=side)  # type: ignore[call-overload]
    return columns.predicted.astype(np.intp) * len(bins.upper) + place


def _clustered_averages(
    metrics: dict[str, Estimate], sample: Sample, target: str
) -> dict[str, Estimate]:
    """Accuracy and mean losses, whose intervals otherwise take rows as independent."""
    rows, level = sample.rows, sample.level
    h = rows.ordered.confidence
    right_if_hit = h >= 0.5 if target == "positive" else np.ones(len(h), bool)
    ends = share(rows, metrics["accuracy"], right_if_hit, level)
    found = {"accuracy": Estimate(metrics["accuracy"], ends, "Wilson, clusters")}
    for name, loss in (("nll", "log"), ("brier", "brier")):
        found[name] = clustered_loss(metrics[name], rows, sample.sketch, loss, level)
    return found


def clustered_loss(
    value: Estimate, rows: Rows, sketch: Sums, name: str, level: float
) -> Estimate:
    """A mean loss with the interval that clusters of rows leave it."""
    assert rows.clusters is not None
    if not np.isfinite(value):
        return value
    losses = rows.columns.loss(sketch.divergences[name])
    se = clustered_error(losses, rows.columns.weight, rows.clusters)
    low, high = closed_forms.normal(value, se, level)
    return Estimate(value, (max(low, 0.0), high), "normal, clusters")


def smooth_error(columns: Columns, sketch: Sums, settings: Settings) -> float:
    """SmoothECE, or relplot's under the paper's preset."""
    if settings.preset == "paper":
        return smooth_ece.relplot_error(columns)[0]
    return smooth_ece.smooth_error_of_sketch(sketch)
