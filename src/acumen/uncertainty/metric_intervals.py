"""Which interval each metric gets, and what it is called.

Averages, AUROC and discrimination move smoothly with the data: closed forms. Debiased
squares have a score interval. Plain calibration errors are norms of the residual, which
noise inflates: tests are inverted, on resampled noise. The largest value of a walk has a
band, by how far that noise reaches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan

import numpy as np
from numpy.typing import NDArray

from acumen import intervals
from acumen.intervals import Interval
from acumen.results import Bins, Corp, Estimate
from acumen.sums import Sums
from acumen.uncertainty import standard_errors
from acumen.uncertainty.residual_intervals import grouped_interval, residual_intervals
from acumen.uncertainty.squared_intervals import (
    between,
    discrimination,
    halved,
    root,
    squared_error,
)
from acumen.uncertainty.standard_errors import Index, Rows, error_of_mean

INVERSION, BAND, SCORE = "test inversion", "band", "score"

Found = dict[str, tuple[Interval, str]]
"""By metric: an interval and its method."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """All that intervals are computed from, and how.

    `rows` are ordered by exact confidence; in `values` round-off twins are together,
    and `mass_bins` and `debiased_bins` are of these. `groups` number the bin within
    the predicted class of each row, for the top-label ECE, or are None.
    """

    rows: Rows
    values: Rows
    sketch: Sums
    width_bins: Bins
    mass_bins: Bins
    debiased_bins: Bins
    corp: Corp
    groups: Index | None
    level: float
    resamples: int
    rng: np.random.Generator


def with_intervals(
    metrics: Mapping[str, Estimate], sample: Sample
) -> dict[str, Estimate]:
    """The same metrics, with an interval wherever there was none but can be one."""
    found = {
        **_of_averages(sample, metrics["confidence_gap"]),
        **_of_auroc(sample, metrics["auroc"]),
        **_of_squares(sample),
        **_of_norms(sample),
    }
    suffix = "" if sample.rows.clusters is None else ", clusters"
    return {
        name: Estimate(value, found[name][0], found[name][1] + suffix)
        if name in found
        else value
        for name, value in metrics.items()
    }


def share(
    rows: Rows, p: float, right_if_hit: NDArray[np.bool_], level: float
) -> Interval:
    """Wilson interval of a share of rows, counting those that are independent."""
    n = rows.effective(p, standard_errors.of_right(right_if_hit))
    low, high = intervals.wilson(np.array([p]), np.array([n]), level)
    return float(low[0]), float(high[0])


def _of_averages(sample: Sample, gap: float) -> Found:
    ordered, level = sample.rows.ordered, sample.level
    se = sample.rows.standard_error(standard_errors.of_confidence_gap(ordered))
    return {
        "confidence_gap": (intervals.normal(gap, se, level), "normal"),
        "unc": _of_uncertainty(sample),
    }


def _of_uncertainty(sample: Sample) -> tuple[Interval, str]:
    """From the base rate if hits are 0 and 1, else as a mean of squares."""
    rows, level, columns = sample.rows, sample.level, sample.rows.columns
    rate = columns.mean(columns.hit)
    if columns.hard:
        every = np.ones(len(rows.ordered.confidence), bool)
        return _of_variance(share(rows, rate, every, level)), "Wilson"
    squares = (columns.hit - rate) ** 2
    se = error_of_mean(squares, columns.weight, rows.clusters)
    low, high = intervals.normal(sample.corp.uncertainty, se, level)
    return (max(low, 0.0), high), "normal"


def _of_variance(base: Interval) -> Interval:
    """Interval of p (1 - p) from that of p."""
    ends = [p * (1 - p) for p in base]
    return min(ends), 0.25 if base[0] < 0.5 < base[1] else max(ends)


def _of_auroc(sample: Sample, value: float) -> Found:
    ordered = sample.rows.ordered
    if isnan(value):
        return {}
    if not 0 < value < 1:  # perfect: as many pairs in a row as the rarer side has rows
        rarer = min(ordered.hits.sum(), ordered.total - ordered.hits.sum())
        ends = intervals.wilson(np.array([value]), np.array([rarer]), sample.level)
        return {"auroc": ((float(ends[0][0]), float(ends[1][0])), "Wilson")}
    se = sample.rows.standard_error(standard_errors.of_auroc(ordered, value))
    return {"auroc": (intervals.on_log_odds(value, se, sample.level), "DeLong")}


def _of_squares(sample: Sample) -> Found:
    """ECE (debiased) and the CORP terms that its square stands for."""
    values, bins, level = sample.values, sample.debiased_bins, sample.level
    coarse, fine = (
        squared_error(values, b, level) for b in (bins, halved(values, bins))
    )
    ends = between(coarse, fine)
    terms = sample.corp.score, sample.corp.uncertainty
    return {
        "ece_debiased": (root(ends), intervals.named(SCORE, ends)),
        "mcb": (ends, intervals.named(SCORE, ends)),
        "dsc": (discrimination(values, fine, *terms, level), "normal"),
    }


def _of_norms(sample: Sample) -> Found:
    found = residual_intervals(
        sample.values,
        sample.sketch,
        (sample.width_bins, sample.mass_bins),
        sample.level,
        sample.resamples,
        sample.rng,
    )
    if sample.groups is not None:
        found["top_label_ece"] = grouped_interval(
            sample.values, sample.groups, sample.level, sample.resamples, sample.rng
        )
    return {
        name: (ends, intervals.named(BAND if name == "ks_error" else INVERSION, ends))
        for name, ends in found.items()
    }
