"""The sample: rows, or sums in their place, and everything computed from them, once.

Estimators do not know of it: each takes the columns, bins or sums that it reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from calibrant._base.records import FORECASTS, Bins, Corp
from calibrant._inputs.arrays import Column, Index
from calibrant._inputs.divergences import BRIER
from calibrant._inputs.options import Settings, brier_factor
from calibrant._rows.columns import Columns
from calibrant._sketch.cells import Cells
from calibrant._sketch.ordered import order
from calibrant._stats import bins as binning
from calibrant._stats import intervals, smooth_ece
from calibrant._stats.closed_forms import Interval
from calibrant._stats.decomposition import Shared, cells_of_columns
from calibrant._stats.risk_coverage import Steps
from calibrant._stats.standard_errors import Rows


def columns_of_predictions(columns: Columns) -> Columns:
    """Of forecasts of one class: how likely the likelier class is, and whether it came."""
    h, hit = columns.confidence, columns.correct("positive")
    plain = replace(columns, exact_log_odds=None, losses={})
    return replace(plain, confidence=np.maximum(h, 1 - h), hit=hit)


@dataclass(eq=False)
class Sample:
    """What one evaluation is about: the rows, their sums by cell, and how to estimate.

    `target` is what was asked of each row, `k` the number of classes, `clusters` the
    cluster of each row if rows depend on each other, and `cluster_groups` the group of
    clusters (at most 128) it belongs to. If it is `sketched`, the columns only
    stand for the rows, and are `exact` if they hold every distinct confidence;
    `within_error` is then the top-label ECE, and `clustered` columns stand for the rows of
    each cluster. `known` are influences computed so far.
    """

    columns: Columns
    cells: Cells
    settings: Settings
    target: str
    k: int | None
    clusters: Index | None = None
    cluster_groups: Index | None = None
    sketched: bool = False
    exact: bool = True
    within_error: float | None = None
    clustered: Columns | None = None
    known: dict[str, Column | None] = field(default_factory=dict)

    @classmethod
    def of_rows(
        cls,
        columns: Columns,
        settings: Settings,
        target: str,
        k: int | None,
        clusters: Index | None = None,
        cluster_groups: Index | None = None,
    ) -> Sample:
        """The sample of rows that are all here."""
        cells = cells_of_columns(columns, settings)
        return cls(columns, cells, settings, target, k, clusters, cluster_groups)

    def of_some(self, rows: Any) -> Sample:
        """The sample of some of the rows, their clusters numbered anew."""
        known = (self.clusters, self.cluster_groups)
        named = (
            None if x is None else np.unique(x[rows], return_inverse=True)[1]
            for x in known
        )
        columns = self.columns.take(rows).rescaled()
        return Sample.of_rows(columns, self.settings, self.target, self.k, *named)

    @cached_property
    def h(self) -> Column:
        """Confidence of each row, without a negative zero."""
        h = self.columns.confidence
        return np.abs(h) if np.signbit(h).any() else h

    @cached_property
    def residual(self) -> Column:
        """A - h of each row."""
        return self.columns.hit - self.h

    @cached_property
    def weight(self) -> Column:
        """Weight of each row."""
        return self.columns.weights

    @property
    def n(self) -> float:
        """Total weight of the columns."""
        return self.columns.total_weight

    @property
    def factor(self) -> float:
        """What the Brier calibration error is multiplied by."""
        return brier_factor(self.settings.counterpart, self.k)

    def correct(self) -> Column:
        """Whether the prediction was right; for a forecast, p > 1/2 against it."""
        return self.columns.correct(self.target)

    def sums(self, cell: Index, value: Column) -> Column:
        """Weighted sum over cells of one number per row."""
        total = np.bincount(cell, self.weight * value)
        return total.astype(np.float64, copy=False)

    @cached_property
    def shared(self) -> Shared:
        """What decompositions, curves, losses and influences ask of the sums."""
        columns = self.columns if self.exact else None
        worst = 1.0 if self.target in (*FORECASTS, "pairs") else 2.0
        known = self.settings.level, self.cluster_groups, worst
        return Shared(columns, self.cells, *known)

    @cached_property
    def rows(self) -> Rows:
        """The rows by exact confidence, in order, and by their clusters."""
        columns = self.columns if self.clustered is None else self.clustered
        return Rows(columns, order(self.columns), self.clusters)

    @cached_property
    def values(self) -> Rows:
        """The same with confidences that differ by round-off put together."""
        ordered = self.rows.ordered.without_twins()
        same = ordered is self.rows.ordered
        return self.rows if same else replace(self.rows, ordered=ordered)

    @cached_property
    def predictions(self) -> Rows:
        """The rows by how sure the prediction is, and whether it was right.

        Of a forecast of a class or label that is p or, where the other is likelier, 1 - p.
        """
        if self.target not in FORECASTS:
            return self.rows
        by_row = columns_of_predictions(self.rows.columns)
        same = self.clustered is None
        whole = by_row if same else columns_of_predictions(self.columns)
        return Rows(by_row, order(whole), self.clusters)

    @cached_property
    def steps(self) -> Steps:
        """What is accepted, and wrong, at each confidence from the highest on."""
        return Steps.of(self.predictions.ordered)

    @cached_property
    def width_bins(self) -> Bins:
        """Equal-width bins, as many as asked for."""
        settings = self.settings
        return binning.width_bins(self.rows.ordered, settings.bins, settings.closed)

    @cached_property
    def mass_bins(self) -> Bins:
        """As many bins of equal weight."""
        return binning.mass_bins(self.values.ordered, self.settings.bins)

    @property
    def duplicates(self) -> int:
        """Rows that repeat another, unless weights or clusters account for them."""
        ordered = self.rows.ordered
        counted = self.columns.weight is None and ordered.hits2 is ordered.hits
        if self.sketched or self.clusters is not None or not counted:
            return 0
        return binning.duplicates(ordered)

    @cached_property
    def debiased_bins(self) -> Bins:
        """Equal-mass bins by the cube-root rule, for the debiased L2 error."""
        return binning.debiased_bins(self.values.ordered)

    @cached_property
    def bins_within_classes(self) -> Index | None:
        """Number of each row's predicted class and bin; None without classes."""
        predicted = self.columns.predicted
        if predicted is None:
            return None
        bins, closed = len(self.width_bins.count), self.settings.closed
        place = binning.place_in_width_bins(self.columns.confidence, bins, closed)
        return predicted.astype(np.intp) * bins + place

    @cached_property
    def isotonic(self) -> binning.Isotonic:
        """The isotonic fit to the distinct confidences."""
        return binning.Isotonic.of(self.values.ordered)

    @cached_property
    def corp(self) -> Corp:
        """The CORP decomposition of the one-dimensional Brier score."""
        exact = self.rows.ordered
        same = exact is self.values.ordered
        fit = self.isotonic if same else binning.Isotonic.of(exact)
        return binning.corp_of(fit, self.cells, BRIER.name)

    @cached_property
    def auroc(self) -> float:
        """Area under the ROC curve of the confidence."""
        return binning.auroc(self.rows.ordered)

    @cached_property
    def smooth_error(self) -> float:
        """SmoothECE, which is its own bandwidth."""
        return smooth_ece.smooth_error_of_sketch(self.cells)

    @cached_property
    def draws(self) -> tuple[float, int, np.random.Generator]:
        """Level, number and source of resamples; one stream for all."""
        settings = self.settings
        rng = np.random.default_rng(settings.rng)
        return settings.level, int(settings.resamples), rng

    @cached_property
    def norm_intervals(self) -> dict[str, Interval]:
        """Intervals of the metrics that are norms of the residual."""
        settings, values = self.settings, self.values  # round-off splits no value
        width = binning.width_bins(values.ordered, settings.bins, settings.closed)
        error, bins = self.smooth_error, (width, self.mass_bins)
        return intervals.residual_intervals(values, error, bins, *self.draws)

    @cached_property
    def grouped_interval(self) -> Interval:
        """Interval of the top-label ECE; drawn after those of the norms."""
        assert self.norm_intervals  # one stream of resamples, in this order
        groups = self.bins_within_classes
        assert groups is not None
        return intervals.grouped_interval(self.values, groups, *self.draws)

    @cached_property
    def squared_errors(self) -> tuple[intervals.SquaredError, intervals.SquaredError]:
        """The debiased squared error over equal-mass bins, and over twice as many."""
        values, bins, level = self.values, self.debiased_bins, self.settings.level
        coarse = intervals.squared_error(values, bins, level)
        fine = intervals.squared_error(values, intervals.halved(values, bins), level)
        return coarse, fine
