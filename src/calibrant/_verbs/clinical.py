"""`clinical`: calibration of a risk model in the words of medicine, and `skill`.

Every number has the interval of its influence on rows, so that weights and clusters are
heeded; distances between the curve and the diagonal have those of resampled noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import nan
from typing import Annotated, Any, NamedTuple, Unpack

import numpy as np

from calibrant._base.checks import MOST_NAME, check_number, one_line, shown
from calibrant._base.evaluation import Evaluation
from calibrant._base.records import (
    Estimate,
    Positive,
    Range,
    Record,
    Target,
    Whole,
    to_frame,
)
from calibrant._base.views import Printed
from calibrant._inputs.arrays import Column, Table, sigmoid
from calibrant._inputs.divergences import Divergence, find_divergence
from calibrant._inputs.options import (
    RESAMPLES,
    Scores,
    Settings,
    check_rng,
    read_given,
    takes_scores,
    target_of,
)
from calibrant._inputs.predictions import Predictions, read_clusters
from calibrant._rows.columns import Columns
from calibrant._rows.reduce import reduce_to_columns, spell_out
from calibrant._sketch.ordered import order
from calibrant._stats import closed_forms, intervals
from calibrant._stats.close_pairs import LEAST_ROWS
from calibrant._stats.closed_forms import Mean
from calibrant._stats.intervals import BAND, FEW_EVENTS, INVERSION, Resampled
from calibrant._stats.sample import Sample
from calibrant._stats.standard_errors import Rows
from calibrant._verbs.calibration_test import run_test
from calibrant._verbs.compare import check_level
from calibrant._verbs.cutoff_error import beyond_the_gap, resampled_walk
from calibrant._verbs.decisions import (
    check_one_event,
    freedom_of,
    of_square,
)
from calibrant._verbs.features import check_rows
from calibrant._verbs.reading import examples_of, read_sample

SPAN = 2 / 3
"""Share of the examples in a local fit: that of lowess, and so of rms::val.prob."""

NARROW = 1 / 256
STEPS, FURTHEST = 50, 30.0

ONE_EVENT = ("positive", "pairs")
"""Targets whose loss is that of one probability."""

Any_ = Annotated[Estimate, Range(unknown=True, infinite=True)]
Distance = Annotated[Estimate, Range(0, 1)]
LABELS = {
    "rate": "observed rate",
    "mean_risk": "mean risk",
    "in_the_large": "observed - expected",
    "oe_ratio": "O:E ratio",
    "intercept": "intercept (slope 1)",
    "slope": "slope",
    "joint_intercept": "intercept (joint)",
    "ici": "ICI",
    "e50": "E50",
    "e90": "E90",
    "emax": "Emax",
    "brier": "Brier score",
    "scaled_brier": "scaled Brier",
    "c_statistic": "C statistic",
}
"""What is printed, in this order."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Clinical(Printed, Record):
    """How well a risk model is calibrated, as clinical papers report it.

    Attributes
    ----------
    rate, mean_risk : Estimate
        Share of events, and mean of the risks.
    in_the_large, oe_ratio : Estimate
        Their difference, observed less expected, and their ratio: 0 and 1 if the mean risk
        is right.
    intercept : Estimate
        Calibration intercept: a in logit P(y = 1) = a + logit p, with the slope at 1.
    slope, joint_intercept : Estimate
        b and a' in logit P(y = 1) = a' + b logit p. NaN, as the
        intercept is, where a risk is exactly 0 or 1, or where risks separate the events.
    ici, e50, e90, emax : Estimate
        Mean, median, ninth decile and maximum over examples of the distance between risk
        and the smoothed rate of events (lowess, span 2/3).
    brier, scaled_brier : Estimate
        Mean (p - y)^2, and 1 less its ratio to that of the observed rate for everybody.
    c_statistic : Estimate
        Area under the ROC curve.
    spiegelhalter, spiegelhalter_p : float
        Spiegelhalter's z and its p-value, two-sided; NaN with soft labels. It is 0 just if
        a risk of 0 or 1 was contradicted.
    n, events, level : float
        Examples, events among them, and coverage of the intervals.
    name, target : str
        The model, and what was asked.
    lacking : str
        Why there is no intercept or slope, if there is none.
    n_clusters, folded : int or None, bool
        Clusters, if they were given, and whether a sketch could not tell them all apart.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.clinical([1, 0, 1, 0] * 30, probs=[0.9, 0.2, 0.3, 0.4] * 30)
    >>> round(float(found.oe_ratio), 3), round(float(found.slope), 2)
    (1.111, 1.31)
    """

    name: str
    target: Target
    n: Positive
    events: Annotated[float, Range(0)]
    level: Annotated[float, Range(0, 1, above=True)]
    rate: Distance
    mean_risk: Distance
    in_the_large: Annotated[Estimate, Range(-1, 1)]
    oe_ratio: Any_
    intercept: Any_
    slope: Any_
    joint_intercept: Any_
    ici: Distance
    e50: Distance
    e90: Distance
    emax: Distance
    brier: Distance
    scaled_brier: Any_
    c_statistic: Any_
    spiegelhalter: Annotated[float, Range(unknown=True, infinite=True)]
    spiegelhalter_p: Annotated[float, Range(0, 1, unknown=True)]
    lacking: str = ""
    n_clusters: Whole | None = None
    folded: bool = False

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Every number with its interval, by name."""
        return {key: getattr(self, key) for key in LABELS}

    def frame(self, kind: str | None = None) -> Any:
        """One row per number: its value, and the ends of its interval."""
        found = self.estimates
        ends = [x.interval or (nan, nan) for x in found.values()]
        columns = {
            "measure": np.array([*found]),
            "value": np.array([float(x) for x in found.values()]),
            "low": np.array([low for low, _ in ends]),
            "high": np.array([high for _, high in ends]),
        }
        return to_frame(columns, kind)

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def __repr__(self) -> str:
        name = one_line(self.name, MOST_NAME)
        return f"Clinical({name}, O:E {self.oe_ratio:.3f}, slope {self.slope:.3f})"


def _lines(found: Clinical) -> Iterator[str]:
    name = one_line(found.name, MOST_NAME)
    whole = abs(found.events - round(found.events)) < 1e-6
    said = (
        f"{found.events:,.0f} event" if whole else f"{found.events:,.1f} weighted event"
    )
    events = said if said == "1 event" else f"{said}s"
    yield f"{name}: {examples_of(found)}, {events}"
    yield ""
    yield f"  {'':<20} value    [{100 * found.level:g}% interval]"
    for key, value in found.estimates.items():
        ends = value.interval
        said = "" if ends is None else f"  [{ends[0]:z.4f}, {ends[1]:z.4f}]"
        yield f"  {LABELS[key]:<20} {value:>z7.4f}{said}"
    p = found.spiegelhalter_p
    told = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    if p == 0:
        told = "p = 0: a risk of 0 or 1 was contradicted"
    yield f"  {'Spiegelhalter z':<20} {found.spiegelhalter:>z7.4f}  ({told})"
    yield from _few(found)
    if np.isnan(found.slope):
        yield ""
        usual = "a risk is 0 or 1, or risks separate the events."
        what = "slope" if np.isfinite(found.intercept) else "intercept or slope"
        yield f"No {what}: {found.lacking or usual}"


def are_few(seen: float, expected: float, least: float = FEW_EVENTS) -> bool:
    """Whether so many events of the rarer kind, where others were expected, are few.

    Examples
    --------
    >>> are_few(1, 5), are_few(19, 30), are_few(25, 10), are_few(25, 20)
    (True, True, True, False)
    """
    return min(seen, (seen + expected) / 2) < least


def _few(found: Clinical) -> Iterator[str]:
    """That events, or non-events, are few, if they are."""
    rate, risk, what = float(found.rate), float(found.mean_risk), "events"
    if rate > 0.5:
        rate, risk, what = 1 - rate, 1 - risk, "non-events"
    seen, expected = (round(found.n * x, 6) for x in (rate, risk))
    if are_few(seen, expected):
        yield ""
        counts = f"{seen:.3g}; {expected:,.3g} expected"
        yield f"These numbers rest on few {what} ({counts}): quote their intervals."


@takes_scores
def clinical(
    y: Any,
    *,
    cluster: Any = None,
    level: float = 0.95,
    resamples: int = 1000,
    rng: Any = 0,
    name: str | None = None,
    **given: Unpack[Scores],
) -> Clinical:
    """Validate a risk model: O:E, intercept, slope, ICI and their like, with intervals.

    Parameters
    ----------
    cluster : array_like, optional
        The cluster of each row (a patient, a hospital), if rows depend on each other.
    level : float
        Coverage of the intervals.
    resamples : int
        Number of resamples behind the intervals of ICI, E50, E90 and Emax.
    rng : int or Generator
        Their seed.
    name : str, optional
        The model's name.

    Returns
    -------
    Clinical
        One record of all of them; print it to read it.

    Notes
    -----
    Intercept and slope are fitted by maximum likelihood, with sandwich standard errors that
    undo leverage, and with few events are not below those of the fitted law. O:E holds 1
    just if observed - expected holds 0: its interval is the same, in units of the events
    that these risks expect, which are taken as known. ICI (Austin and Steyerberg 2019) and its like
    come from a local linear fit of the events, as in ``rms::val.prob``, in cells at most
    1/256 wide; the interval of the ICI inverts a test, those of E50, E90 and Emax are
    bands, which hold at least as often as their level says. The ICI is above 0 for a
    calibrated model, too: its interval takes the noise out.

    ``y`` may be an `Evaluation` of rows that are at hand, or a `Sketch`.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.beta(1, 4, 2000)
    >>> died = rng.random(2000) < risk
    >>> found = cal.clinical(died, probs=risk)
    >>> low, high = found.slope.interval
    >>> low < 1 < high
    True
    """
    check_number(resamples, "resamples", *RESAMPLES, kind="a whole number")
    check_rng(rng)
    one = read_sample(y, given, cluster, name, level)
    sample = one.sample
    check_one_event(sample)
    rows, columns = sample.rows, sample.rows.columns
    found: dict[str, Any] = _distances(sample, resamples, rng)
    z, p = _spiegelhalter(sample, resamples, rng)
    found |= logistic(sample)
    return Clinical(
        name=one.name,
        target=sample.target,
        **one.size,
        events=float(columns.weights @ columns.hit),
        level=level,
        rate=_rate(sample),
        mean_risk=_mean(rows, columns.confidence, level),
        in_the_large=_in_the_large(sample),
        oe_ratio=_ratio(sample),
        **found,
        brier=of_square(rows, level),
        scaled_brier=_scaled(sample),
        c_statistic=_c_statistic(sample),
        spiegelhalter=z,
        spiegelhalter_p=p,
        lacking=_lacking(sample) if np.isnan(found["slope"]) else "",
    )


def _lacking(sample: Sample) -> str:
    """Why no slope can be fitted, and the way out if there is one."""
    columns = sample.rows.columns
    rate, z = columns.mean(columns.hit), columns.log_odds
    if rate in (0, 1):
        return "there are no events." if rate == 0 else "every example is an event."
    if _certain(sample):
        return _of_certain(sample)
    return "all risks are equal." if np.ptp(z) == 0 else "risks separate the events."


def _certain(sample: Sample) -> float:
    """Weight of risks of exactly 0 or 1; a sketch knows it, too."""
    told, columns = (
        sample.cells.certain_no + sample.cells.certain_yes,
        sample.rows.columns,
    )
    return max(told, float(columns.weights[~np.isfinite(columns.log_odds)].sum()))


def _of_certain(sample: Sample) -> str:
    """What to do about risks of exactly 0 or 1: a bound that moves no other risk."""
    cells, risk = sample.cells, sample.columns.confidence
    many = _certain(sample)
    if cells.squares is not None:
        said = f"{100 * many / cells.weight:.3g} % of the risks, by weight, are"
    else:
        said = f"{many:,.10g} of {cells.count:,.10g} risks are"
    said = "a risk is" if many == 1 else said
    advice = "Give logits=, or clip below the least other risk"
    if not sample.sketched:
        inside = np.minimum(risk, 1 - risk)
        least = inside.min(where=inside > 0, initial=1.0)
        bound = f"{least / 2:.2g}" if least < 1 else "1e-06"
        advice += f", as by np.clip(p, {bound}, 1 - {bound})"
    return f"{said} exactly 0 or 1, whose log-odds are infinite. {advice}."


# -- means and ratios -------------------------------------------------------------------


def _suffix(rows: Rows) -> str:
    return "" if rows.clusters is None else ", clusters"


def _normal(
    rows: Rows, value: float, moved: Column, level: float, least: float = 0.0
) -> Estimate:
    """A number that rows move so much, with Student's interval.

    As far as events are few its error is not below `least`. One row has none.
    """
    if not rows.df > 0:
        return Estimate(value)
    se, few = rows.error_of(moved), 0.0
    if least > se:
        few = closed_forms.share_of_few(intervals.rare_events(rows))
    mean = Mean(value, se + few * max(least - se, 0.0), freedom_of(rows, moved))
    ends = closed_forms.mean_interval(mean, level)
    return Estimate(value, ends, "normal" + _suffix(rows))


def _mean(rows: Rows, values: Column, level: float) -> Estimate:
    """The mean of numbers from 0 to 1."""
    found = _normal(rows, rows.columns.mean(values), values, level)
    if found.interval is None:
        return found
    low, high = found.interval
    return Estimate(float(found), (max(low, 0.0), min(high, 1.0)), found.method)


def _rate(sample: Sample) -> Estimate:
    rows, level = sample.rows, sample.settings.level
    value = min(rows.columns.mean(rows.columns.hit), 1.0)
    every = np.ones(len(rows.ordered.confidence), bool)
    ends = intervals.share(rows, value, every, level)
    return Estimate(value, ends, "Wilson" + _suffix(rows))


def _in_the_large(sample: Sample) -> Estimate:
    """Observed less expected: minus the confidence gap, and its interval."""
    rows, level = sample.rows, sample.settings.level
    gap = rows.columns.mean(rows.columns.confidence - rows.columns.hit)
    if not rows.df > 0:
        return Estimate(-gap)
    (low, high), method = intervals.of_gap(rows, gap, level)
    return Estimate(-gap, (-high, -low), method + _suffix(rows))


def _ratio(sample: Sample) -> Estimate:
    """Observed over expected: 1 plus their difference, in units of what is expected."""
    columns = sample.rows.columns
    observed, expected = columns.mean(columns.hit), columns.mean(columns.confidence)
    if not expected > 0:
        return Estimate(nan if observed == 0 else np.inf)
    off = _in_the_large(sample)
    if off.interval is None:
        return Estimate(observed / expected)
    low, high = (1 + end / expected for end in off.interval)
    return Estimate(observed / expected, (max(low, 0.0), high), off.method)


def _scaled(sample: Sample) -> Estimate:
    """Skill against the observed rate."""
    columns = sample.rows.columns
    loss = (columns.hit - columns.confidence) ** 2
    usual = (columns.hit - columns.mean(columns.hit)) ** 2
    return _skill(sample.rows, loss, usual, sample.settings.level)


def _skill(rows: Rows, loss: Column, usual: Column, level: float) -> Estimate:
    """1 less the ratio of two mean losses."""
    ours, theirs = rows.columns.mean(loss), rows.columns.mean(usual)
    if not 0 < theirs < np.inf or not np.isfinite(ours):
        return Estimate(nan if not theirs > 0 else -np.inf if ours == np.inf else 1.0)
    ratio = ours / theirs
    return _normal(rows, 1 - ratio, -(loss - ratio * usual) / theirs, level)


def _c_statistic(sample: Sample) -> Estimate:
    value = sample.auroc
    found = intervals.of_auroc(sample.rows, value, sample.settings.level)
    if found is None:
        return Estimate(value)
    return Estimate(value, found[0], found[1] + _suffix(sample.rows))


def _spiegelhalter(sample: Sample, resamples: int, rng: Any) -> tuple[float, float]:
    columns = sample.rows.columns
    if not columns.hard:
        return nan, nan
    seed, clusters = np.random.default_rng(rng), sample.clusters
    found = run_test(columns, "spiegelhalter", "auto", resamples, seed, clusters)
    least = 0.0 if found.law == "exact" else float(np.nextafter(0.0, 1.0))
    return found.statistic, max(found.p_value, least)


# -- intercept and slope ------------------------------------------------------------------


def logistic(sample: Sample) -> dict[str, Estimate]:
    """Intercept at slope 1, slope, and the intercept that goes with it."""
    rows, level = sample.rows, sample.settings.level
    z = rows.columns.log_odds
    nothing = dict.fromkeys(("intercept", "slope", "joint_intercept"), Estimate(nan))
    if _certain(sample):
        return nothing
    one = np.ones((len(z), 1))
    fits = fit(rows, one, z), fit(rows, np.column_stack([one, z]), 0 * z)
    found = dict(nothing)
    for names, fitted in zip(
        (("intercept",), ("joint_intercept", "slope")), fits, strict=True
    ):
        if fitted is not None:
            each = fitted.moved / _left_by(rows, fitted.pull)[:, None]
            for place, name in enumerate(names):
                value, least = float(fitted.value[place]), float(fitted.least[place])
                found[name] = _normal(rows, value, each[:, place], level, least)
    return found


class Fit(NamedTuple):
    """Coefficients, how much rows move them, and draw them towards themselves (leverage).

    `least` are the errors if outcomes were independent and of the fitted law: of few
    events the moves may show less.
    """

    value: Column
    moved: Table
    pull: Column
    least: Column


def fit(rows: Rows, x: Table, offset: Column) -> Fit | None:
    """Logistic regression by Newton's method.

    None where it has no end: all are events, or none, or x tells them apart.
    """
    w, hit = rows.columns.weights, rows.columns.hit
    beta = np.zeros(x.shape[1])
    for _ in range(STEPS):
        p = sigmoid(x @ beta + offset)
        information = (x * (w * p * (1 - p))[:, None]).T @ x
        if not np.linalg.cond(information) < 1e12:
            return None
        step = np.linalg.solve(information, x.T @ (w * (hit - p)))
        step *= min(1.0, 5.0 / np.abs(step).max(initial=1e-300))
        beta = beta + step
        if np.abs(beta).max() > FURTHEST:
            return None
        if np.abs(step).max() < 1e-10:
            along = np.linalg.solve(information, x.T).astype(np.float64)
            return _moves(rows, x, beta, p, along)
    return None


def _moves(rows: Rows, x: Table, beta: Column, p: Column, along: Table) -> Fit:
    """A fit with what rows do to it; `along` is what a residual of each moves."""
    w, noise = rows.columns.weights, p * (1 - p)
    moved = w.sum() * along.T * (rows.columns.hit - p)[:, None]
    pull = w * noise * (along.T * x).sum(axis=1)
    return Fit(beta, moved, pull, np.sqrt(along**2 @ (rows.columns.squares * noise)))


def _left_by(rows: Rows, pull: Column) -> Column:
    """What a fit leaves of a residual, beside what a mean does; never less than half.

    `pull` is how far rows draw the fit towards themselves (their leverage); whole clusters
    do. As in the jackknife, that is undone.
    """
    w = rows.columns.weights
    share = w / w.sum()
    if rows.clusters is not None:
        excess = np.bincount(rows.clusters, pull - share)[rows.clusters]
    else:
        excess = (pull - share) * rows.columns.squares / w**2
    return np.maximum(1.0 - np.maximum(excess, 0.0), 0.5)


# -- distances of the curve from the diagonal ----------------------------------------------


def _distances(sample: Sample, resamples: int, rng: Any) -> dict[str, Estimate]:
    """ICI, E50, E90 and Emax with their intervals."""
    seed = np.random.default_rng(rng)
    found = resampled_walk(sample, NARROW, resamples, seed)
    share = found.share
    smooth = local_linear(found.pieces.confidence, found.pieces.weight)

    def through(residual: Table) -> Table:  # distances, times the share they hold for
        return (residual / share) @ smooth.T * share

    distance = np.abs(through(found.observed[None])[0] / share)
    distance = np.minimum(distance, 1.0)  # lines through few points may lead beyond
    values = {"ici": min(float(share @ distance), 1.0)}
    values |= {k: quantile(distance, share, q) for k, q in QUANTILES.items()}
    plain = {key: Estimate(value) for key, value in values.items()}
    if sample.columns.effective < LEAST_ROWS:
        return plain
    suffix = _suffix(sample.rows)
    ends = beyond_the_gap(found.interval(through), sample)
    method = closed_forms.named(INVERSION, ends) + suffix
    plain["ici"] = Estimate(values["ici"], ends, method)
    least = _least_spread(found, smooth, sample.values)
    low, high = _bands(found, through(found.noise) / share, distance, least)
    for key, q in QUANTILES.items():
        pair = quantile(low, share, q), min(quantile(high, share, q), 1.0)
        method = closed_forms.named(BAND, pair) + suffix
        plain[key] = Estimate(values[key], pair, method)
    return plain


QUANTILES = {"e50": 0.5, "e90": 0.9, "emax": 1.0}


def _bands(
    found: Resampled, noise: Table, distance: Column, least: Column
) -> tuple[Column, Column]:
    """Ends of all distances at once: so many standard deviations on either side."""
    spread = np.maximum(noise.std(axis=0), 1e-300)
    furthest = float(np.quantile(np.abs(noise / spread).max(axis=1), found.level))
    reach = furthest * np.maximum(spread, least)
    return np.maximum(distance - reach, 0.0), distance + reach


def _least_spread(found: Resampled, smooth: Table, rows: Rows) -> Column:
    """The least standard deviation of a fit to so few examples, or clusters.

    Beside its own, it is given one as good as claimed and one of even chances; nor does it
    vary less than outcomes as likely as claimed.
    """
    pieces, h = found.pieces, found.pieces.confidence
    if rows.clusters is None:
        count = 1 / (smooth**2 @ (pieces.worth / pieces.weight))
    else:
        cell = intervals.cells_of(rows, pieces)
        size = int(rows.clusters.max()) + 1, len(h)
        own = np.zeros(size)
        np.add.at(
            own, (rows.clusters, cell), rows.columns.weights / pieces.weight[cell]
        )
        count = 1 / np.square(own @ smooth.T).sum(axis=0)
    rate = np.clip(h + (found.observed / found.share) @ smooth.T, 0, 1)
    careful = (count * rate + h + 0.5) / (count + 2)
    variance = np.maximum(careful * (1 - careful), h * (1 - h))
    return pieces.spread * np.sqrt(variance / count)


def local_linear(at: Column, weight: Column) -> Table:
    """Matrix of a local linear fit with tricube weights, each over a span of examples.

    As a line is fitted exactly, what it makes of outcomes less confidences is its curve
    less the diagonal.
    """
    apart = np.abs(at[:, None] - at)
    order = np.argsort(apart, axis=1, kind="stable")
    near = np.take_along_axis(apart, order, axis=1)
    enough = np.cumsum(weight[order], axis=1) >= SPAN * weight.sum() - 1e-9
    width = near[np.arange(len(at)), enough.argmax(axis=1)] * (1 + 1e-9)
    width = np.maximum(width, 1e-12)[:, None]
    K = weight * np.maximum(1 - (apart / width) ** 3, 0.0) ** 3
    total = K.sum(axis=1)
    middle = (K @ at) / total
    off = at - middle[:, None]
    square = (K * off**2).sum(axis=1)
    lean = np.where(
        square > 1e-12 * total, (at - middle) / np.maximum(square, 1e-300), 0
    )
    return K / total[:, None] + lean[:, None] * K * off


def quantile(values: Column, share: Column, q: float) -> float:
    """The least value that at least this share does not exceed.

    Examples
    --------
    >>> quantile(np.array([3.0, 1.0, 2.0]), np.array([0.2, 0.4, 0.4]), 0.5)
    2.0
    """
    order = np.argsort(values)
    reached = np.cumsum(share[order]) >= q - 1e-9
    last = len(values) - 1
    return float(values[order[int(reached.argmax()) if reached.any() else last]])


# -- skill ------------------------------------------------------------------------------


@takes_scores
def skill(
    y: Any,
    *,
    divergence: Any = "brier",
    reference: Any = None,
    cluster: Any = None,
    level: float = 0.95,
    **given: Unpack[Scores],
) -> Estimate:
    """Skill: the share of a reference's loss that forecasts save; 1 is perfect, 0 none.

    ``y`` may be an `Evaluation` of one event whose rows are at hand.

    Parameters
    ----------
    divergence : str or Divergence
        Whose loss: ``"brier"``, ``"log"``, ``"rps"`` for ordered classes, or your own.
    reference : array_like, optional
        Forecasts to compare with, of the kind and shape of the scores; by default the
        climatology of the same examples, how often each class came true, for all of them.
    cluster : array_like, optional
        The cluster of each row, if rows depend on each other.
    level : float
        Coverage of the interval.

    Returns
    -------
    Estimate
        1 less the ratio of the mean losses, with its interval.

    Examples
    --------
    >>> import calibrant as cal
    >>> round(float(cal.skill([1, 0, 1, 0], probs=[0.75, 0.25, 0.75, 0.25])), 2)
    0.75
    """
    check_level(level)
    main = find_divergence(divergence)
    extra = Settings(divergence=main).extra
    if isinstance(y, Evaluation):
        return _skill_of(y, given, main, reference, cluster, level)
    predictions = read_given(y, given)
    check_rows(y, given, cluster=cluster, reference=reference)
    columns = reduce_to_columns(predictions, extra)
    clusters, _ = read_clusters(cluster, predictions)
    if reference is None:
        usual = _climatology(predictions, columns, main)
    else:
        usual = _read_reference(y, given, reference, extra).loss(main)
    rows = Rows(columns, order(columns), clusters)
    return _skill(rows, columns.loss(main), usual, level)


def _read_reference(
    y: Any, given: Scores, reference: Any, extra: dict[str, Divergence]
) -> Columns:
    """Forecasts read as the scores are, by errors that name them."""
    kinds = "probs", "logits", "confidence"
    kind = next(x for x in kinds if given.get(x) is not None)
    if np.ndim(reference) == 0:
        raise ValueError(
            f"reference must hold a forecast for each row, as {kind} does, got "
            f"{shown(reference)}; to hold all against one, pass np.full(len(y), ...)."
        )
    try:
        other = read_given(y, {**given, kind: reference})  # type: ignore[misc]
        return reduce_to_columns(other, extra)
    except (TypeError, ValueError) as error:
        error_type = TypeError if isinstance(error, TypeError) else ValueError
        raise error_type(f"reference is read as {kind}: {error}") from error


def _skill_of(
    ev: Evaluation,
    given: Scores,
    divergence: Divergence,
    reference: Any,
    cluster: Any,
    level: float,
) -> Estimate:
    """Skill of rows that an evaluation holds: those of one event."""
    sample = read_sample(ev, given, cluster, None, level).sample
    if sample.target not in ONE_EVENT or reference is not None:
        raise ValueError(
            "skill of an Evaluation is that of one event against its rate; give labels "
            "and scores for several classes, and for reference=."
        )
    columns = sample.rows.columns
    rate = np.full(len(columns), columns.mean(columns.hit))
    plain = replace(columns, confidence=rate, exact_log_odds=None, losses={})
    loss, usual = (x.unit_loss(divergence) for x in (columns, plain))
    return _skill(sample.rows, loss, usual, level)


def _climatology(
    predictions: Predictions, columns: Columns, divergence: Divergence
) -> Column:
    """Loss of each row if all were given the observed shares of the classes."""
    if target_of(predictions) in ONE_EVENT:
        rate = np.full(len(columns), columns.mean(columns.hit))
        plain = replace(columns, confidence=rate, exact_log_odds=None, losses={})
        return plain.unit_loss(divergence)
    if predictions.scores.ndim == 1:
        predictions = spell_out(predictions)
    labels, k = predictions.labels, predictions.k
    labels = labels if labels.ndim == 2 else np.eye(k)[labels]
    if predictions.weight is not None:
        labels = labels[predictions.weight > 0]
    shares = np.average(labels, axis=0, weights=columns.weights)
    return divergence.between(labels, np.tile(shares, (len(labels), 1)))
