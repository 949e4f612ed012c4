"""`decision_curve` and `murphy`: what acting on the forecasts gains, at every threshold.

Whoever acts from a probability t on says that a false alarm costs t / (1 - t) of what a
hit gains. Net benefit counts gains, the Murphy diagram costs: one follows from the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import MOST_NAME, check_kind, one_line, shown
from calibrant._base.evaluation import Evaluation
from calibrant._base.records import (
    Columnar,
    Estimate,
    Positive,
    Range,
    Shares,
    Target,
    Whole,
)
from calibrant._base.views import Plotted, Printed
from calibrant._inputs.arrays import Column, Mask, as_scores
from calibrant._inputs.options import Scores, takes_scores
from calibrant._rows.columns import Columns
from calibrant._stats import closed_forms, intervals
from calibrant._stats.closed_forms import Mean, Surprises
from calibrant._stats.sample import Sample
from calibrant._stats.standard_errors import Rows, parts_of_error
from calibrant._verbs.compare import same_clusters, same_rows
from calibrant._verbs.compare_groups import digits_of
from calibrant._verbs.reading import Given, examples_of, read_sample

Numbers = Annotated[NDArray[np.float64], Range()]
Level = Annotated[float, Range(0, 1, above=True)]

USUAL = np.linspace(0.01, 0.99, 99)
"""Thresholds of a decision curve, if none are chosen."""

PRINTED, RARE, MOST_PRINTED = (0.05, 0.1, 0.2, 0.3, 0.5), (0.01, 0.02), 10
"""Thresholds that are printed of many, more of them for rare events, and how many at most."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DecisionCurve(Plotted, Printed, Columnar):
    """Net benefit of acting from a threshold on, at every threshold.

    Attributes
    ----------
    threshold : array
        The probability from which on one acts.
    net_benefit, low, high : arrays
        Share of true positives, less that of false positives times t / (1 - t); with its
        pointwise interval. With a `baseline`, what there is more than of that model.
    treat_all : array
        Net benefit of acting always; that of never acting is 0.
    n, rate, level : float
        Examples, share of events, and coverage of the intervals.
    name, baseline, target : str
        The model, the one it is compared with, if any, and what was asked.
    n_clusters, folded : int or None, bool
        Clusters, if they were given, and whether a sketch could not tell them all apart.

    Examples
    --------
    >>> import calibrant as cal
    >>> curve = cal.decision_curve([1, 0, 0, 1], probs=[0.9, 0.2, 0.6, 0.4], thresholds=[0.5])
    >>> float(curve.net_benefit[0]), float(curve.treat_all[0])
    (0.0, 0.0)
    """

    name: str
    baseline: str
    target: Target
    n: Positive
    level: Level
    rate: Annotated[float, Range(0, 1)]
    threshold: Shares
    net_benefit: Numbers
    low: Numbers
    high: Numbers
    treat_all: Numbers
    n_clusters: Whole | None = None
    folded: bool = False

    _figure: ClassVar[str] = "decision_curve"

    def _disagreement(self) -> str | None:
        return Columnar._disagreement(self) or _outside(
            self.low, self.net_benefit, self.high
        )

    def __str__(self) -> str:
        return "\n".join(_decision_lines(self))

    def __repr__(self) -> str:
        return f"DecisionCurve({_called(self)}, {len(self.threshold)} thresholds)"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Murphy(Plotted, Printed, Columnar):
    """Mean elementary score at every threshold; the area below it is the Brier score.

    Attributes
    ----------
    threshold : array
        The threshold t of a decision: its costs are t for a false alarm, 1 - t for a miss.
    score, low, high : arrays
        Twice the mean cost, with its pointwise interval. With a `baseline`, what there is
        more than of that model: below 0 the model is better.
    area : Estimate
        The area below the score: the Brier score of one probability, mean (p - y)^2, or
        the difference of two.
    n, level : float
        Examples, and coverage of the intervals.
    name, baseline, target : str
        The model, the one it is compared with, if any, and what was asked.
    n_clusters, folded : int or None, bool
        Clusters, if they were given, and whether a sketch could not tell them all apart.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.murphy([1, 0], probs=[0.75, 0.25])
    >>> float(found.area)
    0.0625
    """

    name: str
    baseline: str
    target: Target
    n: Positive
    level: Level
    area: Estimate
    threshold: Shares
    score: Numbers
    low: Numbers
    high: Numbers
    n_clusters: Whole | None = None
    folded: bool = False

    _figure: ClassVar[str] = "murphy"

    def _disagreement(self) -> str | None:
        return Columnar._disagreement(self) or _outside(self.low, self.score, self.high)

    def __str__(self) -> str:
        return "\n".join(_murphy_lines(self))

    def __repr__(self) -> str:
        return f"Murphy({_called(self)}, area {self.area:.4f})"


def _outside(low: Column, value: Column, high: Column) -> str | None:
    off = (low > value + 1e-9) | (value > high + 1e-9)
    return "has a value outside its interval" if off.any() else None


# -- the verbs --------------------------------------------------------------------------


@takes_scores
def decision_curve(
    y: Any,
    *,
    thresholds: Any = None,
    baseline: Evaluation | None = None,
    cluster: Any = None,
    level: float = 0.95,
    name: str | None = None,
    **given: Unpack[Scores],
) -> DecisionCurve:
    r"""Net benefit by threshold (Vickers and Elkin 2006): is acting on it worth it.

    Parameters
    ----------
    thresholds : array_like, optional
        Probabilities from which on one acts, above 0 and below 1; by default 0.01 to 0.99.
    baseline : Evaluation, optional
        Another model of the same rows, from which net benefit is then counted; ``y`` must
        be an Evaluation, too.
    cluster : array_like, optional
        The cluster of each row, if rows depend on each other.
    level : float
        Coverage of the intervals.
    name : str, optional
        The model's name.

    Returns
    -------
    DecisionCurve
        Net benefit with intervals, and that of acting always.

    Notes
    -----
    With TP and FP the shares of examples that are acted on rightly and wrongly,

    .. math:: \mathrm{NB}(t) = \mathrm{TP}(t) - \frac{t}{1 - t} \mathrm{FP}(t) .

    One acts where :math:`p \ge t`. The event is the positive class; with other targets it
    is that the prediction is right. Each example counts by what it adds, so that weights
    and clusters are heeded; where few are surprising, by what surprises cost.

    Examples
    --------
    >>> import calibrant as cal
    >>> curve = cal.decision_curve([1, 0, 0, 1], probs=[0.9, 0.2, 0.6, 0.4], thresholds=[0.25])
    >>> round(float(curve.net_benefit[0]), 4), round(float(curve.treat_all[0]), 4)
    (0.4167, 0.3333)
    """
    at = _read_thresholds(thresholds, USUAL, inside=True)
    one, other = _read_both(y, given, cluster, name, level, baseline)
    value, low, high = _along(one.sample, other, at, _benefit)
    rate = one.sample.columns.mean(one.sample.columns.hit)
    return DecisionCurve(
        name=one.name,
        baseline="" if baseline is None else baseline.name,
        target=one.sample.target,
        **one.size,
        level=level,
        rate=min(rate, 1.0),
        threshold=at,
        net_benefit=value,
        low=low,
        high=high,
        treat_all=rate - (1 - rate) * at / (1 - at),
    )


@takes_scores
def murphy(
    y: Any,
    *,
    thresholds: Any = None,
    baseline: Evaluation | None = None,
    cluster: Any = None,
    level: float = 0.95,
    name: str | None = None,
    **given: Unpack[Scores],
) -> Murphy:
    r"""Murphy diagram: the mean cost of decisions, for all thresholds at once.

    Parameters
    ----------
    thresholds : array_like, optional
        From 0 to 1; by default 0 to 1 in steps of 0.01.
    baseline : Evaluation, optional
        Another model of the same rows, whose score is then subtracted, row by row; ``y``
        must be an Evaluation, too.
    cluster : array_like, optional
        The cluster of each row, if rows depend on each other.
    level : float
        Coverage of the intervals.
    name : str, optional
        The model's name.

    Returns
    -------
    Murphy
        The score at each threshold with intervals, and its area, the Brier score.

    Notes
    -----
    The elementary score of a probability p of an outcome y is

    .. math:: S_t(p, y) = 2 t\, [p \ge t, y = 0] + 2 (1 - t)\, [p < t, y = 1] ,

    and :math:`\int_0^1 S_t(p, y)\, dt = (p - y)^2`. Without the factor 2, as in
    model-diagnostics, the area is half the Brier score. Every proper score is a mixture
    of elementary ones: a model that is lower everywhere is better by all of them
    (Ehm et al. 2016). Net benefit is :math:`P(y = 1) - S_t / (2 (1 - t))`.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.murphy([1, 0], probs=[0.75, 0.25], thresholds=[0.2, 0.5])
    >>> found.score.tolist()
    [0.2, 0.0]
    """
    at = _read_thresholds(thresholds, np.linspace(0, 1, 101), inside=False)
    one, other = _read_both(y, given, cluster, name, level, baseline)
    value, low, high = _along(one.sample, other, at, _cost)
    return Murphy(
        name=one.name,
        baseline="" if baseline is None else baseline.name,
        target=one.sample.target,
        **one.size,
        level=level,
        area=_area(one.sample, other),
        threshold=at,
        score=value,
        low=low,
        high=high,
    )


def _read_thresholds(given: Any, usual: Column, *, inside: bool) -> Column:
    at = usual if given is None else np.atleast_1d(as_scores(given, "thresholds"))
    at = at.astype(np.float64)
    fits = (at > 0) & (at < 1) if inside else (at >= 0) & (at <= 1)
    rises = at.ndim == 1 and at.size > 0 and bool((np.diff(at) > 0).all())
    if not (rises and fits.all()):
        ends = "between 0 and 1" if inside else "from 0 to 1"
        raise ValueError(
            f"thresholds must be increasing numbers {ends}, got {shown(given)}."
        )
    return at


def _read_both(
    y: Any,
    given: Scores,
    cluster: Any,
    name: str | None,
    level: float,
    baseline: Evaluation | None,
) -> tuple[Given, Sample | None]:
    """The model, and the sample of the one it is compared with, on the same rows."""
    one = read_sample(y, given, cluster, name, level)
    check_one_event(one.sample)
    if baseline is None:
        return one, None
    if not isinstance(y, Evaluation):
        raise TypeError(
            "baseline= compares two Evaluations; evaluate both models first."
        )
    check_kind(baseline, Evaluation, "baseline")
    other = read_sample(baseline, {}, None, None, level).sample
    if y.target != baseline.target or not (
        same_rows(y, baseline) and same_clusters(y, baseline)
    ):
        raise ValueError(
            f"{y.name!r} and {baseline.name!r} were evaluated on different rows, targets "
            "or clusters. Evaluate both on the same rows in the same order."
        )
    return one, other


def check_one_event(sample: Sample) -> None:
    """Refuse what asks for every class at once."""
    if sample.target == "class-wise":
        raise ValueError(
            "a decision is about one event; evaluate with target='positive' for a class, "
            "or target='top-label' for whether the prediction is right."
        )


# -- means over examples, at each threshold ------------------------------------------------

Worth = Callable[[Mask, float], tuple[Column, Column]]
"""What an example adds if it is a miss, and if it is a hit; by who is acted on, and t."""


def _benefit(acted: Mask, t: float) -> tuple[Column, Column]:
    return np.where(acted, -t / (1 - t), 0.0), np.where(acted, 1.0, 0.0)


def _cost(acted: Mask, t: float) -> tuple[Column, Column]:
    return np.where(acted, 2 * t, 0.0), np.where(acted, 0.0, 2 * (1 - t))


def _along(
    one: Sample, other: Sample | None, at: Column, worth: Worth
) -> tuple[Column, Column, Column]:
    """Value and ends at each threshold, of one model or of its difference to another."""
    found = [_at(one, other, float(t), worth) for t in at]
    value, low, high = np.array(found).T
    return value, low, high


def _at(
    one: Sample, other: Sample | None, t: float, worth: Worth
) -> tuple[float, float, float]:
    rows, columns = one.rows, one.rows.columns
    values, possible = _worth_of(one, t, worth)
    if other is not None:
        theirs = other.rows.columns
        if np.array_equal(columns.confidence, theirs.confidence):
            return 0.0, 0.0, 0.0
        values = values - _worth_of(other, t, worth)[0]
        possible = np.unique(possible[:, None] - possible)
    mean = mean_of_few(rows, values, possible, paired=other is not None)
    low, high = closed_forms.mean_interval(mean, one.settings.level)
    return columns.mean(values), low, high


def _worth_of(sample: Sample, t: float, worth: Worth) -> tuple[Column, Column]:
    """What each example adds at a threshold, and all that one can add."""
    columns = sample.rows.columns
    miss_adds, hit_adds = worth(columns.confidence >= t, t)
    possible = np.unique(worth(np.array([True, False]), t))
    return miss_adds + (hit_adds - miss_adds) * columns.hit, possible


def mean_of_few(rows: Rows, values: Column, possible: Column, *, paired: bool) -> Mean:
    """A mean of few possible values, of which all but the usual one may be rare.

    Examples of any other value are surprises, each at what it is more or less than usual.
    The dear ones tell what a cluster may cost; those of a difference all do, since models
    that hardly disagree may never differ by the most.
    """
    columns = rows.columns
    usual = min(possible, key=lambda x: float(columns.weights @ np.abs(values - x)))
    off = values - usual

    def on(side: int, most: float) -> Surprises:
        tells = np.abs(off) > 1e-12 if paired else 2 * side * off > most
        telling = rows.independent(columns.weights * tells)
        return _unusual(columns, np.maximum(side * off, 0.0), most, telling)

    return MeanOfFew(
        columns.mean(values),
        rows.error_of(values),
        freedom_of(rows, values),
        on(1, float(possible[-1] - usual)),
        on(-1, float(usual - possible[0])),
        rows.per_cluster,
    )


@dataclass(frozen=True, slots=True)
class MeanOfFew(Mean):
    """A mean whose surprises have unlike costs: many cheap ones do not make up for few dear.

    They are counted together, with one more of each kind.
    """

    @property
    def share(self) -> float:
        """Share of the gamma interval, by how many of equal cost would vary as much."""
        both = self.rises, self.falls
        total = sum(x.total + x.next for x in both)
        square = sum(x.variance + x.next**2 for x in both)
        return closed_forms.share_of_few(total**2 / square) if square > 0 else 0.0


def freedom_of(rows: Rows, values: Column) -> float:
    """Degrees of freedom of the error of a mean, by how much its square varies.

    Satterthwaite's: a few rows or clusters that make up most of it leave few, however many
    there are.
    """
    columns = rows.columns
    given = columns.weight, rows.clusters, columns.squared
    squares, count, _ = parts_of_error(values, *given)
    total, units = float(squares.sum()), float(count.sum())
    spread = float((squares * squares / count).sum()) - total**2 / units
    return min(2 * total**2 / spread, rows.df) if spread > 0 else rows.df


def _unusual(columns: Columns, cost: Column, most: float, telling: float) -> Surprises:
    """Costs of examples as a sum, of which the next may be as large as `most`."""
    total = columns.mean(cost)
    square = float(columns.squares @ (cost - total) ** 2) / columns.total_weight**2
    return Surprises(total, square, most / columns.effective, most, telling)


def _area(one: Sample, other: Sample | None) -> Estimate:
    """The Brier score of one probability, or the difference of two."""
    rows, columns, level = one.rows, one.rows.columns, one.settings.level
    if other is None:
        return of_square(rows, level)
    theirs = other.rows.columns
    values = (columns.hit - columns.confidence) ** 2
    values -= (theirs.hit - theirs.confidence) ** 2
    mean = Mean(columns.mean(values), rows.error_of(values), freedom_of(rows, values))
    ends = closed_forms.mean_interval(mean, level)
    return Estimate(
        mean.value, ends, "paired" if one.clusters is None else "paired, clusters"
    )


def of_square(rows: Rows, level: float) -> Estimate:
    """Mean square of hit less confidence, the Brier score of one probability."""
    columns, ordered = rows.columns, rows.ordered
    squares = (columns.hit - columns.confidence) ** 2
    if not rows.df > 0:
        return Estimate(columns.mean(squares))
    costs = intervals.surprised_at(ordered, np.abs(1 - 2 * ordered.confidence))
    about = rows.error_of(squares), freedom_of(rows, squares), costs
    mean = Mean(columns.mean(squares), *about, whole=rows.per_cluster)
    low, high = closed_forms.mean_interval(mean, level)
    return Estimate(mean.value, (max(low, 0.0), min(high, 1.0)), mean.method)


# -- in words ---------------------------------------------------------------------------


def _called(found: DecisionCurve | Murphy) -> str:
    name = one_line(found.name, MOST_NAME)
    return (
        f"{name} less {one_line(found.baseline, MOST_NAME)}" if found.baseline else name
    )


def _some(threshold: Column, rate: float = 1.0) -> list[int]:
    """Places of the thresholds that are printed: all if few, else round or spread ones."""
    count = len(threshold)
    if count <= MOST_PRINTED:
        return [*range(count)]
    wanted = (*RARE, *PRINTED) if rate < PRINTED[0] else PRINTED
    near = [int(np.abs(threshold - t).argmin()) for t in wanted]
    hit = [i for i, t in zip(near, wanted, strict=True) if abs(threshold[i] - t) < 1e-9]
    if len(hit) >= len(PRINTED) - 1:
        return hit
    return [int(x) for x in np.linspace(0, count - 1, MOST_PRINTED - 2).round()]


def _threshold(t: float) -> str:
    """With two decimals, or as many as it has, up to four digits."""
    return f"{t:.2f}" if abs(t - round(t, 2)) < 1e-9 else f"{t:.4g}"


def _decision_lines(found: DecisionCurve) -> Iterator[str]:
    yield f"{_called(found)}: net benefit, {examples_of(found)}, event rate {found.rate:.4f}"
    yield ""
    treat_all = "" if found.baseline else "      treat all"
    yield f"  threshold  net benefit  [{100 * found.level:g}% interval]{treat_all}"
    places = _some(found.threshold, found.rate)
    d = digits_of(Estimate(float(found.net_benefit[i])) for i in places)
    for i in places:
        ends = f"[{found.low[i]:+z.{d}f}, {found.high[i]:+z.{d}f}]"
        every = "" if found.baseline else f"   {found.treat_all[i]:+z.{d}f}"
        value, t = found.net_benefit[i], _threshold(found.threshold[i])
        yield f"  {t:>8}   {value:+z.{d}f}      {ends}{every}"
    yield ""
    if found.baseline:
        yield f"Above 0 {one_line(found.name, MOST_NAME)} has the larger net benefit."
    else:
        yield "Treating none has a net benefit of 0."
    if found.rate < USUAL[0] and np.array_equal(found.threshold, USUAL):
        yield "The event rate is below all thresholds: give some near it, thresholds=."


def _murphy_lines(found: Murphy) -> Iterator[str]:
    known = found.area.interval
    area = "" if known is None else f" [{known[0]:z.4f}, {known[1]:z.4f}]"
    yield f"{_called(found)}: Murphy diagram, {examples_of(found)}"
    yield ""
    yield f"  area (Brier)  {found.area:z.4f}{area}"
    yield f"  threshold     score   [{100 * found.level:g}% interval]"
    for i in _some(found.threshold):
        ends = f"[{found.low[i]:z.4f}, {found.high[i]:z.4f}]"
        t = _threshold(found.threshold[i])
        yield f"  {t:>9}    {found.score[i]:>z7.4f}  {ends}"
