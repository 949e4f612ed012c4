"""`risk_coverage`: how many errors are left if the least confident are not accepted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Unpack

import numpy as np

from calibrant._base.checks import MOST_NAME, check_number, one_line
from calibrant._base.records import (
    Columnar,
    Estimate,
    Positive,
    Range,
    Shares,
    Target,
    Whole,
    close,
)
from calibrant._base.text import with_interval
from calibrant._base.views import Plotted, Printed
from calibrant._inputs.arrays import Column, Index
from calibrant._inputs.options import Scores, takes_scores
from calibrant._sketch.ordered import Ordered
from calibrant._stats import closed_forms
from calibrant._stats.metrics import METRICS
from calibrant._stats.risk_coverage import AREAS
from calibrant._stats.sample import Sample
from calibrant._stats.standard_errors import Rows, error_of_mean
from calibrant._verbs.reading import examples_of, read_sample

MOST_PLACES = 10_000
"""More confidences than this are thinned: places are then equally far in coverage."""

CLUSTER_PLACES = 30
"""Coverages at which clusters are looked at; between them their effect is interpolated."""

Area = Annotated[Estimate, Range(0, 1)]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RiskCoverage(Plotted, Printed, Columnar):
    """Risk among the accepted, by the share of examples that is accepted.

    Attributes
    ----------
    coverage, risk : arrays
        Share of examples accepted, the most confident first, and share of errors among
        them; one place for each distinct confidence, at most 10,000.
    threshold : array
        The confidence from which on examples are accepted there.
    low, high : arrays
        Pointwise interval of the risk.
    aurc, excess, augrc : Estimate
        Mean risk over all coverages; the same less that of a perfect order of as many
        errors (E-AURC); and the area under the share that is accepted and wrong.
    n, level : float
        Examples, and coverage of the intervals.
    name, target : str
        The model, and what was asked of each example.
    n_clusters, folded : int or None, bool
        Clusters, if they were given, and whether a sketch could not tell them all apart.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.risk_coverage([1, 1, 0, 1], confidence=[0.9, 0.8, 0.6, 0.7])
    >>> found.coverage.tolist(), found.risk.tolist()
    ([0.25, 0.5, 0.75, 1.0], [0.0, 0.0, 0.0, 0.25])
    >>> float(found.accuracy_at(0.75)), float(found.coverage_at(risk=0.2))
    (1.0, 0.9375)
    """

    name: str
    target: Target
    n: Positive
    level: Annotated[float, Range(0, 1, above=True)]
    aurc: Area
    excess: Area
    augrc: Area
    coverage: Shares
    risk: Shares
    threshold: Shares
    low: Shares
    high: Shares
    n_clusters: Whole | None = None
    folded: bool = False

    _figure: ClassVar[str] = "risk_coverage"

    @property
    def error_rate(self) -> float:
        """Risk where every example is accepted."""
        return float(self.risk[-1])

    def accuracy_at(self, coverage: float) -> Estimate:
        """Accuracy among the most confident share of examples, with its interval."""
        check_number(coverage, "coverage", 0.0, 1.0)
        risk, low, high = (float(x) for x in self.risk_at(float(coverage)))
        return Estimate(1 - risk, (1 - high, 1 - low), "Wilson")

    def risk_at(self, coverage: Any) -> tuple[Column, Column, Column]:
        """Risk at any coverages and the ends of its interval; ties come in random order.

        Examples
        --------
        >>> import calibrant as cal
        >>> found = cal.risk_coverage([1, 1, 0, 0], confidence=[0.9, 0.9, 0.6, 0.6])
        >>> found.risk_at([0.25, 0.75])[0].round(4).tolist()
        [0.0, 0.3333]
        """
        at, known = np.maximum(coverage, self.coverage[0]), self.coverage
        wrong = np.interp(at, known, known * self.risk)
        low, high = (np.interp(at, known, x) for x in (self.low, self.high))
        return wrong / at, low, high

    def coverage_at(self, risk: float) -> Estimate:
        """Largest share of examples that can be accepted at this risk, with its interval.

        It is 0 if even the most confident are wrong more often.
        """
        check_number(risk, "risk", 0.0, 1.0)
        kept = self._last(self.low, risk), self._last(self.high, risk)
        value = self._crossing(risk)
        ends = min(kept[1], value), max(kept[0], value)
        return Estimate(value, ends, "band")

    def _last(self, risk: Column, most: float) -> float:
        """The largest coverage at which a risk is at most this."""
        below = np.flatnonzero(risk <= most)
        return float(self.coverage[below[-1]]) if below.size else 0.0

    def _crossing(self, most: float) -> float:
        """The same of the risk itself, where ties are accepted in part."""
        last = self._last(self.risk, most)
        after = int(np.searchsorted(self.coverage, last, side="right"))
        if last == 0.0 or after == len(self.coverage):
            return last
        wrong, far = last * float(np.interp(last, self.coverage, self.risk)), after
        step = self.coverage[far] - last
        rate = (self.coverage[far] * self.risk[far] - wrong) / step
        return last + min(max(float((most * last - wrong) / (rate - most)), 0.0), step)

    def _disagreement(self) -> str | None:
        if said := Columnar._disagreement(self):
            return said
        if (np.diff(self.coverage) <= 0).any() or not close(self.coverage[-1], 1):
            return "must have coverages that rise to 1"
        over = (self.low > self.risk + 1e-9) | (self.risk > self.high + 1e-9)
        return "has a risk outside its interval" if over.any() else None

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def __repr__(self) -> str:
        return f"RiskCoverage({one_line(self.name, MOST_NAME)}, AURC {self.aurc:.4f})"


def _lines(found: RiskCoverage) -> Iterator[str]:
    """The areas, then the risk at some coverages."""
    level = f"[{100 * found.level:g}% interval]"
    yield f"{one_line(found.name, MOST_NAME)}: {examples_of(found)}, risk by coverage"
    yield ""
    for label, area in _areas(found).items():
        yield f"  {label:<10}  {with_interval(area)}"
    yield ""
    yield f"  accepted  risk    {level}"
    for share in (1.0, 0.9, 0.8, 0.5, 0.2):
        accuracy = found.accuracy_at(share)
        low, high = accuracy.interval or (np.nan, np.nan)
        yield f"  {share:>7.0%}   {1 - accuracy:.4f}  [{1 - high:.4f}, {1 - low:.4f}]"
    yield ""
    yield "The most confident are accepted first. With one confidence for all, AURC would"
    yield f"be the error rate, {found.error_rate:.4f}."


def _areas(found: RiskCoverage) -> dict[str, Estimate]:
    return {"AURC": found.aurc, "E-AURC": found.excess, "AUGRC": found.augrc}


@takes_scores
def risk_coverage(
    y: Any,
    *,
    cluster: Any = None,
    level: float = 0.95,
    name: str | None = None,
    **given: Unpack[Scores],
) -> RiskCoverage:
    r"""Risk among the accepted, by coverage: it says which examples can be trusted.

    Examples are accepted in order of confidence. The risk is the share of errors among
    those accepted so far, the coverage their share of all.

    Parameters
    ----------
    cluster : array_like, optional
        The cluster of each row, if rows depend on each other.
    level : float
        Coverage of the intervals.
    name : str, optional
        The model's name.

    Returns
    -------
    RiskCoverage
        The curve, its areas with intervals, and the accuracy at a coverage.

    Notes
    -----
    With examples in order of falling confidence and :math:`e_i` 1 for an error,

    .. math:: \mathrm{AURC} = \frac{1}{n} \sum_{m=1}^n \frac{1}{m} \sum_{i \le m} e_i .

    Equal confidences come in random order, of which the expected risk is taken: a model
    that gives all examples one confidence has an AURC equal to its error rate. For
    ``target="positive"`` an example, and for ``"multi-label"`` each of its labels, is
    accepted by :math:`\max(p, 1 - p)`, and an error if the likelier class did not come true. Weights count as so many examples, after they
    are scaled to a mean of 1. With soft labels an error is a share.

    ``y`` may be a `Sketch` or an `Evaluation` of rows that are at hand. Examples in one
    cell of a sketch count as ties; that moves the AURC by at most the sum over cells of
    :math:`e (1 - e / w) H / n`, with w examples and e errors in the cell, and H the sum
    of 1 / m over its examples; `Sketch.bounds` gives a number that holds for weights too.

    References
    ----------
    Y. Geifman, G. Uziel and R. El-Yaniv, *Bias-reduced uncertainty estimation for deep
    neural classifiers*, ICLR 2019. J. Traub et al., *Overcoming common flaws in the
    evaluation of selective classification systems*, NeurIPS 2024.

    Examples
    --------
    >>> import calibrant as cal
    >>> sure = cal.risk_coverage([1, 1, 0, 1], confidence=[0.9, 0.8, 0.6, 0.7])
    >>> same = cal.risk_coverage([1, 1, 0, 1], confidence=[0.75] * 4)
    >>> float(sure.aurc), float(same.aurc), float(sure.excess)
    (0.0625, 0.25, 0.0)
    """
    found = read_sample(y, given, cluster, name, level)
    sample = found.sample
    areas = {key: METRICS[key].estimate(sample) for key in AREAS}
    places = Places.of(sample)
    low, high = places.interval(sample.predictions, level)
    return RiskCoverage(
        name=found.name,
        target=sample.target,
        **found.size,
        level=level,
        aurc=areas["aurc"],
        excess=areas["excess_aurc"],
        augrc=areas["augrc"],
        coverage=places.coverage,
        risk=places.risk,
        threshold=places.threshold,
        low=low,
        high=high,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where the curve is known: what is accepted there, and what is wrong of it.

    `squares` and `wrong_squares` are the sums of squared weights behind both, `rate` the
    error rate near the threshold.
    """

    coverage: Column
    risk: Column
    threshold: Column
    rate: Column
    squares: Column
    wrong_squares: Column
    n: float
    all_squares: float

    @classmethod
    def of(cls, sample: Sample) -> Places:
        """The ends of the steps, thinned where they are too many."""
        steps, ordered = sample.steps, sample.predictions.ordered
        accepted, wrong = np.cumsum(steps.weight), np.cumsum(steps.errors)
        sq = ordered.squared[::-1]
        squares, wrong_squares = np.cumsum(sq), np.cumsum(sq * steps.rate)
        at = _thinned(accepted)
        accepted[-1], n = steps.n, steps.n
        coverage, risk = accepted / n, np.clip(wrong / accepted, 0, 1)
        return cls(
            coverage[at],
            risk[at],
            ordered.confidence[::-1][at],
            _slope(coverage, wrong / n, coverage[at], ordered),
            squares[at],
            wrong_squares[at],
            n,
            float(squares[-1]),
        )

    def interval(self, rows: Rows, level: float) -> tuple[Column, Column]:
        """Wilson's, for as many examples as would know the risk as well.

        Beside the chance of errors among the accepted there is that of who is accepted:
        the threshold moves with the data.
        """
        c, r, m = self.coverage, self.risk, self.rate
        slope, base = 1 / c, (m - r) - m / c
        squares = slope * (slope + 2 * base) * self.wrong_squares
        squares += base**2 * self.squares
        squares += (m - r) ** 2 * (self.all_squares - self.squares)
        variance = np.maximum(squares, 0.0) / self.n**2
        accepted = (c * self.n) ** 2 / self.squares
        count = r * (1 - r) / np.maximum(variance, 1e-300)
        count = np.where(r * (1 - r) > 0, np.minimum(count, accepted), accepted)
        if rows.clusters is not None:
            count /= self._inflation(rows)
            telling = count * np.minimum(r, 1 - r)
            count /= closed_forms.if_alike(count / self._clusters(rows), telling)
        if rows.clusters is not None or rows.columns.squared is not None:
            count *= (
                closed_forms.quantile(level) / closed_forms.student(level, rows.df)
            ) ** 2
        return closed_forms.wilson(r, count, level)

    def _clusters(self, rows: Rows) -> Column:
        """Number of clusters of equal weight among the accepted that would vary as much."""
        assert rows.clusters is not None
        h = rows.columns.confidence
        first = np.argsort(-h, kind="stable")
        weight, cluster = rows.columns.weights[first], rows.clusters[first]
        own = _within(cluster, weight)
        squares = np.cumsum(weight * (2 * own - weight))
        last = np.searchsorted(-h[first], -self.threshold, side="right") - 1
        return (np.cumsum(weight) ** 2 / squares)[np.maximum(last, 0)]

    def _inflation(self, rows: Rows) -> Column:
        """How much more the risk varies because rows belong to clusters."""
        last = len(self.coverage) - 1
        some = np.unique(np.linspace(0, last, CLUSTER_PLACES).astype(np.intp))
        factors = [self._ratio(rows, int(place)) for place in some]
        return np.interp(self.coverage, self.coverage[some], factors)

    def _ratio(self, rows: Rows, place: int) -> float:
        columns = rows.columns
        c, r, m = self.coverage[place], self.risk[place], self.rate[place]
        accepted = columns.confidence >= self.threshold[place]
        moved = accepted * (1 - columns.hit - m) / c + (m - r)
        alone = error_of_mean(moved, columns.weight, None, columns.squared)
        together = error_of_mean(moved, columns.weight, rows.clusters)
        return max((together / alone) ** 2, 1.0) if alone > 0 else 1.0


def _within(cluster: Index, weight: Column) -> Column:
    """Sum of the weights of the same cluster up to each row.

    Examples
    --------
    >>> _within(np.array([0, 1, 0]), np.array([1.0, 2.0, 4.0])).tolist()
    [1.0, 2.0, 5.0]
    """
    order = np.argsort(cluster, kind="stable")
    found, sums = np.empty(len(weight)), np.cumsum(weight[order])
    size = np.bincount(cluster, weight)
    found[order] = sums - (np.cumsum(size) - size)[cluster[order]]
    return found


def _thinned(accepted: Column) -> Index:
    """All steps, or as many as are enough, equally far in coverage."""
    if len(accepted) <= MOST_PLACES:
        return np.arange(len(accepted))
    wanted = np.linspace(0, accepted[-1], MOST_PLACES + 1)[1:]
    return np.unique(np.minimum(np.searchsorted(accepted, wanted), len(accepted) - 1))


def _slope(coverage: Column, wrong: Column, at: Column, ordered: Ordered) -> Column:
    """Error rate near a threshold: of the examples around it, n to the two thirds."""
    half = min(0.5 * ordered.effective ** (-1 / 3), 0.5)
    ends = np.clip([at - half, at + half], 0.0, 1.0)
    x, y = np.concatenate([[0.0], coverage]), np.concatenate([[0.0], wrong])
    low, high = np.interp(ends, x, y)
    return np.clip((high - low) / (ends[1] - ends[0]), 0.0, 1.0)
