"""Results: frozen records of plain numbers that every view reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._base.records import (
    Bins,
    Curve,
    Decomposition,
    Estimate,
    Frame,
    Record,
    SmoothCurve,
    to_frame,
)
from calibrant._base.views import Views


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evaluation(Views, Record):
    """Everything calibrant says about one model on one set of rows.

    Attributes
    ----------
    name, k : str, int
        The model's name, and the number of classes; 2 for pairs.
    n, rows : float, int
        Examples, each row counted as often as `frequency` says, and rows of positive
        weight.
    n_effective : float
        Number of examples of equal weight that would have as little noise: n, unless
        `sample_weight` was given.
    n_clusters : int or None
        Number of clusters, if they were given; of a sketch at most 128 are told apart.
    target : str
        ``"top-label"``, ``"positive"``, ``"class-wise"`` or ``"pairs"``.
    divergence : str
        The divergence behind `decomposition` and `curve`.
    decompositions, curves : dict
        By divergence, at the bandwidth asked for.
    paper_decompositions, paper_curves : dict
        The same as published: Gaussian kernel of bandwidth 0.05, no boundary rule.
    metrics : dict
        Estimates by name: those of the functions of the same name, and ``ece_mass``
        (``ece(strategy="mass")``), ``ece_debiased`` (``ece(bins="cube-root",
        strategy="mass", norm=2, debias=True)``), and ``mcb``, ``dsc``, ``unc`` (the terms
        of ``corp``). All have intervals, unless ``interval=None``.
    bins, mass_bins : Bins
        Equal-width bins of the confidence, and as many of equal weight, ties unsplit.
    atoms : Bins
        One bin for each distinct confidence if there are at most 40, else no bin.
    isotonic : Bins
        The blocks of the isotonic fit: accuracy, pooled until it increases.
    smooth : SmoothCurve
        The curve behind SmoothECE.
    histogram, log_odds_histogram : arrays
        Weight of rows in 480 right-closed cells of [0, 1], and in 200 cells of the
        log-odds from -20 to 20; what lies beyond is in the last ones.
    infinite_rows : float
        Weight of rows whose true class was given probability 0: log loss infinite.
    distinct, largest_share : int, float
        Number of distinct confidences, round-off aside, and share of rows at the
        commonest one.
    settings : dict
        The options it was made with.
    per_class : tuple of Evaluation
        One for each class when the target is ``"class-wise"``, else empty.
    per_group : dict of str to Evaluation
        One for each group of rows, if groups were given.
    soft_rows : float
        Weight of rows whose label is a share between 0 and 1.
    duplicates : int
        Rows that repeat score and outcome of another, where that is no chance.
    repeated : dict of str to int
        Columns of ids in the file the rows are from, and how many distinct ids there are,
        if these repeat and are not the clusters.
    fingerprint : str or None
        Hash of labels and weights: models of the same fingerprint saw the same rows.
    sketch, columns, clusters : Cells, Columns, array, or None
        The sums behind the numbers, for figures at other bandwidths, and the rows and
        their clusters, for paired comparisons. They are neither written to JSON nor
        pickled, and class-wise evaluations have no sketch.

    Examples
    --------
    >>> import calibrant as cal
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 20, [0.9, 0.4, 0.8, 0.7] * 20, name="a")
    >>> ev.metrics["accuracy"], ev.decomposition.divergence
    (0.75, 'brier')
    >>> [finding.code for finding in ev.audit()][-1]
    'too-few-rows'
    >>> len(ev.frame()["metric"]) == 3 + len(ev.metrics)
    True
    >>> cal.Evaluation.from_json(ev.to_json()).metrics == ev.metrics
    True
    >>> cal.Evaluation.from_dict(ev.to_dict()).name
    'a'
    """

    name: str
    n: float
    rows: int
    k: int
    target: str
    divergence: str
    decompositions: Mapping[str, Decomposition]
    curves: Mapping[str, Curve]
    paper_decompositions: Mapping[str, Decomposition]
    paper_curves: Mapping[str, Curve]
    metrics: Mapping[str, Estimate]
    bins: Bins
    mass_bins: Bins
    atoms: Bins
    isotonic: Bins
    smooth: SmoothCurve
    histogram: NDArray[np.float64]
    log_odds_histogram: NDArray[np.float64]
    infinite_rows: float
    distinct: int
    largest_share: float
    settings: Mapping[str, Any]
    per_class: tuple[Evaluation, ...] = field(default=())
    per_group: Mapping[str, Evaluation] = field(default_factory=dict)
    soft_rows: float = 0.0
    fingerprint: str | None = None
    n_effective: float | None = None
    n_clusters: int | None = None
    duplicates: int = 0
    repeated: Mapping[str, int] = field(default_factory=dict)
    sketch: Any = field(default=None, metadata={"plain": False})
    columns: Any = field(default=None, metadata={"plain": False})
    clusters: Any = field(default=None, metadata={"plain": False})

    @property
    def decomposition(self) -> Decomposition:
        """The headline: d_TOT = d_CAL + sharpness gap."""
        return self.decompositions[self.divergence]

    @property
    def curve(self) -> Curve:
        """The calibration curve with sharpness gap and density."""
        return self.curves[self.divergence]

    @property
    def paper(self) -> Decomposition:
        """The decomposition as published, at bandwidth 0.05."""
        return self.paper_decompositions[self.divergence]

    @property
    def paper_curve(self) -> Curve:
        """The curve as published, at bandwidth 0.05."""
        return self.paper_curves[self.divergence]

    def __reduce__(self) -> Any:
        kept = {f.name for f in fields(self) if f.metadata.get("plain", True)}
        values = (
            getattr(self, f.name) if f.name in kept else None for f in fields(self)
        )
        return Evaluation, tuple(values)

    def _disagreement(self) -> str | None:
        parts = ("decompositions", "curves", "paper_decompositions", "paper_curves")
        without = [name for name in parts if self.divergence not in getattr(self, name)]
        return f"has no {self.divergence!r} among its {without[0]}" if without else None

    def frame(self) -> Frame:
        """One row per number: model, metric, value, low, high, method.

        A Polars or pandas frame, whichever is loaded or installed, else a dict of arrays.
        """
        headline = ("total", "calibration", "sharpness_gap")
        rows = {name: getattr(self.decomposition, name) for name in headline}
        rows.update(self.metrics)
        bounds = [x.interval or (np.nan, np.nan) for x in rows.values()]
        columns: dict[str, Any] = {
            "model": [self.name] * len(rows),
            "metric": list(rows),
            "value": [float(x) for x in rows.values()],
            "low": [low for low, _ in bounds],
            "high": [high for _, high in bounds],
            "method": [x.method or "" for x in rows.values()],
        }
        return to_frame({name: np.array(column) for name, column in columns.items()})
