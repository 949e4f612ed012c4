"""`evaluate` and `evaluate_pairs`: one call per model, one record back."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from math import inf, isfinite, sqrt
from operator import add
from typing import Any, Unpack

import numpy as np

from calibrant._base.checks import RowError, check_flags, check_text
from calibrant._base.evaluation import Evaluation, group_name
from calibrant._base.later import Later, Named
from calibrant._base.records import Bins, Curve, Decomposition, Estimate
from calibrant._inputs.arrays import ABSENT, Column, Index, Table, as_scores, to_numpy
from calibrant._inputs.divergences import BRIER
from calibrant._inputs.options import Options, Settings, takes_options, target_of
from calibrant._inputs.predictions import (
    LEAST_CLUSTERS,
    MULTI_LABEL,
    Predictions,
    check_clusters,
    fingerprint,
    largest_class,
    read_predictions,
    soft_weight,
    sum_of_weights,
)
from calibrant._rows import engines
from calibrant._rows.columns import Columns
from calibrant._rows.reduce import (
    columns_of_class,
    fill,
    reduce_to_columns,
    spell_out,
)
from calibrant._sketch.cells import CLASS_BINS, MOST_VALUES, Cells, Kind
from calibrant._sketch.ordered import Ordered, gather, starts_of_values
from calibrant._sketch.sketch import Sketch
from calibrant._stats import bins as binning
from calibrant._stats import closed_forms
from calibrant._stats.bins import Isotonic, mass_bins
from calibrant._stats.closed_forms import quantile
from calibrant._stats.curve import Outline, gap_interval
from calibrant._stats.decomposition import (
    Analysis,
    Shared,
    analyse_as_paper,
    analyse_shared,
    curves_of,
    decompose,
    total_loss,
)
from calibrant._stats.influence import values_by_level
from calibrant._stats.ladder import believed, rises_of
from calibrant._stats.metrics import METRICS, OVER_CLASSES, Metric, estimates
from calibrant._stats.neighbours import cells_of_sketch
from calibrant._stats.sample import Sample
from calibrant._stats.smooth_ece import smooth_curve, smooth_error_of_sketch
from calibrant._verbs.compare import print_of_kept


@takes_options
def evaluate(
    y: Any,
    *,
    probs: Any = None,
    logits: Any = None,
    confidence: Any = None,
    classes: Sequence[Hashable] | None = None,
    target: Any = None,
    sample_weight: Any = None,
    frequency: Any = None,
    cluster: Any = None,
    group: Any = None,
    name: str = "model",
    **options: Unpack[Options],
) -> Evaluation:
    r"""Evaluate how well calibrated and how sharp a classifier's probabilities are.

    Parameters
    ----------
    y : array_like or Sketch
        Labels: column numbers, names from `classes`, or an n x k matrix of soft labels;
        with `confidence`, whether it was right: booleans, 0/1, or shares in [0, 1].
        A `Sketch` stands for all rows added to it, with nothing but options beside it.
    probs, logits, confidence : array_like
        Exactly one of them: n x k, or 1-D for the positive class of a binary problem;
        stated confidences in [0, 1] are 1-D (see `evaluate_pairs`).
    classes : sequence, optional
        Names of the classes in column order, if `y` holds names.
    target : {"top-label", "positive", "class-wise", "multi-label"} or Target, optional
        What is asked of each row: is the predicted class as likely as claimed, is the
        positive class, is each class. Two columns need it said; 1-D scores are
        ``"positive"``, three columns or more ``"top-label"``. With ``"multi-label"`` several
        labels can be true: `y` is n x k of 0 and 1, rows need not sum to 1, and logits are
        log-odds of each label. ``"top-3"`` asks whether the label is among the three
        likeliest; a `Target` asks anything.
    sample_weight : array_like, optional
        Importance of each row, in any unit: all weights times 3 change nothing. What
        weights leave to learn from is `n_effective`, and intervals are as wide as it asks
        for. A weight of 0 removes a row.
    frequency : array_like of int, optional
        How many rows each stands for: the same as repeating it.
    cluster : array_like, optional
        The cluster of each row (a patient, a game), if rows depend on each other.
        Intervals are then as wide as clusters ask for, and d_CAL no longer takes what
        rows of one cluster have in common for miscalibration; plain means stay the same.
    group : array_like, optional
        The group of each row; each is also evaluated on its own, in ``per_group``.
    name : str
        The model's name, for printing.
    **options : Options

    Returns
    -------
    Evaluation
        Decomposition, curve, bins and metrics; print it to read it.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> z = 3 * rng.normal(size=(2000, 4))
    >>> y = (z / 3 + rng.gumbel(size=z.shape)).argmax(axis=1)    # over-confident by 3
    >>> ev = cal.evaluate(y, logits=z)
    >>> d = ev.decomposition
    >>> bool(abs(d.total - (d.calibration + d.sharpness_gap)) < 1e-12)
    True
    >>> ev.metrics["confidence_gap"] > 0.2
    True
    """
    settings = Settings.of(options, evaluate)
    check_text(name, "name")
    rows = probs, logits, confidence, classes, target, sample_weight, frequency
    if isinstance(y, Sketch):
        check_alone((*rows, cluster, group))
        with using(settings.engine):
            return evaluate_sketch(y, settings, name)
    predictions = read_predictions(
        y,
        probs=probs,
        logits=logits,
        confidence=confidence,
        classes=classes,
        target=target,
        sample_weight=sample_weight,
        frequency=frequency,
        cluster=cluster,
        group=group,
    )
    total = sum_of_weights(sample_weight, frequency, predictions.rows_given)
    with using(settings.engine):
        found = evaluate_predictions(predictions, settings, name)
    return replace(found, sum_of_weights=total)


@contextmanager
def using(engine: str) -> Iterator[None]:
    """Within this, every loop is that of the engine a call was given."""
    before = engines.ASKED_FOR.set(engine)
    try:
        yield
    finally:
        engines.ASKED_FOR.reset(before)


@takes_options
def evaluate_pairs(
    correct: Any,
    confidence: Any,
    *,
    sample_weight: Any = None,
    frequency: Any = None,
    cluster: Any = None,
    group: Any = None,
    name: str = "model",
    drop_missing: bool = False,
    **options: Unpack[Options],
) -> Evaluation:
    """Evaluate stated confidences against whether they were right.

    This is what language models and forecasters give. The loss is one-dimensional, so
    it says less than the full loss of `evaluate`: a model that is always wrong at
    confidence 0 scores perfectly. ``evaluate(correct, confidence=...)`` does the same.

    Parameters
    ----------
    correct : array_like
        Booleans, 0/1, or shares in [0, 1].
    confidence : array_like
        Numbers in [0, 1].
    drop_missing : bool
        Whether rows without a confidence (NaN or None: abstentions) are left out. They are
        counted in `left_out` of the result, and its `coverage` is beside its numbers.
        Models that leave out other rows are not paired by `compare`.
    sample_weight, frequency, cluster, group, name, **options
        As in `evaluate`.

    Examples
    --------
    >>> import calibrant as cal
    >>> ev = cal.evaluate_pairs([1, 1, 0, 1], [0.9, 0.8, 0.7, 0.8])
    >>> round(ev.metrics["brier"], 4), round(ev.metrics["accuracy"], 2)
    (0.145, 0.75)
    >>> ev = cal.evaluate_pairs([1, 1, 0, 0], [0.9, 0.8, 0.7, None], drop_missing=True)
    >>> ev.rows, ev.coverage
    (3, 0.75)
    """
    Settings.of(options, evaluate_pairs)
    check_flags(drop_missing=drop_missing)
    rows = {
        "confidence": confidence,
        "sample_weight": sample_weight,
        "frequency": frequency,
        "cluster": cluster,
        "group": group,
    }
    if drop_missing:
        return _evaluate_answered(correct, rows, name, options)
    return evaluate(correct, **rows, name=name, **options)


def _evaluate_answered(
    correct: Any, rows: dict[str, Any], name: str, options: Any
) -> Evaluation:
    """Evaluate the rows that have a confidence, and count the others."""
    sure = _or_no_number(rows["confidence"])
    given = {"y": correct, **rows, "confidence": sure}
    columns = {n: to_numpy(x, n) for n, x in given.items() if x is not None}
    for what, column in columns.items():
        if len(column) != len(sure):
            both = f"{len(column)} against {len(sure)}"
            raise ValueError(f"{what} must have one entry per confidence: {both}.")
    lacks = np.isnan(sure)
    places = np.flatnonzero(~lacks)
    kept = {what: _some(column, places, what) for what, column in columns.items()}
    try:
        found = evaluate(kept.pop("y"), **kept, name=name, **options)
    except RowError as error:
        raise _in_all_rows(error, places) from error
    count = columns.get("frequency", np.ones(len(sure)))
    groups = columns.get("group", np.empty(len(sure), str)).astype(str)
    per_group = {
        x: replace(part, left_out=float(count[lacks & (groups == x)].sum()))
        for x, part in found.per_group.items()
    }
    known = print_of_kept(places.tolist()) if lacks.any() else found.fingerprint
    lost = float(count[lacks].sum())
    return replace(found, left_out=lost, per_group=per_group, fingerprint=known)


def _or_no_number(confidence: Any) -> Column:
    """Confidences, NaN where there is none; words are refused, numbers in words, too."""
    found = [_or_nan(x) for x in confidence]
    words = any(isinstance(x, str) for x in found)
    read = as_scores(np.array(found, object if words else float), "confidence")
    return read.astype(np.float64, copy=False)


def _or_nan(x: Any) -> Any:
    """A number; NaN for what stands for none: None, and NA of pandas."""
    if isinstance(x, float | int | str):
        return x
    return np.nan if str(x) in ABSENT else x


def _some(column: Any, places: Index, what: str) -> Any:
    """Some rows of a column; numbers are numbers, where others had none."""
    some = column[places]
    if some.dtype != object or what in ("cluster", "group"):
        return some
    return np.array([_or_nan(x) for x in some])


def _in_all_rows(error: RowError, places: Index) -> RowError:
    """The same error, which counts rows as they were given, before some were left out."""
    about = error.what, error.count, error.of, error.how, error.remedy
    return RowError(error.rule, int(places[error.row]), *about)


def evaluate_predictions(
    predictions: Predictions, settings: Settings, name: str
) -> Evaluation:
    """The record of rows that have been read."""
    if settings.counterpart == "tight" and predictions.target != "top-label":
        raise ValueError("counterpart='tight' applies to target='top-label' only.")
    if predictions.target == "class-wise":
        return evaluate_each_class(predictions, settings, name)
    clusters = predictions.clusters, predictions.cluster_groups
    about = target_of(predictions), predictions.k, *clusters
    facts = _facts_of_rows(predictions)
    columns = reduce_to_columns(predictions, settings.extra, settings.engine)
    sample = Sample.of_rows(columns, settings, *about)
    found = replace(
        evaluate_sample(sample, name),
        columns=columns,
        clusters=sample.clusters,
        per_group=_each_group(sample, name, predictions),
        **facts,
    )
    return _naming_positive(found, predictions.classes)


def _facts_of_rows(predictions: Predictions) -> dict[str, Any]:
    """What a record keeps of rows: a fingerprint, soft labels, the commonest class."""
    return {
        "largest_class": largest_class(predictions),
        "fingerprint": fingerprint(predictions.labels, predictions.weight),
        "soft_rows": soft_weight(predictions),
    }


def _naming_positive(ev: Evaluation, classes: Sequence[Hashable]) -> Evaluation:
    """The same record, and those of its groups, with the name of the positive class."""
    if ev.target != "positive":
        return ev
    name = str(classes[1])
    groups = {x: replace(own, positive=name) for x, own in ev.per_group.items()}
    return replace(ev, positive=name, per_group=groups)


def _each_group(
    sample: Sample, name: str, predictions: Predictions
) -> dict[str, Evaluation]:
    """The record of each group of rows by its name, or of each of several labels."""
    groups = predictions.groups
    if groups is None and sample.target == MULTI_LABEL:
        return _each_label(sample, name, predictions.classes)
    if groups is None:
        return {}
    names = np.unique(groups).tolist()
    return {
        x: evaluate_sample(sample.of_some(groups == x), group_name(name, x))
        for x in names
    }


def _each_label(
    sample: Sample, name: str, labels: Sequence[Hashable]
) -> dict[str, Any]:
    """The record of each label of a multi-label problem, without resampled intervals."""
    if sample.clusters is None and len(labels) > 1:
        raise ValueError(
            f"target='multi-label' needs {LEAST_CLUSTERS} rows or more: labels of one row "
            "depend on each other, and fewer rows do not tell how much."
        )
    plain = replace(sample, settings=replace(sample.settings, interval=None))
    label = np.arange(len(sample.columns)) % len(labels)
    return {
        x: evaluate_sample(plain.of_some(label == j), group_name(name, x), keep=False)
        for j, x in enumerate(map(str, labels))
    }


# ----------------------------------------------------------------------------
# From a sample to its record: each number and each picture from the same sums.


def evaluate_sample(sample: Sample, name: str, *, keep: bool = True) -> Evaluation:
    """The record of a sample; `keep` says whether its sums stay with the record."""
    cells, settings = sample.cells, sample.settings
    if keep:
        cells.settle()
    headline = analyse_shared(sample.shared, settings, sample.factor)
    paper = headline if _as_paper(sample) else analyse_as_paper(sample.shared)
    errors = headline.decompositions, sample, headline.outline
    return Evaluation(
        **_without_curves(sample, name),
        decompositions=_with_intervals(*errors),
        **_with_curves(sample, headline.curves, paper, METRICS),
        sketch=cells if keep else None,
    )


def _as_paper(sample: Sample) -> bool:
    """Whether the headline is the paper's own estimate."""
    return sample.settings.preset == "paper" and sample.factor == 1


def _without_curves(sample: Sample, name: str) -> dict[str, Any]:
    """Fields of a record that follow from counts of rows, in bins or not."""
    cells, settings, values = sample.cells, sample.settings, sample.values.ordered
    clusters = sample.clusters
    return {
        "name": name,
        "n": cells.count,
        "n_effective": cells.effective,
        "n_clusters": None if clusters is None else int(clusters.max()) + 1,
        "folded": cells.clusters is not None and cells.clusters.folded,
        "rows": cells.rows,
        "k": sample.k,
        "target": sample.target,
        "divergence": settings.main.name,
        "bins": sample.width_bins,
        "mass_bins": sample.mass_bins,
        "atoms": binning.atoms(values) if sample.exact else NO_BINS,
        "infinite_rows": float(cells.infinite.sum(axis=1).max()),
        "distinct": len(values.confidence)
        if sample.exact
        else min(MOST_VALUES + 1, cells.rows),
        "largest_share": float(values.weight.max() / values.total),
        "settings": settings.to_dict(),
        "duplicates": sample.duplicates,
    }


def _with_curves(
    sample: Sample,
    curves: Mapping[str, Curve],
    paper: Analysis,
    known: Mapping[str, Metric],
) -> dict[str, Any]:
    """The other fields but for d_CAL: `known` metrics, the paper's numbers, what is drawn."""
    return {
        "curves": curves,
        "paper_decompositions": paper.decompositions,
        "paper_curves": paper.curves,
        "metrics": Named(estimates(sample, known)),
        "isotonic": sample.isotonic.bins(),
        "smooth": smooth_curve(sample.cells, sample.smooth_error),
        "histogram": binning.histogram(sample.cells),
        "log_odds_histogram": binning.log_odds_histogram(sample.cells),
    }


NO_BINS = Bins(*np.empty((6, 0)))


def _with_intervals(
    found: Mapping[str, Decomposition], sample: Sample, outline: Outline | None = None
) -> dict[str, Decomposition]:
    """The decompositions, with what clusters and the sharpness gap ask for.

    The gap needs the loss of every row: of a sketch it has no interval.
    """
    columns, clusters, decompositions = sample.columns, sample.clusters, {}
    gap = not sample.sketched and sample.settings.interval is not None
    for name, plain in found.items():
        divergence, level = sample.cells.divergences[name], sample.settings.level
        parts = plain
        if clusters is not None:
            total = total_loss(sample.cells, name, level, sample.rows)
            parts = replace(plain, total=total)
        rest = outline, columns, divergence, level
        ends = gap_interval(parts, *rest, clusters) if gap else None
        decompositions[name] = replace(parts, gap=ends)
    return decompositions


# ----------------------------------------------------------------------------
# Every class against the rest: one evaluation each, and what they add up to.


def evaluate_each_class(
    predictions: Predictions, settings: Settings, name: str
) -> Evaluation:
    """Evaluate every class against the rest; the headline adds them up."""
    if predictions.scores.ndim == 1:
        predictions = spell_out(predictions)
    facts = _facts_of_rows(predictions)
    out = fill(predictions, settings.extra, settings.engine)
    top = out.columns(predictions.weight, predictions.squared)
    about = predictions.k, predictions.clusters, predictions.cluster_groups
    whole = Sample.of_rows(top, settings, "class-wise", *about)
    rows, together = RowsOfClasses.of(predictions, out.columns()), Together()
    engine = "compiled" if engines.wanted() else "numpy"
    with using(engine):  # asked for once, not for each loop over each class
        per_class, pooled = _one_by_one(rows, settings, about, together)
    found = add_up(per_class, pooled, whole, name, together)
    return replace(
        found,
        fingerprint=facts["fingerprint"],
        largest_class=facts["largest_class"],
        columns=top,
        clusters=predictions.clusters,
        per_group={
            group: evaluate_each_class(
                _rows_of_group(predictions, group), settings, group_name(name, group)
            )
            for group in sorted({*_names_of(predictions)})
        },
    )


def _one_by_one(
    rows: RowsOfClasses, settings: Settings, about: tuple[Any, ...], together: Together
) -> tuple[list[Evaluation], Cells]:
    """The record of each class, and the sums of all of them."""
    plain = replace(settings, interval=None)  # resamples for each class are too much
    per_class: list[Evaluation] = []
    pooled: Cells | None = None
    for j, label in enumerate(rows.predictions.classes):
        again = partial(rows.sample, plain, about, j)
        sample = again()
        per_class.append(_one_of_classes(sample, str(label), rows.later(again)))
        together.add(sample)
        together.add_rows(sample)
        if pooled is None:
            pooled = sample.cells
        else:
            pooled.take_in(sample.cells)
    assert pooled is not None
    return per_class, pooled


MOST_KEPT = 1 << 28
"""Bytes of a matrix that is kept, so that what is shown of a class is made on demand."""


@dataclass(frozen=True, eq=False)
class RowsOfClasses:
    """The rows of all classes, and what the reduction knows of their likeliest ones.

    They are a copy if they are `kept`, by which a record does not change with its input,
    and have the numbers of a class side by side.
    """

    predictions: Predictions
    top: Columns
    kept: bool

    @classmethod
    def of(cls, given: Predictions, top: Columns) -> RowsOfClasses:
        """Of these rows; where they are many, for one time only."""
        if given.scores.nbytes + given.labels.nbytes > MOST_KEPT:
            return cls(given, top, kept=False)
        w, w2 = (None if x is None else x.copy() for x in (given.weight, given.squared))
        scores, labels = (x.copy(order="F") for x in (given.scores, given.labels))
        rows = replace(given, scores=scores, labels=labels, weight=w, squared=w2)
        return cls(rows, top, kept=True)

    def sample(self, settings: Settings, about: tuple[Any, ...], j: int) -> Sample:
        """That of one class against the rest."""
        columns = columns_of_class(self.predictions, self.top, j)
        return Sample.of_rows(columns, settings, "positive", *about)

    def later(self, make: Callable[[], Sample]) -> Callable[[], Sample] | None:
        """What makes a sample once more, if the rows for it are kept."""
        return make if self.kept else None


def _one_of_classes(
    sample: Sample, name: str, again: Callable[[], Sample] | None
) -> Evaluation:
    """The record of a class: what all classes are asked for, and the rest on demand.

    `again` makes the sample once more; without it all is made at once.
    """
    if again is None:
        return evaluate_sample(sample, name, keep=False)
    settings, metrics = sample.settings, dict(METRICS)
    plain = decompose(sample.shared, settings, sample.factor)

    def others() -> dict[str, Any]:
        with using(settings.engine):
            fresh = again()
            found = curves_of(fresh.shared, settings), analyse_as_paper(fresh.shared)
            return _with_curves(fresh, *found, metrics)

    def paper() -> dict[str, Decomposition]:
        with using(settings.engine):
            return dict(analyse_as_paper(again().shared).decompositions)

    return Evaluation.knowing(
        others,
        **_without_curves(sample, name),
        decompositions=_with_intervals(plain, sample),
        paper_decompositions=plain if _as_paper(sample) else Later(plain, paper),
    )


def _rows_of_group(predictions: Predictions, name: str) -> Predictions:
    """The rows of one group, their weights of mean 1 and their clusters numbered anew."""
    assert predictions.groups is not None
    own = predictions.groups == name
    mass, squared = predictions.weight, predictions.squared
    counted = np.arange(len(predictions.scores))
    if mass is not None:
        counted = np.flatnonzero(mass > 0)
    rows = counted[own]
    if mass is not None and squared is not None:
        mass, squared = mass[rows], squared[rows]
        factor = float(np.rint(mass**2 / squared).sum() / mass.sum())
        mass, squared = mass * factor, squared * factor**2
    elif mass is not None:
        mass = mass[rows]
    clusters, together = (
        None if x is None else np.unique(x[own], return_inverse=True)[1]
        for x in (predictions.clusters, predictions.cluster_groups)
    )
    return Predictions(
        predictions.scores[rows],
        predictions.kind,
        predictions.labels[rows],
        mass,
        predictions.target,
        predictions.classes,
        clusters,
        None,
        squared,
        together,
    )


def _names_of(predictions: Predictions) -> list[str]:
    return [] if predictions.groups is None else np.unique(predictions.groups).tolist()


class Together:
    """What classes say together: their calibration error, and how much it varies.

    A class has few events, so what finer levels show of it is often too little to be
    believed, and adds up all the same: it is judged as a sum over all classes. And classes
    share their rows: those of a binary problem say the same twice, so a sum over them
    varies twice as much as one of independent classes; many have little in common.
    """

    def __init__(self) -> None:
        self.sums: dict[str, Column] = {}
        self.alone: dict[str, float] = {}
        self.error: Callable[[Column], float] | None = None
        self.levels: dict[str, list[Table | None]] = {}
        self.metrics: dict[str, list[float]] = {}
        self.by_row: Table | None = None

    def add(self, sample: Sample) -> None:
        """One more class, by its sums."""
        for name in sample.cells.divergences:
            self.levels.setdefault(name, []).append(sample.shared.levels(name))
        self.add_metrics(sample)

    def add_metrics(self, sample: Sample) -> None:
        """What a mean over classes, or the largest of them, is taken of."""
        for key, metric in METRICS.items():
            if metric.per_class in OVER_CLASSES:
                self.metrics.setdefault(key, []).append(float(metric.value(sample)))

    def add_rows(self, sample: Sample) -> None:
        """How its rows move d_CAL, and its losses."""
        mixed, by_row = values_by_level(sample.columns, sample.shared)
        values = {"calibration": mixed}
        self.by_row = by_row if self.by_row is None else self.by_row + by_row
        for name, divergence in sample.cells.divergences.items():
            values[name] = sample.columns.loss(divergence)
        self.error = sample.rows.error_of
        for key, x in values.items():
            if np.isfinite(x).all():
                self.sums[key] = self.sums.get(key, 0.0) + x
                self.alone[key] = self.alone.get(key, 0.0) + self.error(x) ** 2

    def calibration(self, name: str) -> tuple[float, float] | None:
        """The error of all classes and its standard error; None if not known."""
        each = self.levels.get(name, [None])
        found = [x for x in each if x is not None]
        if len(found) < len(each):
            return None
        values, variances = np.sum(found, axis=0).T
        # What rises again after a fall is no news.
        rises, sizes = rises_of(np.maximum.accumulate(values), variances)
        belief = believed(sizes[1:])
        variance = variances[0] + float(belief @ np.diff(variances).clip(0))
        variance *= min(self.factor("calibration"), len(found))
        if self.by_row is not None and self.error is not None and name == BRIER.name:
            shares = -np.diff(belief, prepend=1.0, append=0.0)
            variance += self.error(shares @ self.by_row) ** 2
        return float(values[0] + belief @ rises[1:]), sqrt(variance)

    def factor(self, key: str) -> float:
        """Of the variance; infinite, for the worst case, where rows are not known."""
        if key not in self.sums or self.error is None:
            return inf
        alone, whole = self.alone[key], self.error(self.sums[key]) ** 2
        return max(whole / alone, 1.0) if alone > 0 else inf


def summed(
    parts: Sequence[Estimate],
    factor: float,
    found: tuple[float, float] | None = None,
    level: float = 0.95,
) -> Estimate:
    """The sum of numbers >= 0 of the classes, and its interval.

    Distances of ends are added in squares, times what classes have in common; at most
    they add up. Where a class begins at 0, how far the number may be above says how far
    it may be below. `found` is the sum as estimated from all classes together, and its
    standard error, if these are known.
    """
    value = sum(float(part) for part in parts)
    ends = [(part, part.interval) for part in parts if part.interval is not None]
    if len(ends) < len(parts) or not isfinite(value):
        return Estimate(value)
    up = np.array([high - float(part) for part, (_, high) in ends])
    down = np.array([float(part) - low if low > 0 else 0 for part, (low, _) in ends])
    down = np.where([low > 0 for _, (low, _) in ends], down, up)
    above, below = (
        min(sqrt(min(factor, len(parts)) * float(x @ x)), float(x.sum()))
        for x in (up, down)
    )
    if found is not None:
        value, se = found
        above, below = (max(x, quantile(level) * se) for x in (above, below))
    interval = max(value - below, 0.0), max(value + above, 0.0)
    plain = (parts[0].method or "").removeprefix(closed_forms.ONE_SIDED)
    return Estimate(value, interval, closed_forms.named(plain, interval))


def add_up(
    per_class: list[Evaluation],
    pooled: Cells,
    whole: Sample,
    name: str,
    together: Together,
) -> Evaluation:
    """One record of all classes; `pooled` are the sums of all of them together.

    `whole` is the sample of the likeliest classes, which has the full losses.
    """
    settings = whole.settings
    cells = cells_of_sketch(pooled)  # the rows of all classes, to 0.02 in log-odds
    values = Ordered.of(cells.h, cells.weight, cells.hits, cells.hits2)
    decompositions, of_paper = _added(per_class, whole, together)
    shared, names = Shared(None, pooled, settings.level), tuple(pooled.divergences)
    drawn, as_paper = curves_of(shared, settings), analyse_as_paper(shared).curves
    return Evaluation(
        name=name,
        n=whole.cells.count,
        n_effective=whole.cells.effective,
        n_clusters=per_class[0].n_clusters,
        folded=per_class[0].folded,
        rows=whole.cells.rows,
        k=len(per_class),
        target="class-wise",
        divergence=settings.main.name,
        decompositions=decompositions,
        curves=Later(names, lambda: _bare(drawn)),
        paper_decompositions=Later(names, of_paper),
        paper_curves=Later(names, lambda: _bare(as_paper)),
        metrics=Named(_class_metrics(whole, together.metrics)),
        bins=_pooled_bins([ev.bins for ev in per_class]),
        mass_bins=mass_bins(values, settings.bins),
        atoms=_pooled_atoms([ev.atoms for ev in per_class]),
        isotonic=Isotonic.of(values).bins(),
        smooth=smooth_curve(pooled, smooth_error_of_sketch(pooled)),
        histogram=binning.histogram(pooled),
        log_odds_histogram=binning.log_odds_histogram(pooled),
        infinite_rows=whole.cells.infinite_weight("log"),
        distinct=max(ev.distinct for ev in per_class),
        largest_share=min(ev.largest_share for ev in per_class),
        settings=settings.to_dict(),
        per_class=tuple(per_class),
        duplicates=max(ev.duplicates for ev in per_class),
    )


def _added(
    per_class: list[Evaluation], whole: Sample, together: Together
) -> tuple[dict[str, Decomposition], Callable[[], dict[str, Decomposition]]]:
    """The sum of the decompositions over classes, and what makes that of the paper's."""
    level, full = whole.settings.level, METRICS["brier"].estimate(whole)
    factors = {name: together.factor(name) for name in whole.cells.divergences}
    found = {name: together.calibration(name) for name in factors}
    factors["calibration"] = together.factor("calibration")

    def as_paper() -> dict[str, Decomposition]:
        each = [ev.paper_decompositions for ev in per_class]
        return {name: _sum_of(each, name, full, factors) for name in found}

    each = [ev.decompositions for ev in per_class]
    return {
        name: _sum_of(each, name, full, factors, known, level)
        for name, known in found.items()
    }, as_paper


def _sum_of(
    each: Sequence[Mapping[str, Decomposition]],
    name: str,
    full: Estimate,
    factors: Mapping[str, float],
    *known: Any,
) -> Decomposition:
    """Of one divergence; `known` is what `summed` is told of the calibration error."""
    parts = [found[name] for found in each]
    total = summed([part.total for part in parts], factors[name])
    if name == BRIER.name:  # the losses of the classes add up to the full loss
        total = Estimate(float(total), full.interval, full.method)
    errors = [part.calibration for part in parts]
    error = summed(errors, factors["calibration"], *known)
    plain = replace(parts[0], total=total, calibration=error, gap=None)
    return replace(plain, resolution=None, p_value=None)


def _bare(curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """Of all classes, which share their rows: a band would be too narrow."""
    return {name: replace(c, **_no_band(c)) for name, c in curves.items()}


def _no_band(curve: Curve) -> dict[str, Any]:
    nothing = np.full_like(curve.confidence, np.nan)
    return dict.fromkeys(("low", "high", "band_low", "band_high"), nothing)


def _class_metrics(
    whole: Sample, per_class: Mapping[str, Sequence[float]]
) -> dict[str, Estimate]:
    """Full losses and accuracy of the model; of everything else what METRICS says."""
    found = {
        key: metric.estimate(whole)
        for key, metric in METRICS.items()
        if metric.per_class == "model" and metric.applies(whole)
    }
    for key, metric in METRICS.items():
        if metric.per_class in OVER_CLASSES:
            found[key] = Estimate(metric.over_classes(per_class[key]))
    return found


def _pooled_bins(bins: list[Bins]) -> Bins:
    count = np.stack([b.count for b in bins])
    total = count.sum(axis=0)
    whole = np.where(total > 0, total, np.nan)
    accuracy = np.stack([b.accuracy for b in bins])
    squares = np.stack([b.variance for b in bins]) + accuracy**2
    h, a, a2 = (
        np.nansum(count * x, axis=0) / whole
        for x in (np.stack([b.confidence for b in bins]), accuracy, squares)
    )
    spread = np.maximum(a2 - a**2, 0.0)
    return Bins(bins[0].lower, bins[0].upper, total, h, a, spread)


def _pooled_atoms(atoms: list[Bins]) -> Bins:
    """Distinct confidences of all classes together, if each class has few."""
    if any(len(a.count) == 0 for a in atoms):
        return Bins(*np.empty((6, 0)))
    h, n, m, v = (
        np.concatenate([getattr(a, name) for a in atoms])
        for name in ("confidence", "count", "accuracy", "variance")
    )
    index = np.argsort(h, kind="stable")
    h, n, m, v = h[index], n[index], m[index], v[index]
    starts = starts_of_values(h)
    gathered = gather(starts, n, n * m, n * (v + m * m))
    return binning.atoms(Ordered.of(h[starts], *gathered))


# ----------------------------------------------------------------------------
# From sums to an evaluation: the same record as from the rows.


def evaluate_sketch(sketch: Sketch, settings: Settings, name: str) -> Evaluation:
    """The record of all rows in a sketch."""
    kind, cells = sketch.checked(), sketch.cells
    if kind is None:
        raise ValueError("the sketch holds no row of positive weight; nothing is left.")
    if settings.main.name not in kind.divergences:
        raise ValueError(
            f"the sketch holds {', '.join(kind.divergences)}, not "
            f"{settings.main.name!r}. Give it to Sketch(divergence=...) before any rows."
        )
    if settings.counterpart == "tight" and kind.target != "top-label":
        raise ValueError("counterpart='tight' applies to target='top-label' only.")
    if settings.counterpart == "tight" and not kind.classes:
        raise ValueError("counterpart='tight' needs Sketch(classes=...): their number.")
    if kind.target == "class-wise":
        return _each_class(sketch, kind, settings, name)
    found = _evaluate(cells, kind, settings, name)
    groups = {
        group: _evaluate(own, kind, settings, group_name(name, group))
        for group, own in sorted(sketch.groups.items())
    }
    found = replace(found, per_group=groups, soft_rows=sketch.soft_rows)
    return _naming_positive(found, kind.classes)


def check_alone(rows: Iterable[object]) -> None:
    """Raise if rows, or what belongs to rows, are given beside a sketch."""
    if any(given is not None for given in rows):
        raise TypeError(
            "a sketch already holds its rows: give scores, classes, target, "
            "sample_weight, frequency, cluster and group to Sketch and its update."
        )


def _evaluate(cells: Cells, kind: Kind, settings: Settings, name: str) -> Evaluation:
    sample = sample_of_cells(cells, settings, kind.target, len(kind.classes) or None)
    sample.within_error = _top_label_error(cells, settings)
    return replace(evaluate_sample(sample, name), sum_of_weights=_weight_of(cells))


def _weight_of(cells: Cells) -> float | None:
    """What weights add up to, if there are any."""
    return None if cells.squares is None else cells.weight


def sample_of_cells(
    cells: Cells, settings: Settings, target: str, k: int | None
) -> Sample:
    """Rows that stand for those of a sketch, beside its sums."""
    cells = cells.scaled()
    own = cells.columns(cut=settings.adaptive), cells.sums(), settings, target, k
    sample = Sample(*own, sketched=True, exact=cells.exact)
    if cells.clusters is None:
        return sample
    check_clusters(cells.clusters.count)
    columns, numbers = cells.clustered_columns()
    return replace(sample, clustered=columns, clusters=numbers, cluster_groups=numbers)


def _top_label_error(cells: Cells, settings: Settings) -> float | None:
    """The error within bins of each predicted class, if bins are whole ones of ours."""
    if cells.within is None or CLASS_BINS % settings.bins or settings.closed != "right":
        return None
    each = cells.within.reshape(len(cells.within), settings.bins, -1).sum(axis=2)
    return float(np.abs(each).sum() / cells.weight)


def _each_class(
    sketch: Sketch, kind: Kind, settings: Settings, name: str
) -> Evaluation:
    classes, plain = kind.classes, replace(settings, interval=None)
    per_class, sums, together = [], [], Together()
    for label, cells in zip(classes, sketch.per_class, strict=True):
        sample = sample_of_cells(cells, plain, "positive", len(classes))
        sums.append(sample.cells)
        per_class.append(evaluate_sample(sample, str(label), keep=False))
        together.add(sample)
    whole = sample_of_cells(sketch.cells, settings, "class-wise", len(classes))
    found = add_up(per_class, reduce(add, sums), whole, name, together)
    total = _weight_of(sketch.cells)
    return replace(found, soft_rows=sketch.soft_rows, sum_of_weights=total)
