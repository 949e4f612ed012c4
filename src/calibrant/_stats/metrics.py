"""METRICS: one record for every number of an evaluation.

A metric is added by one record: its value, its interval, its influence, and what becomes
of it over classes. What it is called is in its `Measure`; every view reads that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt

import numpy as np

from calibrant._base.measures import MEASURES, Measure
from calibrant._base.records import FORECASTS, Estimate
from calibrant._inputs.arrays import Column
from calibrant._stats import bins as binning
from calibrant._stats import (
    closed_forms,
    influence,
    intervals,
    risk_coverage,
    smooth_ece,
)
from calibrant._stats.close_pairs import LEAST_ROWS
from calibrant._stats.decomposition import total_loss
from calibrant._stats.intervals import INVERSION, Found
from calibrant._stats.sample import Sample

OVER_CLASSES: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda values: sum(values) / len(values),
    "max": max,
}
"""What becomes of a number over classes; ``"model"`` says the same of the model."""


@dataclass(frozen=True, slots=True)
class Metric:
    """How one number is computed from a sample.

    Attributes
    ----------
    measure : Measure
        What it is called, and which end of it is good.
    value : callable
        From a sample to the number; an `Estimate` if it comes with its interval.
    interval : callable, optional
        From a sample and the number to an interval and the name of its method, or None.
    influence : callable, optional
        From a sample to one number per row, of which the metric is the mean, exactly or to
        first order; None where it has none. Differences of models rest on it.
    per_class : {"mean", "max", "model", ""}
        What becomes of it when every class is evaluated against the rest: the mean or the
        largest over classes, a number of the model itself, or nothing.
    applies : callable
        Whether a sample has such a number.
    """

    measure: Measure
    value: Callable[[Sample], float]
    interval: Callable[[Sample, float], Found | None] | None = None
    influence: Callable[[Sample], Column | None] | None = None
    per_class: str = ""
    applies: Callable[[Sample], bool] = lambda sample: True

    def estimate(self, sample: Sample) -> Estimate:
        """The number, with its interval if one is wanted and rows are enough."""
        value = self.value(sample)
        if isinstance(value, Estimate):
            return value
        wanted = sample.settings.interval is not None
        if not wanted or self.interval is None or sample.cells.effective < LEAST_ROWS:
            return Estimate(value)
        found = self.interval(sample, value)
        if found is None:
            return Estimate(value)
        suffix = "" if sample.clusters is None else ", clusters"
        return Estimate(value, found[0], found[1] + suffix)

    def over_classes(self, values: Sequence[float]) -> float:
        """The number of all classes, of those where it is defined."""
        defined = [value for value in values if not isnan(value)]
        return OVER_CLASSES[self.per_class](defined) if defined else nan


def estimates(sample: Sample, known: Mapping[str, Metric]) -> dict[str, Estimate]:
    """Every one of these metrics that applies, by name."""
    return {
        key: metric.estimate(sample)
        for key, metric in known.items()
        if metric.applies(sample)
    }


def add_metric(metric: Metric) -> None:
    """Add a metric to all that is computed, printed, tabulated, compared and gated."""
    METRICS[metric.measure.key] = metric
    MEASURES[metric.measure.key] = metric.measure


# -- averages ----------------------------------------------------------------------


def accuracy(sample: Sample) -> Estimate:
    """Share of correct predictions, with its Wilson interval."""
    value, level = sample.columns.mean(sample.correct()), sample.settings.level
    if sample.clusters is None:
        return share_of(value, sample.columns.effective, level)
    h = sample.rows.ordered.confidence
    right_if_hit = h > 0.5 if sample.target in FORECASTS else np.ones(len(h), bool)
    ends = intervals.share(sample.rows, value, right_if_hit, level)
    return Estimate(value, ends, "Wilson, clusters")


def share_of(value: float, n: float, level: float) -> Estimate:
    """A share of n rows with its interval."""
    ends = closed_forms.of_share(value, n, level)
    plain = ends == closed_forms.wilson_of(value, n, level)
    return Estimate(value, ends, "Wilson" if plain else "modified Wilson")


def mean_loss(sample: Sample, name: str) -> Estimate:
    """Mean full loss under a divergence, with the interval of a mean."""
    if sample.clusters is None:
        return sample.shared.totals[name]
    return total_loss(sample.cells, name, sample.settings.level, sample.rows)


# -- errors ------------------------------------------------------------------------


def _smooth_ece(sample: Sample) -> float:
    if sample.settings.preset == "paper":  # relplot's is another number
        return smooth_ece.relplot_error(sample.columns)[0]
    return sample.smooth_error


def _top_label_ece(sample: Sample) -> float:
    """The error within bins of each predicted class, as the weighted mean over classes."""
    if sample.within_error is not None:
        return sample.within_error
    columns, settings = sample.columns, sample.settings
    assert columns.predicted is not None
    assert sample.k is not None
    within = columns, columns.predicted, sample.k, settings.bins, 1, settings.closed
    errors, weight = binning.errors_within(*within)
    return float((errors * weight).sum() / weight.sum())


def _has_classes(sample: Sample) -> bool:
    return sample.columns.predicted is not None or sample.within_error is not None


def _norm(key: str, method: str = INVERSION) -> Callable[[Sample, float], Found]:
    """The interval of a norm of the residual."""

    def interval(sample: Sample, value: float) -> Found:
        ends = sample.norm_intervals[key]
        return ends, closed_forms.named(method, ends)

    return interval


def _smooth_interval(sample: Sample, value: float) -> Found | None:
    if sample.settings.preset == "paper":
        return None
    return _norm("smooth_ece")(sample, value)


def _top_label_interval(sample: Sample, value: float) -> Found | None:
    if sample.within_error is not None:  # it needs every row
        return None
    ends = sample.grouped_interval
    return ends, closed_forms.named(INVERSION, ends)


def _squared(sample: Sample, value: float) -> Found:
    ends = intervals.between(*sample.squared_errors)
    return ends, closed_forms.named(intervals.SCORE, ends)


def _root(sample: Sample, value: float) -> Found:
    (low, high), method = _squared(sample, value)
    return (sqrt(low), sqrt(high)), method


def _discrimination(sample: Sample, value: float) -> Found:
    parts, level = sample.corp, sample.settings.level
    terms = sample.squared_errors[1], parts.score, parts.uncertainty
    found = intervals.discrimination(
        sample.values, *terms, level, sketched=sample.sketched
    )
    return found, "normal"


def _score(key: str, name: str) -> Metric:
    """The mean loss under a divergence, which is a number of the model."""
    return Metric(
        MEASURES[key],
        lambda sample: mean_loss(sample, name),
        influence=lambda sample: influence.loss(sample, name),
        per_class="model",
        applies=lambda sample: name in sample.cells.divergences,
    )


def _risk_area(key: str) -> Metric:
    """An area under the risk by coverage, which is a number of the model."""
    return Metric(
        MEASURES[key],
        lambda sample: sample.steps.value(key),
        lambda sample, value: risk_coverage.interval(
            sample.predictions, sample.steps, value, key, sample.settings.level
        ),
        lambda sample: influence.risk_area(sample, key),
        per_class="model",
    )


METRICS = {
    metric.measure.key: metric
    for metric in (
        Metric(MEASURES["accuracy"], accuracy, None, Sample.correct, "model"),
        _score("nll", "log"),
        _score("brier", "brier"),
        Metric(
            MEASURES["ece"],
            lambda sample: binning.binned_error(sample.width_bins),
            _norm("ece"),
            influence.ece,
            "mean",
        ),
        Metric(
            MEASURES["ace"],
            lambda sample: binning.average_error(sample.width_bins),
            _norm("ace"),
            influence.ace,
            "mean",
        ),
        Metric(
            MEASURES["smooth_ece"],
            _smooth_ece,
            _smooth_interval,
            influence.smooth_ece,
            "mean",
        ),
        Metric(  # the largest bin jumps from row to row: no first order follows it
            MEASURES["mce"],
            lambda sample: binning.binned_error(sample.width_bins, "max"),
            _norm("mce", intervals.BAND),
            None,
            "max",
        ),
        Metric(
            MEASURES["ece_mass"],
            lambda sample: binning.binned_error(sample.mass_bins),
            _norm("ece_mass"),
            influence.ece_mass,
            "mean",
        ),
        Metric(
            MEASURES["ece_debiased"],
            lambda sample: binning.debiased_error(
                sample.debiased_bins, sample.values.ordered
            ),
            _root,
            influence.ece_debiased,
        ),
        Metric(
            MEASURES["ks_error"],
            lambda sample: binning.ks_error(sample.rows.ordered),
            _norm("ks_error", intervals.BAND),
            influence.ks_error,
            "mean",
        ),
        Metric(
            MEASURES["confidence_gap"],
            lambda sample: binning.mean_gap(sample.width_bins),
            lambda sample, value: intervals.of_gap(
                sample.rows, value, sample.settings.level
            ),
            lambda sample: -sample.residual,
        ),
        Metric(
            MEASURES["auroc"],
            lambda sample: sample.auroc,
            lambda sample, value: intervals.of_auroc(
                sample.rows, value, sample.settings.level
            ),
            influence.auroc,
            "mean",
        ),
        Metric(
            MEASURES["mcb"],
            lambda sample: sample.corp.miscalibration,
            _squared,
            influence.miscalibration,
        ),
        Metric(
            MEASURES["dsc"],
            lambda sample: sample.corp.discrimination,
            _discrimination,
            influence.discrimination,
        ),
        Metric(
            MEASURES["unc"],
            lambda sample: sample.corp.uncertainty,
            lambda sample, value: intervals.of_uncertainty(
                sample.rows, value, sample.settings.level, sketched=sample.sketched
            ),
        ),
        Metric(
            MEASURES["top_label_ece"],
            _top_label_ece,
            _top_label_interval,
            influence.top_label_ece,
            applies=_has_classes,
        ),
        *map(_risk_area, risk_coverage.AREAS),
    )
}
"""Metrics by key, in the order of the record."""

HEADLINE: dict[str, Callable[[Sample], Column | None]] = {
    "total": lambda sample: influence.loss(sample, sample.settings.main.name),
    "calibration": influence.calibration,
    "sharpness_gap": influence.sharpness_gap,
}
"""Influence of the terms of the decomposition."""


def influence_on(sample: Sample, key: str) -> Column | None:
    """Influence of each row on a number, plus a constant; None if it has none here."""
    metric = METRICS.get(key)
    of_the_model = metric is not None and metric.per_class == "model"
    if sample.target == "class-wise" and not of_the_model:
        return None
    found = HEADLINE.get(key) if metric is None else metric.influence
    value = None if found is None else found(sample)
    return value if value is not None and np.isfinite(value).all() else None
