"""Results: frozen records of plain numbers that every view reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

import numpy as np

from calibrant._base.records import (
    CLOSE,
    Amount,
    Amounts,
    Bandwidth,
    Bins,
    Curve,
    Decomposition,
    Estimate,
    Frame,
    Keyed,
    Positive,
    Range,
    Record,
    SmoothCurve,
    Target,
    Whole,
    close,
    to_frame,
)
from calibrant._base.views import Views

CELLS, ODDS_CELLS = 480, 200
"""Cells of the histograms."""

BINS = ("bins", "mass_bins", "atoms", "isotonic")
"""Ways in which the same rows are put together."""

TOTALS = {"brier": "brier", "log": "nll"}
"""Metrics that are the total of a divergence."""

UNIT = (
    *("accuracy", "ece", "ace", "mce", "ece_mass", "ece_debiased", "smooth_ece"),
    *("ks_error", "top_label_ece", "mcb", "dsc", "unc"),
    *("aurc", "excess_aurc", "augrc"),
)
METRICS: dict[str, Any] = {
    **dict.fromkeys(UNIT, Annotated[Estimate, Range(0, 1)]),
    "auroc": Annotated[Estimate, Range(0, 1, unknown=True)],
    "brier": Annotated[Estimate, Range(0, 2)],
    "nll": Annotated[Estimate, Range(0, infinite=True)],
    "confidence_gap": Annotated[Estimate, Range(-1, 1)],
}
"""What metrics of these names may be in a file; those of users may be any number."""

ALWAYS = (
    *("accuracy", "ece", "ace", "mce", "ece_mass", "smooth_ece", "ks_error", "auroc"),
    "brier",
)
"""Metrics that every target has; pairs of which only Brier losses are known have no NLL."""

TEXT = (
    "divergence",
    "kernel",
    "boundary",
    "estimator",
    "counterpart",
    "closed",
    "engine",
)
SETTINGS: dict[str, Any] = {
    **dict.fromkeys(TEXT, str),
    **dict.fromkeys(("preset", "interval"), str | None),
    "level": Annotated[float, Range(0, 1, above=True)],
    "bins": Annotated[int, Range(1, 1 << 63)],
    "resamples": Whole,
    "bandwidth": Bandwidth | str,
    "rng": Annotated[int, Range(0)] | str,
}
"""What options of these names may be in a file."""


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
    sum_of_weights : float or None
        What `sample_weight` adds up to as it was given; `n` does not depend on it.
    n_clusters, folded : int or None, bool
        Clusters, if they were given, and whether a sketch could not tell them all apart.
    target : str
        ``"top-label"``, ``"positive"``, ``"class-wise"``, ``"multi-label"`` or
        ``"pairs"``; ``"top-3"`` and its like, or ``"event: name"`` of a `Target`.
    positive : str or None
        The name of the positive class, if that is the target.
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
    largest_class : float or None
        Share of the commonest class among the labels; not known of pairs and sketches.
    settings : dict
        The options it was made with.
    per_class : tuple of Evaluation
        One for each class when the target is ``"class-wise"``, else empty. Their d_CAL do
        not add up to the joint one, which is estimated from all classes together: judged
        one by one they come out low.
    per_group : dict of str to Evaluation
        One for each group of rows, if groups were given.
    soft_rows : float
        Weight of rows whose label is a share between 0 and 1.
    duplicates : int
        Rows that repeat score and outcome of another, where that is no chance.
    repeated : dict of str to int
        Columns of ids in the file the rows are from, and how many distinct ids there are,
        if these repeat and are not the clusters.
    left_out : float
        Examples without a confidence (abstentions), which are in no number; see `coverage`.
    unpaired : float
        How many of those left out have a confidence: they are not compared, for another
        model has none.
    absent : float
        How many of those unpaired are not even among the examples of another model.
    mean_replaced : bool
        Whether mean replacement made it, in a study: then it is best in no calibration column.
    fingerprint : str or None
        Hash of labels and weights, or of which rows are left: equal if rows are the same.
    sketch, columns, clusters : Cells, Columns, array, or None
        The sums behind the numbers, for figures at other bandwidths, and the rows and
        their clusters, for paired comparisons. They are pickled, but not written to JSON;
        class-wise evaluations have no sketch.

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
    n: Positive
    rows: Annotated[int, Range(1, 1 << 63)]
    k: Annotated[int, Range(2, 1 << 63)] | None
    target: Target
    divergence: str
    decompositions: Mapping[str, Decomposition]
    curves: Mapping[str, Curve]
    paper_decompositions: Mapping[str, Decomposition]
    paper_curves: Mapping[str, Curve]
    metrics: Annotated[Mapping[str, Estimate], Keyed(METRICS, ALWAYS)]
    bins: Bins
    mass_bins: Bins
    atoms: Bins
    isotonic: Bins
    smooth: SmoothCurve
    histogram: Amounts
    log_odds_histogram: Amounts
    infinite_rows: Amount
    distinct: Annotated[int, Range(1, 1 << 63)]
    largest_share: Annotated[float, Range(0, 1, above=True)]
    settings: Annotated[Mapping[str, Any], Keyed(SETTINGS, ("level", "bins"))]
    per_class: tuple[Evaluation, ...] = field(default=())
    per_group: Mapping[str, Evaluation] = field(default_factory=dict)
    soft_rows: Amount = 0.0
    fingerprint: str | None = None
    n_effective: Positive | None = None
    n_clusters: Whole | None = None
    duplicates: Whole = 0
    repeated: Mapping[str, Whole] = field(default_factory=dict)
    positive: str | None = None
    sum_of_weights: Positive | None = None
    largest_class: Annotated[float, Range(0, 1)] | None = None
    left_out: Amount = 0.0
    unpaired: Amount = 0.0
    absent: Amount = 0.0
    mean_replaced: bool = False
    folded: bool = False
    sketch: Any = field(default=None, metadata={"plain": False})
    columns: Any = field(default=None, metadata={"plain": False})
    clusters: Any = field(default=None, metadata={"plain": False})

    @property
    def decomposition(self) -> Decomposition:
        """The headline: d_TOT = d_CAL + sharpness gap."""
        return self.decompositions[self.divergence]

    @property
    def coverage(self) -> float:
        """Share of the examples that are in the numbers, not left out."""
        return self.n / (self.n + self.left_out)

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
        values = {x.name: getattr(self, x.name) for x in fields(self)}
        own = getattr(self.sketch, "divergences", {}).values()
        if not all(divergence.portable for divergence in own):
            values["sketch"] = None
        return Evaluation, tuple(values.values())

    def _disagreement(self) -> str | None:
        parts = ("decompositions", "curves", "paper_decompositions", "paper_curves")
        without = [name for name in parts if self.divergence not in getattr(self, name)]
        if without:
            return f"has no {self.divergence!r} among its {without[0]}"
        return next(self._contradictions(), None)

    def _contradictions(self) -> Iterator[str]:
        """Numbers that follow from others, and do not."""
        yield from self._misnamed()
        for name, found in self._known_twice():
            first, *rest = found.items()
            for other, value in rest:
                if not close(first[1], value):
                    both = f"{first[0]} is {first[1]:.9g}, {other} is {value:.9g}"
                    yield f"contradicts itself in {name}: {both}"
        for name, (value, most) in self._bounded().items():
            if value > most * (1 + CLOSE):
                yield f"has {name} {value:.9g}, more than {most:.9g}"
        if len(self.histogram) != CELLS or len(self.log_odds_histogram) != ODDS_CELLS:
            yield f"must have histograms of {CELLS} and {ODDS_CELLS} cells"
        if bool(self.per_class) != (self.target == "class-wise"):
            yield "must have an evaluation per class if it is class-wise, and only then"
        strange = [x.target for x in self.per_class if x.target != "positive"]
        strange += [
            x.target for x in self.per_group.values() if x.target != self.target
        ]
        if strange:
            yield f"has a part of the target {strange[0]!r}"
        if bool((np.diff(self.isotonic.accuracy) < -CLOSE).any()):
            yield "must have an isotonic accuracy that does not fall"

    def _misnamed(self) -> Iterator[str]:
        """Divergences that are called something else, or have a part of the numbers."""
        for name in ("decompositions", "paper_decompositions"):
            found = getattr(self, name)
            called = [x.divergence for x in found.values()]
            curves = getattr(self, name.replace("decompositions", "curves"))
            if called != [*found] or {*curves} != {*found}:
                yield f"must have {name} by divergence, each with its curve"
            for divergence, metric in TOTALS.items():
                if (divergence in found) != (metric in self.metrics):
                    yield f"must have both {divergence!r} in {name} and {metric!r}"

    def _known_twice(self) -> Iterator[tuple[str, Mapping[str, float]]]:
        """Numbers by what they say, and where they stand; those of one kind are equal."""
        whole = self.n * (self.k or 1 if self.target == "class-wise" else 1)
        bins = {name: getattr(self, name) for name in BINS}
        filled = {
            name: x for name, x in bins.items() if name != "atoms" or len(x.count)
        }
        means = {name: x.means for name, x in filled.items()}
        histograms = {x: getattr(self, x) for x in ("histogram", "log_odds_histogram")}
        counts = {name: x.count for name, x in filled.items()} | histograms
        yield "rows", {"n": whole} | {x: float(y.sum()) for x, y in counts.items()}
        yield "mean confidence", {name: x for name, (x, _) in means.items()}
        accuracy = {name: x for name, (_, x) in means.items()}
        if self.target in ("top-label", "pairs"):
            accuracy["accuracy"] = float(self.metrics["accuracy"])
        yield "accuracy", accuracy
        for name, value in self._of_bins().items():
            yield name, {"metrics": float(self.metrics[name]), "bins": value}
        for name, metric in TOTALS.items():
            if name in self.decompositions and (name == "brier" or not self.per_class):
                parts = (self.decompositions, self.paper_decompositions)
                totals = {
                    f"total[{i}]": float(x[name].total) for i, x in enumerate(parts)
                }
                yield metric, {"metrics": float(self.metrics[metric]), **totals}
        if self.per_class:
            yield "classes", {"k": self.k or 0, "per_class": len(self.per_class)}
            yield "rows", {"rows": self.rows} | {x.name: x.rows for x in self.per_class}
        if self.per_group:
            rows = sum(x.rows for x in self.per_group.values())
            yield "rows", {"rows": self.rows, "per_group": rows}

    def _of_bins(self) -> dict[str, float]:
        """Metrics that follow from the bins, if they are there and no means over classes."""
        if self.per_class:
            return {}
        h, a = self.bins.means
        gaps, count = self.bins.gaps, self.bins.count[self.bins.count > 0]
        ece, most = float(count @ gaps / count.sum()), float(gaps.max())
        mean = {
            "confidence_gap": h - a,
            "ece": ece,
            "mce": most,
            "ace": float(gaps.mean()),
        }
        return {name: x for name, x in mean.items() if name in self.metrics}

    def _bounded(self) -> dict[str, tuple[float, float]]:
        """Numbers with what they cannot exceed."""
        whole = self.n * max(len(self.per_class), 1)
        curves = dict(self.curves) | {
            f"paper's {x}": y for x, y in self.paper_curves.items()
        }
        supports = {x: float(y.support.max(initial=0.0)) for x, y in curves.items()}
        effective = self.n if self.n_effective is None else self.n_effective
        return {
            "rows": (self.rows, self.n),
            "n_effective": (effective, self.n),
            "n_clusters": (self.n_clusters or 0, self.rows),
            "distinct": (self.distinct, self.rows),
            "duplicates": (self.duplicates, self.rows),
            "infinite_rows": (self.infinite_rows, self.n),
            "soft_rows": (self.soft_rows, self.n),
            **{f"support of {name}": (x, whole) for name, x in supports.items()},
            **{f"repeated {x!r}": (y, self.rows) for x, y in self.repeated.items()},
        }

    def frame(self, kind: str | None = None) -> Frame:
        """One row per number: model, metric, value, low, high, method; target if class-wise.

        A pandas frame, else a Polars one, else a dict of arrays, as is installed; `kind`,
        ``"polars"`` or ``"pandas"``, says which.
        """
        headline = ("total", "calibration", "sharpness_gap")
        rows = {name: getattr(self.decomposition, name) for name in headline}
        rows.update(self.metrics)
        bounds = [x.interval or (np.nan, np.nan) for x in rows.values()]
        columns: dict[str, Any] = {"model": [self.name] * len(rows)}
        columns |= targets_apart([self] * len(rows)) | {
            "metric": list(rows),
            "value": [float(x) for x in rows.values()],
            "low": [low for low, _ in bounds],
            "high": [high for _, high in bounds],
            "method": [x.method or "" for x in rows.values()],
        }
        return to_frame({name: np.array(x) for name, x in columns.items()}, kind)


def group_name(model: str, group: str) -> str:
    """What the record of a group is called."""
    return f"{model}, group {group}"


def targets_apart(models: Iterable[Evaluation]) -> dict[str, Any]:
    """The targets as a column, if some are class-wise: numbers do not show it."""
    found = [ev.target for ev in models]
    return {"target": np.array(found)} if "class-wise" in found else {}
