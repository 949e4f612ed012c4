"""`compare`: differences of models on the same rows, with intervals and in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from math import erfc, hypot, inf, isfinite, isinf, isnan, sqrt
from typing import Annotated, Any

import numpy as np

from calibrant._base.checks import (
    MOST_NAME,
    as_number,
    check_choice,
    check_flags,
    one_line,
    shown,
)
from calibrant._base.comparison import Comparison, as_comparison, as_shown
from calibrant._base.evaluation import Evaluation
from calibrant._base.measures import (
    MEASURES,
    Measure,
    is_mirrored,
    is_trivial,
    sample_size,
    score_column,
)
from calibrant._base.records import FORECASTS, Estimate, Frame, Range, close, to_frame
from calibrant._base.text import wrapped
from calibrant._inputs.arrays import Column, Index, Mask
from calibrant._inputs.divergences import Divergence, score_in_words
from calibrant._inputs.options import Settings
from calibrant._sketch.cells import Cells
from calibrant._sketch.ordered import order_of
from calibrant._stats import closed_forms
from calibrant._stats.closed_forms import NOTHING, Interval, Mean, Surprises, quantile
from calibrant._stats.metrics import influence_on
from calibrant._stats.risk_coverage import AREAS
from calibrant._stats.sample import Sample
from calibrant._stats.standard_errors import degrees_of_freedom, error_of_mean

# ----------------------------------------------------------------------------
# Differences of two models in words that claim no more than the interval does.


DIGITS, ROUND_OFF = 4, 1e-14
SHOWS = 0.5 * 10**-DIGITS
"""From here on a number does not print as 0, so that an end keeps its side of it."""


def sentence(
    ev: Evaluation,
    base: Evaluation,
    key: str,
    difference: Estimate,
    *,
    paired: bool = True,
) -> str:
    """What one difference says: lower, higher, or not to be told apart."""
    what, value = name_of(key, ev.divergence), float(difference)
    both = f"{ev.name} and {base.name}"
    if isnan(value):
        return f"{_capital(what)} of {both} is infinite."
    if isinf(value):
        worse, other = (ev, base) if value > 0 else (base, ev)
        return f"{worse.name}'s {what} is infinite, {other.name}'s is not."
    if difference.method == SAME:
        return f"{_capital(what)} of {both} is the same for every example."
    if difference.interval is None:
        told = f"{ev.name}'s {what} is {_size(value)}"
        return f"{told}; no interval is known for it."
    if abs(value) < ROUND_OFF:
        ends = _interval(*difference.interval)
        lead = f"{_capital(what)} of {both} is the same"
        return f"{lead}; the interval of the difference is {ends}."
    rows, seen = _rows(ev, base, paired=paired), shows(difference)
    if not is_clear(difference) or not seen:
        least = 10**-DIGITS if is_clear(difference) else SHOWS
        size = _number(value, least) if seen else f"less than {10**-DIGITS:g}"
        ends = _interval(*difference.interval, least)
        told = f"{ev.name}'s {what} differs by {size} {ends}"
        return (
            f"{told}{'' if is_clear(difference) else f': not significant on {rows}'}."
        )
    low, high = sorted(abs(end) for end in difference.interval)
    told = f"{ev.name}'s {what} is {_size(value)} {_interval(low, high)}"
    return f"{told}: significant on {rows}.{_trivial(ev, key, value)}"


def shows(difference: Estimate) -> bool:
    """Whether a difference is 0 for every example, or visible as printed.

    Examples
    --------
    >>> shows(Estimate(0.0012)), shows(Estimate(5.7e-7)), shows(Estimate(0.0, (0, 0), SAME))
    (True, False, True)
    """
    return difference.method == SAME or round(float(difference), DIGITS) != 0


def told(found: Mapping[str, Estimate], ev: Evaluation | None = None) -> list[str]:
    """Which differences are put into words, in order: the score asked for comes first."""
    said = [MEASURES[key] for key in found if MEASURES[key].told]
    keys = [measure.key for measure in sorted(said, key=lambda m: m.told)]
    asked = "" if ev is None else score_column(ev)
    if asked not in found:
        return keys
    return [asked, *(key for key in keys if key != asked)]


def name_of(key: str, divergence: str = "") -> str:
    """What a column is called in a sentence; the whole score by its divergence."""
    if key == "total" and divergence:
        return score_in_words(divergence)
    return MEASURES[key].phrase or MEASURES[key].label


def _capital(what: str) -> str:
    return what[0].upper() + what[1:]


SAME_AS_FIT = "have the same scores and label as an example used to fit"
SAME_LABELS = "have the same labels, row by row, as those used to fit"
"""What is known of examples that a study was seemingly fitted on; it is in its protocol."""


def sameness(ev: Evaluation) -> str:
    """What a trivial model does, in words."""
    if is_mirrored(ev):
        return "gives the class it predicts (nearly) the same probability everywhere"
    return "gives (nearly) every example the same confidence"


def _trivial(ev: Evaluation, key: str, value: float) -> str:
    if not (MEASURES[key].calibration and value < 0 and is_trivial(ev)):
        return ""
    return f" But it is meaningless: {ev.name} {sameness(ev)}."


def _rows(ev: Evaluation, base: Evaluation, *, paired: bool) -> str:
    if paired:
        same = ev.left_out == base.left_out  # else each has a coverage of its own
        shown = ev if same else replace(ev, left_out=0.0)
        return f"these {sample_size(shown, in_sentence=True)}"
    return " and ".join(sample_size(x, in_sentence=True) for x in (ev, base))


def _size(value: float) -> str:
    return f"{_number(abs(value))} {'lower' if value < 0 else 'higher'}"


def _interval(low: float, high: float, least: float = 10**-DIGITS) -> str:
    return f"[{_number(low, least)}, {_number(high, least)}]"


def _number(value: float, least: float = 10**-DIGITS) -> str:
    """Four decimals, or two digits of what is below the least; no negative zero."""
    if value != 0 and abs(value) < least and isfinite(value):
        return f"{value:.1e}"
    return f"{value + 0.0:.{DIGITS}f}"


def multiple_note(
    told: Mapping[tuple[str, str], Estimate], level: float, divergence: str = ""
) -> Iterator[str]:
    """How many differences are significant, and which after Holm's correction."""
    tested = p_values(told, level)
    claimed = [x for x in tested if is_clear(told[x]) and shows(told[x])]
    if not claimed or len(tested) < 2:
        return
    kept = holm(tested, 1 - level)
    lost = [
        f"{name}'s {name_of(key, divergence)}"
        for name, key in claimed
        if (name, key) not in kept
    ]
    expected = (1 - level) * len(tested)
    are = "is significant," if len(claimed) == 1 else "are significant, each"
    yield (
        f"{len(claimed)} of {len(tested)} differences {are} at "
        f"{100 * level:g} %; about {expected:.1g} would be expected by chance. "
        f"{_after_holm(lost, len(claimed))}"
    )


MOST_LOST = 3
"""Differences named as not significant after correction; more are counted."""


def _after_holm(lost: list[str], count: int) -> str:
    if count == 1:
        return (
            f"It is {'not' if lost else 'still'} significant after Holm's correction."
        )
    if not lost:
        return "All remain significant after Holm's correction."
    if len(lost) == count:
        return "None remains significant after Holm's correction."
    which = ", ".join(lost) if len(lost) <= MOST_LOST else f"{len(lost)} of them"
    return f"Not significant after Holm's correction: {which}."


# ----------------------------------------------------------------------------
# Differences of two models in every column, with intervals.


SAME = "the same for every example"

FEW_ROWS, FEW_SURPRISES = 100, 3
"""Below both, a difference has no interval: what rare examples cost was hardly seen."""


@dataclass(frozen=True, eq=False)
class ModelRows:
    """A model beside the sample of its rows, and influences and costs known so far."""

    evaluation: Evaluation
    sample: Sample
    known: dict[str, Column | None] = field(default_factory=dict)
    costs: dict[str, Column] = field(default_factory=dict)

    def influence(self, key: str) -> Column | None:
        """Influence of each row on a number of the model, if it has one."""
        if key not in self.known:
            self.known[key] = influence_on(self.sample, key)
        return self.known[key]

    def cost_of_hit(self, name: str) -> Column:
        """What a hit loses more than a miss, by the divergence of this name."""
        if name not in self.costs:
            divergence = self.sample.settings.divergences[name]
            self.costs[name] = _cost_of_hit(self.sample, divergence)
        return self.costs[name]

    @cached_property
    def surprises(self) -> float:
        """Independent rows that turned out against the odds."""
        hit = self.sample.columns.hit
        seen = self.sample.weight * np.where(self.sample.h >= 0.5, 1 - hit, hit)
        return self.sample.rows.independent(seen)

    @property
    def share_of_few(self) -> float:
        """How far rows that turned out against the odds are too few: from 1, if none."""
        return closed_forms.share_of_few(self.surprises)

    @property
    def hardly_seen(self) -> bool:
        """Whether rows are few and hardly any turned out against the odds."""
        few = self.sample.columns.effective < FEW_ROWS
        return few and self.surprises < FEW_SURPRISES

    @cached_property
    def order(self) -> Index:
        """Rows in the order of their confidence."""
        return order_of(self.sample.h)


def paired_differences(
    mine: ModelRows, theirs: ModelRows, level: float = 0.95
) -> dict[str, Estimate]:
    """Model less baseline, row by row, in every column both have."""
    columns = known_to_both(mine.evaluation, theirs.evaluation)
    return {m.key: paired_difference(mine, theirs, m, level) for m in columns}


def same_rows(ev: Evaluation, baseline: Evaluation) -> bool:
    """Whether two models saw the same rows, as far as their records tell.

    Pairs carry no labels, only the model's own correctness, so for them it is enough
    that there are as many rows, of the same weights; and of the same ids, if both have
    any. None of them may have left out other rows.
    """
    mine, theirs = (one.columns for one in (ev, baseline))
    if mine is None or theirs is None or left_out_others(ev, baseline):
        return False
    by_id = has_ids(ev) and has_ids(baseline)
    if ev.target == baseline.target == "pairs" and not by_id:
        w, v = (rows_of(one).sample.weight for one in (ev, baseline))
        return w.shape == v.shape and np.allclose(w, v, rtol=1e-7, atol=0)
    prints = [one.fingerprint for one in (ev, baseline)]
    return prints[0] is not None and prints[0] == prints[1]


def were_paired(ev: Evaluation, baseline: Evaluation) -> bool:
    """Whether two models saw the same rows, which are gone, as after JSON."""
    both = ev, baseline
    at_hand = all(one.columns is not None for one in both)
    unknown = any(one.fingerprint is None for one in both)
    if at_hand or unknown or left_out_others(ev, baseline):
        return False
    if ev.target == baseline.target == "pairs":  # whose labels are their own
        return ev.n == baseline.n
    return ev.fingerprint == baseline.fingerprint


BY_ID = "ids "
"""How a fingerprint begins that is of what identifies the rows, not of their labels."""


def has_ids(ev: Evaluation) -> bool:
    """Whether a record knows which example each row is."""
    return (ev.fingerprint or "").startswith(BY_ID)


KEPT = "kept "
"""How a fingerprint begins that is also of which rows are left, as others were left out."""


def print_of_kept(kept: Iterable[Any], labels: str = "") -> str:
    """A fingerprint of rows that are left, by their numbers or ids, and of their labels.

    Examples
    --------
    >>> print_of_kept([0, 1, 3])
    'kept b726e5ef550dee768404c67fc7c73b98'
    """
    named = "\0".join([labels, *map(str, kept)]).encode("utf-8", "surrogatepass")
    return f"{KEPT}{blake2b(named, digest_size=16).hexdigest()}"


def knows_kept(ev: Evaluation) -> bool:
    """Whether a record knows that rows were left out, and which are left."""
    return (ev.fingerprint or "").startswith(KEPT)


def left_out_others(ev: Evaluation, baseline: Evaluation) -> bool:
    """Whether one of two models left out rows that the other did not."""
    knows = knows_kept(ev) or knows_kept(baseline)
    return knows and ev.fingerprint != baseline.fingerprint


def same_clusters(ev: Evaluation, baseline: Evaluation) -> bool:
    """Whether the rows of two models belong together alike, if they do at all."""
    mine, theirs = ev.clusters, baseline.clusters
    if mine is None or theirs is None:
        return mine is theirs
    return np.array_equal(mine, theirs)


def paired_difference(
    mine: ModelRows, theirs: ModelRows, measure: Measure, level: float = 0.95
) -> Estimate:
    """Model less baseline in one column, from the same rows."""
    value = _value(mine.evaluation, theirs.evaluation, measure)
    columns, clusters = mine.sample.columns, mine.sample.clusters
    hard = columns.hard and theirs.sample.columns.hard
    if measure.key == "accuracy" and hard and clusters is None:
        return _of_accuracy(mine.sample, theirs.sample, value, level)
    x, y = mine.influence(measure.key), theirs.influence(measure.key)
    if x is None or y is None or not isfinite(value):
        return Estimate(value)
    se = error_of_mean(x - y, columns.weight, clusters, columns.squared)
    if not se and (measure.mean or not value):
        return Estimate(value, (value, value), SAME)
    if mine.hardly_seen or theirs.hardly_seen:
        return Estimate(value)
    if measure.key == "calibration" and _one_order(mine, theirs):
        return _of_loss(mine, theirs, value, level)
    costs = _costs(mine, theirs, measure)
    df = degrees_of_freedom(columns, clusters)
    if (
        measure.key in AREAS
    ):  # to first order they are right, and as sure as errors are many
        df = min(df, mine.surprises, theirs.surprises)
    mean = Mean(value, se, df, *costs)
    if clusters is not None:
        alone = error_of_mean(x - y, columns.weight, None, columns.squared)
        mean = replace(mean, whole=mine.sample.rows.per_cluster, alone=alone)
    ends = closed_forms.mean_interval(mean, level)
    suffix = "" if clusters is None else ", clusters"
    if measure.mean:
        return Estimate(value, ends, "paired" + suffix)
    if measure.key in AREAS:
        return Estimate(value, ends, "paired, first order" + suffix)
    best = _or_apart(ends, mine, theirs, measure, level)
    if measure.key == "sharpness_gap" and best is not None and best != ends:
        best = _within_parts(best, value, mine, theirs, level)
    return Estimate(value, best, best and "paired, first order" + suffix)


def _within_parts(
    ends: Interval, value: float, mine: ModelRows, theirs: ModelRows, level: float
) -> Interval:
    """Ends of a difference of gaps, no farther out than those of score and d_CAL allow."""
    parts = (
        paired_difference(mine, theirs, MEASURES[key], level).interval
        for key in ("total", "calibration")
    )
    total, error = (x or (-inf, inf) for x in parts)
    low, high = max(ends[0], total[0] - error[1]), min(ends[1], total[1] - error[0])
    return min(low, value), max(high, value)


def _one_order(mine: ModelRows, theirs: ModelRows) -> bool:
    """Whether two models tell the same rows apart, of the same events, in one order."""
    same = _same_event(mine.sample, theirs.sample)
    if same is None or not same.all():
        return False
    ours, other = (np.diff(x.sample.h[mine.order]) for x in (mine, theirs))
    falls = other.min(initial=0.0) < 0
    return not falls and np.array_equal(ours > 0, other > 0)


def _of_loss(
    mine: ModelRows, theirs: ModelRows, value: float, level: float
) -> Estimate:
    """Difference of d_CAL where that of the losses is the same, and better known.

    What tells the same rows apart has the same sharpness gap, as after temperature
    scaling of two classes.
    """
    found = paired_difference(mine, theirs, MEASURES["total"], level)
    if found.interval is None:
        return Estimate(value)
    low, high = found.interval
    return Estimate(value, (min(low, value), max(high, value)), found.method)


def _or_apart(
    ends: Interval,
    mine: ModelRows,
    theirs: ModelRows,
    measure: Measure,
    level: float,
) -> Interval | None:
    """The ends to first order, or of the models' own intervals where these are wrong.

    That is so if surprises are few, by the share of `closed_forms.mean_interval`, and if
    noise inflates the error of a model that may have none: then the wider of both, as rows
    that raise one error may lower the other. The own intervals combine as if from separate
    rows, scaled from their level to this one.
    """
    if measure.inflated:
        ends = _inflated(ends, mine.evaluation, theirs.evaluation, measure)
    apart = independent_difference(mine.evaluation, theirs.evaluation, measure)
    share = min(rows.share_of_few for rows in (mine, theirs))
    if apart.interval is None:
        return ends if share < 0.5 else None
    scale = quantile(level) / quantile(mine.sample.settings.level)
    low, high = (apart + scale * (end - apart) for end in apart.interval)
    if measure.inflated and any(_may_be_0(rows, measure) for rows in (mine, theirs)):
        return min(low, ends[0]), max(high, ends[1])
    return (
        share * low + (1 - share) * ends[0],
        share * high + (1 - share) * ends[1],
    )


def _inflated(
    ends: Interval, ev: Evaluation, baseline: Evaluation, measure: Measure
) -> Interval:
    """The ends, and as far beyond as noise inflates one error more than the other.

    By how much it does is told by how far a value is above the middle of its interval.
    """
    x, y = (measure.of(one) for one in (ev, baseline))
    if x.interval is None or y.interval is None:
        return ends
    more = (float(x) - sum(x.interval) / 2) - (float(y) - sum(y.interval) / 2)
    return min(ends[0], ends[0] - more), max(ends[1], ends[1] - more)


def _may_be_0(rows: ModelRows, measure: Measure) -> bool:
    """Whether an error cannot be told from 0, so that noise may be all of it."""
    interval = measure.of(rows.evaluation).interval
    return interval is not None and interval[0] <= 0


SCORES = {"nll": "log", "brier": "brier"}
"""Means of losses: where surprises are few, their costs say how wide an interval is."""


def _costs(
    ours: ModelRows, others: ModelRows, measure: Measure
) -> tuple[Surprises, Surprises]:
    """What surprises cost one model more than the other, and less.

    Rows in which both speak of the same event: the positive class, or the same predicted
    one. A surprise is what their mean confidence is against.
    """
    mine, theirs = ours.sample, others.sample
    name = SCORES.get(measure.key)
    if measure.key == "total":
        name = mine.settings.main.name
    same = None if name is None else _same_event(mine, theirs)
    if name is None or same is None or not same.any():
        return NOTHING, NOTHING
    columns, n = mine.columns, mine.n
    weight, squared, hit = (
        x[same] for x in (columns.weights, columns.squares, columns.hit)
    )
    h = 0.5 * (mine.h + theirs.h)[same]
    likely, apart = h >= 0.5, ours.cost_of_hit(name) - others.cost_of_hit(name)
    dearer = np.where(likely, -1.0, 1.0) * apart[same]
    seen = np.where(likely, 1 - hit, hit)
    rows = np.minimum(h, 1 - h), weight, squared, weight * seen, squared * seen
    more, less = np.maximum(dearer, 0.0), np.maximum(-dearer, 0.0)
    return Surprises.of(*rows, more, n), Surprises.of(*rows, less, n)


def _same_event(mine: Sample, theirs: Sample) -> Mask | None:
    """Rows in which two models say how likely the same thing is; None if not known.

    Pairs do not name the event: models that are right in just the same rows share it.
    """
    same = mine.target == "pairs" and np.array_equal(
        mine.columns.hit, theirs.columns.hit
    )
    if mine.target in FORECASTS or same:
        return np.ones(len(mine.h), bool)
    one, two = mine.columns.predicted, theirs.columns.predicted
    return None if one is None or two is None else one == two


def _cost_of_hit(sample: Sample, divergence: Divergence) -> Column:
    """What a hit loses more than a miss, negative as a rule where a hit is likely."""
    h, z = sample.h, sample.columns.log_odds
    one = np.ones_like(h)
    full = sample.columns.mean(sample.columns.loss(divergence))
    alone = sample.columns.mean(sample.columns.unit_loss(divergence))
    scale = full / alone if 0 < alone < inf else 1.0
    cost = divergence.unit_loss(one, h, z) - divergence.unit_loss(0 * one, h, z)
    return np.where(np.isfinite(cost), scale * cost, 0.0)


def _value(ev: Evaluation, base: Evaluation, measure: Measure) -> float:
    return float(measure.of(ev)) - float(measure.of(base))


def _of_accuracy(mine: Sample, theirs: Sample, value: float, level: float) -> Estimate:
    change = mine.correct() - theirs.correct()
    if not change.any():
        return Estimate(value, (value, value), SAME)
    weight = mine.weight * (mine.columns.effective / mine.n)
    low, high = _of_shares(change, weight, level)
    ends = max(min(value, low), -1.0), min(max(value, high), 1.0)
    return Estimate(value, ends, "paired, adjusted")


def rows_of(ev: Evaluation) -> ModelRows:
    """The rows behind an evaluation, which JSON and sketches do not keep."""
    if ev.columns is None:
        raise ValueError(
            f"the rows of {ev.name!r} are gone: it was read from JSON, made of a sketch, or "
            "is one class of a class-wise evaluation. Evaluate it again (a class with its own "
            "column of probs), or pass paired=False."
        )
    known = {} if ev.sketch is None else ev.sketch.divergences
    main = known.get(ev.divergence, ev.divergence)
    settings = Settings(**{**ev.settings, "divergence": main, "rng": 0})
    about = settings, ev.target, ev.k, ev.clusters
    cells = Cells(settings.divergences) if ev.sketch is None else ev.sketch
    return ModelRows(ev, Sample(ev.columns, cells, *about))


def _of_shares(change: Column, weight: Column, level: float) -> Interval:
    """Interval for a difference of paired shares (Bonett and Price 2012).

    One row is added to each kind of change, which keeps coverage where few rows changed.
    """
    n = float(weight.sum()) + 2
    more, less = (float(weight[change == x].sum() + 1) / n for x in (1, -1))
    half = quantile(level) * sqrt((more + less - (more - less) ** 2) / n)
    return more - less - half, more - less + half


def independent_differences(
    ev: Evaluation, baseline: Evaluation
) -> dict[str, Estimate]:
    """Model less baseline where rows differ: the two intervals combined.

    Each end moves by the root of the squared distances of the ends that make it extreme
    (Zou and Donner 2008); where a model has no interval, the difference has none. An error
    that noise inflates, and that may be 0, is as far above 0 as it is by no chance: that
    distance is added.
    """
    columns = known_to_both(ev, baseline)
    return {m.key: independent_difference(ev, baseline, m) for m in columns}


def independent_difference(
    ev: Evaluation, baseline: Evaluation, measure: Measure
) -> Estimate:
    """Model less baseline in one column, from separate rows."""
    x, y = measure.of(ev), measure.of(baseline)
    value = _value(ev, baseline, measure)
    if x.interval is None or y.interval is None or not isfinite(value):
        return Estimate(value)
    (low_x, high_x), (low_y, high_y) = x.interval, y.interval
    down = _reach(x, low_x, high_y - y, measure)
    up = _reach(y, low_y, high_x - x, measure)
    return Estimate(value, (value - down, value + up), "independent rows")


def _reach(value: float, low: float, above: float, measure: Measure) -> float:
    """How far a difference reaches by one model's lower end and the other's upper."""
    if not measure.inflated:
        return hypot(value - low, above)
    above = max(above, 0.0)  # noise may put a value above its own interval
    return hypot(value - low, above) if low > 0 else value + above


def known_to_both(ev: Evaluation, baseline: Evaluation) -> list[Measure]:
    """Columns that are numbers for both models."""
    both = [(m, m.of(ev), m.of(baseline)) for m in MEASURES.values() if m.compared]
    return [m for m, x, y in both if not (np.isnan(x) or np.isnan(y))]


def is_clear(difference: Estimate) -> bool:
    """Whether the interval lies on one side of 0.

    Examples
    --------
    >>> is_clear(Estimate(0.1, (0.05, 0.15))), is_clear(Estimate(0.1, (-0.05, 0.25)))
    (True, False)
    """
    interval = difference.interval
    return interval is not None and (interval[0] > 0 or interval[1] < 0)


def p_value(difference: Estimate, level: float) -> float:
    """Two-sided p-value that belongs to a normal interval; NaN without an interval."""
    if difference.interval is None:
        return float("nan")
    low, high = difference.interval
    half = 0.5 * (high - low)
    if half == 0:
        return 1.0 if float(difference) == 0 else 0.0
    return erfc(abs(0.5 * (low + high)) * quantile(level) / half / sqrt(2))


def p_values(found: Mapping[Any, Estimate], level: float) -> dict[Any, float]:
    """The p-values of those differences that have been tested."""
    return {
        place: p_value(difference, level)
        for place, difference in found.items()
        if difference.interval is not None and difference.method != SAME
    }


def holm(p_values: Mapping[Any, float], alpha: float) -> set[Any]:
    """Which hypotheses Holm's step-down procedure rejects.

    Examples
    --------
    >>> sorted(holm({"a": 0.001, "b": 0.03, "c": 0.04}, 0.05))
    ['a']
    """
    return {name for name, p in holm_adjusted(p_values).items() if p <= alpha}


def holm_adjusted(p_values: Mapping[Any, float]) -> dict[Any, float]:
    """The least alpha at which Holm's procedure rejects each hypothesis.

    Examples
    --------
    >>> holm_adjusted({"a": 0.25, "b": 0.125, "c": 0.75})
    {'b': 0.375, 'a': 0.5, 'c': 0.75}
    """
    adjusted: dict[Any, float] = {}
    least, left = 0.0, len(p_values)
    for name, p in sorted(p_values.items(), key=lambda item: item[1]):
        least = max(least, min(left * p, 1.0))
        adjusted[name] = least
        left -= 1
    return adjusted


# ----------------------------------------------------------------------------
# Compare models on the same rows: differences with intervals, and what they mean.


ALIKE = (
    "level",
    "bins",
    "closed",
    "bandwidth",
    "kernel",
    "boundary",
    "estimator",
    "counterpart",
    "preset",
)
"""Settings that must agree, or numbers of the same name are different things."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Contrast(Comparison):
    """A comparison that knows how far each model is from a baseline.

    Attributes
    ----------
    baseline : str
        Name of the model the others are compared with.
    level : float
        Coverage of the intervals.
    paired : bool
        Whether all models saw the same rows, and differences were taken row by row.
    differences : dict of dict of Estimate
        Model less baseline, by model and column, with intervals where they are known.

    Examples
    --------
    >>> import calibrant as cal
    >>> sure = cal.evaluate_pairs([1, 0, 1, 1] * 20, [0.9, 0.8, 0.9, 1.0] * 20, name="sure")
    >>> fair = cal.evaluate_pairs([1, 0, 1, 1] * 20, [0.8, 0.6, 0.8, 0.9] * 20, name="fair")
    >>> found = cal.compare(sure, fair)
    >>> found.baseline, round(found.differences["fair"]["brier"], 3)
    ('sure', -0.053)
    >>> cal.Contrast.from_dict(found.to_dict()).level
    0.95
    """

    baseline: str = ""
    level: Annotated[float, Range(0, 1, above=True)] = 0.95
    paired: bool = True
    differences: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Each difference in words, then what to keep in mind."""
        told, reminders = told_and_reminders(self)
        return (*told, *reminders)

    def _told(self) -> Iterator[str]:
        base = self[self.baseline]
        for name, found in self.differences.items():
            if not any(shows(found[key]) for key in told(found, base)):
                both = f"{name} and {self.baseline}"
                yield f"{both} differ by less than {10**-DIGITS:g} in every metric compared."
                continue
            for key in told(found, base):
                if shows(found[key]) or found[key].interval is not None:
                    yield sentence(
                        self[name], base, key, found[key], paired=self.paired
                    )

    def _claims(self) -> dict[tuple[str, str], Estimate]:
        """Differences that are put into words, or would be if they were clear."""
        return {
            (name, key): found[key]
            for name, found in self.differences.items()
            for key in told(found, self[0])
        }

    def _reminders(self) -> Iterator[str]:
        yield from multiple_note(self._claims(), self.level, self[0].divergence)
        if not self.paired:
            yield (
                "Examples were not paired: the models' intervals were combined as if from "
                "separate examples, which is too wide if they are the same."
            )
        elif self[0].target == "pairs" and not all(map(has_ids, self)):
            yield (
                "Pairs carry no labels: whether example i is the same question for every "
                "model cannot be checked."
            )

    def difference_frame(self, kind: str | None = None) -> Frame:
        """One row per model and metric: its difference to the baseline, with p-values.

        `low` and `high` are the ends of the interval. `p_value` is that of a normal law with
        this interval: at a level of 95 % it is below 0.05 just where the interval excludes 0.
        `p_holm` is adjusted by Holm's method for all differences that the sentences are
        about; other metrics have none, nor have differences without an interval: NaN.
        `kind` as in `frame`.

        Examples
        --------
        >>> import calibrant as cal
        >>> y, p = [1, 0, 1, 1] * 20, [0.8, 0.6, 0.8, 0.9] * 20
        >>> a = cal.evaluate_pairs(y, p, name="a")
        >>> b = cal.evaluate_pairs(y, [0.5] * 80, name="b")
        >>> found = cal.compare(a, b).difference_frame()
        >>> brier = [*found["metric"]].index("brier")
        >>> float(found["difference"][brier].round(4)), bool(found["p_holm"][brier] < 0.05)
        (0.1375, True)
        """
        claims, rows = self._claims(), []
        adjusted = holm_adjusted(p_values(claims, self.level))
        for name, found in self.differences.items():
            p = p_values(found, self.level)
            for key, value in found.items():
                tests = p.get(key, np.nan), adjusted.get((name, key), np.nan)
                rows.append((name, key, *ends_of(value), *tests))
        names = (self._each, "metric", "difference", "low", "high", "p_value", "p_holm")
        columns = {x: np.array([row[i] for row in rows]) for i, x in enumerate(names)}
        return to_frame(columns, kind)

    def _disagreement(self) -> str | None:
        strange = {self.baseline, *self.differences} - set(self.names)
        if strange:
            return f"compares {min(strange)!r}, which is no model"
        for name, found in self.differences.items():
            for key, difference in found.items():
                models = self[name], self[self.baseline]
                if key in MEASURES and not close(
                    difference, _value(*models, MEASURES[key])
                ):
                    of = f"{difference:g} of {name!r} and {self.baseline!r} in {key!r}"
                    return f"has a difference {of}, which is not theirs"
        return Comparison._disagreement(self)

    @property
    def against(self) -> str:
        """What heads the sentences: which model each other one is compared with."""
        return f"Against {one_line(self.baseline, MOST_NAME)}:"

    def __str__(self) -> str:
        table = Comparison.__str__(self)
        told = map(wrapped, self.sentences)
        return "\n".join([table, "", self.against, "", *told])


def told_and_reminders(found: Contrast) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Differences in words, and what to keep in mind about them."""
    shown: Any = as_shown(found)
    return tuple(shown._told()), tuple(shown._reminders())


def compare(
    *models: Any,
    paired: bool = True,
    level: float | None = None,
    baseline: str | None = None,
) -> Contrast:
    """Compare models on the same rows, each with a baseline, in every column.

    Parameters
    ----------
    *models : Evaluation
        Two or more, of distinct names, or one `Comparison` such as a study.
    paired : bool
        Whether the models saw the same rows in the same order, which is checked. Models
        of other rows are refused unless it is False: their intervals are then combined
        as independent.
    level : float
        Coverage of the intervals of the differences; by default that of the baseline's
        own intervals.
    baseline : str, optional
        Name of the model to compare with; the first by default.

    Returns
    -------
    Contrast
        A comparison with ``differences`` and ``sentences``; print it to read them, or take
        ``difference_frame()``, a table of differences with intervals and p-values.

    Notes
    -----
    Accuracy, losses and the confidence gap are means over rows: their differences have
    the interval of a mean of row differences, by Student's law (for accuracy the adjusted
    one of Bonett and Price, 2012; where few rows turned out against the odds, by what these
    cost either model). Other columns are means to first order: each row counts by its
    influence on the estimate; where few rows turned out against the odds, the intervals of
    the two models are combined instead. Fewer than 100 rows of which fewer than three turned
    out against the odds say too little of rare costs: no interval. If both tell the same
    rows apart, as before and after temperature scaling of two classes, the difference of
    d_CAL is that of the losses and has its interval. Nothing is resampled. Whole clusters
    count as one if the evaluations had ``cluster=``. Errors that cannot be negative, such
    as ECE, are too large by an amount that depends on n, and on how well calibrated the
    model is: if one of them cannot be told from 0, the intervals of the two models are
    combined, too. Lead with losses and d_CAL, which have no such excess.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(2000, 3))
    >>> y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> a = cal.evaluate(y, logits=z, name="A")
    >>> b = cal.evaluate(y, logits=3 * z, name="B")
    >>> found = cal.compare(a, b)
    >>> found.differences["B"]["brier"].interval[0] > 0.05
    True
    >>> print(found.sentences[2])
    Accuracy of B and A is the same for every example.
    """
    check_flags(paired=paired)
    comparison = as_comparison(models[0] if len(models) == 1 else models)
    if len(comparison) < 2:
        raise ValueError("compare needs at least two models, got one.")
    name = comparison.names[0] if baseline is None else baseline
    check_choice(name, "baseline", comparison.names)
    base = comparison[name]
    level = base.settings["level"] if level is None else level
    check_level(level)
    others = [ev for ev in comparison if ev.name != name]
    for ev in others:
        _check_alike(ev, base)
        _check_rows(ev, base, level, paired=paired)
    if paired:
        rows = rows_of(base)
        differences = {
            ev.name: paired_differences(rows_of(ev), rows, level) for ev in others
        }
    else:
        differences = {ev.name: independent_differences(ev, base) for ev in others}
    return Contrast(
        comparison.evaluations,
        comparison.protocol,
        comparison.effects,
        comparison.shared_rows,
        baseline=name,
        level=float(level),
        paired=paired,
        differences=differences,
    )


def ends_of(value: Estimate) -> tuple[float, float, float]:
    """A number and the ends of its interval, NaN without one."""
    low, high = value.interval or (np.nan, np.nan)
    return float(value), low, high


def check_level(level: Any) -> None:
    """Refuse a coverage that is none."""
    if not 0 < as_number(level) < 1:
        raise ValueError(f"level must be between 0 and 1, got {shown(level)}.")


def _check_alike(ev: Evaluation, base: Evaluation) -> None:
    facts = {name: (getattr(ev, name), getattr(base, name)) for name in _FACTS}
    facts |= {name: (ev.settings.get(name), base.settings.get(name)) for name in ALIKE}
    for name, (mine, theirs) in facts.items():
        if mine != theirs:
            raise ValueError(
                f"models must be evaluated alike; {name} is {mine!r} for {ev.name!r} and "
                f"{theirs!r} for {base.name!r}."
            )


_FACTS = ("target", "divergence", "k")


def why_apart(ev: Evaluation, base: Evaluation) -> str:
    """Why a model cannot be paired with another, in a few words; empty if it can."""
    try:
        _check_alike(ev, base)
    except ValueError as error:
        return str(error).partition("; ")[2].rstrip(".")
    for one in (ev, base):
        if one.columns is None:
            return f"the examples of {one.name} are not kept in a sketch or in JSON"
    if same_rows(ev, base):
        same = same_clusters(ev, base)
        return "" if same else "the clusters of the two differ"
    if ev.rows != base.rows:
        return f"it has {ev.rows:,} examples, and {base.name} has {base.rows:,}"
    if left_out_others(ev, base):
        return f"other examples were left out than of {base.name}"
    by_id = has_ids(ev) and has_ids(base)
    return f"its {'ids' if by_id else 'labels or weights'} differ from those of {base.name}"


def _check_rows(
    ev: Evaluation, base: Evaluation, level: float, *, paired: bool
) -> None:
    if not paired:
        if ev.settings["level"] != level:
            raise ValueError(
                f"without pairing, intervals are those of the evaluations; {ev.name!r} "
                f"has level {ev.settings['level']!r}, not {level!r}. Evaluate it with "
                f"level={level!r}."
            )
        return
    for one in (ev, base):
        rows_of(one)  # or it says that they are gone
    if not same_rows(ev, base):
        counts = f"{ev.rows:,} and {base.rows:,} of them"
        why = counts if ev.rows != base.rows else "labels or weights differ"
        if left_out_others(ev, base):
            raise ValueError(_other_rows_left_out(ev, base))
        raise ValueError(
            f"{ev.name!r} and {base.name!r} were evaluated on different rows ({why}), so "
            "rows cannot be paired. Evaluate both on the same rows in the same order, or "
            "pass paired=False."
        )
    if not same_clusters(ev, base):
        raise ValueError(
            f"{ev.name!r} and {base.name!r} were evaluated with different clusters, so "
            "their rows cannot be paired. Give both the same cluster=."
        )


def _other_rows_left_out(ev: Evaluation, base: Evaluation) -> str:
    """Why models of which rows were left out cannot be paired, and what to do."""
    lost = " and ".join(f"{one.left_out:,.10g}" for one in (ev, base))
    return (
        f"rows without a confidence were left out of {ev.name!r} and {base.name!r} ({lost} of "
        "them), not the same ones, so the others cannot be paired. Evaluate both on the rows "
        "that have both confidences: keep = ~np.isnan(np.array([one, other], float)).any(0), "
        "and np.asarray(x)[keep] of each argument. Or pass paired=False."
    )
