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

from calibrant._base.checks import MOST_NAME, one_line, shown
from calibrant._base.evaluation import Evaluation
from calibrant._base.records import (
    Columnar,
    Estimate,
    Positive,
    Range,
    Shares,
    Target,
)
from calibrant._base.views import Plotted, Printed
from calibrant._inputs.arrays import Column, Mask, as_scores
from calibrant._inputs.options import Scores, takes_scores
from calibrant._stats import closed_forms
from calibrant._stats.closed_forms import NOTHING, Mean, Surprises
from calibrant._stats.sample import Sample
from calibrant._stats.standard_errors import degrees_of_freedom, error_of_mean
from calibrant._verbs.compare import same_clusters, same_rows
from calibrant._verbs.reading import Given, read_sample

Numbers = Annotated[NDArray[np.float64], Range()]
Level = Annotated[float, Range(0, 1, above=True)]

MANY = 2000.0
"""So many events among those acted on that few surprises need not be thought of."""

PRINTED = (0.05, 0.1, 0.2, 0.3, 0.5)


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
    at = _read_thresholds(thresholds, np.linspace(0.01, 0.99, 99), inside=True)
    one, other = _read_both(y, given, cluster, name, level, baseline)
    value, low, high = _along(one.sample, other, at, _benefit)
    rate = one.sample.columns.mean(one.sample.columns.hit)
    return DecisionCurve(
        name=one.name,
        baseline="" if baseline is None else baseline.name,
        target=one.sample.target,
        n=one.n,
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
        n=one.n,
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
    columns, level = one.rows.columns, one.settings.level
    h, hit = columns.confidence, columns.hit
    miss_adds, hit_adds = worth(h >= t, t)
    values = miss_adds + (hit_adds - miss_adds) * hit
    rises = falls = NOTHING
    if other is not None:
        theirs = other.rows.columns
        subtracted = worth(theirs.confidence >= t, t)
        values = values - subtracted[0] - (subtracted[1] - subtracted[0]) * theirs.hit
        if np.array_equal(h, theirs.confidence):
            return 0.0, 0.0, 0.0
        if one.target == "positive":
            rest = miss_adds - subtracted[0], hit_adds - subtracted[1]
            rises, falls = _surprises(one, 0.5 * (h + theirs.confidence), *rest)
    else:
        rises, falls = _surprises(one, h, miss_adds, hit_adds)
    se = error_of_mean(values, columns.weight, one.clusters, columns.squared)
    value, df = columns.mean(values), degrees_of_freedom(columns, one.clusters)
    mean = Mean(value, se, df, rises, falls, one.clusters is not None)
    low, high = closed_forms.mean_interval(mean, level)
    down, up = _unseen(one, values, worth, t, paired=other is not None)
    return value, min(low, value - down), max(high, value + up)


FEW = 20.0
"""Up to so many examples that matter, more of them may be what was not seen."""


def _unseen(
    sample: Sample, values: Column, worth: Worth, t: float, *, paired: bool
) -> tuple[float, float]:
    """How much less, and more, there may be if more examples are acted on than were.

    Where hardly any is, their number is what is not known: at most what Wilson's interval
    of their share leaves room for, at what one can lose or gain at most.
    """
    rows = sample.rows
    matter = rows.columns.mean((values != 0).astype(np.float64))
    n = min(rows.independent(rows.columns.weights), rows.ordered.effective)
    if matter * n >= FEW:
        return 0.0, 0.0
    more = closed_forms.of_share(matter, n, sample.settings.level)[1] - matter
    acted, not_acted = (np.array(worth(np.array([x]), t)) for x in (True, False))
    changes = (acted - not_acted).ravel()
    if paired:
        changes = np.concatenate([changes, -changes])
    return more * max(-changes.min(), 0.0), more * max(changes.max(), 0.0)


def _surprises(
    sample: Sample, h: Column, miss_adds: Column, hit_adds: Column
) -> tuple[Surprises, Surprises]:
    """What turned out against the odds, and made the mean larger, or smaller."""
    columns, n = sample.rows.columns, sample.rows.columns.total_weight
    weight, squared, hit = columns.weights, columns.squares, columns.hit
    likely = h >= 0.5
    more = np.where(likely, miss_adds - hit_adds, hit_adds - miss_adds)
    seen = np.where(likely, 1 - hit, hit) * (more != 0)
    if float(weight @ seen) > MANY:
        return NOTHING, NOTHING
    rows = np.minimum(h, 1 - h), weight, squared, weight * seen, squared * seen
    up, down = np.maximum(more, 0.0), np.maximum(-more, 0.0)
    return Surprises.of(*rows, up, n), Surprises.of(*rows, down, n)


def _area(one: Sample, other: Sample | None) -> Estimate:
    """The Brier score of one probability, or the difference of two."""
    columns, clusters = one.rows.columns, one.clusters
    values = (columns.hit - columns.confidence) ** 2
    if other is not None:
        theirs = other.rows.columns
        values = values - (theirs.hit - theirs.confidence) ** 2
    se = error_of_mean(values, columns.weight, clusters, columns.squared)
    mean = Mean(columns.mean(values), se, degrees_of_freedom(columns, clusters))
    ends = closed_forms.mean_interval(mean, one.settings.level)
    suffix = "" if clusters is None else ", clusters"
    return Estimate(
        mean.value, ends, ("normal" if other is None else "paired") + suffix
    )


# -- in words ---------------------------------------------------------------------------


def _called(found: DecisionCurve | Murphy) -> str:
    name = one_line(found.name, MOST_NAME)
    return (
        f"{name} less {one_line(found.baseline, MOST_NAME)}" if found.baseline else name
    )


def _some(threshold: Column) -> Iterator[int]:
    """Places of the thresholds that are printed."""
    for t in PRINTED:
        place = int(np.abs(threshold - t).argmin())
        if abs(threshold[place] - t) < 1e-9:
            yield place


def _decision_lines(found: DecisionCurve) -> Iterator[str]:
    yield f"{_called(found)}: net benefit, {found.n:,.10g} examples, event rate {found.rate:.4f}"
    yield ""
    yield f"  threshold  net benefit  [{100 * found.level:g}% interval]      treat all"
    for i in _some(found.threshold):
        ends = f"[{found.low[i]:+.4f}, {found.high[i]:+.4f}]"
        value, every = found.net_benefit[i], found.treat_all[i]
        yield f"  {found.threshold[i]:>8.2f}   {value:+.4f}      {ends}   {every:+.4f}"
    yield ""
    yield "Treating none has a net benefit of 0."


def _murphy_lines(found: Murphy) -> Iterator[str]:
    low, high = found.area.interval or (np.nan, np.nan)
    yield f"{_called(found)}: Murphy diagram, {found.n:,.10g} examples"
    yield ""
    yield f"  area (Brier)  {found.area:.4f} [{low:.4f}, {high:.4f}]"
    yield f"  threshold     score   [{100 * found.level:g}% interval]"
    for i in _some(found.threshold):
        ends = f"[{found.low[i]:.4f}, {found.high[i]:.4f}]"
        yield f"  {found.threshold[i]:>9.2f}     {found.score[i]:.4f}  {ends}"
